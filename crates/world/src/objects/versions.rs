//! Versions of objects: switched on (`setting`), listed (`list`), read, deleted, and made current again.

mod list;
mod setting;

use super::conditions::Conditions;
use super::delete::need_some_key;
use super::find::{Found, find_object};
use super::read::Object;
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::files::split_key;
use crate::object::{Known, ObjectInfo};
use crate::record::{Entry, Inode};
use crate::session::Session;
use crate::txn::Txn;
use crate::versioning::{Keep, VersionId, Versioning, Versions};
use crate::versions::{self, Kept};
use crate::view::View;
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::Ino;
use mw_model::policy::Action;

pub use list::{ListedVersion, VersionsListing, VersionsRequest};

/// A version of a key.
#[derive(Debug)]
pub enum Versioned<T> {
    /// What was there.
    Object(T),
    /// It was deleted then.
    Marker(Marker),
}

/// A deletion that is a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// The version.
    pub id: VersionId,
    /// When it was deleted, in UNIX nanoseconds.
    pub modified: u64,
}

/// What a deletion did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Whether what was to be deleted was there.
    pub existed: bool,
    /// The marker that was made, or the version that was deleted; none in a world without versions.
    pub version: Option<VersionId>,
    /// Whether that version is a marker.
    pub marker: bool,
}

impl Kept {
    fn marker(&self) -> Marker {
        Marker { id: self.id(), modified: self.time.0 }
    }
}

/// Returns a kept inode as an object that was found.
pub(super) fn kept_object(view: &View, ino: Ino) -> Result<Found> {
    let inode = view.inode(ino)?;
    Ok(Found { ino, known: Known::of(view, ino, &inode)?, inode })
}

/// Returns a version of a key: the current one or a kept one.
pub(crate) fn find_version(
    view: &View,
    setting: Versions,
    key: &[u8],
    id: VersionId,
) -> Result<Option<Versioned<Found>>> {
    if let Some(found) = find_object(view, key)?
        && setting.id_of(found.inode.content, found.known.unversioned).unwrap_or(VersionId::Null) == id
    {
        return Ok(Some(Versioned::Object(found)));
    }
    let Some(kept) = versions::find(view, key, id)? else { return Ok(None) };
    Ok(Some(match kept.ino {
        Some(ino) => Versioned::Object(kept_object(view, ino)?),
        None => Versioned::Marker(kept.marker()),
    }))
}

/// Says that a key has no such version.
pub(crate) fn no_version(key: &[u8], id: VersionId) -> Error {
    Error::not_found(format!(
        "NoSuchVersion: {:?} has no version {id}; list its versions",
        String::from_utf8_lossy(key)
    ))
}

impl Session {
    /// Returns what a version of a key is.
    ///
    /// # Errors
    /// `NotFound`, whose text begins with `NoSuchVersion`.
    pub fn head_version(&self, key: &[u8], id: VersionId) -> Result<Versioned<ObjectInfo>> {
        self.may(Action::GetObjectVersion, key)?;
        Ok(match find_version(&self.view(), self.world.versions(), key, id)?.ok_or_else(|| no_version(key, id))? {
            Versioned::Object(found) => Versioned::Object(found.info(key)),
            Versioned::Marker(marker) => Versioned::Marker(marker),
        })
    }

    /// Returns a version of a key to read from.
    ///
    /// # Errors
    /// Those of [`Session::head_version`].
    pub fn get_version(&self, key: &[u8], id: VersionId) -> Result<Versioned<Object>> {
        self.may(Action::GetObjectVersion, key)?;
        let view = self.view();
        Ok(match find_version(&view, self.world.versions(), key, id)?.ok_or_else(|| no_version(key, id))? {
            Versioned::Object(found) => Versioned::Object(Object::new(found.info(key), self, view)),
            Versioned::Marker(marker) => Versioned::Marker(marker),
        })
    }

    /// Returns the marker that says that a key was deleted; none when there is an object, or never was one.
    ///
    /// # Errors
    /// The store failed.
    pub fn marker(&self, key: &[u8]) -> Result<Option<Marker>> {
        self.may(Action::GetObject, key)?;
        let view = self.view();
        if find_object(&view, key)?.is_some() {
            return Ok(None);
        }
        let newest = versions::of(&view, key, None).next().transpose()?;
        Ok(newest.filter(|kept| kept.ino.is_none()).map(|kept| kept.marker()))
    }

    /// Deletes an object, durable on return: in a world with versions it is kept, and a marker says that it was deleted. An absent
    /// key is no error, and gets a marker too.
    ///
    /// # Errors
    /// Those of [`Session::delete`].
    pub fn delete_object(&self, key: &[u8], conditions: &Conditions) -> Result<Deleted> {
        need_some_key(key)?;
        let permit = self.may(Action::DeleteObject, key)?;
        let deleted = self.change_with(permit, Verb::Delete, Durability::Durable, |txn| {
            conditions.hold(&txn.view, key)?;
            txn.path = Some(Bytes::copy_from_slice(key));
            txn.delete_key(key)
        })?;
        self.absence_is_durable(deleted.existed || deleted.version.is_some())?;
        Ok(deleted)
    }

    /// Deletes one version of a key for good, durable on return; what was next to it becomes current where it was. An absent version
    /// is no error, whatever the conditions, which are about that version. Instants of the past still show it while they are retained.
    ///
    /// # Errors
    /// Those of [`Session::delete`].
    pub fn delete_version(&self, key: &[u8], id: VersionId, conditions: &Conditions) -> Result<Deleted> {
        need_some_key(key)?;
        let permit = self.may(Action::DeleteObjectVersion, key)?;
        let deleted = self.change_with(permit, Verb::Delete, Durability::Durable, |txn| {
            let named = find_version(&txn.view, txn.world.versions(), key, id)?;
            if let Some(Versioned::Object(found)) = named {
                conditions.check(Some(&found.info(key)))?;
            }
            txn.keep = Keep::Nothing;
            (txn.path, txn.note) = (Some(Bytes::copy_from_slice(key)), format!("version {id}"));
            txn.delete_version(key, id)
        })?;
        self.absence_is_durable(deleted.existed)?;
        Ok(deleted)
    }
}

impl Session {
    /// Deletes versions of keys for good, in one commit. The outcomes are in the order of what is named.
    ///
    /// # Errors
    /// Those of the commit, for all; `Invalid` for an empty key, for itself.
    pub fn delete_versions(&self, named: &[(Bytes, VersionId)]) -> Result<Vec<Result<Deleted>>> {
        let permit = self.may_delete()?;
        let outcomes = self.change_with(permit, Verb::Delete, Durability::Durable, |txn| {
            txn.keep = Keep::Nothing;
            txn.note = format!("{} versions", named.len());
            let may = |key: &[u8]| need_some_key(key).and_then(|()| self.may(Action::DeleteObjectVersion, key));
            let one = |(key, id): &(Bytes, VersionId)| match may(key) {
                Ok(_) => Ok(Ok(txn.delete_version(key, *id)?)),
                Err(e) => Ok(Err(e)),
            };
            named.iter().map(one).collect::<Result<Vec<_>>>()
        })?;
        self.absence_is_durable(outcomes.iter().all(|o| matches!(o, Ok(Deleted { existed: true, .. }))))?;
        Ok(outcomes)
    }
}

impl Txn<'_> {
    /// Deletes the object under a key, and marks that where the world has versions.
    pub(crate) fn delete_key(&mut self, key: &[u8]) -> Result<Deleted> {
        let setting = self.world.versions();
        let existed = self.take_out(key)?;
        if setting.versioning == Versioning::Never || versions::key(key, self.now).is_none() {
            return Ok(Deleted { existed, ..Deleted::default() });
        }
        self.mark(key, setting)?;
        let id = match setting.versioning {
            Versioning::Suspended => VersionId::Null,
            _ => VersionId::At(self.now),
        };
        Ok(Deleted { existed, version: Some(id), marker: true })
    }

    fn delete_version(&mut self, key: &[u8], id: VersionId) -> Result<Deleted> {
        let setting = self.world.versions();
        let current = find_object(&self.view, key)?;
        let is_current = current.as_ref().is_some_and(|found| {
            setting.id_of(found.inode.content, found.known.unversioned).unwrap_or(VersionId::Null) == id
        });
        let version = (setting.versioning != Versioning::Never).then_some(id);
        if is_current {
            self.take_out(key)?;
            self.surface(key)?;
            return Ok(Deleted { existed: true, version, marker: false });
        }
        let Some(kept) = versions::find(&self.view, key, id)? else {
            return Ok(Deleted { existed: false, version, marker: false });
        };
        let newest = versions::of(&self.view, key, None).next().transpose()? == Some(kept);
        if let Some(at) = versions::key(key, kept.time) {
            self.drop_version(key, &at)?;
        }
        let marker = kept.ino.is_none();
        if marker && newest && current.is_none() {
            self.surface(key)?;
        }
        Ok(Deleted { existed: true, version, marker })
    }

    /// Makes the newest kept version of a key the object that stands there, unless it is a marker.
    fn surface(&mut self, key: &[u8]) -> Result<()> {
        let Some(kept) = versions::of(&self.view, key, None).next().transpose()? else { return Ok(()) };
        let (Some(ino), Some(at)) = (kept.ino, versions::key(key, kept.time)) else { return Ok(()) };
        self.remove(at);
        let (dirs, last) = split_key(key);
        let dir = self.make_dirs(&dirs)?;
        let inode = self.view.inode(ino)?;
        self.put_inode(ino, &Inode { nlink: 1, retained: false, ctime: self.time(), ..inode });
        self.put_entry(dir, &last, Entry { ino, kind: inode.kind });
        self.touch_dir(dir)?;
        if last.is_empty() {
            self.make_explicit(dir)?;
        }
        Ok(())
    }
}
