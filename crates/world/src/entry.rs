//! One entry of a world's log: what changed, when, by whose key, in which run. Entries are chained by hash.
//!
//! The chain covers content *hashes*, not places: bytes can later be moved or redacted without breaking it.

use crate::error::{Error, Result};
use crate::record;
use bytes::Bytes;
use mw_model::codec::{Reader, Writer};
use mw_model::{Hash, Seq, Version};
use mw_tree::{Root, Value};

/// What a mutation was, as history shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the verbs")]
pub(crate) enum Verb {
    Create = 1,
    Write = 2,
    Truncate = 3,
    Unlink = 4,
    Rename = 5,
    Link = 6,
    Attributes = 7,
    Xattr = 8,
    Put = 9,
    Delete = 10,
    Copy = 11,
    Tag = 12,
    Fork = 13,
    Snapshot = 14,
    Promote = 15,
    Rebase = 16,
    Revert = 17,
    Restore = 18,
    Clean = 19,
    Born = 20,
}

impl Verb {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Write => "write",
            Self::Truncate => "truncate",
            Self::Unlink => "unlink",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Attributes => "attributes",
            Self::Xattr => "xattr",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Copy => "copy",
            Self::Tag => "tag",
            Self::Fork => "fork",
            Self::Snapshot => "snapshot",
            Self::Promote => "promote",
            Self::Rebase => "rebase",
            Self::Revert => "revert",
            Self::Restore => "restore",
            Self::Clean => "clean",
            Self::Born => "born",
        }
    }

    /// Returns whether it changes a world as a whole: many paths at once.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::Promote | Self::Rebase | Self::Revert | Self::Restore)
    }

    fn from_u8(n: u8) -> Result<Self> {
        use Verb::*;
        [
            Create, Write, Truncate, Unlink, Rename, Link, Attributes, Xattr, Put, Delete, Copy, Tag, Fork, Snapshot,
            Promote, Rebase, Revert, Restore, Clean, Born,
        ]
        .into_iter()
        .find(|v| *v as u8 == n)
        .ok_or_else(|| Error::corrupt(format!("log verb {n} is unknown; use a newer `mw`")))
    }
}

/// An entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub seq: Seq,
    pub time: Version,
    /// The id of the key that did it.
    pub key: String,
    /// The run it belonged to.
    pub run: Option<String>,
    pub verb: Verb,
    /// The path or key it named, when it named one.
    pub path: Option<Bytes>,
    /// What the person said, or what the verb adds (a fork's chain head).
    pub note: String,
    /// "The root becomes this", before the changes are applied (promote, rebase, revert).
    pub root: Option<Root>,
    pub changes: Vec<(Bytes, Option<Value>)>,
    /// The chain hash of the entry before.
    pub previous: Hash,
}

impl Entry {
    /// Returns the hash that the next entry carries as `previous`.
    pub(crate) fn chain(&self) -> Hash {
        let mut w = Writer(Vec::with_capacity(self.room()));
        self.head(&mut w);
        match &self.root {
            Some(root) => w.u8(1).hash(&root.hash()),
            None => w.u8(0),
        };
        w.var(self.changes.len() as u64);
        for (key, value) in &self.changes {
            w.bytes(key);
            match value {
                Some(value) => w.u8(1).bytes(&value.data).var(value.weight),
                None => w.u8(0),
            };
        }
        Hash::of(&w.0)
    }

    /// Returns about how many bytes the entry takes, rather more than less.
    fn room(&self) -> usize {
        let of = |(key, value): &(Bytes, Option<Value>)| {
            key.len() + 24 + value.as_ref().map_or(0, |value| value.data.len() + value.locator.len())
        };
        192 + self.key.len()
            + self.path.as_ref().map_or(0, Bytes::len)
            + self.note.len()
            + self.changes.iter().map(of).sum::<usize>()
    }

    fn head(&self, w: &mut Writer) {
        w.u8(1).hash(&self.previous).var(self.seq.0).var(self.time.0).str(&self.key);
        match &self.run {
            Some(run) => w.u8(1).str(run),
            None => w.u8(0),
        };
        w.u8(self.verb as u8);
        match &self.path {
            Some(path) => w.u8(1).bytes(path),
            None => w.u8(0),
        };
        w.str(&self.note);
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer(Vec::with_capacity(self.room()));
        self.head(&mut w);
        match &self.root {
            Some(root) => root.encode(w.u8(1)),
            None => {
                w.u8(0);
            }
        }
        w.var(self.changes.len() as u64);
        for (key, value) in &self.changes {
            w.bytes(key);
            match value {
                Some(value) => w.u8(1).bytes(&value.data).bytes(&value.locator).var(value.weight),
                None => w.u8(0),
            };
        }
        w.0.into()
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self> {
        let mut r = Reader::new(bytes);
        record::version(&mut r)?;
        let previous = r.hash()?;
        let (seq, time, key) = (Seq(r.var()?), Version(r.var()?), r.str()?.to_owned());
        let run = if r.u8()? == 1 { Some(r.str()?.to_owned()) } else { None };
        let verb = Verb::from_u8(r.u8()?)?;
        let path = if r.u8()? == 1 { Some(bytes.slice_ref(r.bytes()?)) } else { None };
        let note = r.str()?.to_owned();
        let root = if r.u8()? == 1 { Some(Root::decode(&mut r)?) } else { None };
        let count = r.var()?;
        let mut changes = Vec::new();
        for _ in 0..count {
            let key = bytes.slice_ref(r.bytes()?);
            let value = if r.u8()? == 1 {
                let (data, locator) = (bytes.slice_ref(r.bytes()?), bytes.slice_ref(r.bytes()?));
                Some(Value { data, locator, weight: r.var()? })
            } else {
                None
            };
            changes.push((key, value));
        }
        r.end()?;
        Ok(Self { seq, time, key, run, verb, path, note, root, changes, previous })
    }
}
