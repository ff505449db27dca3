//! A thread that has answered a request looks out for the next one for a moment, before it sleeps in the kernel.
//!
//! A program that goes through files asks again some microseconds after it has its answer. Putting the thread to sleep and waking it
//! takes longer than most requests do, above all on a virtual processor that has gone to sleep with it (design/0019).

use crate::warm;
use mw_env::Env;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How long a thread looks, in nanoseconds.
const MOMENT: u64 = 50_000;

/// How many threads look at the same time, whatever the number of mounts: as many as there are processors.
static PLACES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// Returns when a request is there, or after a moment. Whoever else wants the processor gets it. `task` sent the request that was answered last.
pub(crate) fn look(device: BorrowedFd<'_>, task: u32, env: &Env) {
    if LOOKING.fetch_add(1, Ordering::Relaxed) < *PLACES {
        let begun = env.monotonic();
        loop {
            if is_ready(device) {
                warm::requested(task);
                break;
            }
            if env.monotonic().saturating_sub(begun) >= MOMENT {
                break;
            }
            std::thread::yield_now();
        }
    }
    LOOKING.fetch_sub(1, Ordering::Relaxed);
}

/// Returns whether a read would not wait. An error counts as that: the read will tell.
fn is_ready(device: BorrowedFd<'_>) -> bool {
    let mut devices = [PollFd::from_borrowed_fd(device, PollFlags::IN)];
    poll(&mut devices, Some(&Timespec::default())) != Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn it_sees_what_is_there_and_gives_up_when_nothing_comes() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let env = Env::real();
        assert!(!is_ready(reader.as_fd()));
        look(reader.as_fd(), 0, &env);
        writer.write_all(b"request").unwrap();
        assert!(is_ready(reader.as_fd()));
        look(reader.as_fd(), 0, &env);
        drop(writer);
        look(reader.as_fd(), 0, &env);
        assert_eq!(LOOKING.load(Ordering::Relaxed), 0);
    }
}
