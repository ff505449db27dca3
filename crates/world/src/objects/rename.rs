//! RENAME: an object under another key, in one commit. Nobody sees both keys, or neither.

use super::conditions::Conditions;
use super::copy::{CopyOptions, source};
use super::find::{Found, find_dir, need_key, need_object};
use super::place::{Attributes, NewObject};
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::files::split_key;
use crate::object::ObjectInfo;
use crate::record::Entry;
use crate::session::Session;
use crate::txn::Txn;
use crate::versioning::{Keep, Versioning};
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;
use mw_model::{FileType, Ino};

/// What must hold for an object to be renamed.
#[derive(Debug, Clone, Default)]
pub struct RenameOptions {
    /// Of the object.
    pub source: Conditions,
    /// Of the object whose place it takes.
    pub conditions: Conditions,
}

impl Session {
    /// Gives the object under `from` the key `key`, durable on return. An object that is there is replaced.
    ///
    /// The inode goes along, with its attributes: whoever has the file open keeps it, and a promote sees a rename. Missing directories
    /// are made; implicit ones that the object alone kept go. A directory that is an object of its own (`d/`) leaves a marker under
    /// the new key, and what else is in it stays. In a world with versions the new key gets a version of its own, and what was under
    /// the old one is kept.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` (its text begins with `InvalidRequest`) for a rename onto itself; `Precondition`; those of
    /// [`Session::put`].
    pub fn rename_object(&self, from: &[u8], key: &[u8], options: &RenameOptions) -> Result<ObjectInfo> {
        self.need_now()?;
        self.may(Action::GetObject, from)?;
        self.may(Action::DeleteObject, from)?;
        let permit = self.may(Action::PutObject, key)?;
        need_key(key)?;
        if from == key {
            return Err(Error::invalid("InvalidRequest: this would rename an object to the key that it has"));
        }
        self.change_with(permit, Verb::Rename, Durability::Durable, |txn| {
            let found = need_object(&txn.view, from)?;
            options.source.check(Some(&found.info(from)))?;
            options.conditions.hold(&txn.view, key)?;
            txn.path = Some(Bytes::copy_from_slice(key));
            txn.note = String::from_utf8_lossy(from).into_owned();
            if found.inode.kind == FileType::Directory {
                return txn.rename_marker(found, from, key);
            }
            if self.versioning() != Versioning::Never {
                txn.keep = Keep::Everything;
                let new = source(&txn.view, self, from, &CopyOptions::default())?;
                txn.take_out(from)?;
                return Ok(txn.place(key, new)?.info(key));
            }
            txn.rename_entry(&found, from, key)?;
            Ok(need_object(&txn.view, key)?.info(key))
        })
    }
}

impl Txn<'_> {
    /// Moves a file's or link's entry from one key to another.
    fn rename_entry(&mut self, found: &Found, from: &[u8], key: &[u8]) -> Result<()> {
        let (ino, kind) = (found.ino, found.inode.kind);
        let (dirs, last) = split_key(from);
        let dir = find_dir(&self.view, &dirs)?.ok_or_else(|| Error::corrupt("an object's directory is missing"))?;
        let (to_dirs, to_last) = split_key(key);
        let to = self.make_dirs(&to_dirs)?;
        // Another name of the same inode (a hard link) gives way too: what S3 calls a rename leaves one key.
        if let Some(old) = self.view.entry(to, &to_last)? {
            self.remove_entry(to, &to_last, old.ino);
            self.unlink_inode(old.ino)?;
        }
        self.remove_entry(dir, &last, ino);
        self.put_entry(to, &to_last, Entry { ino, kind });
        let mut inode = self.view.inode(ino)?;
        inode.ctime = self.time();
        self.put_inode(ino, &inode);
        self.touch_dir(to)?;
        if to_last.is_empty() {
            self.make_explicit(to)?;
        }
        self.touch_dir(dir)?;
        if last.is_empty() && dir != Ino::ROOT {
            let mut above = self.view.inode(dir)?;
            above.implicit = true;
            self.put_inode(dir, &above);
        }
        self.prune_implicit(dir)
    }

    /// Renames an empty directory that somebody made: its marker comes to be under the new key.
    fn rename_marker(&mut self, found: Found, from: &[u8], key: &[u8]) -> Result<ObjectInfo> {
        self.take_out(from)?;
        let none = Attributes::default();
        let new = NewObject { extents: Vec::new(), len: 0, known: found.known, asked: none, inherited: none };
        Ok(self.place(key, new)?.info(key))
    }
}
