//! How long a world's history stays readable: the store's default, or what was set for the world.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::role::Role;
use crate::session::Session;
use crate::state::State;
use crate::store::Store;
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::codec::{Reader, Writer};
use mw_model::{ErrorKind, Seq, Version, WorldId};
use std::sync::Arc;
use std::time::Duration;

/// The longest retention that can be set: a hundred years.
const LONGEST: Duration = Duration::from_secs(36_525 * 86_400);

/// How far back a world can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long history stays readable.
    pub keep: Duration,
    /// Whether that is the store's default.
    pub default: bool,
    /// The oldest instant that can be read, snapshots aside.
    pub oldest: Version,
}

fn encode(keep: Duration) -> Bytes {
    let mut w = Writer::new();
    w.u8(1).var(u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX));
    w.0.into()
}

fn decode(bytes: &[u8]) -> Result<Duration> {
    let mut r = Reader::new(bytes);
    match r.u8()? {
        1 => {}
        n => return Err(crate::record::newer(n)),
    }
    let keep = Duration::from_nanos(r.var()?);
    r.end()?;
    Ok(keep)
}

impl Session {
    /// Returns how long the world's history stays readable.
    ///
    /// # Errors
    /// `Denied` below reader.
    pub fn retention(&self) -> Result<Retention> {
        self.need(Role::Reader)?;
        let (start, end) = layout::all_of(Tag::History, self.world.id);
        let oldest = match self.store.meta.scan(&start, &end, 1, Order::Up)?.first() {
            Some((_, bytes)) => State::decode(bytes)?.time,
            None => self.world.head.lock().time,
        };
        let own = self.store.own_retention(self.world.id)?;
        Ok(Retention { keep: own.unwrap_or(self.store.options.retention), default: own.is_none(), oldest })
    }

    /// Sets how long the world's history stays readable, or takes the store's default again; durable on return. Forks made from
    /// now on have it too. What is older goes with the next sweep; snapshots stay.
    ///
    /// # Errors
    /// `Denied` unless the key has everything: history is what a world's admins are held to, too. `Invalid` over a hundred years.
    pub fn set_retention(&self, keep: Option<Duration>) -> Result<()> {
        self.need_writable()?;
        self.store.need_everything(&self.who)?;
        if keep.is_some_and(|keep| keep > LONGEST) {
            return Err(Error::new(ErrorKind::Invalid, "history can be kept for a hundred years at most"));
        }
        let _head = self.world.head.lock();
        self.world.need_alive()?;
        let mut batch = Batch::new();
        batch.require(layout::of(Tag::Alive, self.world.id), Expect::Present);
        require_key(&mut batch, Some(&self.who));
        let place = layout::of(Tag::Retention, self.world.id);
        match keep {
            Some(keep) => batch.put(place, encode(keep)),
            None => batch.delete(place),
        };
        self.store.submit_for(&self.world, Some(&self.who), batch, Durability::Durable)?.wait()?;
        Ok(())
    }
}

impl Store {
    fn own_retention(&self, id: WorldId) -> Result<Option<Duration>> {
        self.meta.get(&layout::of(Tag::Retention, id))?.map(|bytes| decode(&bytes)).transpose()
    }

    /// Gives a fork what was set for its base.
    pub(crate) fn inherit_retention(&self, base: WorldId, fork: WorldId, batch: &mut Batch) -> Result<()> {
        if let Some(bytes) = self.meta.get(&layout::of(Tag::Retention, base))? {
            batch.put(layout::of(Tag::Retention, fork), bytes);
        }
        Ok(())
    }

    /// Returns from which entry on a world's history is kept: the newest state at or before the horizon, since instants after
    /// it replay from there. Entries before the horizon that no state covers are folded for it, so that a world that nobody
    /// writes to gives its past back too. None when all of it is kept.
    pub(crate) fn keep_from(self: &Arc<Self>, id: WorldId) -> Result<Option<Seq>> {
        let keep = self.own_retention(id)?.unwrap_or(self.options.retention);
        let horizon = self.env.now().saturating_sub(u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX));
        let (from, to) = layout::all_of(Tag::History, id);
        let newest = self.meta.scan(&from, &to, 1, Order::Down)?;
        let Some((_, newest)) = newest.first() else { return Ok(None) };
        let newest = State::decode(newest)?;
        if newest.time.0 <= horizon && self.goes_on_after(id, newest.seq)? {
            match self.world(id).and_then(|world| self.fold(&world)) {
                Ok(()) => {}
                // Deleted meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        let Some(mut keep) = self.kept_at(id, horizon)?.map(|state| state.seq) else { return Ok(None) };
        // After the fold: whoever began to read before it is known, and whoever begins now reads from the newest state on.
        if let Some(read) = self.open.lock().get(&id).and_then(|world| world.oldest_read()) {
            keep = keep.min(read);
        }
        Ok(Some(keep))
    }

    /// Returns the newest state of a world's history at or before an instant.
    fn kept_at(&self, id: WorldId, instant: u64) -> Result<Option<State>> {
        let (from, to) = layout::all_of(Tag::History, id);
        for (_, value) in self.meta.scan(&from, &to, usize::MAX, Order::Down)? {
            let state = State::decode(&value)?;
            if state.time.0 <= instant {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    fn goes_on_after(&self, id: WorldId, seq: Seq) -> Result<bool> {
        let (_, end) = layout::all_of(Tag::Log, id);
        Ok(!self.meta.scan(&layout::log(id, Seq(seq.0 + 1)), &end, 1, Order::Up)?.is_empty())
    }
}
