//! Threads beside those that answer requests, for what waits for a disk.
//!
//! There are few threads that answer, as many as there are processors: with more, each request wakes another one, whose
//! processor knows nothing of the last. So none of them may wait for a sync. A thread here is made when all others are busy, and
//! ends when nothing came for a while; at the most there are [`MOST`], and what comes then waits for one of them.

use crate::place::Place;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Who waits together shares a sync, so many waiting threads cost little.
const MOST: usize = 32;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The threads of one mount.
#[derive(Default)]
pub(crate) struct Aside {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    /// Each with the place of the program that waits for it.
    jobs: VecDeque<(Place, Job)>,
    threads: usize,
    idle: usize,
}

impl Aside {
    /// Runs `job` on another thread; on this one when there can be no other.
    pub(crate) fn run(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        state.jobs.push_back((Place::here(), Box::new(job)));
        if state.idle >= state.jobs.len() || state.threads >= MOST {
            drop(state);
            self.wake.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let aside = self.clone();
        if let Err(e) = std::thread::Builder::new().name("mw-fuse-aside".into()).spawn(move || aside.work()) {
            tracing::warn!("no thread to wait for the disk, so one that answers requests does: {e}");
            self.state.lock().threads -= 1;
            // Whose job it is does not matter: there is a thread at work for every other.
            let job = self.state.lock().jobs.pop_front();
            if let Some((_, job)) = job {
                job();
            }
        }
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((place, job)) = state.jobs.pop_front() {
                drop(state);
                place.go();
                job();
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            let late = self.wake.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if late && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn jobs_run_beside_each_other_and_all_of_them() {
        let aside = Arc::new(Aside::default());
        // Each waits for the others: with fewer threads than jobs this never ends.
        let together = Arc::new(Barrier::new(9));
        for _ in 0..8 {
            let together = together.clone();
            aside.run(move || {
                together.wait();
            });
        }
        together.wait();
        let (done, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
        for _ in 0..1000 {
            let (done, all) = (done.clone(), all.clone());
            aside.run(move || {
                if done.fetch_add(1, Ordering::SeqCst) + 1 == 1000 {
                    all.wait();
                }
            });
        }
        all.wait();
        assert!(aside.state.lock().threads <= MOST);
    }
}
