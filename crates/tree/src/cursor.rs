//! Walks the nodes of one level of a stored tree from left to right, for an edit of that level. It loads inner nodes on the
//! way to where it goes and nothing else; a node of the level itself only when asked for.

use crate::Result;
use crate::node::Node;
use crate::root::Top;
use crate::store::Store;
use std::sync::Arc;

/// A place at one level: at a node, or past the last.
pub(crate) struct Cursor<'a> {
    store: &'a Store,
    top: Option<&'a Top>,
    /// The number of inner nodes above a node of the level.
    depth: usize,
    level: u8,
    /// The path: inner nodes from the top down, and the child of each that is gone through. Where the path is shorter than
    /// `depth`, the place is the leftmost node beneath its end.
    path: Vec<(Arc<Node>, usize)>,
    done: bool,
}

impl<'a> Cursor<'a> {
    /// Starts at the first node of `level` in the tree under `top`; without a top, or above it, at the end.
    pub(crate) fn new(store: &'a Store, top: Option<&'a Top>, level: u8) -> Self {
        let top = top.filter(|top| top.level >= level);
        let depth = top.map_or(0, |top| usize::from(top.level - level));
        Self { store, top, depth, level, path: Vec::new(), done: top.is_none() }
    }

    /// Returns whether the cursor is past the last node.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Moves forward to the node that holds `key`, or would: the first whose last key is not before it; else the last node.
    /// Returns whether it left nodes out. Never moves back.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let mut left_out = false;
        for depth in 0..self.depth {
            if self.path.len() == depth {
                self.push()?;
            }
            let (node, at) = &mut self.path[depth];
            let to = node.lower_bound(key).min(node.len() - 1);
            if to > *at {
                *at = to;
                left_out = true;
                self.path.truncate(depth + 1);
            }
        }
        Ok(left_out)
    }

    /// Returns the node here, or nothing past the end.
    pub(crate) fn node(&mut self) -> Result<Option<Arc<Node>>> {
        if self.done {
            return Ok(None);
        }
        while self.path.len() < self.depth {
            self.push()?;
        }
        self.load().map(Some)
    }

    /// Moves to the next node. The place must be known to the end, by [`Cursor::node`].
    pub(crate) fn advance(&mut self) {
        while let Some((node, at)) = self.path.last_mut() {
            *at += 1;
            if *at < node.len() {
                return;
            }
            self.path.pop();
        }
        self.done = true;
    }

    fn push(&mut self) -> Result<()> {
        let node = self.load()?;
        self.path.push((node, 0));
        Ok(())
    }

    /// Loads the node beneath the end of the path.
    fn load(&self) -> Result<Arc<Node>> {
        let level = self.level + (self.depth - self.path.len()) as u8;
        let blob = match (self.path.last(), self.top) {
            (Some((node, at)), _) => node.child(*at)?.blob,
            (None, Some(top)) => top.child.blob,
            (None, None) => unreachable!("a cursor without a tree is done from the start"),
        };
        self.store.node(&blob, level)
    }
}
