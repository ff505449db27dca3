//! Versions where a whole view takes the place of another: promote, rebase, revert and restore.
//!
//! Kept versions do not travel and do not go back in time: a world has those of its own keys. What comes is a new version of its key,
//! and what it takes the place of is kept.

use crate::diff::{Change, lift, records};
use crate::error::Result;
use crate::files::split_key;
use crate::object::Known;
use crate::record::{self, Inode, Kind};
use crate::txn::Txn;
use crate::versioning::{Versioning, Versions};
use crate::versions::{self, Kept, Touched, is_object, settle};
use crate::view::View;
use bytes::Bytes;
use mw_model::{FileType, Ino};
use std::collections::BTreeSet;

/// Sees to the versions of a mutation whose view is about to take the place of `before`.
pub(super) fn carry(txn: &mut Txn<'_>, before: &View) -> Result<()> {
    let setting = txn.world.versions();
    if setting.versioning == Versioning::Never && !versions::any(&txn.view)? {
        return Ok(());
    }
    own(txn, before)?;
    if setting.versioning == Versioning::Never {
        return Ok(());
    }
    let found = records(before, &txn.view)?;
    let mut keys = Vec::new();
    for entry in lift(&txn.store.content, before, &txn.view, &found)? {
        match entry.change {
            Change::Attributes => continue,
            Change::Renamed { from } => keys.push(from),
            _ => {}
        }
        keys.push(entry.path);
    }
    keep_keys(txn, before, setting, &keys)?;
    let mut stamped = BTreeSet::new();
    for key in &keys {
        if let Some(ino) = object_at(&txn.view, key)?
            && stamped.insert(ino)
        {
            stamp(txn, ino)?;
        }
    }
    Ok(())
}

/// Makes the kept versions of the mutation's view those of `before`.
fn own(txn: &mut Txn<'_>, before: &View) -> Result<()> {
    let mut lost = Vec::new();
    for (at, (left, right)) in records(before, &txn.view)? {
        if record::split(&at)?.1 != Kind::Version {
            continue;
        }
        if let Some(value) = &right {
            let (_, kept) = versions::read(&at, value)?;
            txn.remove(at.clone());
            if let Some(ino) = kept.ino {
                txn.drop_inode(ino)?;
            }
        }
        if let Some(value) = left {
            let (_, kept) = versions::read(&at, &value)?;
            lost.push((at, kept));
        }
    }
    for (at, kept) in lost {
        let ino = kept.ino.map(|ino| own_inode(txn, before, ino)).transpose()?;
        txn.put(at, Kept { ino, ..kept }.encode());
    }
    Ok(())
}

/// Brings a kept inode: under its own number, unless that has a name here.
fn own_inode(txn: &mut Txn<'_>, before: &View, ino: Ino) -> Result<Ino> {
    let to = if txn.is_free(ino)? { ino } else { txn.fresh()? };
    let inode: Inode = before.inode(ino)?;
    txn.copy_records(before, ino, to)?;
    txn.put_inode(to, &inode);
    Ok(to)
}

/// Makes what came a version of this change.
fn stamp(txn: &mut Txn<'_>, ino: Ino) -> Result<()> {
    let inode = txn.view.inode(ino)?;
    if inode.kind != FileType::File {
        return Ok(());
    }
    let at: Bytes = record::key(ino, Kind::Object, &[]);
    if let Some(value) = txn.view.get(&at)? {
        let known = Known::fresh(Some(&value), &inode)?;
        txn.put(at, Known { content: txn.now, unversioned: false, ..known }.encode());
    }
    txn.put_inode(ino, &Inode { content: txn.now, ..inode });
    Ok(())
}

/// Keeps what a promote, rebase, revert or restore took from some keys; none of them is a directory's.
fn keep_keys(txn: &mut Txn<'_>, before: &View, versions: Versions, keys: &[Bytes]) -> Result<()> {
    for key in keys {
        let old = object_at(before, key)?;
        let now = object_at(&txn.view, key)?;
        let touched = Touched { key: key.clone(), old, present: now.is_some() };
        settle(txn, before, versions, &touched, false)?;
    }
    Ok(())
}

/// Returns the inode of the file or link under a key.
fn object_at(view: &View, key: &[u8]) -> Result<Option<Ino>> {
    let (dirs, last) = split_key(key);
    let mut at = Ino::ROOT;
    for dir in dirs {
        match view.entry(at, &dir)? {
            Some(entry) if entry.kind == FileType::Directory => at = entry.ino,
            _ => return Ok(None),
        }
    }
    Ok(view.entry(at, &last)?.filter(|entry| is_object(entry.kind)).map(|entry| entry.ino))
}
