//! Fold: the overlay is edited into the tree in the background, and content that rode in entries moves to segments.
//!
//! Writers go on meanwhile, into a fresh overlay. Small extents that lie end to end in a file are joined into one blob; a file
//! that was changed while its extents were being joined keeps them as they were, since its new records were planned against
//! the old ones.

use crate::content::{PIECE, RIDE, STAY};
use crate::error::Result;
use crate::layout::{self, Tag};
use crate::record::{self, EXTENT_KEY, Extent, Kind, Locator, Piece, is_extent};
use crate::state::State;
use crate::store::Store;
use crate::view::{self, Overlay};
use crate::world::World;
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect};
use mw_model::{Hash, Ino};
use mw_segments::BlobRef;
use mw_tree::{Root, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The edits of a fold, and how to take back the joins of each file.
struct Plan {
    edits: BTreeMap<Bytes, Option<Value>>,
    joins: Joins,
}

/// How to take back the joins of each file.
type Joins = BTreeMap<Ino, Vec<(Bytes, Extent)>>;

/// A fold whose tree is written and that is not committed.
struct Fold<'a> {
    world: &'a World,
    root: Root,
    joins: Joins,
    /// The state that it stands for, but for the root, and the bytes of the one that it replaces.
    target: State,
    state_bytes: Bytes,
    _written: Written<'a>,
}

/// Keeps the sweep away from what a fold has written, until that is committed.
struct Written<'a>(&'a World);

impl<'a> Written<'a> {
    fn begin(world: &'a World) -> Self {
        world.staging.fetch_add(1, Ordering::SeqCst);
        Self(world)
    }
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        self.0.staging.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Store {
    /// Folds a world now; does nothing when its state is its root.
    pub(crate) fn fold(&self, world: &World) -> Result<()> {
        let _turn = world.folding.lock();
        self.fold_in_turn(world)
    }

    /// Folds a world whose `folding` lock the caller holds.
    pub(crate) fn fold_in_turn(&self, world: &World) -> Result<()> {
        self.fold_together(&[world])
    }

    /// Folds worlds whose `folding` locks the caller holds: one sync covers what all of them write.
    pub(crate) fn fold_together(&self, worlds: &[&World]) -> Result<()> {
        let mut folds = Vec::with_capacity(worlds.len());
        for world in worlds {
            folds.extend(self.begin_fold(world)?);
        }
        if !folds.is_empty() {
            self.segments.sync()?;
        }
        folds.into_iter().try_for_each(|fold| self.end_fold(fold))
    }

    /// Freezes the overlay and edits it into the tree; does nothing when the state of the world is its root.
    fn begin_fold<'a>(&self, world: &'a World) -> Result<Option<Fold<'a>>> {
        let (frozen, root, target, state_bytes) = {
            let mut head = world.head.lock();
            world.need_alive()?;
            let view = world.view();
            if view.overlay.is_empty() && view.frozen.is_none() && head.state.lean.is_empty() {
                return Ok(None);
            }
            // A fold that failed left a frozen overlay: the newer records lie over it.
            let frozen = match view.frozen {
                Some(older) => view.overlay.union(older),
                None => view.overlay,
            };
            world.show(&mut head, |shown| {
                shown.overlay = Overlay::new();
                shown.frozen = Some(frozen.clone());
            });
            head.bytes = 0;
            (frozen, view.root, world.state_now(&head), head.state_bytes.clone())
        };
        let written = Written::begin(world);
        let Plan { edits, joins } = self.plan_fold(world, &frozen)?;
        let edits: Vec<_> = edits.into_iter().collect();
        let root = self.tree.edit(&root, &world.salt, world.owner, &edits)?;
        Ok(Some(Fold { world, root, joins, target, state_bytes, _written: written }))
    }

    /// Commits a fold whose bytes are synced.
    fn end_fold(&self, fold: Fold<'_>) -> Result<()> {
        let Fold { world, mut root, joins, target, state_bytes, _written } = fold;
        let mut undone = BTreeSet::new();
        loop {
            let mut head = world.head.lock();
            let changed = changed_files(&world.view().overlay, &joins)?;
            let late: BTreeSet<Ino> = changed.difference(&undone).copied().collect();
            if late.is_empty() {
                return self.commit_fold(world, &mut head, root, target, state_bytes);
            }
            drop(head);
            let mut back = Vec::new();
            for (key, extent) in late.iter().flat_map(|ino| &joins[ino]) {
                back.push((key.clone(), Some(self.settled(world, extent)?.encode())));
            }
            back.sort_by(|a, b| a.0.cmp(&b.0));
            root = self.tree.edit(&root, &world.salt, world.owner, &back)?;
            self.segments.sync()?;
            undone.extend(late);
        }
    }

    fn commit_fold(
        &self,
        world: &World,
        head: &mut crate::world::Head,
        root: Root,
        target: State,
        state_bytes: Bytes,
    ) -> Result<()> {
        let state = State { root: root.clone(), lean: Vec::new(), ..target };
        let (bytes, seq) = (state.encode(), state.seq);
        let mut batch = Batch::new();
        batch.require(layout::of(Tag::Alive, world.id), Expect::Present);
        batch.require(layout::of(Tag::State, world.id), Expect::Value(state_bytes));
        batch.put(layout::of(Tag::State, world.id), bytes.clone());
        batch.put(layout::numbered(Tag::History, world.id, state.seq.0), bytes.clone());
        head.claim(&*self.segments, world.owner, &mut batch);
        self.meta.submit(batch, Durability::Soon)?.wait()?;
        head.claims.clear();
        head.state = state;
        head.state_bytes = bytes;
        let folded = world.show(head, |shown| {
            shown.root = root;
            shown.since = Arc::new(seq);
            shown.frozen.take()
        });
        // The last of a large map is freed by whoever let go last, and not under a lock.
        drop(folded);
        Ok(())
    }

    /// Decides what goes into the tree: riding content gets a place in segments, runs of small extents are joined.
    fn plan_fold(&self, world: &World, frozen: &Overlay) -> Result<Plan> {
        let mut plan = Plan { edits: BTreeMap::new(), joins: BTreeMap::new() };
        let mut run: Vec<(Ino, u64, Bytes, Extent)> = Vec::new();
        for (key, value) in frozen {
            let next = match value {
                Some(value) if is_extent(key) && key.len() == EXTENT_KEY => Extent::decode_riding(value)?
                    .filter(|extent| extent.len as usize <= RIDE)
                    .map(|extent| (view::number(&key[..8]), view::number(&key[9..]), extent)),
                _ => None,
            };
            let Some((ino, at, extent)) = next else {
                self.place(world, &mut run, &mut plan)?;
                plan.edits.insert(key.clone(), value.clone());
                continue;
            };
            let follows = run.last().is_some_and(|(i, a, _, e)| i.0 == ino && a + u64::from(e.len) == at);
            let length: u64 = run.iter().map(|(_, _, _, e)| u64::from(e.len)).sum();
            if !follows || length + u64::from(extent.len) > PIECE as u64 {
                self.place(world, &mut run, &mut plan)?;
            }
            run.push((Ino(ino), at, key.clone(), extent));
        }
        self.place(world, &mut run, &mut plan)?;
        Ok(plan)
    }

    /// Returns an extent as the tree can hold it: riding content that is not tiny in a blob.
    pub(crate) fn settled(&self, world: &World, extent: &Extent) -> Result<Extent> {
        let mut extent = extent.clone();
        if let Locator::Inline(bytes) = &extent.piece.locator
            && bytes.len() > STAY
        {
            extent.piece = self.content.store(world.owner, bytes)?;
        }
        Ok(extent)
    }

    /// Gives one run of riding extents its place.
    fn place(&self, world: &World, run: &mut Vec<(Ino, u64, Bytes, Extent)>, plan: &mut Plan) -> Result<()> {
        let run = std::mem::take(run);
        let Some((ino, _, first, head)) = run.first() else { return Ok(()) };
        if let [(_, _, key, extent)] = &run[..] {
            plan.edits.insert(key.clone(), Some(self.settled(world, extent)?.encode()));
            return Ok(());
        }
        let mut joined = Vec::new();
        for (_, _, _, extent) in &run {
            joined.extend_from_slice(&self.content.read(extent)?);
        }
        let piece = if joined.len() <= STAY {
            crate::content::Content::ride(&joined)
        } else {
            self.content.store(world.owner, &joined)?
        };
        let outer = piece.blob();
        let undo = plan.joins.entry(*ino).or_default();
        let mut offset = 0;
        for (i, (_, _, key, extent)) in run.iter().enumerate() {
            undo.push((key.clone(), apart(extent, outer, offset)));
            offset += extent.len;
            if i > 0 {
                plan.edits.insert(key.clone(), None);
            }
        }
        debug_assert_eq!(head.piece.hash, run[0].3.piece.hash);
        plan.edits.insert(first.clone(), Some(Extent::whole(piece).encode()));
        Ok(())
    }
}

/// Returns a joined extent as it was, with its bytes in the joined blob where that holds all of its piece.
fn apart(extent: &Extent, outer: Option<BlobRef>, offset: u32) -> Extent {
    let mut apart = extent.clone();
    if let Some(outer) = outer
        && extent.skip == 0
        && extent.len == extent.piece.len
    {
        let hash: Hash = extent.piece.hash;
        apart.piece = Piece { hash, len: extent.len, locator: Locator::Within { outer, offset } };
    }
    apart
}

/// Returns the files that were joined and whose extents were changed since.
fn changed_files(overlay: &Overlay, joins: &Joins) -> Result<BTreeSet<Ino>> {
    let mut late = BTreeSet::new();
    if joins.len() < overlay.len() {
        for ino in joins.keys() {
            let range = record::key(*ino, Kind::Extent, &[])..record::key_after(*ino, Kind::Extent);
            if overlay.range::<_, Bytes>(range).next().is_some() {
                late.insert(*ino);
            }
        }
    } else {
        for (key, _) in overlay {
            let (ino, kind, _) = record::split(key)?;
            if kind == Kind::Extent && joins.contains_key(&ino) {
                late.insert(ino);
            }
        }
    }
    Ok(late)
}

#[cfg(test)]
mod tests;
