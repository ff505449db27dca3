//! The times of files that the kernel keeps itself, and what to do when bytes arrive after it said them. No kernel is needed here.
//!
//! With write-back a write(2) gives a file its times in the kernel. The kernel tells us of them when it writes the inode, and
//! sends the bytes at about the same time, in any order. A write makes the times of a file those of its arrival, so that a fork never has
//! new bytes with an old time; but what came after the kernel said a time must not stand for longer than until the file is closed
//! or synced: from then on the kernel is silent, and what it shows to programs must be what it finds when it has forgotten the file.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What the kernel said of the files of one mount that it knows.
#[derive(Default)]
pub(crate) struct Times(Mutex<HashMap<u64, Said>>);

/// Times that the kernel said, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    /// Bytes came after it.
    late: bool,
}

impl Times {
    /// The kernel says the times of a file.
    pub(crate) fn said(&self, ino: u64, mtime: i64, ctime: i64) {
        self.0.lock().insert(ino, Said { mtime, ctime, late: false });
    }

    /// The kernel says that the attributes of a file changed.
    pub(crate) fn said_ctime(&self, ino: u64, ctime: i64) {
        if let Some(said) = self.0.lock().get_mut(&ino) {
            said.ctime = ctime;
        }
    }

    /// Bytes of a file came.
    pub(crate) fn wrote(&self, ino: u64) {
        if let Some(said) = self.0.lock().get_mut(&ino) {
            said.late = true;
        }
    }

    /// The kernel has sent all that it had of a file. Returns the times that it should have, when bytes came after they were said.
    pub(crate) fn settle(&self, ino: u64) -> Option<Said> {
        let mut all = self.0.lock();
        let said = all.get_mut(&ino)?;
        std::mem::take(&mut said.late).then_some(*said)
    }

    /// The kernel has forgotten a file, or what it said of it is void.
    pub(crate) fn forget(&self, ino: u64) {
        self.0.lock().remove(&ino);
    }

    /// Returns all of it, for who takes the mount over.
    pub(crate) fn written(&self) -> HashMap<u64, Said> {
        self.0.lock().clone()
    }

    /// Takes over what another one knew.
    pub(crate) fn restore(&self, said: HashMap<u64, Said>) {
        *self.0.lock() = said;
    }
}

#[cfg(test)]
mod tests;
