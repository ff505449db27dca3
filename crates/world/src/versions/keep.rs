//! What a change replaces or removes is kept, in the entry that does it, whatever door it came through.
//!
//! The plan of a verb knows nothing of versions: when it is made, its changes are looked at, and what they take away from a key stays.
//! S3 keeps all that its own verbs replace. Of what another door changes or removes, S3 keeps what it had acknowledged itself.

use super::record::{self as versions, Kept};
use crate::error::Result;
use crate::names::{names_of, path_of};
use crate::object::Known;
use crate::record::{self, Entry, Inode, Kind};
use crate::txn::Txn;
use crate::versioning::{Keep, VersionId, Versioning, Versions};
use crate::view::View;
use bytes::Bytes;
use mw_model::{FileType, Ino};

/// What a plan does to one key.
pub(crate) struct Touched {
    pub key: Bytes,
    /// The inode that stood there.
    pub old: Option<Ino>,
    /// Whether anything stands there now.
    pub present: bool,
}

/// Keeps what the changes of a plan take away. `before` is the view that the plan began with.
pub(crate) fn keep(txn: &mut Txn<'_>, versions: Versions) -> Result<()> {
    if versions.versioning == Versioning::Never || txn.keep == Keep::Nothing || txn.root.is_some() {
        return Ok(());
    }
    let before = &txn.world.view();
    for touched in touched(txn, before)? {
        settle(txn, before, versions, &touched, true)?;
    }
    Ok(())
}

/// Keeps what a change took from one key, and marks it as deleted where nothing came instead. Without `undo` the view that changed is
/// not `before`, and what is kept is brought from there.
pub(crate) fn settle(
    txn: &mut Txn<'_>,
    before: &View,
    versions: Versions,
    touched: &Touched,
    undo: bool,
) -> Result<()> {
    let Touched { key, old, present } = touched;
    let kept = match old {
        Some(ino) => txn.keep_version(before, versions, key, *ino, undo)?,
        None => false,
    };
    let replaced = txn.keep == Keep::Everything;
    if !present && (kept || old.is_some() && replaced) {
        txn.mark(key, versions)?;
    } else if replaced && *present && versions.versioning == Versioning::Suspended {
        txn.drop_null(key)?;
    }
    Ok(())
}

pub(crate) fn is_object(kind: FileType) -> bool {
    matches!(kind, FileType::File | FileType::Symlink)
}

/// Returns the keys that lost what stood there, or whose content changed, or that came while others may have to go for them.
fn touched(txn: &Txn<'_>, before: &View) -> Result<Vec<Touched>> {
    let mut found = Vec::new();
    let mut altered = Vec::new();
    for (at, value) in &txn.view.own {
        let (ino, kind, name) = record::split(at)?;
        match kind {
            Kind::Entry => {
                let old = before.get(at)?.map(|old| Entry::decode(&old)).transpose()?;
                let now = value.as_ref().map(Entry::decode).transpose()?;
                let old = old.filter(|old| is_object(old.kind)).map(|old| old.ino);
                let now = now.filter(|now| is_object(now.kind)).map(|now| now.ino);
                if old.is_none() && txn.keep != Keep::Everything {
                    continue;
                }
                // A directory that is made in the same change has no path yet, and then there was no key either.
                if old != now
                    && let Some(above) = path_of(if old.is_some() { before } else { &txn.view }, ino)?
                {
                    let key = [&above[..], name].concat().into();
                    found.push(Touched { key, old, present: now.is_some() });
                }
            }
            Kind::Inode if ino != Ino::ROOT => altered.push(ino),
            _ => {}
        }
    }
    for ino in altered {
        let (Some(old), Some(now)) = (before.find_inode(ino)?, txn.view.find_inode(ino)?) else { continue };
        let changed = old.content != now.content && old.kind == FileType::File && !old.retained;
        if !changed || acknowledged(before, ino, &old)?.is_none() {
            continue;
        }
        for (dir, name) in names_of(before, ino)? {
            let stays = txn.view.entry(dir, &name)?.is_some_and(|entry| entry.ino == ino);
            if let Some(above) = path_of(before, dir)?.filter(|_| stays) {
                found.push(Touched { key: [&above[..], &name].concat().into(), old: Some(ino), present: true });
            }
        }
    }
    Ok(found)
}

/// Returns what S3 said of the content that an inode has; none when that is not S3's.
fn acknowledged(view: &View, ino: Ino, inode: &Inode) -> Result<Option<Known>> {
    let known = view.get(&record::key(ino, Kind::Object, &[]))?.map(|value| Known::decode(&value)).transpose()?;
    Ok(known.filter(|known| known.content == inode.content))
}

impl Txn<'_> {
    /// Keeps what inode `ino` was before this change, as a version of `key`. Returns whether it did.
    ///
    /// With `undo` the plan began with `before`: records that it removed are left in place. Otherwise they are brought from there.
    fn keep_version(&mut self, before: &View, versions: Versions, key: &[u8], ino: Ino, undo: bool) -> Result<bool> {
        let inode = before.inode(ino)?;
        let known = acknowledged(before, ino, &inode)?;
        if self.keep == Keep::Acknowledged && known.is_none() {
            return Ok(false);
        }
        let null = inode.content <= versions.since || known.is_some_and(|known| known.unversioned);
        let Some(at) = versions::key(key, inode.content) else { return Ok(false) };
        if null {
            self.drop_null(key)?;
            if versions.versioning == Versioning::Suspended && self.keep == Keep::Everything {
                return Ok(false);
            }
        }
        self.drop_version(key, &at)?;
        let kept = if self.view.find_inode(ino)?.is_some() {
            let kept = self.fresh()?;
            self.copy_records(before, ino, kept)?;
            kept
        } else if undo {
            self.reinstate(before, ino)?;
            ino
        } else {
            self.copy_records(before, ino, ino)?;
            ino
        };
        self.put_inode(kept, &Inode { nlink: 0, retained: true, ..inode });
        self.put(at, Kept { time: inode.content, null, ino: Some(kept) }.encode());
        Ok(true)
    }

    /// Marks a key as deleted now.
    pub(crate) fn mark(&mut self, key: &[u8], versions: Versions) -> Result<()> {
        let Some(at) = versions::key(key, self.now) else { return Ok(()) };
        let null = versions.versioning == Versioning::Suspended;
        if null {
            self.drop_null(key)?;
        }
        self.put(at, Kept { time: self.now, null, ino: None }.encode());
        Ok(())
    }

    /// Removes the kept version `null` of a key: a key has at most one.
    pub(crate) fn drop_null(&mut self, key: &[u8]) -> Result<()> {
        let Some(kept) = versions::find(&self.view, key, VersionId::Null)? else { return Ok(()) };
        match versions::key(key, kept.time) {
            Some(at) => self.drop_version(key, &at),
            None => Ok(()),
        }
    }

    /// Removes a kept version with its inode, if it is there.
    pub(crate) fn drop_version(&mut self, key: &[u8], at: &Bytes) -> Result<()> {
        let Some(value) = self.view.get(at)? else { return Ok(()) };
        let (_, kept) = versions::read(at, &value)?;
        debug_assert_eq!(versions::key(key, kept.time).as_ref(), Some(at));
        self.remove(at.clone());
        match kept.ino {
            Some(ino) => self.drop_inode(ino),
            None => Ok(()),
        }
    }

    /// Gives inode `to` what `from` has in `source`, but for the inode itself and its names.
    pub(crate) fn copy_records(&mut self, source: &View, from: Ino, to: Ino) -> Result<()> {
        for kind in [Kind::Object, Kind::Xattr, Kind::Extent] {
            self.adopt_kind(source, from, to, kind)?;
        }
        Ok(())
    }

    /// Takes back the removal of an inode's records, so that the entry does not even name those that are as they were.
    fn reinstate(&mut self, before: &View, ino: Ino) -> Result<()> {
        for kind in [Kind::Inode, Kind::Object, Kind::Xattr, Kind::Extent] {
            for item in before.kind(ino, kind) {
                let (key, _) = item?;
                self.view.own.remove(&key);
            }
        }
        Ok(())
    }
}
