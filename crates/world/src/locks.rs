//! Advisory locks of files (fcntl(2), flock(2)), one table for all clients of a world.
//!
//! They belong to those who have files open just now, and are no part of the world's state: no entry knows of them, and no fork has them.
//! A wish that has to wait is kept with what is to be done at its end, which is done outside the table's lock by whoever ends it; no
//! thread waits. Here is no protocol: what a client's numbers for programs and open files mean is its own affair.
//!
//! `spans`: the locked ranges of a file; `table`: who has, who waits, what follows.

mod spans;
mod table;

pub use self::spans::{LockKind, LockSpan};
pub use self::table::{HeldLock, LockEnd, LockReach, WantedLock};

use self::table::{News, Table, Waiter};
use mw_model::Ino;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Then = Box<dyn FnOnce(LockEnd) + Send>;

/// The locks of one world.
#[derive(Default)]
pub(crate) struct Locks {
    state: Mutex<State>,
    /// Something is locked. Most files are closed in worlds where nothing is.
    any: AtomicBool,
}

#[derive(Default)]
struct State {
    table: Table,
    waiting: HashMap<Waiter, Then>,
}

impl Locks {
    /// Changes the table, and tells those whose waiting has ended by it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> (T, News)) -> T {
        let (done, ended) = {
            let mut state = self.state.lock();
            let (done, news) = change(&mut state);
            self.any.store(!state.table.is_empty(), Ordering::SeqCst);
            let ended: Vec<_> =
                news.into_iter().filter_map(|(waiter, end)| Some((state.waiting.remove(&waiter)?, end))).collect();
            (done, ended)
        };
        ended.into_iter().for_each(|(then, end)| then(end));
        done
    }
}

/// A client of a world's locks, such as a mount. Its locks go with it.
pub struct Locker {
    locks: Arc<Locks>,
    client: u64,
}

impl Locker {
    pub(crate) fn new(locks: Arc<Locks>) -> Self {
        let client = locks.state.lock().table.join();
        Self { locks, client }
    }

    /// Takes a lock at once or not at all.
    pub fn try_lock(&self, wanted: &WantedLock) -> LockEnd {
        self.locks.change(|state| state.table.try_lock(self.client, wanted))
    }

    /// Takes a lock, waiting as long as it takes. `then` hears how that ended: from this call, or from whatever ends the waiting.
    /// `number`, one that no other wish of the client has, is what [`Locker::cancel`] knows the wish by.
    pub fn lock(&self, wanted: WantedLock, number: u64, then: impl FnOnce(LockEnd) + Send + 'static) {
        self.wait(wanted, number, true, then);
    }

    /// [`Locker::lock`] for who waits for a moment only, which it will end with [`Locker::cancel`]: it is in no deadlock.
    pub fn lock_soon(&self, wanted: WantedLock, number: u64, then: impl FnOnce(LockEnd) + Send + 'static) {
        self.wait(wanted, number, false, then);
    }

    fn wait(&self, wanted: WantedLock, number: u64, lasting: bool, then: impl FnOnce(LockEnd) + Send + 'static) {
        let waiter = Waiter { client: self.client, number };
        let ended = self.locks.change(|state| {
            let (end, news) = state.table.wait(waiter, wanted, lasting);
            match end {
                Some(end) => (Some((then, end)), news),
                None => {
                    state.waiting.insert(waiter, Box::new(then));
                    (None, news)
                }
            }
        });
        if let Some((then, end)) = ended {
            then(end);
        }
    }

    /// Ends the waiting of a wish with `end`, if it still waits.
    pub fn cancel(&self, number: u64, end: LockEnd) {
        let waiter = Waiter { client: self.client, number };
        self.locks.change(|state| ((), state.table.cancel(waiter, end)));
    }

    /// Frees what an owner has.
    pub fn unlock(&self, ino: Ino, reach: LockReach, owner: u64) {
        self.locks.change(|state| ((), state.table.unlock(self.client, ino, reach, owner)));
    }

    /// A program closes a descriptor of `handle`: all bytes of the file that it has locked, through whatever handle, are free (POSIX close).
    pub fn close_owner(&self, ino: Ino, owner: u64, handle: u64) {
        if self.locks.any.load(Ordering::SeqCst) {
            self.locks.change(|state| ((), state.table.close_owner(self.client, ino, owner, handle)));
        }
    }

    /// An open file has ended: all that was locked through it is free.
    pub fn close_handle(&self, ino: Ino, handle: u64) {
        if self.locks.any.load(Ordering::SeqCst) {
            self.locks.change(|state| ((), state.table.close_handle(self.client, ino, handle)));
        }
    }

    /// Returns a lock that is in the way of the one that is wanted.
    pub fn in_way(&self, wanted: &WantedLock) -> Option<HeldLock> {
        self.locks.state.lock().table.in_way(self.client, wanted)
    }

    /// Returns a lock that an owner itself has on bytes in `span`.
    pub fn own(&self, ino: Ino, owner: u64, span: LockSpan) -> Option<HeldLock> {
        self.locks.state.lock().table.own(self.client, ino, owner, span)
    }

    /// Returns whether somebody has locked bytes of a file.
    pub fn has_bytes(&self, ino: Ino) -> bool {
        self.locks.any.load(Ordering::SeqCst) && self.locks.state.lock().table.has_bytes(ino)
    }

    /// Returns all that the client has, as it would be asked for: for a client in another process that takes this one's place.
    pub fn held(&self) -> Vec<WantedLock> {
        self.locks.state.lock().table.of_client(self.client)
    }

    /// Returns how many wishes wait.
    pub fn waiting(&self) -> usize {
        self.locks.state.lock().table.waiting(self.client)
    }

    /// Forgets the wishes that wait, without a word to anybody: they will be asked for anew.
    pub fn forget_waiting(&self) {
        let forgotten: Vec<_> = {
            let mut state = self.locks.state.lock();
            let waiters = state.table.forget_waiting(self.client);
            waiters.into_iter().filter_map(|waiter| state.waiting.remove(&waiter)).collect()
        };
        drop(forgotten);
    }

    /// Gives up all that the client has, and ends all that waits in it. Whatever it wants later is refused.
    pub fn leave(&self) {
        self.locks.change(|state| ((), state.table.leave(self.client)));
    }

    /// The world is gone: all its clients leave at once, so that nobody is given what another has lost.
    pub fn end(&self) {
        self.locks.change(|state| ((), state.table.end()));
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
