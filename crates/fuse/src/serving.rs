//! The threads that read the requests of a mount, and how they come to stand still.
//!
//! A thread that waits in the kernel for a request is woken by a signal, before it has taken one; what programs ask for from then on stays in the
//! kernel's queue.

use crate::door::Door;
use crate::kernel::Requests;
use fuser::{BackgroundSession, Reins, Session};
use std::io;
use std::time::Duration;

/// How long nothing is done between two looks at threads that are to end.
const LOOK: Duration = Duration::from_micros(500);

/// Threads at work.
pub(crate) struct Serving {
    session: BackgroundSession,
    reins: Reins,
}

impl Serving {
    /// Starts the threads.
    pub(crate) fn begin(session: Session<Requests>) -> io::Result<Self> {
        let reins = session.reins();
        Ok(Self { session: session.spawn()?, reins })
    }

    /// Has the threads end, and waits until every request that they read is answered but those that wait for a lock, at most `limit`.
    /// Returns what tells of these, if it came to that.
    pub(crate) fn stop(self, door: &Door, limit: Duration) -> Option<Reins> {
        let env = door.session.store().env();
        let until = env.monotonic() + u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        while !self.session.guard.is_finished() {
            // Again, as a thread may have been about to wait.
            self.reins.stop();
            if env.monotonic() > until {
                return None;
            }
            env.sleep(LOOK);
        }
        while self.reins.unanswered() > door.waiting_for_locks() {
            if env.monotonic() > until {
                return None;
            }
            env.sleep(LOOK);
        }
        if let Err(error) = self.session.join() {
            tracing::debug!(world = %door.world, %error, "the threads of a mount ended with an error");
        }
        Some(self.reins)
    }

    /// Waits for the end of the mount.
    pub(crate) fn join(self) -> io::Result<()> {
        self.session.join()
    }
}
