//! What a commit holds.

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
}
