//! Group commit: threads that wait for the log to be on disk share one sync.
//!
//! Invariant: `synced` never passes a record whose file, or an earlier file of the log, was not synced after it was written.
//! A failed sync is final: it is told to everyone who waits, and no file is synced again. It does not know what records hold,
//! and it holds nothing of the store but the log's files, so that a ticket that outlives the store does no harm.

use crate::{Error, Result};
use mw_env::File;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What was written, what is on disk, and who is syncing.
#[derive(Debug)]
pub(super) struct Group {
    inner: Mutex<Inner>,
    /// Those that wait for the round that is under way, and those that wait for the one after it, by the round's parity:
    /// a sync that ends wakes whom it covers and one leader for the next, and nobody in vain.
    rounds: [Condvar; 2],
    /// The highest number that is known to be on disk. Written under the lock, read anywhere.
    synced: AtomicU64,
    syncs: AtomicU64,
    dead: AtomicBool,
}

#[derive(Debug)]
struct Inner {
    /// The highest number written.
    written: u64,
    /// The files that may hold bytes that are not on disk, in the order of the log; the last one is being written.
    files: Vec<Part>,
    /// A thread is syncing.
    leading: bool,
    /// Counts syncs begun; the one under way has this number.
    round: usize,
    /// What the sync under way covers.
    target: u64,
    failed: Option<Arc<Error>>,
}

/// One use of a file. A file that comes round again is another part.
#[derive(Debug, Clone)]
struct Part {
    /// The number of the last record before this part.
    after: u64,
    file: Arc<dyn File>,
}

impl Group {
    /// Starts with everything up to `lsn` on disk, and writing `file`.
    pub(super) fn new(lsn: u64, file: Arc<dyn File>) -> Self {
        Self {
            inner: Mutex::new(Inner {
                written: lsn,
                files: vec![Part { after: lsn, file }],
                leading: false,
                round: 0,
                target: lsn,
                failed: None,
            }),
            rounds: [Condvar::new(), Condvar::new()],
            synced: AtomicU64::new(lsn),
            syncs: AtomicU64::new(0),
            dead: AtomicBool::new(false),
        }
    }

    /// Notes that the record `lsn` was written to the last file.
    pub(super) fn wrote(&self, lsn: u64) {
        self.inner.lock().written = lsn;
    }

    /// Notes that later records go to `file`.
    pub(super) fn switched(&self, file: Arc<dyn File>) {
        let mut inner = self.inner.lock();
        let after = inner.written;
        inner.files.push(Part { after, file });
    }

    /// Notes that everything up to `lsn` is on disk, in the log or in the tree.
    pub(super) fn reached(&self, lsn: u64) {
        self.reached_locked(&mut self.inner.lock(), lsn);
        self.wake_all();
    }

    fn reached_locked(&self, inner: &mut Inner, lsn: u64) {
        let synced = self.synced.fetch_max(lsn, Ordering::AcqRel).max(lsn);
        // A part is done when the next one starts at or before the mark; the last may be written at any time.
        let done = inner.files.iter().skip(1).take_while(|part| part.after <= synced).count();
        inner.files.drain(..done);
    }

    /// Returns the highest number known to be on disk.
    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Returns the number of syncs of log files.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Waits until everything up to `lsn` is on disk. The first to come syncs for all who wrote before.
    pub(super) fn wait(&self, lsn: u64) -> Result<()> {
        if self.synced() >= lsn {
            return Ok(());
        }
        let mut inner = self.inner.lock();
        loop {
            if self.synced() >= lsn {
                // This thread may have been woken to lead. Whoever needs another round must not sleep on.
                if !inner.leading {
                    self.rounds[(inner.round + 1) % 2].notify_one();
                }
                return Ok(());
            }
            if let Some(cause) = &inner.failed {
                return Err(Error::ReadOnly { cause: cause.clone() });
            }
            if inner.leading {
                let round = inner.round + usize::from(lsn > inner.target);
                self.rounds[round % 2].wait(&mut inner);
                continue;
            }
            inner.leading = true;
            inner.round += 1;
            inner.target = inner.written;
            let (target, files) = (inner.target, inner.files.clone());
            drop(inner);
            let done = files.iter().try_for_each(|part| {
                self.syncs.fetch_add(1, Ordering::Relaxed);
                part.file.sync()
            });
            inner = self.inner.lock();
            inner.leading = false;
            match done {
                Ok(()) => self.reached_locked(&mut inner, target),
                Err(error) => self.fail_locked(&mut inner, Error::io("syncing the log", error)),
            }
            self.rounds[inner.round % 2].notify_all();
        }
    }

    /// Waits until everything written so far is on disk.
    pub(super) fn wait_all(&self) -> Result<()> {
        let written = self.inner.lock().written;
        self.wait(written)
    }

    /// Makes the store read-only for good. The first cause stays.
    pub(super) fn fail(&self, cause: Error) {
        self.fail_locked(&mut self.inner.lock(), cause);
    }

    fn wake_all(&self) {
        for round in &self.rounds {
            round.notify_all();
        }
    }

    fn fail_locked(&self, inner: &mut Inner, cause: Error) {
        if inner.failed.is_none() {
            tracing::error!(%cause, "the metadata store is read-only from now on");
            inner.failed = Some(Arc::new(cause));
            self.dead.store(true, Ordering::Release);
            self.wake_all();
        }
    }

    /// Refuses when the store is read-only.
    pub(super) fn check(&self) -> Result<()> {
        if !self.dead.load(Ordering::Acquire) {
            return Ok(());
        }
        match &self.inner.lock().failed {
            Some(cause) => Err(Error::ReadOnly { cause: cause.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
