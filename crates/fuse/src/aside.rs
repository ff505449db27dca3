//! Threads beside those that answer requests, for what waits for a disk.
//!
//! There are few threads that answer, as many as there are processors: with more, each request wakes another one, whose
//! processor knows nothing of the last. So no more than one of them may wait for a sync, and only where the disk is quick: then handing the
//! waiting on would take a good part of its time. A thread here is made when all others are busy, and
//! ends when nothing came for a while; at the most there are [`MOST`], and what comes then waits for one of them.

use crate::place::Place;
use mw_env::Env;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Who waits together shares a sync, so many waiting threads cost little.
const MOST: usize = 32;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);

/// How long a wait for the disk is brief, in nanoseconds.
const BRIEF: u64 = 1_000_000;

type Job = Box<dyn FnOnce() + Send>;

/// The threads of one mount.
pub(crate) struct Aside {
    env: Env,
    /// A thread that answers requests waits for the disk.
    waits: AtomicBool,
    /// How long the last wait for the disk took, in nanoseconds.
    last: AtomicU64,
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
    pub(crate) fn new(env: Env) -> Self {
        // The first is not known to be brief.
        Self {
            env,
            waits: AtomicBool::default(),
            last: AtomicU64::new(u64::MAX),
            state: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    /// Runs `job`, which waits for the disk: on this thread, where that will be brief and no other does so already; otherwise on another.
    pub(crate) fn wait(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let brief = self.last.load(Ordering::Relaxed) < BRIEF;
        if brief && !self.waits.swap(true, Ordering::Acquire) {
            self.time(job);
            self.waits.store(false, Ordering::Release);
        } else {
            let aside = self.clone();
            self.run(move || aside.time(job));
        }
    }

    fn time(&self, job: impl FnOnce()) {
        let begun = self.env.monotonic();
        job();
        self.last.store(self.env.monotonic().saturating_sub(begun), Ordering::Relaxed);
    }

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
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn jobs_run_beside_each_other_and_all_of_them() {
        let aside = Arc::new(Aside::new(Env::real()));
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

    #[test]
    fn one_waits_where_it_is_while_the_disk_is_quick_and_others_go_aside() {
        let env = Env::seeded(1);
        let aside = Arc::new(Aside::new(env.clone()));
        let who = |takes: Duration| {
            let (tell, told) = channel();
            let env = env.clone();
            aside.wait(move || {
                env.sleep(takes);
                tell.send(thread::current().id()).unwrap();
            });
            told.recv().unwrap()
        };
        let here = thread::current().id();
        let quick = Duration::from_nanos(BRIEF / 2);
        let settled = || while aside.state.lock().idle == 0 {};
        assert_ne!(who(quick), here, "nothing is known of the disk");
        settled();
        assert_eq!(who(quick), here);
        assert_eq!(who(2 * quick), here);
        assert_ne!(who(2 * quick), here, "the last one took long");
        settled();
        assert_ne!(who(quick), here, "and so did that");
        settled();
        // While one waits here, the next one goes aside.
        let (other, (tell, told)) = (aside.clone(), channel());
        aside.wait(move || {
            other.wait(move || tell.send(thread::current().id()).unwrap());
            assert_ne!(told.recv().unwrap(), here);
        });
    }
}
