//! What makes the second try succeed.
//!
//! Between looking a name up and opening what it stands for, another door may replace it, and the old inode is gone: the
//! kernel hears ESTALE, looks up again and tries once more, but only once. So for a while after an ESTALE, what is looked
//! up is held open: the try that follows finds it, old or new, and no program sees ESTALE for a name that was always there.

use super::{Door, Result};
use crate::errors::{errno, held};
use fuser::Errno;
use mw_model::{Attr, Ino};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many look-ups after an ESTALE are held open, and how many inodes at most.
const LOOKUPS: usize = 256;
/// How often a look-up is repeated whose result is gone at once.
const TRIES: usize = 16;

/// The inodes held open for a second try.
#[derive(Default)]
pub(crate) struct Retries {
    budget: AtomicUsize,
    held: Mutex<VecDeque<u64>>,
}

impl Retries {
    /// Expects a second try.
    pub(super) fn expect(&self) {
        self.budget.store(LOOKUPS, Ordering::Relaxed);
    }

    /// Returns what is held open, oldest first.
    pub(super) fn held(&self) -> Vec<u64> {
        self.held.lock().iter().copied().collect()
    }

    fn spend(&self) -> bool {
        self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

impl Door {
    /// Looks a name up; `None` when there is none, which the kernel may remember.
    pub(crate) fn lookup(&self, parent: u64, name: &[u8]) -> Result<Option<Attr>> {
        for _ in 0..TRIES {
            let attr = match self.session.lookup(Ino(parent), name) {
                Ok(attr) => attr,
                Err(e) => return if errno(&e) == Errno::ENOENT { Ok(None) } else { Err(errno(&e)) },
            };
            if !self.retries.spend() {
                return Ok(Some(attr));
            }
            match self.session.open(attr.ino).map_err(|e| held(&e)) {
                Ok(attr) => {
                    self.hold_for_retry(attr.ino.0);
                    return Ok(Some(attr));
                }
                Err(Errno::ESTALE) => {}
                Err(other) => return Err(other),
            }
        }
        Err(Errno::ESTALE)
    }

    pub(super) fn hold_for_retry(&self, ino: u64) {
        let oldest = {
            let mut held = self.retries.held.lock();
            held.push_back(ino);
            if held.len() > LOOKUPS { held.pop_front() } else { None }
        };
        if let Some(oldest) = oldest {
            self.session.release(Ino(oldest));
        }
    }

    /// Lets go of what is held for an inode that the kernel has forgotten, or of everything.
    pub(crate) fn end_retry(&self, forgotten: Option<u64>) {
        let ended: Vec<u64> = {
            let mut held = self.retries.held.lock();
            let (ended, kept) = held.drain(..).partition(|ino| forgotten.is_none_or(|forgotten| forgotten == *ino));
            *held = kept;
            ended.into()
        };
        ended.into_iter().for_each(|ino| self.session.release(Ino(ino)));
    }
}
