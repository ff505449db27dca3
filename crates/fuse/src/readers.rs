//! Which of the threads that answer requests wait for one.
//!
//! The kernel wakes the threads that wait in turn, and a program that has its answer runs before the thread that gave it can wait
//! again. So with two that wait every request wakes the other one, which finds cold caches, and the first for nothing. One alone answers
//! the requests of one program at two thirds of the price. But it must not be alone where it does not keep up: when programs ask from
//! several processors, or a request waits for a disk.
//!
//! So thread 0 always waits for requests and the others mostly do not. The first of those, the *watcher*, looks every [`TICK`] how the
//! threads before it fare, as long as anything is done. When all of them hang in one request for [`STUCK`] looks, or had one at [`LOOKS`]
//! looks in a row, it joins them and the next thread watches. The last to have joined leaves when it has to wait for most of its
//! requests, unless the others hang.
//!
//! Invariant: where all that wait for requests are held up, another one comes after a few ticks, as long as there is one.

use mw_env::Env;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How often the watcher looks.
const TICK: Duration = Duration::from_millis(2);
/// At how many looks in a row all others must have had a request.
const LOOKS: u32 = 8;
/// At how many looks all others must have had the same request. A thread that is only not given a processor is not meant.
const STUCK: u32 = 2;
/// After how many requests a thread asks itself whether it is needed.
const SPAN: u32 = 16;
/// What comes later than this was waited for, in nanoseconds: a request that is there already takes no time.
const LATE: u64 = 5_000;

/// What one thread does. Written by that thread alone.
#[derive(Default)]
struct Turn {
    /// Counts changes: even while the thread waits for a request, odd while it has one.
    count: AtomicU32,
    /// Since when it waits.
    since: AtomicU64,
    /// How many requests were waited for, since it last asked itself whether it is needed.
    late: AtomicU32,
    /// The sum of the others' counts then.
    others: AtomicU32,
}

fn waits(count: u32) -> bool {
    count.is_multiple_of(2)
}

/// The threads of one mount.
pub(crate) struct Readers {
    env: Env,
    turns: Box<[Turn]>,
    /// The threads with a lower number wait for requests. Changed under `state`.
    wanted: AtomicUsize,
    /// Nothing is done: whoever gets a request wakes the watcher.
    resting: AtomicBool,
    state: Mutex<State>,
    /// With `state`: the watcher has something to look at.
    look: Condvar,
    /// With `state`: another thread may be the watcher.
    next: Condvar,
}

#[derive(Default)]
struct State {
    ended: bool,
    /// What the watcher saw last.
    seen: Vec<u32>,
    /// At how many looks in a row all had a request, and the same one.
    full: u32,
    stuck: u32,
}

/// What the watcher sees.
#[derive(Debug, PartialEq, Eq)]
enum Sight {
    /// Nothing was done since the last look.
    Idle,
    Busy,
    /// Another thread is needed.
    Behind,
}

impl State {
    /// Judges how the threads fare that wait for requests, by their counts.
    fn judge(&mut self, now: Vec<u32>) -> Sight {
        let working = !now.iter().any(|count| waits(*count));
        let same = now == self.seen;
        self.full = if working { self.full + 1 } else { 0 };
        self.stuck = if working && same { self.stuck + 1 } else { 0 };
        if self.stuck >= STUCK || self.full >= LOOKS {
            *self = Self { ended: self.ended, ..Self::default() };
            return Sight::Behind;
        }
        let idle = same && now.iter().all(|count| waits(*count));
        self.seen = now;
        if idle { Sight::Idle } else { Sight::Busy }
    }
}

impl Readers {
    /// Makes the state of `threads` threads.
    pub(crate) fn new(threads: usize, env: Env) -> Self {
        Self {
            env,
            turns: (0..threads).map(|_| Turn::default()).collect(),
            wanted: AtomicUsize::new(1),
            resting: AtomicBool::new(false),
            state: Mutex::default(),
            look: Condvar::new(),
            next: Condvar::new(),
        }
    }

    /// Called by a thread before it waits for a request; keeps it while it is not needed.
    pub(crate) fn waits(&self, thread: usize) {
        let Some(turn) = self.turns.get(thread) else { return };
        let count = turn.count.load(Ordering::Relaxed);
        turn.count.store(count.next_multiple_of(2), Ordering::Relaxed);
        if thread == 0 {
            return;
        }
        if (count / 2).is_multiple_of(SPAN) {
            self.ask_oneself(thread, turn);
        }
        if thread >= self.wanted.load(Ordering::Relaxed) {
            self.stand_by(thread);
            turn.others.store(self.others(thread), Ordering::Relaxed);
            turn.late.store(0, Ordering::Relaxed);
        }
        turn.since.store(self.env.monotonic(), Ordering::Relaxed);
    }

    /// Called by a thread that has a request.
    pub(crate) fn works(&self, thread: usize) {
        let Some(turn) = self.turns.get(thread) else { return };
        turn.count.store(turn.count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        if thread > 0 && self.env.monotonic().saturating_sub(turn.since.load(Ordering::Relaxed)) > LATE {
            turn.late.store(turn.late.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        if self.resting.load(Ordering::Relaxed) {
            let _state = self.state.lock();
            self.resting.store(false, Ordering::Relaxed);
            self.look.notify_all();
        }
    }

    /// Lets every thread go.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.look.notify_all();
        self.next.notify_all();
    }

    /// Has the thread that joined last leave when it is not needed.
    fn ask_oneself(&self, thread: usize, turn: &Turn) {
        let others = self.others(thread);
        let late = turn.late.swap(0, Ordering::Relaxed) > SPAN / 2;
        if late && turn.others.swap(others, Ordering::Relaxed) != others {
            let _state = self.state.lock();
            if self.wanted.load(Ordering::Relaxed) == thread + 1 {
                self.wanted.store(thread, Ordering::Relaxed);
            }
        }
    }

    /// Returns a number that changes while the threads before this one answer.
    fn others(&self, thread: usize) -> u32 {
        let counts = self.turns.iter().take(thread).map(|turn| turn.count.load(Ordering::Relaxed));
        counts.fold(0, u32::wrapping_add)
    }

    /// Stands by until this thread is needed, and watches when it is the next to be.
    fn stand_by(&self, thread: usize) {
        let mut state = self.state.lock();
        while !state.ended && thread >= self.wanted.load(Ordering::Relaxed) {
            if thread > self.wanted.load(Ordering::Relaxed) {
                self.next.wait(&mut state);
                continue;
            }
            let counts = self.turns.iter().take(thread).map(|turn| turn.count.load(Ordering::Relaxed)).collect();
            match state.judge(counts) {
                Sight::Behind => {
                    self.wanted.store(thread + 1, Ordering::Relaxed);
                    self.next.notify_all();
                }
                // The second time: a request that came with the mark, and did not see it, has been seen by now.
                Sight::Idle if self.resting.load(Ordering::Relaxed) => self.look.wait(&mut state),
                sight => {
                    self.resting.store(sight == Sight::Idle, Ordering::Relaxed);
                    self.look.wait_for(&mut state, TICK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
