//! What differs between two maps, in O(changes). It looks at logical hashes, never at addresses: subtrees of equal content
//! are passed over even when they lie in different places.
//!
//! Two frontiers move from left to right. Where both stand before subtrees of equal hash, both pass. Otherwise the higher
//! one goes down a level (both, when they are level); entries are compared by key. Where the shapes of the two trees differ
//! the frontiers fall out of step, and are in step again at the next place where both end a node.

use crate::Result;
use crate::node::{Child, Node};
use crate::root::Root;
use crate::store::Store;
use crate::value::Value;
use bytes::Bytes;
use std::cmp::Ordering;
use std::sync::Arc;

/// One key whose value is not the same in both maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Bytes,
    /// What the left map has.
    pub left: Option<Value>,
    /// What the right map has.
    pub right: Option<Value>,
}

/// The changes between two maps, in the order of keys. Ends after an error.
#[derive(Debug)]
pub struct Diff {
    store: Store,
    left: Frontier,
    right: Frontier,
    done: bool,
}

/// How far one map was gone through.
#[derive(Debug)]
struct Frontier {
    /// The whole tree, as long as it was not entered or passed.
    top: Option<(u8, Child)>,
    /// Nodes from the top down, and the entry that the frontier stands before.
    path: Vec<(Arc<Node>, usize)>,
}

/// What a frontier stands before.
#[derive(Clone, Copy)]
enum Ahead {
    Subtree(u8, Child),
    Entry,
    End,
}

impl Frontier {
    fn new(root: &Root) -> Self {
        Self { top: root.top().map(|top| (top.level, top.child)), path: Vec::new() }
    }

    fn ahead(&self) -> Result<Ahead> {
        Ok(match (self.path.last(), self.top) {
            (Some((node, at)), _) if node.level() > 0 => Ahead::Subtree(node.level() - 1, node.child(*at)?),
            (Some(_), _) => Ahead::Entry,
            (None, Some((level, child))) => Ahead::Subtree(level, child),
            (None, None) => Ahead::End,
        })
    }

    /// Goes into the subtree ahead.
    fn enter(&mut self, store: &Store, level: u8, child: &Child) -> Result<()> {
        self.path.push((store.node(&child.blob, level)?, 0));
        self.top = None;
        Ok(())
    }

    /// Goes past what is ahead.
    fn pass(&mut self) {
        self.top = None;
        while let Some((node, at)) = self.path.last_mut() {
            *at += 1;
            if *at < node.len() {
                return;
            }
            self.path.pop();
        }
    }

    /// Returns the value ahead, and goes past it.
    fn take(&mut self, store: &Store) -> Result<Option<(Bytes, Value)>> {
        let Some((node, at)) = self.path.last() else { return Ok(None) };
        let entry = (node.key_bytes(*at), store.value(node, &node.record(*at)?)?);
        self.pass();
        Ok(Some(entry))
    }
}

impl Diff {
    pub(crate) fn new(store: Store, left: &Root, right: &Root) -> Self {
        Self { store, left: Frontier::new(left), right: Frontier::new(right), done: false }
    }

    fn step(&mut self) -> Result<Option<Change>> {
        use Ahead::{End, Entry, Subtree};
        loop {
            if self.alike() {
                self.left.pass();
                self.right.pass();
                continue;
            }
            match (self.left.ahead()?, self.right.ahead()?) {
                (End, End) => return Ok(None),
                (Subtree(level, a), Subtree(other, b)) => match level.cmp(&other) {
                    Ordering::Equal if a.hash == b.hash => {
                        self.left.pass();
                        self.right.pass();
                    }
                    Ordering::Equal => {
                        self.left.enter(&self.store, level, &a)?;
                        self.right.enter(&self.store, other, &b)?;
                    }
                    Ordering::Greater => self.left.enter(&self.store, level, &a)?,
                    Ordering::Less => self.right.enter(&self.store, other, &b)?,
                },
                (Subtree(level, a), Entry | End) => self.left.enter(&self.store, level, &a)?,
                (Entry | End, Subtree(level, b)) => self.right.enter(&self.store, level, &b)?,
                (Entry, End) => return self.left_only(),
                (End, Entry) => return self.right_only(),
                (Entry, Entry) => match self.compare() {
                    Ordering::Less => return self.left_only(),
                    Ordering::Greater => return self.right_only(),
                    Ordering::Equal if self.same()? => {
                        self.left.pass();
                        self.right.pass();
                    }
                    Ordering::Equal => return self.both(),
                },
            }
        }
    }

    /// Returns whether what is ahead on both sides stands there in the same hashed bytes: the same key with the same content
    /// beneath it or in it. Most of what a diff passes is passed here, without being decoded.
    fn alike(&self) -> bool {
        match (self.left.path.last(), self.right.path.last()) {
            (Some((a, i)), Some((b, j))) => a.level() == b.level() && a.raw(*i).0 == b.raw(*j).0,
            _ => false,
        }
    }

    /// Compares the keys of the entries ahead.
    fn compare(&self) -> Ordering {
        match (self.left.path.last(), self.right.path.last()) {
            (Some((a, i)), Some((b, j))) => a.key(*i).cmp(b.key(*j)),
            _ => Ordering::Equal,
        }
    }

    /// Returns whether the entries ahead have the same data and weight.
    fn same(&self) -> Result<bool> {
        let (Some((a, i)), Some((b, j))) = (self.left.path.last(), self.right.path.last()) else { return Ok(true) };
        let (a, b) = (a.record(*i)?, b.record(*j)?);
        Ok(a.weight == b.weight && a.data.same(&b.data))
    }

    fn left_only(&mut self) -> Result<Option<Change>> {
        Ok(self.left.take(&self.store)?.map(|(key, value)| Change { key, left: Some(value), right: None }))
    }

    fn right_only(&mut self) -> Result<Option<Change>> {
        Ok(self.right.take(&self.store)?.map(|(key, value)| Change { key, left: None, right: Some(value) }))
    }

    fn both(&mut self) -> Result<Option<Change>> {
        let (left, right) = (self.left.take(&self.store)?, self.right.take(&self.store)?);
        Ok(left.map(|(key, left)| Change { key, left: Some(left), right: right.map(|(_, value)| value) }))
    }
}

impl Iterator for Diff {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = self.step().transpose();
        self.done = !matches!(step, Some(Ok(_)));
        step
    }
}

impl std::iter::FusedIterator for Diff {}
