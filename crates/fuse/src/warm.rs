//! Keeps processors awake while a program and its mount answer one another.
//!
//! A processor with nothing to do goes to sleep, and a program that waits for an answer leaves its own with nothing to do. On a virtual
//! machine waking it takes longer than most requests do. So for as long as requests follow closely upon one another, threads that
//! take only what nobody else wants keep the processors busy (design/0019). They stop a moment after the last request.
//! Where processor time is rationed they never begin: what they use would be taken from somebody.

use crate::proc::processor_of;
use mw_env::{Env, processors, run_anywhere, run_on, run_when_idle};
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// How long after a request a processor is kept awake, in nanoseconds.
const MOMENT: u64 = 100_000;
/// How long at most while a program waits for the disk. A disk that takes longer takes longer than waking does.
const SYNC: u64 = 500_000;
/// How many threads there are at most, whatever the number of mounts: one for whoever asks, one for whoever answers.
const THREADS: usize = 2;
/// How often a thread looks where the program is that it is awake for, in nanoseconds.
const FOLLOW: u64 = 2_000_000;
/// How many pauses lie between two looks at the clock.
const PAUSES: usize = 20;

/// What keeps processors awake, for all mounts of this process; `None` where that does harm or cannot be had.
static WARM: LazyLock<Option<&'static Warm>> = LazyLock::new(Warm::start);

struct Warm {
    env: Env,
    /// Until when processors are kept awake.
    until: AtomicU64,
    /// The thread whose request came last.
    task: AtomicU32,
    asleep: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
}

/// Notes that a request of the thread `task` came while it was looked out for.
pub(crate) fn requested(task: u32) {
    if let Some(warm) = *WARM {
        warm.until.store(warm.env.monotonic() + MOMENT, Ordering::Relaxed);
        warm.task.store(task, Ordering::Relaxed);
        // A thread that falls asleep just now is woken by the next request.
        if warm.asleep.load(Ordering::Relaxed) > 0 {
            let _lock = warm.lock.lock();
            warm.wake.notify_all();
        }
    }
}

/// Notes that a program begins to wait for the disk. What is awake stays so for [`SYNC`], or until a moment after the next request;
/// nothing is woken for it.
pub(crate) fn syncs() {
    if let Some(warm) = *WARM {
        let now = warm.env.monotonic();
        if warm.until.load(Ordering::Relaxed) > now {
            warm.until.store(now + SYNC, Ordering::Relaxed);
        }
    }
}

impl Warm {
    fn start() -> Option<&'static Self> {
        // Whoever comes first may have been told to stay on one of them.
        let processors = processors();
        if processors == 1 || is_rationed(Path::new("/sys/fs/cgroup"), Path::new("/proc/self/cgroup")) {
            return None;
        }
        // For the life of the process, as its threads are.
        let warm: &Self = Box::leak(Box::new(Self {
            env: Env::real(),
            until: AtomicU64::new(0),
            task: AtomicU32::new(0),
            asleep: AtomicUsize::new(0),
            lock: Mutex::default(),
            wake: Condvar::new(),
        }));
        // With two processors there is no other place to be.
        let follows = processors > THREADS;
        for _ in 0..THREADS {
            let run = move || {
                // It outlives the thread that started it, and is not to stay where that is.
                run_anywhere();
                if run_when_idle() {
                    warm.run(follows);
                }
            };
            std::thread::Builder::new().name("mw-fuse-warm".into()).spawn(run).ok()?;
        }
        Some(warm)
    }

    fn run(&self, follows: bool) {
        let mut looked = 0;
        loop {
            let now = self.env.monotonic();
            if now > self.until.load(Ordering::Relaxed) {
                let mut lock = self.lock.lock();
                self.asleep.fetch_add(1, Ordering::Relaxed);
                self.wake.wait(&mut lock);
                self.asleep.fetch_sub(1, Ordering::Relaxed);
            } else if follows && now.saturating_sub(looked) > FOLLOW {
                looked = now;
                // It stays where it is when that has ended, or is somewhere where this process may not be.
                let _ = processor_of(self.task.load(Ordering::Relaxed)).is_some_and(run_on);
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }
}

/// Returns whether a cgroup of this process or one above it has a quota of processor time (cgroup v2, `cpu.max`; v1, `cpu.cfs_quota_us`).
fn is_rationed(groups: &Path, mine: &Path) -> bool {
    let Ok(lines) = std::fs::read_to_string(mine) else { return false };
    let first_word = |path: &Path| {
        let text = std::fs::read_to_string(path).ok()?;
        text.split_whitespace().next().map(str::to_owned)
    };
    lines.lines().any(|line| {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else {
            return false;
        };
        let (root, file, none) = match controllers {
            "" => (groups.to_owned(), "cpu.max", "max"),
            list if list.split(',').any(|name| name == "cpu") => (groups.join(list), "cpu.cfs_quota_us", "-1"),
            _ => return false,
        };
        Path::new(group.trim_start_matches('/'))
            .ancestors()
            .any(|group| first_word(&root.join(group).join(file)).is_some_and(|quota| quota != none))
    })
}

#[cfg(test)]
mod tests;
