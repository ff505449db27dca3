//! What the handle of a sandbox and the thread that watches it share.

use crate::outcome::Outcome;
use crate::spec::Enforcers;
use parking_lot::{Condvar, Mutex};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::fs::File;

/// What the caller asked for last; the later ones are the stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Request {
    /// Nothing.
    Nothing,
    /// To end, in the grace time.
    Stop,
    /// To end at once.
    Kill,
}

/// What the handle and the watching thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub bell: OwnedFd,
    pub request: Mutex<Request>,
    pub end: Mutex<Option<Outcome>>,
    pub ended: Condvar,
    pub pid: i32,
    pub enforcers: Enforcers,
    pub input: Mutex<Option<File>>,
    pub terminal: Option<OwnedFd>,
}

impl Shared {
    /// Returns what becomes readable when the caller asks for something.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        rustix::fd::AsFd::as_fd(&self.bell)
    }

    /// Silences the bell and returns the request.
    pub(crate) fn answer_bell(&self) -> Request {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        *self.request.lock()
    }

    pub(crate) fn ask(&self, request: Request) {
        let mut last = self.request.lock();
        *last = request.max(*last);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}
