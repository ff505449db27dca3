//! How much of what was written a power cut could still take: an upper bound, since only the store knows its own syncs.
//!
//! What returned is on disk within a second (DESIGN, promise 3), or with the next fsync.

use mw_env::Env;
use parking_lot::Mutex;

const SECOND: u64 = 1_000_000_000;

/// The bytes of this second and the last.
pub(crate) struct Unsynced {
    env: Env,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The second that `now` counts.
    second: u64,
    now: u64,
    before: u64,
    /// Every byte ever, and those that a sync covered.
    all: u64,
    covered: u64,
}

impl State {
    fn turn(&mut self, second: u64) {
        if second != self.second {
            self.before = if second == self.second + 1 { self.now } else { 0 };
            (self.now, self.second) = (0, second);
        }
    }
}

impl Unsynced {
    pub(crate) fn new(env: Env) -> Self {
        Self { env, state: Mutex::default() }
    }

    /// Counts bytes that were written.
    pub(crate) fn add(&self, bytes: u64) {
        let second = self.env.monotonic() / SECOND;
        let mut state = self.state.lock();
        state.turn(second);
        state.now += bytes;
        state.all += bytes;
    }

    /// Returns what a sync that begins now will cover.
    pub(crate) fn mark(&self) -> u64 {
        self.state.lock().all
    }

    /// Notes that a sync ended that began at `mark`.
    pub(crate) fn covered(&self, mark: u64) {
        let mut state = self.state.lock();
        state.covered = state.covered.max(mark);
    }

    /// Returns the bound, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let second = self.env.monotonic() / SECOND;
        let mut state = self.state.lock();
        state.turn(second);
        (state.now + state.before).min(state.all - state.covered)
    }
}

#[cfg(test)]
mod tests;
