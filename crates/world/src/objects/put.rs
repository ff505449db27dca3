//! PUT: new content under a key, in one commit.

use super::conditions::Conditions;
use super::find::need_key;
use super::place::{Attributes, NewObject};
use super::stage::Staged;
use crate::entry::Verb;
use crate::error::Result;
use crate::object::Known;
use crate::object::{Checksum, ObjectInfo, ObjectMeta};
use crate::record::rows;
use crate::session::Session;
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;

/// What comes with the content of an object.
#[derive(Debug, Clone, Default)]
pub struct PutOptions {
    /// Headers and tags.
    pub meta: ObjectMeta,
    /// The entity tag of the content, without quotes; empty: one is made.
    pub etag: String,
    /// Checksums of the content.
    pub checksums: Vec<Checksum>,
    /// What must hold of the object that is there.
    pub conditions: Conditions,
    /// Permission bits; none: those of the file that is replaced, or else 0644.
    pub mode: Option<u32>,
    /// The owner; none: as for the mode, or else the store's.
    pub uid: Option<u32>,
    /// The group; none: as for the owner.
    pub gid: Option<u32>,
    /// The modification time that a mount shows, in nanoseconds since the epoch; none: that of the entry.
    pub mtime: Option<i64>,
}

impl Session {
    /// Puts an object, durable on return. Readers see the old content or the new, never a mixture.
    ///
    /// A new inode takes the place of the old one under this name alone: other names of a hard link, and whoever has the old file
    /// open, keep it. Mode and owner of a regular file that is replaced stay unless the options say otherwise; its extended
    /// attributes go. Missing directories are made, and go with their last key. `d/` makes the directory `d` explicit and is its
    /// marker.
    ///
    /// # Errors
    /// `Invalid` for an empty key or one that is not UTF-8; `NameTooLong` over 1,024 bytes; `Precondition`, `NotFound` as the
    /// conditions say.
    pub fn put(&self, key: &[u8], content: Staged, options: &PutOptions) -> Result<ObjectInfo> {
        self.need_now()?;
        let permit = self.may(Action::PutObject, key)?;
        need_key(key)?;
        let mut whole = content.finish(self, true)?;
        let known = Known {
            etag: options.etag.clone(),
            checksums: options.checksums.clone(),
            meta: options.meta.clone(),
            ..Known::default()
        };
        let asked = Attributes { mode: options.mode, uid: options.uid, gid: options.gid, mtime: options.mtime };
        self.change_with(permit, Verb::Put, Durability::Durable, |txn| {
            whole.settle(txn)?;
            let extents = rows(&whole.extents);
            let new = NewObject { extents, len: whole.len, known, asked, inherited: Attributes::default() };
            options.conditions.hold(&txn.view, key)?;
            txn.path = Some(Bytes::copy_from_slice(key));
            Ok(txn.place(key, new)?.info(key))
        })
    }
}
