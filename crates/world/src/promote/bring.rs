//! One world's changes brought to the other: promote into the base, rebase into the fork.
//!
//! It is planned beside the writers on views of both worlds, and committed when neither has moved on; after a few vain attempts it
//! is planned under both locks. The commit is one entry, whatever the size of the merge: the records that change, when they are few
//! and nothing had to be folded for them; otherwise "the root becomes this".

use super::root::{Becomes, Changes, Swap, has_open, in_segments, keep_open, told};
use super::versions::carry;
use super::{PromoteOptions, Promoted};
use crate::content::Content;
use crate::diff::{Records, lift, records};
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::listener::Changed;
use crate::merge::{Combine, Conflict, Decide, Policy, Sides, Watch, merge};
use crate::mutate::require_key;
use crate::object::Known;
use crate::objects::{Attributes, NewObject};
use crate::principal::Principal;
use crate::record::{Extent, rows};
use crate::state::State;
use crate::store::Store;
use crate::sync::{Point, Reverts, SyncPoints};
use crate::txn::Txn;
use crate::view::{Overlay, View};
use crate::world::{Head, Staging, World, alive_value};
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect};
use mw_model::{ErrorKind, Hash, Seq, Version, WorldId};
use mw_tree::Value;
use parking_lot::MutexGuard;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often a merge is planned beside the writers before it is planned with the worlds locked.
const BESIDE: usize = 4;
/// How often it is tried at all.
const ATTEMPTS: usize = 8;
/// What is committed by its records has at most this many bytes.
const LITTLE: usize = 256 << 10;

/// A fork and its base, and the way the changes go.
pub(super) struct Bring<'a> {
    pub store: &'a Arc<Store>,
    pub who: &'a Principal,
    pub fork: Arc<World>,
    pub base: Arc<World>,
    pub into_base: bool,
    pub options: &'a PromoteOptions,
    /// Hears how far it is.
    pub progress: &'a dyn Fn(&str),
    /// How many stops were asked for when it began.
    pub stops: u64,
}

impl Watch for Bring<'_> {
    fn at(&self, what: &str, done: usize, of: usize) -> Result<()> {
        if self.fork.stops.load(Ordering::SeqCst) != self.stops {
            let name = self.target().record.read().name.clone();
            // A fork's key learns nothing of its base's name.
            let target = if self.into_base { "the base".to_owned() } else { format!("world {name}") };
            return Err(Error::new(
                ErrorKind::Cancelled,
                format!("stopped as asked; nothing was applied, {target} is untouched"),
            ));
        }
        match of {
            0 => (self.progress)(what),
            of => (self.progress)(&format!("{what}: {done} of {of}")),
        }
        Ok(())
    }
}

/// The heads of both worlds, locked.
struct Heads<'a> {
    target: MutexGuard<'a, Head>,
    source: MutexGuard<'a, Head>,
}

/// A merge planned.
struct Planned {
    /// The changed world as it was, the other, and the changed world as it is to be.
    ours: View,
    theirs: View,
    view: View,
    common: View,
    base_then: View,
    fast: bool,
    /// Whether any record of the changed world changes.
    changed: bool,
    /// What changes, when it is little.
    changes: Option<Changes>,
    entries: Vec<crate::diff::DiffEntry>,
    notices: Vec<Changed>,
    merged: Vec<Bytes>,
    conflicts: Vec<Conflict>,
    points: SyncPoints,
    points_bytes: Bytes,
}

/// What a merge committed; by default, nothing.
#[derive(Default)]
struct Committed {
    version: Option<Version>,
    snapshot: Option<Version>,
    notices: Vec<Changed>,
    /// Whether the changed world is due to be folded.
    heavy: bool,
}

impl Bring<'_> {
    fn target(&self) -> &Arc<World> {
        if self.into_base { &self.base } else { &self.fork }
    }

    fn source(&self) -> &Arc<World> {
        if self.into_base { &self.fork } else { &self.base }
    }

    /// Returns both worlds in the order in which they are locked.
    fn ordered(&self) -> [&Arc<World>; 2] {
        if self.fork.id < self.base.id { [&self.fork, &self.base] } else { [&self.base, &self.fork] }
    }

    pub(super) fn run(&self) -> Result<Promoted> {
        let _changing = self.store.changing();
        let [first, second] = self.ordered();
        let quiet = [first.listeners.quiesce()?, second.listeners.quiesce()?];
        let (promoted, committed) = self.merge()?;
        // The mounts are told while they still stand: no verb sees the new world through an old cache.
        self.target().listeners.tell(0, &committed.notices);
        drop(quiet);
        if committed.heavy {
            self.store.fold_soon(self.target());
        }
        Ok(promoted)
    }

    fn merge(&self) -> Result<(Promoted, Committed)> {
        let _turns = self.ordered().map(|world| world.folding.lock());
        let _staging = [Staging::begin(&self.fork), Staging::begin(&self.base)];
        for attempt in 0..ATTEMPTS {
            for world in self.ordered() {
                world.need_alive()?;
            }
            if !self.options.dry_run && !self.is_little() {
                self.at("folding what is not in the trees yet", 0, 0)?;
                self.store.fold_together(&self.ordered().map(|world| &**world))?;
            }
            let locked = (attempt >= BESIDE && !self.options.dry_run).then(|| self.lock());
            let planned = self.plan(self.target().view(), self.source().view())?;
            let promoted = Promoted {
                fast: planned.fast,
                merged: planned.merged.clone(),
                conflicts: planned.conflicts.clone(),
                dry_run: self.options.dry_run,
                changes: planned.entries.clone(),
                ..Promoted::default()
            };
            if self.options.dry_run || !promoted.conflicts.is_empty() {
                return Ok((promoted, Committed::default()));
            }
            match self.commit(planned, locked) {
                Ok(Some(committed)) => {
                    let Committed { version, snapshot, .. } = committed;
                    return Ok((Promoted { version, snapshot, ..promoted }, committed));
                }
                Ok(None) => {}
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                Err(e) => return Err(e),
            }
        }
        Err(Error::new(ErrorKind::Busy, "both worlds kept changing while they were merged; try again"))
    }

    /// Returns whether so little is in no tree yet that a merge need not fold it. A merge of a part writes trees in any case.
    fn is_little(&self) -> bool {
        let late = |world: &Arc<World>| world.view().layers().map(Overlay::len).sum::<usize>();
        self.only().is_empty() && self.ordered().into_iter().map(late).sum::<usize>() <= self.store.options.little
    }

    fn only(&self) -> &[u8] {
        self.options.only.as_deref().unwrap_or_default()
    }

    fn lock(&self) -> Heads<'_> {
        if self.target().id < self.source().id {
            let target = self.target().head.lock();
            Heads { target, source: self.source().head.lock() }
        } else {
            let source = self.source().head.lock();
            Heads { target: self.target().head.lock(), source }
        }
    }

    /// Plans the merge on views. Nothing is written but what extra objects need.
    fn plan(&self, ours: View, theirs: View) -> Result<Planned> {
        let store = self.store;
        let points_bytes = store
            .meta
            .get(&layout::of(Tag::Sync, self.fork.id))?
            .ok_or_else(|| Error::invalid(format!("world {} is not a fork", self.fork.record.read().name)))?;
        let points = SyncPoints::decode(&points_bytes)?;
        let (base_now, fork_now) = if self.into_base { (ours.seq, theirs.seq) } else { (theirs.seq, ours.seq) };
        let (base_reverts, fork_reverts) = (store.reverts(self.base.id)?, store.reverts(self.fork.id)?);
        let point = points.latest(|world, seq| {
            if world == self.base.id { base_reverts.undid(seq, base_now) } else { fork_reverts.undid(seq, fork_now) }
        });
        let common = store.view_of(self.base.id, &point.common, point.common.seq)?.0;
        let base_then = if point.base_then == point.common {
            common.clone()
        } else {
            store.view_of(self.base.id, &point.base_then, point.base_then.seq)?.0
        };
        self.at("looking for changes", 0, 0)?;
        let now = Version(store.env.now().max(ours.time.0 + 1));
        let mut txn = Txn::new(store, self.target(), ours.clone(), now, self.verb());
        let only = self.only();
        // Only times and the cutting of content may differ: that is no change, and no reason to swap roots back and forth.
        let unchanged = only.is_empty()
            && !records(&common, &theirs)?.is_empty()
            && lift(&store.content, &common, &ours, &records(&common, &ours)?)?.is_empty();
        let mut planned = Planned {
            fast: unchanged,
            changed: false,
            changes: None,
            entries: Vec::new(),
            notices: Vec::new(),
            merged: Vec::new(),
            conflicts: Vec::new(),
            points,
            points_bytes,
            view: ours.clone(),
            ours,
            theirs,
            common,
            base_then,
        };
        if unchanged {
            let (seq, time) = (planned.ours.seq, planned.ours.time);
            txn.view = View { seq, time, ..planned.theirs.clone() };
            keep_open(&mut txn, &planned.ours)?;
        } else {
            let sides = Sides {
                content: &store.content,
                common: &planned.common,
                ours: &planned.ours,
                theirs: &planned.theirs,
                base_then: Some(&planned.base_then),
                into_base: self.into_base,
            };
            let how = Decide {
                policy: self.options.policy,
                resolve: &self.options.resolve,
                only,
                combine: self.options.combine,
                dry_run: self.options.dry_run,
                watch: self,
            };
            let merged = merge(&mut txn, &sides, &how)?;
            (planned.merged, planned.conflicts) = (merged.merged, merged.conflicts);
            if !planned.conflicts.is_empty() {
                planned.merged.clear();
                return Ok(planned);
            }
        }
        self.at("describing the changes", 0, 0)?;
        self.extra(&mut txn)?;
        carry(&mut txn, &planned.ours)?;
        planned.view = txn.into_view();
        let (records, notices) = told(self.target(), &planned.ours, &planned.view)?;
        planned.changed = !records.is_empty();
        planned.fast &= planned.changed;
        planned.entries = lift(&store.content, &planned.ours, &planned.view, &records)?;
        planned.notices = notices;
        planned.changes = little(records, store.options.little);
        Ok(planned)
    }

    fn verb(&self) -> Verb {
        if self.into_base { Verb::Promote } else { Verb::Rebase }
    }

    /// Puts the objects that come with the commit.
    fn extra(&self, txn: &mut Txn<'_>) -> Result<()> {
        for (key, bytes) in &self.options.extra {
            let extents = if bytes.is_empty() {
                Vec::new()
            } else if self.options.dry_run {
                vec![(0, Extent::whole(Content::ride(bytes)))]
            } else {
                self.store.content.extents(self.target().owner, 0, bytes)?
            };
            let new = NewObject {
                extents: rows(&extents),
                len: bytes.len() as u64,
                known: Known::default(),
                asked: Attributes::default(),
                inherited: Attributes::default(),
            };
            txn.place(key, new)?;
        }
        Ok(())
    }

    /// Commits a plan; none: a world has moved on and it must be planned again.
    fn commit<'s>(&'s self, mut planned: Planned, locked: Option<Heads<'s>>) -> Result<Option<Committed>> {
        let store = self.store;
        let base_now = if self.into_base { &planned.ours } else { &planned.theirs };
        if !planned.changed
            && records(&planned.common, &planned.theirs)?.is_empty()
            && records(&planned.base_then, base_now)?.is_empty()
        {
            return Ok(Some(Committed::default()));
        }
        self.at("writing what changes", 0, 0)?;
        let to = match planned.changes.take() {
            Some(changes) => Becomes::Changed(changes),
            None => Becomes::Root(store.materialise(self.target(), &planned.view)?),
        };
        let moved = self.moved_point(&planned)?;
        self.settle(&to, moved.is_some(), locked.as_ref())?;
        // After this it cannot be stopped any more.
        self.at("committing", 0, 0)?;
        let mut heads = locked.unwrap_or_else(|| self.lock());
        self.source().need_alive()?;
        let moved_on = heads.target.seq != planned.ours.seq || heads.source.seq != planned.theirs.seq;
        if moved_on || !has_open(self.target(), &planned.ours, &planned.view)? {
            return Ok(None);
        }
        let (target, source) = (self.target(), self.source());
        let mut batch = Batch::new();
        let alive = layout::of(Tag::Alive, source.id);
        batch.require(alive.clone(), Expect::Value(alive_value(heads.source.shared_out)));
        batch.require(layout::of(Tag::State, source.id), Expect::Value(heads.source.state_bytes.clone()));
        batch.require(layout::of(Tag::Sync, self.fork.id), Expect::Value(planned.points_bytes.clone()));
        batch.put(alive, alive_value(true));
        heads.source.claim(&*store.segments, source.owner, &mut batch);
        let chain = heads.source.chain;
        let theirs = source.state_now(&heads.source);
        let mut points = planned.points.clone();
        let push = |batch: &mut Batch, now: &State| {
            let (common, base_then) = moved.unwrap_or_else(|| {
                let base_then = if self.into_base { now.clone() } else { theirs.clone() };
                (theirs, base_then)
            });
            points.push(Point { common, base_then, changed: Some((target.id, now.seq)) });
            batch.put(layout::of(Tag::Sync, self.fork.id), points.encode());
        };
        if !planned.changed {
            push(&mut batch, &target.state_now(&heads.target));
            batch.require(layout::of(Tag::Alive, target.id), Expect::Present);
            batch.require(layout::of(Tag::State, target.id), Expect::Value(heads.target.state_bytes.clone()));
            require_key(&mut batch, Some(self.who));
            heads.target.claim(&*store.segments, target.owner, &mut batch);
            let ticket = store.submit_for(target, Some(self.who), batch, Durability::Durable)?;
            heads.target.claims.clear();
            heads.source.claims.clear();
            heads.source.lent();
            drop(heads);
            ticket.wait()?;
            return Ok(Some(Committed::default()));
        }
        let swap = Swap {
            who: self.who,
            verb: self.verb(),
            note: self.note(&planned, &chain),
            run: self.options.run.clone(),
            path: self.options.only.clone(),
            label: self.label(),
            to,
            meta: batch,
        };
        let swapped = store.swap(target, &mut heads.target, swap, |batch, now| {
            push(batch, now);
            Ok(())
        })?;
        heads.source.claims.clear();
        heads.source.lent();
        drop(heads);
        store.finish(target, swapped.done.ticket, Durability::Durable, swapped.loose, swapped.done.seq)?;
        let (version, snapshot) = (Some(swapped.version), Some(swapped.snapshot));
        Ok(Some(Committed { version, snapshot, notices: planned.notices, heavy: swapped.heavy }))
    }

    /// Puts on disk what the commit refers to: trees and content just written, and the content of entries that a snapshot or a sync
    /// point is about to lean on, as far as the plan has seen them.
    fn settle(&self, to: &Becomes, points_in_trees: bool, locked: Option<&Heads<'_>>) -> Result<()> {
        let written = match to {
            Becomes::Root(_) => true,
            Becomes::Changed(changes) => points_in_trees || in_segments(changes),
        };
        let loose = || match locked {
            Some(heads) => heads.target.is_loose() || heads.source.is_loose(),
            None => self.ordered().into_iter().any(|world| world.head.lock().is_loose()),
        };
        if written || loose() {
            self.store.segments.sync()?;
        }
        Ok(())
    }

    /// Makes the states that the next merge will start from when only a part was brought: only that part of them moves.
    fn moved_point(&self, planned: &Planned) -> Result<Option<(State, State)>> {
        let (store, only) = (self.store, self.only());
        if only.is_empty() {
            return Ok(None);
        }
        let base_now = if self.into_base { &planned.view } else { &planned.theirs };
        let common = self.moved(&planned.common, &planned.theirs, only)?;
        let base_then = self.moved(&planned.base_then, base_now, only)?;
        Ok(Some((
            state_of(store.materialise(&self.fork, &common)?, common.seq, common.time),
            state_of(store.materialise(&self.fork, &base_then)?, base_then.seq, base_then.time),
        )))
    }

    /// Returns a state with what lies under `only` as it is in another.
    fn moved(&self, then: &View, now: &View, only: &[u8]) -> Result<View> {
        let mut txn = Txn::new(self.store, &self.fork, then.clone(), now.time, self.verb());
        let sides = Sides {
            content: &self.store.content,
            common: then,
            ours: then,
            theirs: now,
            base_then: None,
            into_base: self.into_base,
        };
        let how = Decide {
            policy: Policy::Theirs,
            resolve: &BTreeMap::new(),
            only,
            combine: Combine::default(),
            dry_run: false,
            watch: self,
        };
        merge(&mut txn, &sides, &how)?;
        Ok(txn.into_view())
    }

    /// What history shows. A fork's history does not name its base, whose name a key of the fork may not see.
    fn note(&self, planned: &Planned, chain: &Hash) -> String {
        let what = if self.into_base {
            format!("fork {} at {}, chain {chain}", self.fork.record.read().name, planned.theirs.time)
        } else {
            format!("base at {}, chain {chain}", planned.theirs.time)
        };
        match self.options.message.as_deref().filter(|message| !message.is_empty()) {
            Some(message) => format!("{message} ({what})"),
            None => what,
        }
    }

    fn label(&self) -> String {
        if self.into_base {
            format!("before promote of {}", self.fork.record.read().name)
        } else {
            "before rebase".to_owned()
        }
    }
}

/// Returns what records become, when they are at most `few` and little.
fn little(records: Records, few: usize) -> Option<Changes> {
    let weight = |(key, (_, now)): (&Bytes, &(_, Option<Value>))| {
        key.len() + now.as_ref().map_or(0, |value| value.data.len() + value.locator.len())
    };
    let fits = records.len() <= few && records.iter().map(weight).sum::<usize>() <= LITTLE;
    fits.then(|| records.into_iter().map(|(key, (_, now))| (key, now)).collect())
}

/// A state that is its root. Its chain is not asked for: nothing goes on from it.
fn state_of(root: mw_tree::Root, seq: Seq, time: Version) -> State {
    State { root, lean: Vec::new(), seq, time, chain: Hash::default() }
}

impl Store {
    /// Returns the reverts of a world.
    pub(super) fn reverts(&self, world: WorldId) -> Result<Reverts> {
        let bytes = self.meta.get(&layout::of(Tag::Reverts, world))?;
        bytes.map_or_else(|| Ok(Reverts::default()), |bytes| Reverts::decode(&bytes))
    }
}
