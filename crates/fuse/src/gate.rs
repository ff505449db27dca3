//! The gate that changing verbs pass, and that a fork, snapshot or promote closes while it cuts the history.
//!
//! A verb that finds the gate closed is parked, not blocked: the threads that answer requests stay free, because closing the
//! gate and writing mapped pages back both need requests answered meanwhile. While pages are written back, verbs on
//! content pass a closed gate: the kernel waits for them (a write in progress holds its page's lock, a truncation holds
//! page writing up) before it can give the mapped pages. Where the cut falls is decided by the world's commit, so a verb
//! that passes late is after the cut or before it, never in two halves.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// What a verb changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Names and attributes.
    Name,
    /// Bytes or size of one file.
    Content,
}

type Parked = (Passage, Box<dyn FnOnce(Pass) + Send>);

/// The gate of one mount.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    holds: usize,
    write_backs: usize,
    active: usize,
    parked: Vec<Parked>,
    /// The mount has ended: what is parked is dropped.
    shut: bool,
}

impl State {
    fn is_open(&self, passage: Passage) -> bool {
        self.holds == 0 || (self.write_backs > 0 && passage == Passage::Content)
    }
}

impl Gate {
    /// Lets a verb through, or returns `None`: park it.
    pub(crate) fn enter(self: &Arc<Self>, passage: Passage) -> Option<Pass> {
        let mut state = self.state.lock();
        if !state.is_open(passage) {
            return None;
        }
        state.active += 1;
        Some(Pass(self.clone()))
    }

    /// Keeps `verb` until the gate opens; runs it at once when it has opened meanwhile.
    pub(crate) fn park(self: &Arc<Self>, passage: Passage, verb: impl FnOnce(Pass) + Send + 'static) {
        let mut state = self.state.lock();
        if state.is_open(passage) {
            state.active += 1;
            drop(state);
            verb(Pass(self.clone()));
        } else if !state.shut {
            state.parked.push((passage, Box::new(verb)));
        }
    }

    /// Closes the gate and waits until no verb is under way.
    pub(crate) fn hold(&self) {
        let mut state = self.state.lock();
        state.holds += 1;
        self.idle.wait_while(&mut state, |state| state.active > 0);
    }

    /// Undoes one [`Gate::hold`].
    pub(crate) fn release(self: &Arc<Self>) {
        self.reopen(|state| state.holds = state.holds.saturating_sub(1));
    }

    /// Lets verbs on content through until the end is called.
    pub(crate) fn begin_write_back(self: &Arc<Self>) {
        self.reopen(|state| state.write_backs += 1);
    }

    /// Ends one [`Gate::begin_write_back`]; when the gate is closed, waits until no verb is under way.
    pub(crate) fn end_write_back(&self) {
        let mut state = self.state.lock();
        state.write_backs -= 1;
        self.idle.wait_while(&mut state, |state| state.active > 0 && state.holds > 0 && state.write_backs == 0);
    }

    /// Returns whether the gate is closed.
    pub(crate) fn is_held(&self) -> bool {
        self.state.lock().holds > 0
    }

    /// Drops what is parked: the kernel that asked is gone.
    pub(crate) fn shut(&self) {
        let parked = {
            let mut state = self.state.lock();
            state.shut = true;
            std::mem::take(&mut state.parked)
        };
        drop(parked);
    }

    /// Changes the state and runs what may now pass, on a thread of its own: whoever opens the gate has other things to do.
    fn reopen(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        self.idle.notify_all();
        let (go, stay) =
            std::mem::take(&mut state.parked).into_iter().partition::<Vec<_>, _>(|(p, _)| state.is_open(*p));
        state.parked = stay;
        state.active += go.len();
        drop(state);
        if go.is_empty() {
            return;
        }
        let ready: Vec<_> = go.into_iter().map(|(_, verb)| (verb, Pass(self.clone()))).collect();
        let run = move || ready.into_iter().for_each(|(verb, pass)| verb(pass));
        if let Err(e) = std::thread::Builder::new().name("mw-fuse-parked".into()).spawn(run) {
            // The closure is dropped with the failed spawn: each verb's reply then answers EIO by itself.
            tracing::error!("no thread for requests that waited for a fork: {e}");
        }
    }
}

/// The right to change something; the gate counts it until it is dropped.
pub(crate) struct Pass(Arc<Gate>);

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.active -= 1;
        if state.active == 0 {
            self.0.idle.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
