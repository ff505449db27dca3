//! Tickets: a number of notifications, and who waits for them.
//!
//! A thread that answers requests must never block on one (see the crate's header): while it runs a verb, the tickets
//! that other mounts give it are collected ([`collect`]), and its answer is sent when they are done.

use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// Some notifications on their way to the kernel.
#[derive(Default)]
pub(crate) struct Ticket {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    left: usize,
    then: Vec<Box<dyn FnOnce() + Send>>,
}

impl Ticket {
    /// Makes the ticket of `left` notifications.
    pub(crate) fn new(left: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { left, then: Vec::new() }), done: Condvar::new() })
    }

    /// Counts one notification as done, and does what waited for the last.
    pub(crate) fn one_done(&self) {
        let then = {
            let mut state = self.state.lock();
            state.left = state.left.saturating_sub(1);
            if state.left > 0 {
                return;
            }
            self.done.notify_all();
            std::mem::take(&mut state.then)
        };
        for f in then {
            f();
        }
    }

    /// Waits at most `limit`. Returns whether all is done.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        !self.done.wait_while_for(&mut state, |state| state.left > 0, limit).timed_out()
    }

    /// Does `f` when all is done, on the thread that does the last, or at once.
    pub(crate) fn then(&self, f: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if state.left > 0 {
            state.then.push(Box::new(f));
        } else {
            drop(state);
            f();
        }
    }
}

thread_local! {
    static COLLECTED: RefCell<Option<Vec<Arc<Ticket>>>> = const { RefCell::new(None) };
}

/// Runs `verb` as a thread that may not block on tickets. Returns those that it was given.
pub(crate) fn collect<T>(verb: impl FnOnce() -> T) -> (T, Vec<Arc<Ticket>>) {
    let outer = COLLECTED.replace(Some(Vec::new()));
    let result = verb();
    let tickets = COLLECTED.replace(outer).unwrap_or_default();
    (result, tickets)
}

/// Gives `ticket` to the verb that runs on this thread. Returns false when there is none: the caller may block.
pub(crate) fn hand_over(ticket: &Arc<Ticket>) -> bool {
    COLLECTED.with_borrow_mut(|collected| match collected {
        Some(tickets) => {
            tickets.push(ticket.clone());
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests;
