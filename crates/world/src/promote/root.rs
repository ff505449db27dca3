//! Another content for a world, in one commit: the state before it as a snapshot, the entry, the new state.
//!
//! Invariant: what somebody has open outlives the root it stood in; what nobody has open does not come with the new one.

use crate::diff::{Records, records};
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::layout;
use crate::listener::{Changed, tell_content};
use crate::mutate::{Done, Mutation};
use crate::principal::Principal;
use crate::record::{self, Extent, Inode, Kind, is_extent};
use crate::snapshot::SnapshotRecord;
use crate::state::State;
use crate::store::Store;
use crate::txn::Txn;
use crate::versioning::Keep;
use crate::view::View;
use crate::world::{Head, World};
use bytes::Bytes;
use mw_meta::{Batch, Durability};
use mw_model::{Ino, Version};
use mw_tree::{Root, Value};

/// More records than this, and a mount is told to forget everything.
const TOLD: usize = 256;

/// Records that change: a value, or none for one that goes.
pub(super) type Changes = Vec<(Bytes, Option<Value>)>;

/// What a world becomes.
pub(super) enum Becomes {
    /// Another root.
    Root(Root),
    /// What it is, with these records changed.
    Changed(Changes),
}

/// A change of a whole world.
pub(super) struct Swap<'a> {
    pub who: &'a Principal,
    pub verb: Verb,
    pub note: String,
    pub run: Option<String>,
    pub path: Option<Bytes>,
    /// The label of the snapshot that is taken first.
    pub label: String,
    pub to: Becomes,
    /// Records for the same commit.
    pub meta: Batch,
}

/// What a swap committed.
pub(super) struct Swapped {
    pub done: Done,
    pub version: Version,
    pub snapshot: Version,
    pub loose: bool,
    /// Whether the world is due to be folded.
    pub heavy: bool,
}

impl Store {
    /// Writes a view into the tree, for a world: its root, whatever lay in overlays. Nothing refers to it yet.
    pub(super) fn materialise(&self, world: &World, view: &View) -> Result<Root> {
        let late = match &view.frozen {
            Some(frozen) => view.overlay.clone().union(frozen.clone()),
            None => view.overlay.clone(),
        };
        if late.is_empty() {
            return Ok(view.root.clone());
        }
        let mut edits: Vec<(Bytes, Option<Value>)> = Vec::with_capacity(late.len());
        for (key, value) in late {
            let value = match value {
                Some(value) if is_extent(&key) => Some(self.settle_extent(world, value)?),
                other => other,
            };
            edits.push((key, value));
        }
        Ok(self.tree.edit(&view.root, &world.salt, world.owner, &edits)?)
    }

    /// Gives content that rides in a record a place of its own, unless it is small enough to stay.
    fn settle_extent(&self, world: &World, value: Value) -> Result<Value> {
        match Extent::decode_riding(&value)? {
            Some(extent) => Ok(self.settled(world, &extent)?.encode()),
            None => Ok(value),
        }
    }

    /// Commits what a world becomes under the head's lock. `more` adds records to the same commit; it is told the state that it makes.
    pub(super) fn swap(
        &self,
        world: &World,
        head: &mut Head,
        swap: Swap<'_>,
        more: impl FnOnce(&mut Batch, &State) -> Result<()>,
    ) -> Result<Swapped> {
        let before = world.state_now(head);
        let snapshot = before.time;
        let place = layout::snapshot(world.id, snapshot);
        let taken = self.meta.get(&place)?.is_some();
        let what = Mutation { who: Some(swap.who), verb: swap.verb, durability: Durability::Durable, origin: 0 };
        let plan = |txn: &mut Txn<'_>| {
            txn.meta = swap.meta;
            if !taken {
                let key = swap.who.key_id().to_owned();
                let seal = self.seal(world.id, &before);
                let record = SnapshotRecord { label: Some(swap.label), key, state: before, seal };
                txn.meta.put(place, record.encode());
            }
            (txn.note, txn.path, txn.run) = (swap.note, swap.path, swap.run);
            match swap.to {
                Becomes::Root(root) => {
                    txn.segments = true;
                    txn.view = View::of_root(txn.view.tree.clone(), root.clone(), txn.view.seq, txn.view.time);
                    txn.root = Some(root);
                }
                Becomes::Changed(changes) => {
                    // Who planned it has seen to the versions.
                    txn.keep = Keep::Nothing;
                    txn.segments = in_segments(&changes);
                    txn.view.own = changes.into_iter().collect();
                }
            }
            Ok(txn.now)
        };
        let (version, done) = self.mutate_with(world, head, &what, plan, Some(more))?;
        let done = done.ok_or_else(|| Error::corrupt("a change of a whole world was not committed"))?;
        let heavy = head.bytes >= self.options.fold_bytes;
        Ok(Swapped { done, version, snapshot, loose: head.is_loose(), heavy })
    }
}

/// Returns whether a changed record refers to bytes in segments.
pub(super) fn in_segments(changes: &Changes) -> bool {
    changes.iter().any(|(key, value)| value.as_ref().is_some_and(|value| is_extent(key) && record::is_placed(value)))
}

/// Keeps, in a mutation whose view is about to take the place of `before`, what somebody has open and the new view does not have;
/// drops what the new view has without a name and nobody has open.
pub(super) fn keep_open(txn: &mut Txn<'_>, before: &View) -> Result<()> {
    for ino in txn.view.orphans()? {
        txn.drop_inode(ino)?;
        txn.remove(record::orphan_key(ino));
    }
    let mut open: Vec<Ino> = txn.world.opens.lock().keys().copied().collect();
    open.sort();
    for ino in open {
        let Some(inode) = before.find_inode(ino)? else { continue };
        if txn.view.find_inode(ino)?.is_some() {
            continue;
        }
        for kind in [Kind::Object, Kind::Xattr, Kind::Extent] {
            txn.adopt_kind(before, ino, ino, kind)?;
        }
        txn.put_inode(ino, &Inode { nlink: 0, ..inode });
        txn.put(record::orphan_key(ino), record::plain(vec![1]));
    }
    Ok(())
}

/// Returns whether a view still has everything that is open now, which a file opened since it was planned may not be in.
pub(super) fn has_open(world: &World, before: &View, view: &View) -> Result<bool> {
    let open: Vec<Ino> = world.opens.lock().keys().copied().collect();
    for ino in open {
        if before.find_inode(ino)?.is_some() && view.find_inode(ino)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the records that a view changes, and what the mounts of a world must hear of them.
pub(super) fn told(world: &World, before: &View, after: &View) -> Result<(Records, Vec<Changed>)> {
    let records = records(before, after)?;
    let content = world.listeners.minds_content(0);
    if records.len() > TOLD {
        let mut notices = Vec::new();
        if content {
            for key in records.keys() {
                if let (ino, Kind::Inode, _) = record::split(key)? {
                    notices.push(Changed::Inode(ino));
                }
            }
            tell_content(before, after, &mut notices)?;
        }
        notices.push(Changed::Everything);
        return Ok((records, notices));
    }
    let mut notices = Vec::new();
    for key in records.keys() {
        let (ino, kind, suffix) = record::split(key)?;
        match kind {
            Kind::Entry => {
                let name = Bytes::copy_from_slice(suffix.strip_suffix(b"/").unwrap_or(suffix));
                notices.push(Changed::Entry { parent: ino, name });
            }
            Kind::Inode | Kind::Object | Kind::Xattr | Kind::Extent => {
                if notices.last() != Some(&Changed::Inode(ino)) {
                    notices.push(Changed::Inode(ino));
                }
            }
            Kind::Parent | Kind::Orphan | Kind::Version => {}
        }
    }
    if content {
        tell_content(before, after, &mut notices)?;
    }
    Ok((records, notices))
}
