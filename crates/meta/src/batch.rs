//! What a commit holds.

use crate::{Error, MAX_BATCH, MAX_KEY, Result};
use bytes::Bytes;

/// How durable a batch is when its ticket has been waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// On disk.
    Durable,
    /// Handed to the operating system, in order; on disk within a second or with the next durable batch.
    Soon,
}

/// What a batch requires of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The key is absent.
    Absent,
    /// The key is present, with whatever value.
    Present,
    /// The key has just this value.
    Value(Bytes),
}

impl Expect {
    /// Returns whether a key with the value `found` is as expected.
    pub fn holds(&self, found: Option<&Bytes>) -> bool {
        match self {
            Self::Absent => found.is_none(),
            Self::Present => found.is_some(),
            Self::Value(value) => found == Some(value),
        }
    }
}

/// Requirements and changes that take effect together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// What must hold.
    pub requires: Vec<(Bytes, Expect)>,
    /// The keys to set. The last put of a key wins.
    pub puts: Vec<(Bytes, Bytes)>,
    /// The keys to remove, before the puts are applied; an absent one is no error.
    pub deletes: Vec<Bytes>,
}

impl Batch {
    /// Starts an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a requirement.
    pub fn require(&mut self, key: impl Into<Bytes>, expect: Expect) -> &mut Self {
        self.requires.push((key.into(), expect));
        self
    }

    /// Adds a put.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> &mut Self {
        self.puts.push((key.into(), value.into()));
        self
    }

    /// Adds a delete.
    pub fn delete(&mut self, key: impl Into<Bytes>) -> &mut Self {
        self.deletes.push(key.into());
        self
    }

    /// Checks the limits that every engine keeps.
    pub(crate) fn check(&self) -> Result<()> {
        let keys =
            self.requires.iter().map(|(key, _)| key).chain(self.puts.iter().map(|(key, _)| key)).chain(&self.deletes);
        if let Some(key) = keys.into_iter().find(|key| key.len() > MAX_KEY) {
            return Err(Error::KeyTooLong { len: key.len() });
        }
        let puts = self.puts.iter().map(|(key, value)| key.len() + value.len() + 16).sum::<usize>();
        let size = puts + self.deletes.iter().map(|key| key.len() + 16).sum::<usize>();
        if size > MAX_BATCH { Err(Error::BatchTooLarge { size }) } else { Ok(()) }
    }

    /// Checks the requirements against `get`.
    pub(crate) fn check_requires(&self, mut get: impl FnMut(&[u8]) -> Result<Option<Bytes>>) -> Result<()> {
        for (key, expect) in &self.requires {
            let found = get(key)?;
            if !expect.holds(found.as_ref()) {
                return Err(Error::Conflict { key: key.clone() });
            }
        }
        Ok(())
    }
}
