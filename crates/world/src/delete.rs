//! Worlds deleted: first the commit that says so, then, when nobody can still read them, their space.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::listener::Changed;
use crate::mutate::require_key;
use crate::principal::{Principal, Role};
use crate::session::Session;
use crate::store::{Store, decode_claim};
use crate::versions;
use crate::world::{World, alive_value};
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::{ErrorKind, Ino, WorldId};
use mw_segments::SegmentId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a deletion looks whether those who still read have let go, and how long it waits in between.
const LET_GO: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);

/// The space that a deletion gives back, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Freed {
    /// Given back now.
    pub bytes: u64,
    /// Shared with other worlds, or still being read: the sweep decides.
    pub later: u64,
}

impl Store {
    /// Deletes a world. Its forks live on.
    ///
    /// # Errors
    /// `Denied` unless admin; `NotEmpty` without `force` while it holds anything.
    pub fn delete_world(self: &Arc<Self>, who: &Principal, name: &str, force: bool) -> Result<Freed> {
        let session = self.session(who, name)?;
        session.need(Role::Admin)?;
        session.delete_whole(force)
    }

    /// Frees a dead world's segments at once when it never lent bytes (so no other world leans on it) and nobody reads it.
    pub(crate) fn free_dead(&self, id: WorldId, shared_out: bool, busy: bool) -> Result<Freed> {
        let (start, end) = layout::all_of(Tag::Segment, id);
        let mut claims = Vec::new();
        for (key, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            claims.push(decode_claim(&key, &value)?.segment);
        }
        let later: u64 = claims.iter().map(|s| s.size()).sum();
        if shared_out || busy {
            return Ok(Freed { bytes: 0, later });
        }
        let base = self.record_of(id)?.and_then(|record| record.parent);
        self.forget(id)?;
        if let Some((base, _, _)) = base {
            self.end_loan(base, id)?;
        }
        Ok(Freed { bytes: self.free_segments(id, &claims)?.1, later: 0 })
    }

    /// Ends the loan of a base to a fork of which nothing is left, and which lent nothing itself: a base that has no other borrower is
    /// again one that never lent, and gives its space back whole when it goes (what was forked to be judged, say).
    fn end_loan(&self, base: WorldId, fork: WorldId) -> Result<()> {
        let Some(base) = self.open.lock().get(&base).cloned() else { return Ok(()) };
        let mut head = base.head.lock();
        if !head.borrowers.gone(fork) {
            return Ok(());
        }
        let alive = layout::of(Tag::Alive, base.id);
        let mut batch = Batch::new();
        batch.require(alive.clone(), Expect::Value(alive_value(true)));
        batch.put(alive, alive_value(false));
        // In order after the commits that removed the fork.
        match self.meta.commit(batch, Durability::Soon) {
            Ok(()) => head.shared_out = false,
            // It was deleted meanwhile.
            Err(mw_meta::Error::Conflict { .. }) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(())
    }

    /// Drops the claims of segments durably, then frees them; returns how many there were, and their bytes. A segment belongs to
    /// whoever drops its claim: one whose claim is gone was freed by another (a sweep beside a deletion), and may be in use again.
    pub(crate) fn free_segments(&self, world: WorldId, segments: &[SegmentId]) -> Result<(u64, u64)> {
        let (mut count, mut bytes) = (0, 0);
        for part in segments.chunks(1024) {
            loop {
                let mut batch = Batch::new();
                let mut held = Vec::with_capacity(part.len());
                for segment in part {
                    let place = layout::segment(world, *segment);
                    if self.meta.get(&place)?.is_some() {
                        batch.require(place.clone(), Expect::Present);
                        batch.delete(place);
                        held.push(*segment);
                    }
                }
                if held.is_empty() {
                    break;
                }
                match self.meta.commit(batch, Durability::Durable) {
                    Ok(()) => {
                        count += held.len() as u64;
                        bytes += self.segments.free(&held)?;
                        break;
                    }
                    Err(mw_meta::Error::Conflict { .. }) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        }
        Ok((count, bytes))
    }

    /// Removes every record of a dead world but its claims: first what leans, then what is leaned on, last the record that says
    /// that the world is dying, so that a sweep goes on where a crash broke this off.
    pub(crate) fn forget(&self, id: WorldId) -> Result<()> {
        self.let_go(id)?;
        let (start, end) = layout::all_of(Tag::Log, id);
        self.remove(&start, &end)?;
        let mut batch = Batch::new();
        for tag in [Tag::World, Tag::Mark, Tag::Quota, Tag::Retention, Tag::Reverts, Tag::Dying] {
            batch.delete(layout::of(tag, id));
        }
        batch.delete(layout::raw(Tag::Counter, &id.0.to_be_bytes()));
        self.meta.commit(batch, Durability::Durable)?;
        Ok(())
    }

    /// Removes all that a dead world holds on to: its state, history, snapshots, sync points, uploads and settings.
    pub(crate) fn let_go(&self, id: WorldId) -> Result<()> {
        let mut batch = Batch::new();
        for tag in [Tag::State, Tag::Sync] {
            batch.delete(layout::of(tag, id));
        }
        self.meta.commit(batch, Durability::Soon)?;
        for tag in [Tag::History, Tag::Snapshot, Tag::Upload, Tag::Setting] {
            let (start, end) = layout::all_of(tag, id);
            self.remove(&start, &end)?;
        }
        Ok(())
    }

    /// Removes the records of `start <= key < end`; returns how many there were.
    pub(crate) fn remove(&self, start: &[u8], end: &[u8]) -> Result<u64> {
        let mut removed = 0;
        loop {
            let page = self.meta.scan(start, end, 1024, Order::Up)?;
            if page.is_empty() {
                return Ok(removed);
            }
            removed += page.len() as u64;
            let mut batch = Batch::new();
            for (key, _) in page {
                batch.delete(key);
            }
            self.meta.commit(batch, Durability::Soon)?;
        }
    }

    /// Discards the forks whose time to live has passed; returns their names. Forgets temporary keys whose time has passed too.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn reap(self: &Arc<Self>) -> Result<Vec<String>> {
        let root = self.principal(&self.root_key()?.id)?;
        let now = self.env.now();
        self.reap_temporary(now)?;
        let mut reaped = Vec::new();
        let (start, end) = layout::all(Tag::Name);
        for (_, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let Some(record) = self.record_of(WorldId(layout::number(&value)))? else { continue };
            if record.expires.is_some_and(|at| at <= now) {
                match self.delete_world(&root, &record.name, true) {
                    Ok(_) => reaped.push(record.name),
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) => tracing::warn!(world = record.name, "its time is over, but it could not be deleted: {e}"),
                }
            }
        }
        Ok(reaped)
    }
}

impl Session {
    /// Drops a fork and says how much space came back.
    ///
    /// # Errors
    /// `Denied` unless admin; `Invalid` for a world that is not a fork.
    pub fn discard(&self) -> Result<Freed> {
        self.need(Role::Admin)?;
        if self.world.record.read().parent.is_none() {
            return Err(Error::invalid(format!(
                "world {} is not a fork; `mw world delete {}` deletes it",
                self.name, self.name
            )));
        }
        self.delete_whole(true)
    }

    fn delete_whole(&self, force: bool) -> Result<Freed> {
        if self.at.is_some() {
            return Err(Error::new(ErrorKind::ReadOnly, "a version cannot be deleted as a world; delete its snapshot"));
        }
        let world: &Arc<World> = &self.world;
        let _turn = world.folding.lock();
        let shared_out = {
            let head = world.head.lock();
            world.need_alive()?;
            let view = world.view();
            if !force && (view.entries(Ino::ROOT, &[]).next().transpose()?.is_some() || versions::any(&view)?) {
                return Err(Error::new(
                    ErrorKind::NotEmpty,
                    format!(
                        "world {} is not empty; delete its objects and their versions first, or force it with `mw world delete --force`",
                        self.name
                    ),
                ));
            }
            let alive = layout::of(Tag::Alive, world.id);
            let mut batch = Batch::new();
            batch.require(alive.clone(), Expect::Value(alive_value(head.shared_out)));
            require_key(&mut batch, Some(&self.who));
            batch.delete(alive);
            batch.delete(layout::raw(Tag::Name, self.name.as_str().as_bytes()));
            {
                let record = world.record.read();
                if let Some((parent, _, _)) = &record.parent {
                    batch.delete(layout::numbered(Tag::Child, *parent, world.id.0));
                }
                if !record.owner.is_empty() {
                    batch.delete(layout::owned_by(&record.owner, world.id));
                }
            }
            batch.put(layout::of(Tag::Dying, world.id), alive_value(head.shared_out));
            self.store.submit_for(world, Some(&self.who), batch, Durability::Durable)?.wait()?;
            world.dead.store(true, Ordering::Release);
            head.shared_out
        };
        self.store.open.lock().remove(&world.id);
        world.listeners.tell(0, &[Changed::Gone]);
        self.store.segments.seal(world.owner);
        // This session is one holder; any other may still be reading. Most are done in a moment, and a deletion that waits for them can
        // say what it gives back.
        let read = || Arc::strong_count(world) > 1;
        for _ in 0..LET_GO {
            if !read() {
                break;
            }
            self.store.env.sleep(PAUSE);
        }
        let busy = read();
        if busy {
            self.store.graves.lock().insert(world.id, Arc::downgrade(world));
        }
        self.store.free_dead(world.id, shared_out, busy)
    }
}
