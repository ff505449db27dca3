//! Opening a world: its overlay and chain head are rebuilt from the log; what was never durable and does not verify is cut.
//!
//! Anything before the durable mark that does not verify is corruption: reported by name, never cut, never guessed.

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::quota::{Quota, Room};
use crate::record::{Extent, Lists, is_extent};
use crate::state::State;
use crate::store::Store;
use crate::view::{Overlay, View};
use crate::world::{Borrowers, Head, World, WorldRecord};
use mw_meta::{Batch, Durability, Order};
use mw_model::{ErrorKind, Hash, Seq, Version, WorldId};
use mw_segments::{BlobRef, Owner, Segments};
use std::collections::HashSet;
use std::sync::Arc;

/// How many entries are read at a time.
const PAGE: usize = 512;

impl Store {
    /// Opens a world from its records.
    pub(crate) fn load(self: &Arc<Self>, id: WorldId) -> Result<World> {
        let gone = || Error::new(ErrorKind::NotFound, format!("world {} does not exist", id.0));
        let record = WorldRecord::decode(&self.meta.get(&layout::of(Tag::World, id))?.ok_or_else(gone)?)?;
        let alive = self.meta.get(&layout::of(Tag::Alive, id))?.ok_or_else(gone)?;
        let state_bytes = self
            .meta
            .get(&layout::of(Tag::State, id))?
            .ok_or_else(|| Error::corrupt(format!("world {} has no state; run `mw fsck`", record.name)))?;
        let state = State::decode(&state_bytes)?;
        let mark = Seq(self.number(&layout::of(Tag::Mark, id))?);
        let floor = Version(self.number(&layout::raw(Tag::Counter, &id.0.to_be_bytes()))?);
        let quota = self.meta.get(&layout::of(Tag::Quota, id))?;
        let quota = quota.map(|bytes| Quota::decode(&bytes)).transpose()?.unwrap_or_default();
        let mut replay = Replay::start(self, &state)?;
        let cut = replay.own(self, id, Seq(u64::MAX), Some(mark))?;
        if let Some(seq) = cut {
            self.cut(id, seq)?;
            tracing::warn!(world = record.name, seq = seq.0, "cut the log: what follows was never durable");
        }
        let durable = replay.view.seq;
        if durable < mark {
            return Err(Error::corrupt(format!(
                "entry {mark} of world {} was durable, and its log ends with entry {durable}; run `mw fsck`",
                record.name
            )));
        }
        let head = Head {
            bytes: replay.bytes,
            seq: durable,
            time: replay.view.time,
            chain: replay.chain,
            state,
            state_bytes,
            shared_out: alive.get(1) == Some(&1),
            borrowers: if alive.get(1) == Some(&1) { Borrowers::Any } else { Borrowers::Forks(HashSet::new()) },
            floor,
            // Whether the tail reached the disk is not known: the next durable commit syncs the segments first.
            loose: durable,
            durable: mark.min(durable),
            marked: mark,
            claims: Vec::new(),
            room: Room::new(quota),
        };
        let owner = Owner { world: id, incarnation: self.incarnation };
        Ok(World::new(id, record, owner, head, replay.view))
    }

    fn number(&self, key: &[u8]) -> Result<u64> {
        Ok(self.meta.get(key)?.map_or(0, |v| layout::number(&v)))
    }

    /// Removes the entries from `seq` on.
    fn cut(&self, id: WorldId, seq: Seq) -> Result<()> {
        loop {
            let found = self.meta.scan(&layout::log(id, seq), &layout::all_of(Tag::Log, id).1, PAGE, Order::Up)?;
            if found.is_empty() {
                return Ok(());
            }
            let mut batch = Batch::new();
            for (key, _) in found {
                batch.delete(key);
            }
            self.meta.commit(batch, Durability::Durable)?;
        }
    }

    /// Returns the content of `state`, with its own world's entries up to `upto` replayed as well.
    pub(crate) fn view_of(&self, world: WorldId, state: &State, upto: Seq) -> Result<(View, Hash)> {
        let mut replay = Replay::start(self, state)?;
        replay.own(self, world, upto, None)?;
        if upto.0 != u64::MAX && replay.view.seq < upto {
            return Err(Error::new(
                ErrorKind::NotFound,
                "that instant is no longer retained; take snapshots of what must stay",
            ));
        }
        Ok((replay.view, replay.chain))
    }
}

/// A view under reconstruction.
struct Replay {
    view: View,
    chain: Hash,
    bytes: usize,
}

impl Replay {
    /// Starts with a state's root and the ranges it leans on.
    fn start(store: &Store, state: &State) -> Result<Self> {
        let view = View::of_root(store.tree.clone(), state.root.clone(), state.seq, state.time);
        let mut replay = Self { view, chain: state.chain, bytes: 0 };
        for range in &state.lean {
            let mut after = range.after;
            while after < range.to {
                let page = store.page(range.world, after, range.to)?;
                let Some(last) = page.last().map(|(e, _)| e.seq) else {
                    return Err(Error::corrupt(format!(
                        "entries after {after} of world {} are missing; run `mw fsck`",
                        range.world.0
                    )));
                };
                for (entry, bytes) in page {
                    replay.apply(entry, bytes);
                }
                after = last;
            }
        }
        replay.view.seq = state.seq;
        replay.view.time = state.time;
        replay.chain = state.chain;
        Ok(replay)
    }

    /// Replays the world's own entries up to `upto`; with a mark, returns the first entry to cut.
    fn own(&mut self, store: &Store, world: WorldId, upto: Seq, mark: Option<Seq>) -> Result<Option<Seq>> {
        let mut verifier = Verifier::new(store.segments.clone());
        while self.view.seq < upto {
            let page = store.page(world, self.view.seq, upto)?;
            if page.is_empty() {
                break;
            }
            for (entry, bytes) in page {
                let broken = if entry.seq.0 != self.view.seq.0 + 1 || entry.previous != self.chain {
                    Some(Error::corrupt("its chain hash does not match the entry before"))
                } else if mark.is_some_and(|mark| entry.seq > mark) {
                    verifier.verify(&entry).err()
                } else {
                    None
                };
                if let Some(e) = broken {
                    if mark.is_some_and(|mark| entry.seq > mark) {
                        return Ok(Some(entry.seq.min(Seq(self.view.seq.0 + 1))));
                    }
                    let what = format!("entry {} of world {} does not verify; run `mw fsck`", entry.seq, world.0);
                    return Err(Error::caused(ErrorKind::Corrupt, what, e));
                }
                let (seq, time, chain) = (entry.seq, entry.time, entry.chain());
                self.apply(entry, bytes);
                (self.view.seq, self.view.time, self.chain) = (seq, time, chain);
            }
        }
        Ok(None)
    }

    fn apply(&mut self, entry: Entry, bytes: usize) {
        if let Some(root) = entry.root {
            self.view.root = root;
            self.view.overlay = Overlay::new();
            self.bytes = 0;
        }
        self.bytes += bytes;
        for (key, value) in entry.changes {
            self.view.overlay.insert(key, value);
        }
    }
}

impl Store {
    /// Returns the next entries after `after`, up to `to`, with their stored lengths.
    pub(crate) fn page(&self, world: WorldId, after: Seq, to: Seq) -> Result<Vec<(Entry, usize)>> {
        let end = if to.0 == u64::MAX { layout::all_of(Tag::Log, world).1 } else { layout::log(world, Seq(to.0 + 1)) };
        let found = self.meta.scan(&layout::log(world, Seq(after.0 + 1)), &end, PAGE, Order::Up)?;
        found.iter().map(|(_, value)| Ok((Entry::decode(value)?, value.len()))).collect()
    }
}

/// Checks that what entries refer to is there and verifies, each blob once: many entries may have rewritten parts of one.
struct Verifier {
    segments: Arc<dyn Segments>,
    lists: Lists,
    seen: HashSet<BlobRef>,
}

impl Verifier {
    fn new(segments: Arc<dyn Segments>) -> Self {
        Self { lists: Lists::new(segments.clone()), segments, seen: HashSet::new() }
    }

    fn verify(&mut self, entry: &Entry) -> Result<()> {
        let values = entry.changes.iter().filter(|(key, _)| is_extent(key)).filter_map(|(_, value)| value.as_ref());
        for value in values {
            for extent in Extent::decode(value)? {
                self.extent(&extent?)?;
            }
        }
        Ok(())
    }

    fn extent(&mut self, extent: &Extent) -> Result<()> {
        let mut blobs = Vec::new();
        self.lists.blobs(extent, &mut |blob| blobs.push(*blob))?;
        for blob in blobs {
            if !self.seen.contains(&blob) {
                self.segments.read(&blob)?;
                self.seen.insert(blob);
            }
        }
        Ok(())
    }
}
