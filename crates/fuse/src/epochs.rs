//! The count of changes heard from other doors, and which inodes and directories they touched.
//!
//! A request takes [`Epochs::now`] before it asks the world and [`Epochs::touched`] before it answers. Only the latest changes
//! are remembered; a request older than that counts as touched, which costs one look-up and is never wrong.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many changes are remembered.
const REMEMBERED: usize = 4096;

/// The changes heard by one mount.
#[derive(Default)]
pub(crate) struct Epochs {
    now: AtomicU64,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    /// Epoch and inode, in order.
    changes: VecDeque<(u64, u64)>,
    /// Everything up to here may have been touched.
    floor: u64,
}

impl Epochs {
    /// Returns the count of changes heard so far.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    /// Notes that `ino` changed: its attributes, its content, or a name in it.
    pub(crate) fn touch(&self, ino: u64) {
        let mut recent = self.recent.lock();
        let epoch = self.now() + 1;
        recent.changes.push_back((epoch, ino));
        if recent.changes.len() > REMEMBERED
            && let Some((old, _)) = recent.changes.pop_front()
        {
            recent.floor = old;
        }
        self.now.store(epoch, Ordering::SeqCst);
    }

    /// Notes that everything may have changed.
    pub(crate) fn touch_all(&self) {
        let mut recent = self.recent.lock();
        let epoch = self.now() + 1;
        recent.changes.clear();
        recent.floor = epoch;
        self.now.store(epoch, Ordering::SeqCst);
    }

    /// Returns whether `ino` may have changed after `since` was taken.
    pub(crate) fn touched(&self, ino: u64, since: u64) -> bool {
        if self.now() == since {
            return false;
        }
        let recent = self.recent.lock();
        since < recent.floor
            || recent.changes.iter().rev().take_while(|(epoch, _)| *epoch > since).any(|(_, i)| *i == ino)
    }
}

#[cfg(test)]
mod tests;
