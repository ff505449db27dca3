//! On which processor a thread answers: on that of the program that asks, while one program does.
//!
//! A program that waits for an answer leaves its processor free. A thread there takes over without another processor being woken, and
//! hands back the same way; waking another one costs more than most requests do (design/0024). Where several programs ask in turn, the
//! threads run wherever the system puts them.

use crate::proc::processor_of;
use mw_env::{Env, run_anywhere, run_on};
use std::cell::Cell;

/// How often a thread decides anew, in nanoseconds.
const WINDOW: u64 = 2_000_000;
/// One program asks when no more than one request in so many came from another task than the one before it.
const CHANGES: u32 = 8;

thread_local! {
    static WHERE: Cell<Place> = const { Cell::new(Place(None)) };
    static SEEN: Cell<Seen> = const { Cell::new(Seen { begun: 0, requests: 0, changes: 0, last: 0 }) };
}

/// Where a thread runs: on one processor, or anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(Option<usize>);

/// What a thread saw since it last decided.
#[derive(Debug, Clone, Copy)]
struct Seen {
    begun: u64,
    requests: u32,
    /// How many came from another task than the one before.
    changes: u32,
    last: u32,
}

impl Seen {
    fn add(&mut self, task: u32) {
        self.requests += 1;
        self.changes += u32::from(self.last != task);
        self.last = task;
    }

    /// Returns whether one program asks, or one after the other.
    fn is_one(&self) -> bool {
        self.changes.saturating_mul(CHANGES) <= self.requests
    }
}

/// Notes that the calling thread answered a request of `task`, and takes it where that runs, or away. The kernel's own requests, of
/// task 0, tell nothing.
pub(crate) fn answered(task: u32, env: &Env) {
    if task == 0 {
        return;
    }
    let mut seen = SEEN.get();
    seen.add(task);
    let now = env.monotonic();
    if now.saturating_sub(seen.begun) >= WINDOW {
        Place(seen.is_one().then(|| processor_of(task)).flatten()).go();
        seen = Seen { begun: now, requests: 0, changes: 0, last: task };
    }
    SEEN.set(seen);
}

impl Place {
    /// Returns where the calling thread runs.
    pub(crate) fn here() -> Self {
        WHERE.get()
    }

    /// Takes the calling thread there.
    pub(crate) fn go(self) {
        if self == Self::here() {
            return;
        }
        match self.0 {
            Some(processor) if run_on(processor) => WHERE.set(self),
            _ => {
                run_anywhere();
                WHERE.set(Self(None));
            }
        }
    }
}

#[cfg(test)]
mod tests;
