//! Watches a running sandbox to its end: the command's own, its deadline, or the caller's word. Returns when nothing of it is
//! alive.

use crate::launch::{Alive, nanoseconds, timespec};
use crate::outcome::{Exit, Kept, Outcome};
use crate::shared::{Request, Shared};
use crate::spec::Limits;
use crate::wire::{self, Order, Received, Report};
use mw_env::Env;
use rustix::event::{PollFd, PollFlags};
use std::time::Duration;

/// The watch over one sandbox.
struct Watch<'a> {
    alive: Alive,
    shared: &'a Shared,
    env: &'a Env,
    grace: u64,
    /// When the command's time is up; `None` without a limit, and once that has been acted on.
    deadline: Option<u64>,
    /// When the grace time is over; `None` while nobody asked the command to end, and once everything was killed.
    kill_at: Option<u64>,
    /// Why the command was asked to end.
    reason: Option<Exit>,
    /// What process 1 reported of the command.
    report: Option<Exit>,
}

/// Watches `alive`, begun at the monotonic instant `begun`, to its end.
pub(crate) fn watch(alive: Alive, shared: &Shared, env: &Env, limits: &Limits, begun: u64) -> Outcome {
    let mut watch = Watch {
        alive,
        shared,
        env,
        grace: nanoseconds(limits.grace),
        deadline: limits.timeout.map(|t| begun.saturating_add(nanoseconds(t))),
        kill_at: None,
        reason: None,
        report: None,
    };
    while watch.step() {}
    watch.end(begun)
}

impl Watch<'_> {
    /// Waits for the next event and acts on it. False: both halves of the inner end are closed, which the kernel does when
    /// the builder and process 1 have ended.
    fn step(&mut self) -> bool {
        let now = self.env.monotonic();
        if self.deadline.is_some_and(|at| at <= now) {
            self.deadline = None;
            self.ask_to_end(Exit::Deadline, now);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill();
        }
        let next = [self.deadline, self.kill_at].into_iter().flatten().min();
        let left = next.map(|at| timespec(at.saturating_sub(now)));
        let bell = self.shared.bell();
        let mut fds = [PollFd::new(&self.alive.control, PollFlags::IN), PollFd::new(&bell, PollFlags::IN)];
        if let Err(e) = rustix::event::poll(&mut fds, left.as_ref())
            && e != rustix::io::Errno::INTR
        {
            // Without eyes on it the sandbox must not go on.
            tracing::error!(error = %e, "a sandbox cannot be watched");
            self.kill();
            return false;
        }
        let [heard, rung] = [!fds[0].revents().is_empty(), !fds[1].revents().is_empty()];
        if rung {
            match self.shared.answer_bell() {
                Request::Nothing => {}
                Request::Stop => self.ask_to_end(Exit::Cancelled, self.env.monotonic()),
                Request::Kill => {
                    self.reason = self.reason.or(Some(Exit::Cancelled));
                    self.kill();
                }
            }
        }
        !heard || self.hear()
    }

    /// Takes a report. False: there will be no more.
    fn hear(&mut self) -> bool {
        match wire::receive::<Report>(&self.alive.control) {
            Ok(None) => return false,
            Ok(Some(Received { message: Report::Exited { code, signal }, .. })) if self.report.is_none() => {
                self.report = Some(if signal == 0 { Exit::Code(code) } else { Exit::Signal(signal) });
            }
            // Process 1 is ours and says this once; anything else means that it no longer is.
            Ok(Some(_)) | Err(_) => self.kill(),
        }
        true
    }

    fn ask_to_end(&mut self, why: Exit, now: u64) {
        if self.reason.is_none() && self.report.is_none() {
            self.reason = Some(why);
        }
        if self.kill_at.is_none() {
            let _ = wire::send(&self.alive.control, &Order::Signal(libc::SIGTERM), &[]);
            self.kill_at = Some(now.saturating_add(self.grace));
        }
    }

    fn kill(&mut self) {
        self.kill_at = None;
        self.deadline = None;
        self.alive.tree.kill();
    }

    /// Collects what is left when everything is dead.
    fn end(self, begun: u64) -> Outcome {
        let Alive { mut tree, out, err, relays, complaints, .. } = self.alive;
        tree.reap();
        drop(relays);
        let (out, err) = (out.finish(), err.map_or_else(Kept::default, crate::pump::Pump::finish));
        let exit = match (self.reason, self.report) {
            (Some(why), _) => why,
            (None, Some(Exit::Signal(libc::SIGKILL) | Exit::Code(137)) | None) if tree.groups.ran_out_of_memory() => {
                Exit::OutOfMemory
            }
            (None, Some(report)) => report,
            (None, None) => {
                tracing::warn!(said = complaints.finish().to_text(), "process 1 of a sandbox ended without a report");
                Exit::Signal(libc::SIGKILL)
            }
        };
        let duration = Duration::from_nanos(self.env.monotonic().saturating_sub(begun));
        Outcome { exit, duration, peak_memory: tree.groups.peak_memory(), out, err }
    }
}
