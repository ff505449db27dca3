//! Verbs on locks (fcntl(2), flock(2)): what the kernel asks, in the world's words.
//!
//! No thread waits for a lock; the answer is sent by whatever ends the waiting. An answer that gives one is sent when this mount's kernel has
//! heard of all changes before it: the last holder may have written through another mount, and what this one has cached is then old.
//!
//! A descriptor is *heard of* when the kernel says that a program closes it (FLUSH). For most it does not, because that is a request more for
//! every file; what was locked through such a one goes with its last copy (RELEASE), which the kernel tells without waiting for us.

use super::{Door, Result};
use fuser::{Errno, ReplyEmpty};
use mw_model::Ino;
use mw_world::{LockEnd, LockKind, LockReach, LockSpan, WantedLock};
use rustix::fs::OFlags;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The kinds of the kernel's requests (`F_RDLCK`, `F_WRLCK` and `F_UNLCK` of asm-generic/fcntl.h).
const READ: i32 = 0;
const WRITE: i32 = 1;
const UNLOCK: i32 = 2;

/// How long who would not wait is kept waiting for news of an end that may be on its way.
const MOMENT: Duration = Duration::from_millis(20);

/// Who asks for which lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asks {
    pub(crate) ino: u64,
    pub(crate) handle: u64,
    pub(crate) owner: u64,
    pub(crate) process: u32,
    pub(crate) kind: i32,
}

impl Asks {
    fn wanted(self, reach: LockReach) -> Result<WantedLock> {
        let kind = match self.kind {
            READ => LockKind::Shared,
            WRITE => LockKind::Exclusive,
            _ => return Err(Errno::EINVAL),
        };
        Ok(WantedLock {
            ino: Ino(self.ino),
            reach,
            kind,
            owner: self.owner,
            handle: self.handle,
            process: self.process,
            late: reach == LockReach::Whole || !is_heard_of(self.handle),
        })
    }
}

impl Door {
    /// Returns whether the kernel is to say when a program closes a descriptor that is opened now: of a file that has locks, or that was opened as
    /// those are that programs lock bytes of. Whoever makes a file that nobody else may have made writes it and is done.
    pub(crate) fn hears_of_close(&self, ino: u64, flags: OFlags) -> bool {
        let made_alone = flags.contains(OFlags::EXCL) || flags.contains(OFlags::TMPFILE);
        let both = flags.intersection(OFlags::RWMODE) == OFlags::RDWR;
        !made_alone && (both || self.locks.has_bytes(Ino(ino)))
    }

    /// Returns the number of a new open file.
    pub(crate) fn handle(&self, is_heard_of: bool) -> u64 {
        (self.opened.fetch_add(1, Ordering::Relaxed) + 1) << 1 | u64::from(is_heard_of)
    }

    /// Returns a lock in the way of the one asked about, or that nothing is: first and last byte, kind, process. Asked about no lock at all, it
    /// returns one that the owner itself has (`F_OFD_GETLK` of fcntl(2)).
    pub(crate) fn find_lock(&self, asks: Asks, first: u64, last: u64) -> Result<(u64, u64, i32, u32)> {
        let span = LockSpan { first, last };
        let found = match asks.kind {
            UNLOCK => self.locks.own(Ino(asks.ino), asks.owner, span),
            _ => self.locks.in_way(&asks.wanted(LockReach::Bytes(span))?),
        };
        Ok(match found {
            None => (first, last, UNLOCK, 0),
            Some(lock) => {
                let kind = if lock.kind == LockKind::Shared { READ } else { WRITE };
                (lock.span.first, lock.span.last, kind, lock.process)
            }
        })
    }

    /// Locks or unlocks bytes, or the whole file where none are named (flock(2)). `request` is the number by which it may be interrupted.
    pub(crate) fn lock(
        self: &Arc<Self>,
        asks: Asks,
        bytes: Option<(u64, u64)>,
        request: u64,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let reach = bytes.map_or(LockReach::Whole, |(first, last)| LockReach::Bytes(LockSpan { first, last }));
        let begun = self.guard(|door| {
            if asks.kind == UNLOCK {
                door.locks.unlock(Ino(asks.ino), reach, asks.owner);
            }
            Ok(())
        });
        let wanted = match begun {
            Err(errno) => return reply.error(errno),
            Ok(()) if asks.kind == UNLOCK => return reply.ok(),
            Ok(()) => match asks.wanted(reach) {
                Ok(wanted) => wanted,
                Err(errno) => return reply.error(errno),
            },
        };
        let door = self.clone();
        if waits {
            self.locks.lock(wanted, request, move |end| door.answer_lock(reply, end));
            if self.interrupts.has(request) {
                self.locks.cancel(request, LockEnd::Interrupted);
            }
            return;
        }
        match self.locks.try_lock(&wanted) {
            LockEnd::Held { late: true } => {
                self.locks.lock_soon(wanted, request, move |end| door.answer_lock(reply, end));
                let door = self.clone();
                self.aside.run(move || {
                    door.session.store().env().sleep(MOMENT);
                    door.locks.cancel(request, LockEnd::Held { late: false });
                });
            }
            end => self.answer_lock(reply, end),
        }
    }

    fn answer_lock(&self, reply: ReplyEmpty, end: LockEnd) {
        match end {
            LockEnd::Granted => self.notices.in_turn(move || reply.ok()),
            LockEnd::Held { .. } => reply.error(Errno::EAGAIN),
            LockEnd::Deadlock => reply.error(Errno::EDEADLK),
            LockEnd::Interrupted => reply.error(Errno::EINTR),
            LockEnd::Gone => reply.error(Errno::ENODEV),
            LockEnd::TooMany => reply.error(Errno::ENOLCK),
        }
    }

    /// Returns how many requests are not answered because they wait for a lock, or for their turn when they have it.
    pub(crate) fn waiting_for_locks(&self) -> usize {
        self.locks.waiting() + self.notices.turns()
    }

    /// Forgets the requests that wait for a lock: the kernel sends them anew. What one was given it has, and is given again.
    pub(crate) fn forget_waiting_for_locks(&self) {
        self.locks.forget_waiting();
        self.notices.forget_turns();
    }

    /// A signal came for whoever waits for an answer.
    pub(crate) fn interrupt(&self, request: u64) {
        self.interrupts.add(request);
        self.locks.cancel(request, LockEnd::Interrupted);
    }

    /// A program closes a descriptor that is heard of.
    pub(crate) fn closes(&self, ino: u64, owner: u64, handle: u64) {
        self.locks.close_owner(Ino(ino), owner, handle);
    }

    /// The last copy of a descriptor is closed.
    pub(crate) fn closed(&self, ino: u64, handle: u64) {
        self.locks.close_handle(Ino(ino), handle);
    }
}

fn is_heard_of(handle: u64) -> bool {
    handle & 1 == 1
}
