//! What one server tells the next of a mount that it hands over: all that is in memory alone.
//!
//! Taken while the mount stands still: no thread reads requests, and all that were read are answered, or will be sent anew. Where what is written here changes its
//! meaning, the version of the hand-over does too (`cli`).

use super::{Door, Kept, KeptState, PATIENCE, PAUSE};
use crate::known::Inode;
use crate::notify::Notice;
use crate::pieces::Unfinished;
use mw_model::{Ino, Version};
use mw_world::{LockEnd, LockKind, LockReach, LockSpan, WantedLock};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// What the kernel and the server agreed on when the mount was made. A program that takes the mount over goes on with it, whatever it
/// would ask for itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Negotiated {
    /// The version of the protocol, as the kernel gave it.
    pub(crate) protocol: (u32, u32),
    /// The capabilities that were asked for and given, as in FUSE_INIT.
    pub(crate) capabilities: u64,
}

/// A lock that a program has.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct HandedLock {
    ino: u64,
    /// The first byte and the last; none: the whole file, of flock(2).
    bytes: Option<(u64, u64)>,
    shared: bool,
    owner: u64,
    handle: u64,
    process: u32,
    late: bool,
}

impl From<WantedLock> for HandedLock {
    fn from(lock: WantedLock) -> Self {
        let WantedLock { ino, reach, kind, owner, handle, process, late } = lock;
        let bytes = match reach {
            LockReach::Bytes(span) => Some((span.first, span.last)),
            LockReach::Whole => None,
        };
        Self { ino: ino.0, bytes, shared: kind == LockKind::Shared, owner, handle, process, late }
    }
}

impl From<HandedLock> for WantedLock {
    fn from(lock: HandedLock) -> Self {
        let HandedLock { ino, bytes, shared, owner, handle, process, late } = lock;
        let reach = bytes.map_or(LockReach::Whole, |(first, last)| LockReach::Bytes(LockSpan { first, last }));
        let kind = if shared { LockKind::Shared } else { LockKind::Exclusive };
        Self { ino: Ino(ino), reach, kind, owner, handle, process, late }
    }
}

/// A mount on its way from one server to the next, beside its device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handed {
    negotiated: Negotiated,
    /// The kernel's number of the mount.
    number: u32,
    /// Out of sight already, and kept by the programs that use it.
    detached: bool,
    names_expire: bool,
    /// The version of the world that the kernel knows all changes of, but those in `notices`; none: that is not certain.
    heard: Option<u64>,
    /// The instant, of a mount that shows one.
    instant: Option<u64>,
    known: HashMap<u64, Inode>,
    /// Inode, how often it is open, and through how many of these pages may become dirty.
    opens: Vec<(u64, u64, u64)>,
    /// Handle, inode, and the version that is listed.
    dirs: Vec<(u64, u64, u64)>,
    last_dir: u64,
    /// How many files have been opened: the number of the last one.
    opened: u64,
    locks: Vec<HandedLock>,
    retries: Vec<u64>,
    unfinished: Unfinished,
    notices: Vec<Notice>,
    /// What the kernel keeps to itself; none: it does not.
    #[serde(default)]
    kept: Option<KeptState>,
}

impl Handed {
    /// Returns how many files and directories are open.
    pub fn open(&self) -> u64 {
        self.opens.iter().map(|(_, count, _)| count).sum::<u64>() + self.dirs.len() as u64
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the instant that the mount shows, when it does not show the world as it is now.
    pub fn instant(&self) -> Option<Version> {
        self.instant.map(Version)
    }
}

impl Door {
    /// Writes the state down.
    pub(crate) fn hand_over(&self) -> Handed {
        // In this order: what had changed by now has been told of when no change is under way, and what changes later has a later version.
        let version = self.session.shown().0;
        let heard = self.settled().then_some(version);
        Handed {
            heard,
            negotiated: self.negotiated.get().copied().unwrap_or_default(),
            number: self.number.get().copied().unwrap_or_default(),
            detached: self.detached.load(Ordering::SeqCst),
            names_expire: self.names_expire.load(Ordering::SeqCst),
            instant: self.session.version().map(|version| version.0),
            known: self.known.written(),
            opens: self.opens.written(),
            dirs: self.opened_dirs().into_iter().map(|(handle, ino, version)| (handle, ino, version.0)).collect(),
            last_dir: self.last_dir.load(Ordering::Relaxed),
            opened: self.opened.load(Ordering::Relaxed),
            locks: self.locks.held().into_iter().map(HandedLock::from).collect(),
            retries: self.retries.held(),
            unfinished: self.gate.unfinished(),
            notices: self.notices.waiting(),
            kept: self.kept.as_ref().map(Kept::written),
        }
    }

    /// Takes the state over, before the first request is read. What cannot be taken over is logged: the programs that have it open get errors.
    pub(crate) fn take_over(&self, handed: Handed) {
        self.agreed(handed.negotiated);
        self.detached.store(handed.detached, Ordering::SeqCst);
        self.names_expire.store(handed.names_expire, Ordering::SeqCst);
        self.known.restore(handed.known);
        for (ino, count, writing) in handed.opens {
            for n in 0..count {
                match self.session.open(Ino(ino)) {
                    Ok(_) => self.opens.add(ino, n < writing),
                    Err(error) => {
                        tracing::error!(world = %self.world, ino, %error, "an open file is lost in the restart")
                    }
                }
            }
        }
        self.last_dir.store(handed.last_dir, Ordering::Relaxed);
        for (handle, ino, version) in handed.dirs {
            if let Err(error) = self.reopen_dir(handle, ino, Version(version)) {
                tracing::error!(world = %self.world, ino, %error, "an open directory is lost in the restart");
            }
        }
        self.opened.store(handed.opened, Ordering::Relaxed);
        for lock in handed.locks {
            // Nobody asks yet, and what was held goes together.
            let end = self.locks.try_lock(&lock.into());
            if end != LockEnd::Granted {
                tracing::error!(world = %self.world, ino = lock.ino, ?end, "a lock is lost in the restart");
            }
        }
        for ino in handed.retries {
            if self.session.open(Ino(ino)).is_ok() {
                self.hold_for_retry(ino);
            }
        }
        self.gate.take_over(handed.unfinished);
        if let (Some(kept), Some(state)) = (&self.kept, handed.kept) {
            kept.restore(state);
        }
        let mut notices = handed.notices;
        if handed.heard != Some(self.session.shown().0) {
            self.epochs.touch_all();
            notices.push(Notice::Everything);
        }
        // Nobody waits for them: the answers that did were sent before.
        drop(self.notices.post(notices));
    }

    /// Waits until no change is under way that the mount has not heard of. There is hardly ever one: who changes has been answered.
    fn settled(&self) -> bool {
        let store = self.session.store();
        (0..PATIENCE).any(|n| {
            if n > 0 {
                store.env().sleep(PAUSE);
            }
            !store.is_changing()
        })
    }

    /// Returns the kernel's number of the mount.
    pub(crate) fn number(&self) -> Option<u32> {
        self.number.get().copied()
    }
}
