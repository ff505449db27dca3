//! Signals that came before the request that they interrupt was looked at.
//!
//! The kernel says that a request is interrupted when some thread has read it, and another one may read that and be faster. It says so once,
//! and of every request, while only those for a lock care. So the last few are remembered: a request that is about to wait looks here.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// How many are remembered. What they may interrupt is in the hands of a thread just now, so few would do.
const REMEMBERED: usize = 256;

/// The requests of one mount that were interrupted last.
#[derive(Default)]
pub(crate) struct Interrupts(Mutex<VecDeque<u64>>);

impl Interrupts {
    /// Notes that a request is interrupted. To be done before its waiting is ended, which may not have begun.
    pub(crate) fn add(&self, request: u64) {
        let mut last = self.0.lock();
        if last.len() == REMEMBERED {
            last.pop_front();
        }
        last.push_back(request);
    }

    /// Returns whether a request is interrupted. To be asked after its waiting has begun. Numbers are never used again.
    pub(crate) fn has(&self, request: u64) -> bool {
        self.0.lock().contains(&request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_remembered() {
        let interrupts = Interrupts::default();
        (0..1000).for_each(|request| interrupts.add(request));
        assert!(interrupts.has(999) && interrupts.has(1000 - REMEMBERED as u64) && !interrupts.has(0));
        assert_eq!(interrupts.0.lock().len(), REMEMBERED);
    }
}
