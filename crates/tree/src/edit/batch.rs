//! The edits of one level, in order: values at the leaves, children above.

use crate::node::Child;
use crate::value::Value;
use bytes::Bytes;

/// Edits not yet taken. A key without a thing to put is removed.
#[derive(Clone, Copy)]
pub(super) enum Batch<'a> {
    Values(&'a [(Bytes, Option<Value>)]),
    Children(&'a [(Bytes, Option<Child>)]),
}

/// What is put under a key.
#[derive(Clone, Copy)]
pub(super) enum Put<'a> {
    Value(&'a Value),
    Child(&'a Child),
}

impl<'a> Batch<'a> {
    /// Returns the next edit.
    pub(super) fn peek(&self) -> Option<(&'a [u8], Option<Put<'a>>)> {
        match self {
            Self::Values(edits) => edits.first().map(|(key, value)| (&key[..], value.as_ref().map(Put::Value))),
            Self::Children(edits) => edits.first().map(|(key, child)| (&key[..], child.as_ref().map(Put::Child))),
        }
    }

    /// Takes the next edit.
    pub(super) fn next(&mut self) -> Option<(&'a [u8], Option<Put<'a>>)> {
        let edit = self.peek()?;
        match self {
            Self::Values(edits) => *edits = &edits[1..],
            Self::Children(edits) => *edits = &edits[1..],
        }
        Some(edit)
    }

    /// Takes the next edit if its key is before `key`.
    pub(super) fn next_before(&mut self, key: &[u8]) -> Option<(&'a [u8], Option<Put<'a>>)> {
        self.peek().filter(|(next, _)| *next < key)?;
        self.next()
    }

    /// Takes the edit of `key`, if it is the next, and returns what to put.
    pub(super) fn next_at(&mut self, key: &[u8]) -> Option<Option<Put<'a>>> {
        self.peek().filter(|(next, _)| *next == key)?;
        self.next().map(|(_, put)| put)
    }
}

/// Merges what went and what came, both sorted, into the edits of the level above: one that went and came under the same
/// key is a replacement.
pub(super) fn merge(gone: Vec<Bytes>, come: Vec<(Bytes, Child)>) -> Vec<(Bytes, Option<Child>)> {
    let mut edits = Vec::with_capacity(gone.len() + come.len());
    let mut gone = gone.into_iter().peekable();
    for (key, child) in come {
        while let Some(key) = gone.next_if(|old| *old < key) {
            edits.push((key, None));
        }
        gone.next_if_eq(&key);
        edits.push((key, Some(child)));
    }
    edits.extend(gone.map(|key| (key, None)));
    edits
}
