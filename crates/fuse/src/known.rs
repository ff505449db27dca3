//! What the kernel holds of a world: the inodes that it knows and the files that it has open.
//!
//! The kernel counts one look-up for every answer that names an inode and gives them back with FORGET. An inode that is
//! not here has nothing cached, and need not be told of. Inodes are those of the kernel: see `renewed` for when their numbers are others than ours.

use mw_model::Ino;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The inodes that the kernel knows.
#[derive(Default)]
pub(crate) struct Known(Mutex<HashMap<u64, Inode>>);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Inode {
    lookups: u64,
    /// The directory of the latest answer.
    parent: u64,
    /// An answer was sent, and it is not certain that the kernel has made the inode of it yet.
    fresh: bool,
    /// The world was told that the inode is in use, and must hear when it no longer is.
    claimed: bool,
    /// A directory whose entries the kernel may have kept.
    listed: bool,
    /// Nobody has opened it to read since the kernel came to know it: it has no page of it, but perhaps of a file that a program made to read as well.
    #[serde(default)]
    bare: bool,
}

impl Known {
    /// Counts one look-up of `ino` in `parent`. Must come before the answer is sent, and before it is decided how long
    /// the answer may be cached.
    pub(crate) fn add(&self, ino: u64, parent: u64) {
        let mut inodes = self.0.lock();
        let new = Inode { lookups: 0, parent, fresh: true, claimed: false, listed: false, bare: true };
        let inode = inodes.entry(ino).or_insert(new);
        inode.lookups += 1;
        inode.parent = parent;
        inode.fresh = true;
    }

    /// Gives `lookups` back. When they were the last, returns whether the world must hear that the inode is no longer in use.
    pub(crate) fn forget(&self, ino: u64, lookups: u64) -> Option<bool> {
        let mut inodes = self.0.lock();
        let inode = inodes.get_mut(&ino)?;
        inode.lookups = inode.lookups.saturating_sub(lookups);
        if inode.lookups > 0 {
            return None;
        }
        inodes.remove(&ino).map(|inode| inode.claimed)
    }

    /// Returns whether the kernel knows `ino`, on behalf of the world: a working directory is known and not open.
    pub(crate) fn uses(&self, ino: u64) -> bool {
        let mut inodes = self.0.lock();
        match inodes.get_mut(&ino) {
            Some(inode) => {
                inode.claimed = true;
                true
            }
            None => ino == Ino::ROOT.0,
        }
    }

    /// Returns whether the kernel knows `ino`. It always knows the root.
    pub(crate) fn has(&self, ino: u64) -> bool {
        ino == Ino::ROOT.0 || self.0.lock().contains_key(&ino)
    }

    /// Returns the directory in which a look-up of `ino` may still be under way, once for every such look-up.
    pub(crate) fn take_fresh(&self, ino: u64) -> Option<u64> {
        let mut inodes = self.0.lock();
        let inode = inodes.get_mut(&ino)?;
        std::mem::take(&mut inode.fresh).then_some(inode.parent)
    }

    /// Notes that the kernel gets pages of `ino`. Returns whether nobody had opened it to read before.
    pub(crate) fn take_bare(&self, ino: u64) -> bool {
        self.0.lock().get_mut(&ino).is_some_and(|inode| std::mem::take(&mut inode.bare))
    }

    /// Notes that the kernel may keep the entries of a directory. Must come before the answer that lets it.
    pub(crate) fn listed(&self, directory: u64) {
        if let Some(inode) = self.0.lock().get_mut(&directory) {
            inode.listed = true;
        }
    }

    /// Returns every inode that the kernel knows, and the root; with it, whether it is a directory of which entries may be kept.
    pub(crate) fn all(&self) -> Vec<(u64, bool)> {
        let inodes = self.0.lock();
        inodes.iter().map(|(ino, inode)| (*ino, inode.listed)).chain([(Ino::ROOT.0, true)]).collect()
    }

    /// Returns everything that is known, for who takes the mount over.
    pub(crate) fn written(&self) -> HashMap<u64, Inode> {
        self.0.lock().clone()
    }

    /// Takes over what another one knew.
    pub(crate) fn restore(&self, inodes: HashMap<u64, Inode>) {
        *self.0.lock() = inodes;
    }

    /// Forgets everything: the kernel is gone.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// The files that programs have open or mapped.
#[derive(Default)]
pub(crate) struct Opens(Mutex<HashMap<u64, Open>>);

#[derive(Default)]
struct Open {
    count: u64,
    /// Those through which pages may become dirty.
    writing: u64,
}

impl Opens {
    /// Counts an open.
    pub(crate) fn add(&self, ino: u64, writing: bool) {
        let mut opens = self.0.lock();
        let open = opens.entry(ino).or_default();
        open.count += 1;
        open.writing += u64::from(writing);
    }

    /// Gives an open back. Returns whether there was one.
    pub(crate) fn remove(&self, ino: u64, writing: bool) -> bool {
        let mut opens = self.0.lock();
        let Some(open) = opens.get_mut(&ino) else { return false };
        open.writing = open.writing.saturating_sub(u64::from(writing));
        open.count -= 1;
        if open.count == 0 {
            opens.remove(&ino);
        }
        true
    }

    /// Returns how often `ino` is open.
    pub(crate) fn count(&self, ino: u64) -> u64 {
        self.0.lock().get(&ino).map_or(0, |open| open.count)
    }

    /// Returns whether `ino` is open.
    pub(crate) fn has(&self, ino: u64) -> bool {
        self.0.lock().contains_key(&ino)
    }

    /// Returns the inodes that may have dirty pages.
    pub(crate) fn writing(&self) -> Vec<u64> {
        self.0.lock().iter().filter(|(_, open)| open.writing > 0).map(|(ino, _)| *ino).collect()
    }

    /// Returns every open, for who takes the mount over: inode, count, and through how many of them pages may become dirty.
    pub(crate) fn written(&self) -> Vec<(u64, u64, u64)> {
        self.0.lock().iter().map(|(ino, open)| (*ino, open.count, open.writing)).collect()
    }

    /// Takes every open: inode and count.
    pub(crate) fn drain(&self) -> Vec<(u64, u64)> {
        self.0.lock().drain().map(|(ino, open)| (ino, open.count)).collect()
    }
}

#[cfg(test)]
mod tests;
