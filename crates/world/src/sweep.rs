//! Sweep: what nothing refers to any more is given back: whole segments, and ranges inside those in which something lives.
//!
//! Reachability grows only from roots that the mark saw: every borrowing commit requires the record of the root under which the
//! bytes were found. A segment is looked at only when its claim was there before the mark began, its owner has stopped appending
//! to it, and no call had bytes in it that were not committed yet. Nothing is given back before it is durable that nothing refers
//! to it: a power cut must not bring the reference back without the bytes.
//!
//! - `live`: what is referred to, and so what is dead.

mod live;

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::objects::upload_blobs;
use crate::record::{Extent, Lists, is_extent};
use crate::snapshot::SnapshotRecord;
use crate::state::State;
use crate::store::{Store, decode_claim};
use crate::sync::SyncPoints;
use crate::world::World;
use bytes::Bytes;
use live::Live;
use mw_meta::Order;
use mw_model::{Seq, WorldId};
use mw_segments::{BlobRef, Claim, Dead, Owner, SegmentId, Segments};
use mw_tree::{Root, Tree, Value, Visit};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Bytes given back: whole segments, and what `inside` counts.
    pub freed: u64,
    /// Segments freed.
    pub segments: u64,
    /// Bytes given back inside segments that live on.
    pub inside: u64,
    /// Deleted worlds whose last records went.
    pub worlds: u64,
    /// Entries of history beyond retention that went.
    pub entries: u64,
    /// Uploads that nobody ended in time.
    pub uploads: u64,
}

/// The blobs that something refers to.
struct Marks {
    lists: Lists,
    nodes: HashSet<BlobRef>,
    /// Those of `nodes` that the walk under way has met.
    met: Vec<BlobRef>,
    /// Lists all of whose pieces are marked.
    whole: HashSet<BlobRef>,
    live: Live,
    broken: Option<Error>,
}

impl Visit for Marks {
    fn node(&mut self, blob: &BlobRef) -> bool {
        self.live.add(&blob.addr);
        let new = self.nodes.insert(*blob);
        if new {
            self.met.push(*blob);
        }
        new
    }

    fn entry(&mut self, key: &[u8], value: &Value) {
        if let Err(e) = self.value(&Bytes::copy_from_slice(key), value) {
            self.broken.get_or_insert(e);
        }
    }

    fn large(&mut self, blob: &BlobRef) {
        self.live.add(&blob.addr);
    }
}

impl Marks {
    fn new(segments: Arc<dyn Segments>) -> Self {
        let (nodes, whole) = (HashSet::new(), HashSet::new());
        Self { lists: Lists::new(segments), nodes, met: Vec::new(), whole, live: Live::default(), broken: None }
    }

    /// Marks what a root reaches. A node that was met before has all beneath it marked, so a walk that fails leaves none.
    fn walk(&mut self, tree: &Tree, root: &Root) -> Result<()> {
        let walked = tree.walk(root, self).map_err(Error::from);
        let walked = walked.and_then(|()| self.broken.take().map_or(Ok(()), Err));
        let met = std::mem::take(&mut self.met);
        if walked.is_err() {
            self.broken = None;
            for node in &met {
                self.nodes.remove(node);
            }
        }
        walked
    }

    fn value(&mut self, key: &Bytes, value: &Value) -> Result<()> {
        if is_extent(key) {
            for extent in Extent::decode(value)? {
                self.extent(&extent?)?;
            }
        }
        Ok(())
    }

    fn extent(&mut self, extent: &Extent) -> Result<()> {
        let list = extent.piece.blob().filter(|_| extent.is_list());
        if list.is_some_and(|list| self.whole.contains(&list)) {
            return Ok(());
        }
        // Of a list of which only a part is referred to, only the pieces of that part are kept.
        let live = &mut self.live;
        self.lists.blobs(extent, &mut |blob| live.add(&blob.addr))?;
        if extent.len == extent.piece.len {
            self.whole.extend(list);
        }
        Ok(())
    }
}

impl Store {
    /// Gives back what nothing refers to. Safe beside every other call; an error leaves everything as it was.
    ///
    /// # Errors
    /// The store failed, or stored bytes do not verify: then nothing is given back.
    pub fn sweep(self: &Arc<Self>) -> Result<Swept> {
        // One at a time: the history that one removes is what the mark of another relies on.
        let _turn = self.sweeping.lock();
        let mut swept = Swept::default();
        self.bury(&mut swept)?;
        swept.uploads = self.expire_uploads()?;
        self.retire(&mut swept)?;
        let candidates = self.candidates()?;
        let mut marks = Marks::new(self.segments.clone());
        self.mark(&mut marks)?;
        let plan = plan(candidates, &mut marks.live);
        for (world, segments) in plan.whole {
            let (count, bytes) = self.free_segments(world, &segments)?;
            swept.segments += count;
            swept.freed += bytes;
        }
        swept.inside = self.punch(&plan.inside)?;
        swept.freed += swept.inside;
        self.swept.fetch_add(swept.freed, Ordering::Relaxed);
        Ok(swept)
    }

    /// Gives dead ranges inside live segments back.
    fn punch(&self, dead: &HashMap<Owner, Vec<Dead>>) -> Result<u64> {
        if dead.is_empty() {
            return Ok(0);
        }
        // What removed the last reference may have been committed `soon`.
        self.meta.sync()?;
        let mut bytes = 0;
        for (owner, dead) in dead {
            match self.segments.punch(*owner, dead) {
                Ok(n) => bytes += n,
                Err(e @ mw_segments::Error::Stopped { .. }) => return Err(e.into()),
                // Space that does not come back is no reason to keep the rest.
                Err(e) => tracing::warn!(world = %owner.world, "dead ranges are not given back: {e}"),
            }
        }
        Ok(bytes)
    }

    /// Gives back the space of deleted worlds that nobody can read any more.
    ///
    /// What a world lent is not its own to free: it only lets go of what it held, and the mark finds out what others still refer to.
    fn bury(&self, swept: &mut Swept) -> Result<()> {
        let (start, end) = layout::all(Tag::Dying);
        let mut lenders = Vec::new();
        for (key, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let id = WorldId(layout::number(&key));
            if self.graves.lock().get(&id).is_some_and(|world| world.strong_count() > 0) {
                continue;
            }
            self.graves.lock().remove(&id);
            if value.get(1) == Some(&1) {
                self.let_go(id)?;
                lenders.push(id);
            } else {
                swept.freed += self.free_dead(id, false, false)?.bytes;
                swept.worlds += 1;
            }
        }
        if lenders.is_empty() {
            return Ok(());
        }
        // After all of them have let go: the dead keep nothing of each other.
        let leaned = self.leaned()?;
        for id in lenders {
            let (start, end) = layout::all_of(Tag::Log, id);
            if let Some((after, to)) = leaned.get(&id) {
                swept.entries += self.remove(&start, &layout::log(id, Seq(after.0 + 1)))?;
                swept.entries += self.remove(&layout::log(id, Seq(to.0 + 1)), &end)?;
                continue;
            }
            swept.entries += self.remove(&start, &end)?;
            // Known while it owns segments: those who refer to bytes in them must find that it has lent.
            let (start, end) = layout::all_of(Tag::Segment, id);
            if self.meta.scan(&start, &end, 1, Order::Up)?.is_empty() {
                self.forget(id)?;
                swept.worlds += 1;
            }
        }
        Ok(())
    }

    /// Removes history beyond retention, in commits of its own before the mark: first what leans, then what is leaned on.
    fn retire(self: &Arc<Self>, swept: &mut Swept) -> Result<()> {
        let (start, end) = layout::all(Tag::World);
        let mut over = Vec::new();
        for (key, _) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let id = WorldId(layout::number(&key));
            let Some(keep) = self.keep_from(id)? else { continue };
            self.remove(&layout::all_of(Tag::History, id).0, &layout::numbered(Tag::History, id, keep.0))?;
            let (first, to) = (layout::all_of(Tag::Log, id).0, layout::log(id, keep));
            if !self.meta.scan(&first, &to, 1, Order::Up)?.is_empty() {
                over.push((id, keep));
            }
        }
        if over.is_empty() {
            return Ok(());
        }
        let leaned = self.leaned()?;
        for (id, keep) in over {
            let (after, to) = leaned.get(&id).copied().unwrap_or((keep, keep));
            let first = layout::all_of(Tag::Log, id).0;
            swept.entries += self.remove(&first, &layout::log(id, keep.min(Seq(after.0 + 1))))?;
            if to < keep {
                swept.entries += self.remove(&layout::log(id, Seq(to.0 + 1)), &layout::log(id, keep))?;
            }
        }
        Ok(())
    }

    /// Returns the entries of each world that a state, a snapshot, a sync pair or another world still leans on: all of them lie
    /// after the first number, and none after the second.
    fn leaned(&self) -> Result<HashMap<WorldId, (Seq, Seq)>> {
        let mut leaned: HashMap<WorldId, (Seq, Seq)> = HashMap::new();
        self.each_state(&mut |_, state| {
            for range in &state.lean {
                let kept = leaned.entry(range.world).or_insert((range.after, range.to));
                *kept = (kept.0.min(range.after), kept.1.max(range.to));
            }
            Ok(())
        })?;
        Ok(leaned)
    }

    /// Returns the claims of segments that this sweep may take from, as they stay.
    fn candidates(&self) -> Result<Vec<Claim>> {
        // In this order. Who appended to one of these segments did so before it was sealed, in a world that is open then; what was
        // committed by everybody who did is in the claims that are read last.
        let before = self.claims_now()?;
        let owners: HashSet<Owner> = before.iter().map(|claim| claim.owner).collect();
        for owner in owners.into_iter().filter(|owner| owner.incarnation == self.incarnation) {
            self.segments.seal(owner);
        }
        // With its owner: a segment that was freed since may be another's by now, who appends to it.
        let before: HashMap<SegmentId, Owner> = before.into_iter().map(|claim| (claim.segment, claim.owner)).collect();
        let open: Vec<_> = self.open.lock().values().cloned().collect();
        let busy = |world: &Arc<World>| world.staging.load(Ordering::SeqCst) > 0;
        let busy: HashSet<Owner> = open.iter().filter(|world| busy(world)).map(|world| world.owner).collect();
        // A call may count as ended while its plan is being committed, which it does under the head's lock.
        open.iter().for_each(|world| drop(world.head.lock()));
        let mut claims = self.claims_now()?;
        claims.retain(|claim| before.get(&claim.segment) == Some(&claim.owner) && !busy.contains(&claim.owner));
        Ok(claims)
    }

    fn claims_now(&self) -> Result<Vec<Claim>> {
        let (start, end) = layout::all(Tag::Segment);
        let found = self.meta.scan(&start, &end, usize::MAX, Order::Up)?;
        found.iter().map(|(key, value)| decode_claim(key, value)).collect()
    }

    fn mark(&self, marks: &mut Marks) -> Result<()> {
        self.each_state(&mut |owner, state| {
            let walked = marks.walk(&self.tree, &state.root);
            self.unless_gone(owner, walked)
        })?;
        // After the snapshots: one may be deleted meanwhile whose bytes were copied into an upload. Before the logs: an upload
        // that is completed meanwhile has its bytes there.
        upload_blobs(self, &mut |blob| marks.live.add(&blob.addr))?;
        let (mut start, end) = layout::all(Tag::Log);
        loop {
            let page = self.meta.scan(&start, &end, 1024, Order::Up)?;
            let Some((last, _)) = page.last() else { break };
            let mut next = last.to_vec();
            next.push(0);
            for (at, value) in &page {
                let entry = Entry::decode(value)?;
                if let Some(root) = &entry.root {
                    let walked = marks.walk(&self.tree, root);
                    self.unless_gone(owner_of(at), walked)?;
                }
                for (key, value) in &entry.changes {
                    if let Some(value) = value {
                        let marked = marks.value(key, value);
                        self.unless_gone(owner_of(at), marked)?;
                    }
                }
            }
            start = next.into();
        }
        Ok(())
    }

    /// Passes on what came of reading something of `owner`, unless the world is gone by now: a deleted world that lent nothing gives its
    /// bytes back at once, after its last record went, and a reader that found the record before meets the gap.
    fn unless_gone(&self, owner: WorldId, read: Result<()>) -> Result<()> {
        match read {
            Err(e) if self.record_of(owner)?.is_none() => {
                tracing::debug!(world = %owner, "a world went while it was marked: {e}");
                Ok(())
            }
            read => read,
        }
    }

    /// Visits every state that something can start from, with the world whose it is. What is made meanwhile is made from what was
    /// visited, or is visited: a snapshot can be forked and then deleted, so snapshots come before the states of forks. Every
    /// state that a world has is in its history, too.
    pub(crate) fn each_state(&self, visit: &mut dyn FnMut(WorldId, State) -> Result<()>) -> Result<()> {
        for tag in [Tag::Snapshot, Tag::Sync, Tag::History, Tag::State] {
            let (start, end) = layout::all(tag);
            for (key, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
                let owner = owner_of(&key);
                match tag {
                    Tag::Snapshot => visit(owner, SnapshotRecord::decode(&value)?.state)?,
                    Tag::Sync => {
                        for state in SyncPoints::decode(&value)?.into_states() {
                            visit(owner, state)?;
                        }
                    }
                    _ => visit(owner, State::decode(&value)?)?,
                }
            }
        }
        Ok(())
    }
}

/// Returns the world whose record has this key: its number comes first.
fn owner_of(key: &[u8]) -> WorldId {
    WorldId(crate::view::number(layout::rest(key).get(..8).unwrap_or_default()))
}

/// What a sweep gives back.
#[derive(Default)]
struct Plan {
    whole: HashMap<WorldId, Vec<SegmentId>>,
    inside: HashMap<Owner, Vec<Dead>>,
}

/// Decides what of the candidates is dead. The end of a segment that takes no more bytes is.
fn plan(candidates: Vec<Claim>, live: &mut Live) -> Plan {
    let mut plan = Plan::default();
    for Claim { segment, owner, .. } in candidates {
        if !live.has(segment) {
            plan.whole.entry(owner.world).or_default().push(segment);
            continue;
        }
        let dead = live.dead(segment, segment.size() as u32);
        if !dead.ranges.is_empty() {
            plan.inside.entry(owner).or_default().push(dead);
        }
    }
    plan
}
