//! COPY: extents are shared, no byte is moved; within a world and across worlds.

use super::conditions::Conditions;
use super::find::{found, need_key};
use super::place::{Attributes, NewObject};
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::object::{ObjectInfo, ObjectMeta};
use crate::record::{extent_key, is_placed};
use crate::session::Session;
use crate::txn::Txn;
use crate::versioning::VersionId;
use crate::view::{View, offset_of};
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;
use mw_model::{FileType, Ino};
use mw_tree::Value;

/// How an object is copied.
#[derive(Debug, Clone, Default)]
pub struct CopyOptions {
    /// Headers and user metadata to set; none: those of the source. Its tags do not count.
    pub replace: Option<ObjectMeta>,
    /// Tags to set; none: those of the source.
    pub replace_tags: Option<Vec<(String, String)>>,
    /// The version of the source; none: what is there.
    pub version: Option<VersionId>,
    /// What must hold of the source.
    pub source: Conditions,
    /// What must hold of the object that is there.
    pub conditions: Conditions,
}

impl Session {
    /// Copies an object of `from`'s world, or of its instant, without moving a byte; durable on return. A large one takes a
    /// record for each 64 of its pieces. Entity tag and checksums are those of the source.
    ///
    /// As in [`Session::put`], a regular file that is replaced hands on mode and owner; under a new key the source's are taken. A
    /// copied link is a file of its target's bytes.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` (its text begins with `InvalidRequest`) for a copy onto itself that replaces nothing; `Precondition`;
    /// those of [`Session::put`].
    pub fn copy(&self, from: &Session, from_key: &[u8], key: &[u8], options: &CopyOptions) -> Result<ObjectInfo> {
        self.need_now()?;
        let permit = self.may(Action::PutObject, key)?;
        from.may(if options.version.is_some() { Action::GetObjectVersion } else { Action::GetObject }, from_key)?;
        need_key(key)?;
        let here = from.world.id == self.world.id && from.at.is_none();
        if here
            && from_key == key
            && options.version.is_none()
            && options.replace.is_none()
            && options.replace_tags.is_none()
        {
            return Err(Error::invalid(
                "InvalidRequest: this would copy an object onto itself and change nothing; replace its metadata or tags",
            ));
        }
        if here {
            return self.change_with(permit, Verb::Copy, Durability::Durable, |txn| {
                let new = source(&txn.view, from, from_key, options)?;
                copied(txn, key, new, options)
            });
        }
        self.borrowing(from, |lent| {
            let new = source(&lent.view, from, from_key, options)?;
            self.change_with(permit, Verb::Copy, Durability::Durable, |txn| {
                lent.require(new.extents.iter().any(|(_, extent)| is_placed(extent)), &mut txn.meta);
                txn.note = from.name.to_string();
                copied(txn, key, new, options)
            })
        })
    }
}

/// Reads what is to be copied.
pub(super) fn source(view: &View, from: &Session, key: &[u8], options: &CopyOptions) -> Result<NewObject> {
    let found = found(view, from.world.versions(), key, options.version)?;
    options.source.check(Some(&found.info(key)))?;
    let extents = match found.inode.kind {
        FileType::Directory => Vec::new(),
        _ => stored(view, found.ino, found.inode.size)?,
    };
    let mut known = found.known;
    let tags = options.replace_tags.clone().unwrap_or_else(|| known.meta.tags.clone());
    known.meta = ObjectMeta { tags, ..options.replace.clone().unwrap_or(known.meta) };
    let inherited = match found.inode.kind {
        FileType::File => Attributes::of(&found.inode),
        _ => Attributes::default(),
    };
    let len = if found.inode.kind == FileType::Directory { 0 } else { found.inode.size };
    Ok(NewObject { extents, len, known, asked: Attributes::default(), inherited })
}

/// Returns the extents of a file as they are stored: they say nothing of the file, so another may have them as they are.
fn stored(view: &View, ino: Ino, size: u64) -> Result<Vec<(u64, Value)>> {
    let records = view.scan(extent_key(ino, 0), extent_key(ino, size));
    records.map(|item| item.and_then(|(key, value)| Ok((offset_of(&key)?, value)))).collect()
}

fn copied(txn: &mut Txn<'_>, key: &[u8], new: NewObject, options: &CopyOptions) -> Result<ObjectInfo> {
    options.conditions.hold(&txn.view, key)?;
    txn.path = Some(Bytes::copy_from_slice(key));
    Ok(txn.place(key, new)?.info(key))
}
