//! The name of a whole map. A root is a small value; it does not read anything.

use crate::node::Child;
use crate::shape::{MAX_LEVEL, Salt};
use mw_model::Hash;
use mw_model::codec::{DecodeError, Reader, Writer};
use mw_segments::BlobRef;

/// Names a whole map: where its top node lies, and the logical hash, count and weight of what is in it.
///
/// Two roots are `==` when they are the same stored tree; they have the same *content* when their [`Root::hash`]es are
/// equal (given one salt).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Root {
    top: Option<Top>,
}

/// The top node of a map that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Top {
    pub(crate) level: u8,
    pub(crate) salt: Salt,
    pub(crate) child: Child,
}

/// The first byte of an encoded root: empty, or format 1.
const EMPTY: u8 = 0;
const FORMAT: u8 = 1;

impl Root {
    /// Returns the map without entries. It is not stored anywhere.
    pub fn empty() -> Self {
        Self::default()
    }

    pub(crate) fn new(top: Top) -> Self {
        Self { top: Some(top) }
    }

    pub(crate) fn top(&self) -> Option<&Top> {
        self.top.as_ref()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.top.is_none()
    }

    /// Returns the logical hash: a function of the keys, data and weights (and the salt's shape), never of addresses,
    /// locators or history. The empty map has the hash of a leaf without entries.
    pub fn hash(&self) -> Hash {
        self.top.map_or_else(|| Hash::of(&[0]), |top| top.child.hash)
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> u64 {
        self.top.map_or(0, |top| top.child.entries)
    }

    /// Returns the sum of the weights of all entries.
    pub fn weight(&self) -> u64 {
        self.top.map_or(0, |top| top.child.weight)
    }

    /// Returns the blob of the top node.
    pub fn blob(&self) -> Option<BlobRef> {
        self.top.map(|top| top.child.blob)
    }

    /// Appends the root to a record.
    pub fn encode(&self, w: &mut Writer) {
        match &self.top {
            None => w.u8(EMPTY),
            Some(Top { level, salt, child }) => {
                w.u8(FORMAT).u8(*level).raw(&salt.0);
                child.blob.encode(w);
                w.hash(&child.hash).var(child.entries).var(child.weight)
            }
        };
    }

    /// Reads a root.
    ///
    /// # Errors
    /// The input is short, out of range, or of a newer format.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            EMPTY => Ok(Self::empty()),
            FORMAT => {
                let level = r.u8()?;
                if level > MAX_LEVEL {
                    return Err(DecodeError::Range);
                }
                let mut salt = Salt([0; 16]);
                salt.0.copy_from_slice(r.take(16)?);
                let blob = BlobRef::decode(r)?;
                let child = Child { blob, hash: r.hash()?, entries: r.var()?, weight: r.var()? };
                Ok(Self::new(Top { level, salt, child }))
            }
            _ => Err(DecodeError::Range),
        }
    }
}
