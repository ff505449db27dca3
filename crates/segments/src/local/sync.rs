//! Group sync: threads that want durability at the same time share one round of syncs, led by one of them.
//!
//! Invariant: a call returns `Ok` only after a round that began when all it had to cover was already written. A failed round is
//! the last one: after it nothing may be assumed about what is on disk. It does not know files; the round is handed in.

use crate::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The queue for the next sync.
#[derive(Debug, Default)]
pub(super) struct GroupSync {
    /// How many writes were finished.
    written: AtomicU64,
    state: Mutex<State>,
    turn: Condvar,
    failed: OnceLock<Arc<io::Error>>,
}

#[derive(Debug, Default)]
struct State {
    /// How many writes the rounds so far cover.
    covered: u64,
    leading: bool,
    rounds: u64,
}

impl GroupSync {
    /// Notes a finished write. The file must have been marked before.
    pub(super) fn wrote(&self) {
        self.written.fetch_add(1, Ordering::Release);
    }

    /// Returns whether writing goes on.
    pub(super) fn alive(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |source| Err(Error::Stopped { source: source.clone() }))
    }

    /// Ends all writing because of a failed sync, and returns what to answer.
    pub(super) fn stop(&self, error: io::Error) -> Error {
        tracing::error!(%error, "a sync of the data files failed; nothing more is written until the store is reopened");
        Error::Stopped { source: self.failed.get_or_init(|| Arc::new(error)).clone() }
    }

    /// Waits until all that was written before the call is covered by a round, leading one when nobody else does. `round` syncs
    /// what needs it and says whether anything did.
    pub(super) fn wait(&self, round: impl Fn() -> io::Result<bool>) -> Result<()> {
        let target = self.written.load(Ordering::Acquire);
        let mut state = self.state.lock();
        loop {
            self.alive()?;
            if state.covered >= target {
                return Ok(());
            }
            if state.leading {
                self.turn.wait(&mut state);
                continue;
            }
            state.leading = true;
            drop(state);
            let covers = self.written.load(Ordering::Acquire);
            let outcome = round();
            state = self.state.lock();
            state.leading = false;
            match outcome {
                Ok(did) => {
                    state.covered = covers;
                    state.rounds += u64::from(did);
                }
                Err(error) => drop(self.stop(error)),
            }
            self.turn.notify_all();
        }
    }

    /// Returns the number of rounds that synced anything.
    pub(super) fn rounds(&self) -> u64 {
        self.state.lock().rounds
    }
}
