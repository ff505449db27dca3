//! Tags, set on an object whose content stays; and an object that gets another key.

use super::find::{Found, found, need_key, need_object};
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::files::split_key;
use crate::object::ObjectInfo;
use crate::object::known;
use crate::record::Entry;
use crate::session::Session;
use crate::versioning::{Keep, VersionId};
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;

impl Session {
    /// Replaces an object's tags, durable on return. Content, entity tag and time of the last change stay.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn set_tags(&self, key: &[u8], tags: Vec<(String, String)>) -> Result<()> {
        self.set_tags_of(key, None, tags)
    }

    /// Replaces the tags of one version of a key, or of the object that is there, durable on return.
    ///
    /// # Errors
    /// `NotFound`; `ReadOnly` for a marker, which has no tags.
    pub fn set_tags_of(&self, key: &[u8], version: Option<VersionId>, tags: Vec<(String, String)>) -> Result<()> {
        let action = if tags.is_empty() { Action::DeleteObjectTagging } else { Action::PutObjectTagging };
        let permit = self.may(action, key)?;
        self.change_with(permit, Verb::Tag, Durability::Durable, |txn| {
            let setting = txn.world.versions();
            let Found { ino, mut inode, mut known } = found(&txn.view, setting, key, version)?;
            known.meta.tags = tags;
            txn.put(known::key(ino), known.encode());
            inode.ctime = txn.time();
            txn.put_inode(ino, &inode);
            txn.path = Some(Bytes::copy_from_slice(key));
            Ok(())
        })
    }

    /// Moves an object to another key in one commit, durable on return; an object that is there is replaced. Its inode stays, with
    /// all that belongs to it.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for `d/`, which is a directory's (rename that); those of [`Session::put`] for the new key.
    pub fn rename_key(&self, from: &[u8], to: &[u8]) -> Result<ObjectInfo> {
        need_key(to)?;
        if from.ends_with(b"/") || to.ends_with(b"/") {
            return Err(Error::invalid("a key that ends in / is a directory's; rename the directory"));
        }
        self.may(Action::GetObject, from)?;
        self.may(Action::DeleteObject, from)?;
        let permit = self.may(Action::PutObject, to)?;
        self.change_with(permit, Verb::Rename, Durability::Durable, |txn| {
            txn.keep = Keep::Everything;
            let mut found = need_object(&txn.view, from)?;
            if from == to {
                return Ok(found.info(to));
            }
            let (dirs, last) = split_key(to);
            let dir = txn.make_dirs(&dirs)?;
            if let Some(old) = txn.view.entry(dir, &last)? {
                txn.remove_entry(dir, &last, old.ino);
                txn.unlink_inode(old.ino)?;
            }
            // What was replaced may have been another name of the same inode.
            found.inode = txn.view.inode(found.ino)?;
            found.inode.ctime = txn.time();
            txn.put_inode(found.ino, &found.inode);
            let (from_dirs, from_last) = split_key(from);
            let from_dir = txn.make_dirs(&from_dirs)?;
            txn.remove_entry(from_dir, &from_last, found.ino);
            txn.put_entry(dir, &last, Entry { ino: found.ino, kind: found.inode.kind });
            txn.touch_dir(from_dir)?;
            txn.touch_dir(dir)?;
            txn.prune_implicit(from_dir)?;
            txn.path = Some(Bytes::copy_from_slice(to));
            txn.note = String::from_utf8_lossy(from).into_owned();
            Ok(found.info(to))
        })
    }
}
