//! A policy as it is stored. FORMAT.md, *Policy*.

use crate::error::Result;
use crate::layout::{self, Tag};
use crate::policy;
use crate::record;
use bytes::Bytes;
use mw_model::codec::{Reader, Writer};
use mw_model::policy::Policy;

/// A policy with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyInfo {
    /// Its name: 1 to 128 of letters, digits and `+=,.@_-`.
    pub name: String,
    /// What people say of it.
    pub description: String,
    /// Its JSON, as it was given.
    pub document: String,
    /// When it was made, in UNIX nanoseconds.
    pub created: u64,
    /// When it was last changed, in UNIX nanoseconds.
    pub updated: u64,
}

impl PolicyInfo {
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).str(&self.description).var(self.created).var(self.updated).str(&self.document);
        w.0.into()
    }

    pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        record::version(&mut r)?;
        let (description, created, updated) = (r.str()?.to_owned(), r.var()?, r.var()?);
        let document = r.str()?.to_owned();
        r.end()?;
        Ok(Self { name: name.to_owned(), description, document, created, updated })
    }
}

/// Returns where a policy is kept.
pub(crate) fn place(name: &str) -> Bytes {
    layout::raw(Tag::Policy, name.as_bytes())
}

/// Reads the statements of a stored policy.
pub(crate) fn document(bytes: &[u8]) -> Result<Policy> {
    policy::parse(&PolicyInfo::decode("", bytes)?.document)
}
