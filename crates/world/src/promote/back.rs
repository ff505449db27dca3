//! Back in time, as a change like any other: a whole world (revert), or one file or directory of it (restore).

use super::Promoted;
use super::root::{Becomes, Swap, has_open, keep_open, told};
use super::versions::carry;
use crate::diff::{Item, lift};
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::files::split_key;
use crate::layout::{self, Tag};
use crate::listener::Changed;
use crate::merge::adopt_tree;
use crate::record::Entry;
use crate::session::Session;
use crate::snapshot::SnapshotRecord;
use crate::state::State;
use crate::time::At;
use crate::txn::Txn;
use crate::view::View;
use crate::world::Staging;
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::{ErrorKind, FileType, Ino, Seq, Version};

/// How often a change is planned before it gives up, or is planned with the world locked.
const BESIDE: usize = 4;
const ATTEMPTS: usize = 8;

/// A change back to an instant.
pub(super) struct Back<'a> {
    pub session: &'a Session,
    pub at: &'a At,
    /// None: all of the world.
    pub path: Option<&'a [u8]>,
}

/// At most how many folds come between a look back and its commit.
const FOLDS: usize = 32;

impl Back<'_> {
    pub(super) fn run(&self) -> Result<Promoted> {
        let world = &self.session.world;
        let _changing = self.session.store.changing();
        let quiet = world.listeners.quiesce()?;
        let (promoted, notices) = self.change()?;
        world.listeners.tell(0, &notices);
        drop(quiet);
        Ok(promoted)
    }

    fn verb(&self) -> Verb {
        if self.path.is_some() { Verb::Restore } else { Verb::Revert }
    }

    fn change(&self) -> Result<(Promoted, Vec<Changed>)> {
        let (store, world) = (&self.session.store, &self.session.world);
        let _turn = world.folding.lock();
        let _staging = Staging::begin(world);
        let then = store.state_at(world, self.at)?;
        let (view, _) = store.view_of(world.id, &then, then.seq)?;
        for attempt in 0..ATTEMPTS {
            store.fold_in_turn(world)?;
            let locked = (attempt >= BESIDE).then(|| world.head.lock());
            let before = world.view();
            let after = self.plan(&before, &view)?;
            let (records, notices) = told(world, &before, &after)?;
            let changes = lift(&store.content, &before, &after, &records)?;
            let mut promoted = Promoted { fast: self.path.is_none(), changes, ..Promoted::default() };
            if records.is_empty() {
                return Ok((promoted, Vec::new()));
            }
            let root = store.materialise(world, &after)?;
            store.segments.sync()?;
            let mut head = locked.unwrap_or_else(|| world.head.lock());
            if head.seq != before.seq || !has_open(world, &before, &after)? {
                continue;
            }
            let swap = Swap {
                who: &self.session.who,
                verb: self.verb(),
                note: format!("to {}", then.time),
                path: self.path.map(Bytes::copy_from_slice),
                run: None,
                label: format!("before {} to {}", self.verb().as_str(), then.time),
                to: Becomes::Root(root),
                meta: Batch::new(),
            };
            let swapped = store.swap(world, &mut head, swap, |batch, now| self.records(batch, &then, now.seq));
            let swapped = match swapped {
                Err(e) if e.kind() == ErrorKind::Conflict => continue,
                other => other?,
            };
            drop(head);
            (promoted.version, promoted.snapshot) = (Some(swapped.version), Some(swapped.snapshot));
            store.finish(world, swapped.done.ticket, Durability::Durable, swapped.loose, swapped.done.seq)?;
            return Ok((promoted, notices));
        }
        Err(Error::new(ErrorKind::Busy, format!("world {} kept changing; try again", self.session.name)))
    }

    /// The record that keeps the instant must still be there when its bytes get a new reader; a revert is noted for the sync points.
    fn records(&self, batch: &mut Batch, then: &State, seq: Seq) -> Result<()> {
        let (store, id) = (&self.session.store, self.session.world.id);
        let (start, _) = layout::all_of(Tag::History, id);
        let end = layout::numbered(Tag::History, id, then.seq.0 + 1);
        let kept = |bytes: &[u8]| -> Result<bool> { Ok(State::decode(bytes)?.root == then.root) };
        let mut history = None;
        // The newest, but for folds since the look back began.
        for (key, bytes) in store.meta.scan(&start, &end, FOLDS, Order::Down)? {
            if kept(&bytes)? {
                history = Some((key, bytes));
                break;
            }
        }
        match history {
            Some((key, bytes)) => {
                batch.require(key, Expect::Value(bytes));
            }
            None => {
                let (start, end) = layout::all_of(Tag::Snapshot, id);
                let mut found = false;
                for (key, bytes) in store.meta.scan(&start, &end, usize::MAX, Order::Down)? {
                    if SnapshotRecord::decode(&bytes)?.state.root == then.root {
                        batch.require(key, Expect::Value(bytes));
                        found = true;
                        break;
                    }
                }
                if !found {
                    return Err(Error::not_found(format!(
                        "version {} of world {} is not retained any more",
                        then.time, self.session.name
                    )));
                }
            }
        }
        if self.path.is_none() {
            let place = layout::of(Tag::Reverts, id);
            let mut reverts = store.reverts(id)?;
            let old = store.meta.get(&place)?;
            batch.require(place.clone(), old.map_or(Expect::Absent, Expect::Value));
            reverts.0.push((seq, then.seq));
            batch.put(place, reverts.encode());
        }
        Ok(())
    }

    fn plan(&self, before: &View, then: &View) -> Result<View> {
        let (store, world) = (&self.session.store, &self.session.world);
        let now = Version(store.env.now().max(before.time.0 + 1));
        let mut txn = Txn::new(store, world, before.clone(), now, self.verb());
        match self.path {
            None => {
                txn.view = View { seq: before.seq, time: before.time, ..then.clone() };
                keep_open(&mut txn, before)?;
            }
            Some(path) => restore(&mut txn, then, path)?,
        }
        carry(&mut txn, before)?;
        Ok(txn.into_view())
    }
}

/// Makes what stands under a path, a directory and the object hidden behind it alike, what it was.
fn restore(txn: &mut Txn<'_>, then: &View, path: &[u8]) -> Result<()> {
    let short = path.strip_suffix(b"/").unwrap_or(path);
    let (dirs, name) = split_key(short);
    if name.is_empty() {
        return Err(Error::invalid("the path to restore is empty or ends in `//`; `mw revert` restores a whole world"));
    }
    let missing = || Error::not_found(format!("{:?} did not exist at that instant", String::from_utf8_lossy(path)));
    let mut above = Ino::ROOT;
    let mut lineage = Vec::new();
    for dir in &dirs {
        let entry = then.entry(above, dir)?.filter(|e| e.kind == FileType::Directory).ok_or_else(missing)?;
        lineage.push((dir.clone(), entry.ino));
        above = entry.ino;
    }
    let names = [name.clone(), [&name[..], b"/"].concat().into()];
    let mut found: Vec<(Bytes, Entry)> = Vec::new();
    for raw in &names {
        if let Some(entry) = then.entry(above, raw)? {
            found.push((raw.clone(), entry));
        }
    }
    if found.is_empty() {
        return Err(missing());
    }
    // Directories above that are gone come back with their attributes, but empty.
    let mut parent = Ino::ROOT;
    for (dir, old) in lineage {
        parent = match txn.view.entry(parent, &dir)? {
            Some(entry) => entry.ino,
            None => {
                let item = Item::read(then, old)?.ok_or_else(missing)?;
                let ino = if txn.is_free(old)? { old } else { txn.fresh()? };
                txn.adopt(then, &item, ino, 2)?;
                txn.attach(parent, &dir, Entry { ino, kind: FileType::Directory })?;
                ino
            }
        };
    }
    for raw in &names {
        if let Some(entry) = txn.view.entry(parent, raw)? {
            remove_tree(txn, parent, raw, entry)?;
        }
    }
    for (raw, entry) in found {
        adopt_tree(txn, then, entry, parent, &raw)?;
    }
    Ok(())
}

/// Removes a name and all that is beneath it.
fn remove_tree(txn: &mut Txn<'_>, parent: Ino, name: &[u8], entry: Entry) -> Result<()> {
    let mut open = vec![(parent, Bytes::copy_from_slice(name), entry, false)];
    while let Some((parent, name, entry, emptied)) = open.pop() {
        if entry.kind == FileType::Directory && !emptied {
            open.push((parent, name, entry, true));
            for child in txn.view.entries(entry.ino, &[]) {
                let (name, child) = child?;
                open.push((entry.ino, name, child, false));
            }
            continue;
        }
        txn.detach(parent, &name, entry)?;
        if entry.kind == FileType::Directory || txn.view.inode(entry.ino)?.nlink == 0 {
            txn.unlink_inode(entry.ino)?;
        }
    }
    Ok(())
}
