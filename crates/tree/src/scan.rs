//! A lazy walk over a range of the map, from either end. Nodes are loaded when an entry of them is asked for.
//!
//! Invariant: what was returned from one end is never returned from the other. As soon as both are walked, each returned entry moves
//! its end of the range past its key; a walk from one end alone has no need of that.

use crate::Result;
use crate::node::Node;
use crate::root::Root;
use crate::store::Store;
use crate::value::Value;
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// The entries of a range, in the order of keys; from the end with [`Iterator::rev`] or `next_back`. Ends after an error.
///
/// It owns what it needs, and the tree that it walks cannot change under it.
#[derive(Debug)]
pub struct Scan {
    store: Store,
    root: Root,
    range: (Bound<Bytes>, Bound<Bytes>),
    /// Nodes from the top down, and how many entries of each were entered from the front.
    front: Option<Path>,
    /// Nodes from the top down, and how many entries of each were not yet entered from the back.
    back: Option<Path>,
    done: bool,
}

type Path = Vec<(Arc<Node>, usize)>;
type Entry = (Bytes, Value);

impl Scan {
    pub(crate) fn new(store: Store, root: Root, range: (Bound<Bytes>, Bound<Bytes>)) -> Self {
        let done = root.is_empty();
        Self { store, root, range, front: None, back: None, done }
    }

    fn step_front(&mut self) -> Result<Option<Entry>> {
        let mut path = match self.front.take() {
            Some(path) => path,
            None => {
                // The entries from the last one that the back returned are no longer in the range.
                if let Some((leaf, left)) = self.back.as_ref().and_then(|path| path.last()) {
                    self.range.1 = Bound::Excluded(leaf.key_bytes(*left));
                }
                self.seek_front()?
            }
        };
        let found = self.forward(&mut path)?;
        self.front = Some(path);
        let Some((key, value)) = found else { return Ok(None) };
        let inside = match &self.range.1 {
            Bound::Unbounded => true,
            Bound::Included(end) => key <= *end,
            Bound::Excluded(end) => key < *end,
        };
        if inside && self.back.is_some() {
            self.range.0 = Bound::Excluded(key.clone());
        }
        Ok(inside.then_some((key, value)))
    }

    fn step_back(&mut self) -> Result<Option<Entry>> {
        let mut path = match self.back.take() {
            Some(path) => path,
            None => {
                // Neither are those up to the last one that the front returned.
                if let Some((leaf, taken)) = self.front.as_ref().and_then(|path| path.last()) {
                    self.range.0 = Bound::Excluded(leaf.key_bytes(*taken - 1));
                }
                self.seek_back()?
            }
        };
        let found = self.backward(&mut path)?;
        self.back = Some(path);
        let Some((key, value)) = found else { return Ok(None) };
        let inside = match &self.range.0 {
            Bound::Unbounded => true,
            Bound::Included(start) => key >= *start,
            Bound::Excluded(start) => key > *start,
        };
        if inside && self.front.is_some() {
            self.range.1 = Bound::Excluded(key.clone());
        }
        Ok(inside.then_some((key, value)))
    }

    /// Finds the leaf of the first entry that is not before the range.
    fn seek_front(&self) -> Result<Path> {
        self.seek(|node| match &self.range.0 {
            Bound::Unbounded => 0,
            Bound::Included(key) => node.lower_bound(key),
            Bound::Excluded(key) => after(node, key),
        })
        // A child that was entered counts as gone through.
        .map(|path| enter(path, 1))
    }

    /// Finds a leaf that holds the last entry of the range, or would.
    fn seek_back(&self) -> Result<Path> {
        self.seek(|node| {
            let place = match &self.range.1 {
                Bound::Unbounded => node.len(),
                Bound::Included(key) if node.level() == 0 => after(node, key),
                Bound::Included(key) | Bound::Excluded(key) => node.lower_bound(key),
            };
            // In an inner node, the place of a child; its last when the range goes on past all of them.
            if node.level() == 0 { place } else { place.min(node.len() - 1) }
        })
        // A child that was entered is no longer among those left.
        .map(|path| enter(path, 0))
    }

    /// Goes down from the top, each time into the child that `find` names, to a leaf (or to where there is no such child).
    fn seek(&self, find: impl Fn(&Node) -> usize) -> Result<Path> {
        let mut path = Vec::new();
        let Some(top) = self.root.top() else { return Ok(path) };
        let (mut blob, mut level) = (top.child.blob, top.level);
        loop {
            let node = self.store.node(&blob, level)?;
            let at = find(&node);
            let child = if level > 0 && at < node.len() { Some(node.child(at)?) } else { None };
            path.push((node, at));
            match child {
                Some(child) => (blob, level) = (child.blob, level - 1),
                None => return Ok(path),
            }
        }
    }

    fn forward(&self, path: &mut Path) -> Result<Option<Entry>> {
        while let Some((node, at)) = path.last_mut() {
            if *at == node.len() {
                path.pop();
            } else if node.level() == 0 {
                let entry = (node.key_bytes(*at), self.store.value(node, &node.record(*at)?)?);
                *at += 1;
                return Ok(Some(entry));
            } else {
                let child = self.store.node(&node.child(*at)?.blob, node.level() - 1)?;
                *at += 1;
                path.push((child, 0));
            }
        }
        Ok(None)
    }

    fn backward(&self, path: &mut Path) -> Result<Option<Entry>> {
        while let Some((node, left)) = path.last_mut() {
            if *left == 0 {
                path.pop();
                continue;
            }
            *left -= 1;
            if node.level() == 0 {
                return Ok(Some((node.key_bytes(*left), self.store.value(node, &node.record(*left)?)?)));
            }
            let child = self.store.node(&node.child(*left)?.blob, node.level() - 1)?;
            let len = child.len();
            path.push((child, len));
        }
        Ok(None)
    }

    fn ended(&mut self, step: Result<Option<Entry>>) -> Option<Result<Entry>> {
        let step = step.transpose();
        self.done = !matches!(step, Some(Ok(_)));
        step
    }
}

/// Adds `by` to the place in each inner node whose child was entered: all but the last of the path.
fn enter(mut path: Path, by: usize) -> Path {
    if let Some((_, above)) = path.split_last_mut() {
        above.iter_mut().for_each(|(_, at)| *at += by);
    }
    path
}

/// Returns the place of the first key after `key`.
fn after(node: &Node, key: &[u8]) -> usize {
    node.search(key).map_or_else(|place| place, |place| place + 1)
}

impl Iterator for Scan {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = self.step_front();
        self.ended(step)
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = self.step_back();
        self.ended(step)
    }
}

impl std::iter::FusedIterator for Scan {}
