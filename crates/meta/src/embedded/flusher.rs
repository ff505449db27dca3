//! The thread that brings `soon` batches to disk.
//!
//! Invariant: what was written is synced at most [`DELAY`] and one sync later. The thread sleeps while nothing is written,
//! and holds the log's files only, never the store.

use super::group::Group;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a batch may wait for others before it is synced.
const DELAY: Duration = Duration::from_millis(500);

/// Wakes the thread. Shared by the store and the thread.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Something was written since the thread last looked; lets a writer skip the lock.
    armed: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    written: bool,
    stop: bool,
}

impl Pulse {
    /// Notes that something was written.
    pub(super) fn beat(&self) {
        if !self.armed.swap(true, Ordering::AcqRel) {
            self.state.lock().written = true;
            self.changed.notify_one();
        }
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_one();
    }
}

/// Runs until stopped, or until a sync failed.
pub(super) fn run(pulse: &Arc<Pulse>, group: &Arc<Group>) {
    loop {
        let mut state = pulse.state.lock();
        while !state.written && !state.stop {
            pulse.changed.wait(&mut state);
        }
        if !state.stop {
            // Only `stop` changes anything while armed, so one wait is the whole delay or the end.
            pulse.changed.wait_for(&mut state, DELAY);
        }
        if state.stop {
            return;
        }
        state.written = false;
        drop(state);
        // Disarmed before the sync: a batch written during it must wake the thread again.
        pulse.armed.store(false, Ordering::Release);
        if group.wait_all().is_err() {
            return;
        }
    }
}
