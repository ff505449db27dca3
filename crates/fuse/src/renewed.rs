//! Under which number the kernel asks for a file. No kernel is needed here.
//!
//! With write-back the kernel believes nobody about the size and times of a file that it knows. So a file that another door changed is
//! *renewed*: it gets another number, a *node*, and the next answer that names it carries that one. The kernel then makes a new inode, with
//! the size and times that it is told. What comes under the old node comes from who knows the old file, and is refused.
//! Programs see the inode number of the file, whatever its node.
//!
//! Invariant: whoever names a file to the kernel has taken its node before it read what it says of it, so that no node ever begins with
//! what a renewal made old.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Nodes from here on are no inode numbers.
const FIRST: u64 = 1 << 63;

/// The nodes of one mount. A file that was never renewed, as nearly all, has its inode number for one.
#[derive(Default)]
pub(crate) struct Renewed {
    /// There is any renewed file.
    any: AtomicBool,
    nodes: Mutex<Nodes>,
}

/// The files that were renewed, for as long as the kernel knows them under any node.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Nodes {
    /// How many nodes were made.
    made: u64,
    /// The nodes of a file beside its inode number, the last of them the one it has now.
    of: HashMap<u64, Vec<u64>>,
    /// The other way round.
    files: HashMap<u64, u64>,
}

impl Renewed {
    /// Renews a file, unless `spared` says no: nobody who asks for its node meanwhile is answered before that is decided.
    pub(crate) fn renew(&self, ino: u64, spared: impl FnOnce() -> bool) {
        self.any.store(true, Ordering::SeqCst);
        let mut nodes = self.nodes.lock();
        if spared() {
            return;
        }
        let node = FIRST + nodes.made;
        nodes.made += 1;
        nodes.of.entry(ino).or_default().push(node);
        nodes.files.insert(node, ino);
    }

    /// Returns the node that a file has now.
    pub(crate) fn node(&self, ino: u64) -> u64 {
        self.look(|nodes| nodes.of.get(&ino)?.last().copied()).unwrap_or(ino)
    }

    /// Returns every node that the kernel may know a file under.
    pub(crate) fn nodes(&self, ino: u64) -> Vec<u64> {
        let others = self.look(|nodes| nodes.of.get(&ino).cloned()).unwrap_or_default();
        [vec![ino], others].concat()
    }

    /// Returns the file of a node.
    pub(crate) fn ino(&self, node: u64) -> u64 {
        if node < FIRST { node } else { self.nodes.lock().files.get(&node).copied().unwrap_or(node) }
    }

    /// Returns whether it is the node that its file has now.
    pub(crate) fn is_current(&self, node: u64) -> bool {
        self.node(self.ino(node)) == node
    }

    /// The kernel has forgotten a node; `known` tells of others whether it knows them.
    pub(crate) fn forget(&self, node: u64, known: impl Fn(u64) -> bool) {
        let ino = self.ino(node);
        if !self.any.load(Ordering::SeqCst) || self.nodes(ino).into_iter().any(known) {
            return;
        }
        let mut nodes = self.nodes.lock();
        for node in nodes.of.remove(&ino).unwrap_or_default() {
            nodes.files.remove(&node);
        }
    }

    /// Returns all of it, for who takes the mount over.
    pub(crate) fn written(&self) -> Nodes {
        self.nodes.lock().clone()
    }

    /// Takes over what another one knew.
    pub(crate) fn restore(&self, nodes: Nodes) {
        self.any.store(nodes.made > 0, Ordering::SeqCst);
        *self.nodes.lock() = nodes;
    }

    fn look<T>(&self, look: impl FnOnce(&Nodes) -> Option<T>) -> Option<T> {
        if self.any.load(Ordering::SeqCst) { look(&self.nodes.lock()) } else { None }
    }
}

#[cfg(test)]
mod tests;
