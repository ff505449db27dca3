//! The gate that changing verbs pass, and that a fork, snapshot or promote closes while it cuts the history.
//!
//! A verb that finds the gate closed is parked, not blocked: the threads that answer requests stay free, because closing the
//! gate and writing mapped pages back both need requests answered meanwhile. While pages are written back, verbs on
//! content pass a closed gate: the kernel waits for them (a write in progress holds its page's lock, a truncation holds
//! page writing up) before it can give the mapped pages. Where the cut falls is decided by the world's commit, so a verb
//! that passes late is after the cut or before it, never in two halves.
//!
//! A write(2) of several requests ([`crate::pieces`]) passes whole: before the gate closes, it first lets nothing new in on
//! content and waits until every write that was begun has come to its end.

use crate::pieces::{Begun, Piece, Unfinished};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// What a verb changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Names and attributes.
    Name,
    /// Bytes or size of one file.
    Content,
    /// A mapped page, which the kernel writes back when it likes.
    Page,
}

/// How long one that writes back waits for one that holds. They go by turns; but two that hold several mounts may meet the
/// other way round, and neither may wait for ever.
const TURN: Duration = Duration::from_secs(1);

/// A verb that waits for the gate to open.
struct Parked {
    passage: Passage,
    piece: Option<Piece>,
    verb: Box<dyn FnOnce(Pass) + Send>,
}

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
    /// Closings under way that wait for writes to end: names pass, content does not.
    settling: usize,
    unfinished: Unfinished,
    active: usize,
    parked: Vec<Parked>,
    /// The mount has ended: what is parked is dropped.
    shut: bool,
}

impl State {
    /// Counts a verb that passes. A piece of a write counts as begun from now on, not only when it is in the store: a closing that
    /// waits for the one must not miss the other.
    fn admit(&mut self, piece: Option<&Piece>) {
        self.active += 1;
        if let Some(piece) = piece {
            self.unfinished.begins(piece);
        }
    }

    fn is_open(&self, passage: Passage) -> bool {
        match passage {
            Passage::Name => self.holds == 0,
            Passage::Page => self.holds == 0 || self.write_backs > 0,
            Passage::Content => self.holds + self.settling == 0 || self.write_backs > 0,
        }
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

    /// Lets a write through, or returns `None`: park it. What goes on with a write that was let through passes always.
    pub(crate) fn enter_write(self: &Arc<Self>, piece: &Piece) -> Option<Pass> {
        let mut state = self.state.lock();
        let goes_on = state.unfinished.continues(piece);
        if !goes_on && !state.is_open(Passage::Content) {
            // A closing may have waited for this very news: what was begun before is whole.
            self.idle.notify_all();
            return None;
        }
        state.admit(Some(piece));
        self.idle.notify_all();
        Some(Pass(self.clone()))
    }

    /// Returns how far the last write of `ino` came that may go on.
    pub(crate) fn begun(&self, ino: u64) -> Option<Begun> {
        self.state.lock().unfinished.begun(ino)
    }

    /// Returns every write that may go on, for who takes the mount over.
    pub(crate) fn unfinished(&self) -> Unfinished {
        self.state.lock().unfinished.clone()
    }

    /// Takes over the writes that may go on.
    pub(crate) fn take_over(&self, unfinished: Unfinished) {
        self.state.lock().unfinished = unfinished;
    }

    /// Notes that a write is whole, unless another has begun since: nobody has the file open any more.
    pub(crate) fn closed(&self, ino: u64, begun: Begun) {
        let mut state = self.state.lock();
        if state.unfinished.begun(ino) == Some(begun) && state.unfinished.ended(ino) {
            self.idle.notify_all();
        }
    }

    /// Notes that no write of `ino` is under way: a request came that the kernel sends under the inode's lock.
    pub(crate) fn ended(&self, ino: u64) {
        if self.state.lock().unfinished.ended(ino) {
            self.idle.notify_all();
        }
    }

    /// Lets no new content in. To be followed by [`Gate::hold`].
    pub(crate) fn begin_settle(&self) {
        self.state.lock().settling += 1;
    }

    /// Waits at most `limit` until every write that was begun is whole; returns the inodes of those that may not be.
    pub(crate) fn settle(&self, limit: Duration) -> Vec<u64> {
        let mut state = self.state.lock();
        self.idle.wait_while_for(&mut state, |state| !state.unfinished.is_empty() && !state.shut, limit);
        if state.shut { Vec::new() } else { state.unfinished.inodes() }
    }

    /// Keeps `verb` until the gate opens; runs it at once when it has opened meanwhile.
    pub(crate) fn park(self: &Arc<Self>, passage: Passage, verb: impl FnOnce(Pass) + Send + 'static) {
        self.park_write(passage, None, verb);
    }

    /// [`Gate::park`] for what may be a piece of a write.
    pub(crate) fn park_write(
        self: &Arc<Self>,
        passage: Passage,
        piece: Option<Piece>,
        verb: impl FnOnce(Pass) + Send + 'static,
    ) {
        let mut state = self.state.lock();
        if state.is_open(passage) {
            state.admit(piece.as_ref());
            drop(state);
            verb(Pass(self.clone()));
        } else if !state.shut {
            state.parked.push(Parked { passage, piece, verb: Box::new(verb) });
        }
    }

    /// Closes the gate after [`Gate::begin_settle`], and waits until no verb is under way. Writes that have not come to their end
    /// are given up.
    pub(crate) fn hold(&self) {
        let mut state = self.state.lock();
        state.holds += 1;
        state.settling -= 1;
        state.unfinished.clear();
        self.idle.wait_while(&mut state, |state| state.active > 0);
    }

    /// Undoes one [`Gate::hold`] and its [`Gate::begin_settle`].
    pub(crate) fn release(self: &Arc<Self>) {
        self.reopen(|state| state.holds = state.holds.saturating_sub(1));
    }

    /// Lets verbs on content through until the end is called. Waits a moment for one that closed the gate before: what passes now
    /// could come before and after its cut.
    pub(crate) fn begin_write_back(self: &Arc<Self>) {
        self.idle.wait_while_for(&mut self.state.lock(), |state| state.holds + state.settling > 0, TURN);
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
            std::mem::take(&mut state.parked).into_iter().partition::<Vec<_>, _>(|p| state.is_open(p.passage));
        state.parked = stay;
        go.iter().for_each(|parked| state.admit(parked.piece.as_ref()));
        drop(state);
        if go.is_empty() {
            return;
        }
        let ready: Vec<_> = go.into_iter().map(|parked| (parked.verb, Pass(self.clone()))).collect();
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
