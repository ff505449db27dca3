//! Where each owner appends, and which of its claims the caller has not been told yet.
//!
//! Invariant: `used` covers only bytes whose write has returned; an owner's claims are told once for each growth, also after
//! the owner was sealed. It does not know how space is found.

use super::file::DataFile;
use crate::{Claim, Owner, SegmentId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// How many bytes make it worth while to tell the disk that it may begin with them: small appends reach it with the sync that they
/// share.
const SETTLE: u32 = 512 << 10;
/// What the disk is told about, so that no page is written twice.
const PAGE: u32 = 4096;

/// The segment that an owner appends to.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: SegmentId,
    pub(super) file: Arc<DataFile>,
    pub(super) used: u32,
    /// How far the disk was told that it may begin.
    pub(super) settled: u32,
    /// Whether it grew since the last look at the claims.
    pub(super) grown: bool,
}

impl Open {
    /// Returns whether `len` more bytes fit.
    pub(super) fn fits(&self, len: u32) -> bool {
        u64::from(self.used) + u64::from(len) <= self.id.size()
    }

    /// Returns the whole pages of which the disk may be told now that nothing more is written to them, once they are many enough.
    pub(super) fn ready(&mut self) -> Option<(u32, u32)> {
        let (from, to) = (self.settled, self.used / PAGE * PAGE);
        if to - from < SETTLE {
            return None;
        }
        self.settled = to;
        Some((from, to))
    }
}

/// One owner's place.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    pub(super) open: Option<Open>,
    /// The size of the last segment, as a power of two; 0 before the first.
    pub(super) log2: u8,
    /// Closed segments that grew since the last look at the claims, with what is used of them.
    closed: Vec<(SegmentId, u32)>,
}

impl Cursor {
    /// Ends appending to the open segment.
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.take().filter(|open| open.grown) {
            self.closed.push((open.id, open.used));
        }
    }

    /// Returns the claims that were not told yet.
    pub(super) fn drain(&mut self, owner: Owner) -> Vec<Claim> {
        let mut claims: Vec<Claim> =
            self.closed.drain(..).map(|(segment, used)| Claim { segment, owner, used }).collect();
        if let Some(open) = self.open.as_mut().filter(|open| open.grown) {
            open.grown = false;
            claims.push(Claim { segment: open.id, owner, used: open.used });
        }
        claims
    }

    /// Forgets a segment that is being freed.
    pub(super) fn forget(&mut self, id: SegmentId) {
        self.open = self.open.take().filter(|open| open.id != id);
        self.closed.retain(|(closed, _)| *closed != id);
    }

    fn is_idle(&self) -> bool {
        self.open.is_none() && self.closed.is_empty()
    }
}

/// The cursors of all owners. The lock on the table is held for a look-up only; each cursor has a lock of its own.
#[derive(Debug, Default)]
pub(super) struct Cursors(Mutex<HashMap<Owner, Arc<Mutex<Cursor>>>>);

impl Cursors {
    /// Returns the cursor of `owner`, making one if need be.
    pub(super) fn of(&self, owner: Owner) -> Arc<Mutex<Cursor>> {
        self.0.lock().entry(owner).or_default().clone()
    }

    /// Runs `act` on the cursor of `owner`, and drops the cursor when nothing is left to remember.
    pub(super) fn with<T>(&self, owner: Owner, act: impl FnOnce(&mut Cursor) -> T) -> T {
        let out = act(&mut self.of(owner).lock());
        let mut table = self.0.lock();
        // Only a cursor that nobody else holds may go: an append under way would otherwise leave claims in one that is lost.
        if table.get(&owner).is_some_and(|c| Arc::strong_count(c) == 1 && c.lock().is_idle()) {
            table.remove(&owner);
        }
        out
    }
}
