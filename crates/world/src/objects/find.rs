//! Keys: which are allowed, and which inode stands under one.

use super::versions::{Versioned, find_version, no_version};
use crate::error::{Error, Result};
use crate::files::split_key;
use crate::object::Known;
use crate::object::ObjectInfo;
use crate::record::Inode;
use crate::versioning::{VersionId, Versions};
use crate::view::View;
use bytes::Bytes;
use mw_model::name::MAX_KEY;
use mw_model::{ErrorKind, FileType, Ino};

/// An object that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub ino: Ino,
    pub inode: Inode,
    pub known: Known,
}

impl Found {
    pub(crate) fn info(&self, key: &[u8]) -> ObjectInfo {
        self.known.clone().info(Bytes::copy_from_slice(key), self.ino, &self.inode)
    }
}

/// Refuses a key that cannot be created (AWS, *Naming Amazon S3 objects*). Parts that a mount cannot show are fine.
pub(crate) fn need_key(key: &[u8]) -> Result<()> {
    match key.len() {
        0 => return Err(Error::invalid("a key has at least one byte")),
        1..=MAX_KEY => {}
        n => return Err(Error::new(ErrorKind::NameTooLong, format!("a key has at most {MAX_KEY} bytes, not {n}"))),
    }
    match std::str::from_utf8(key) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::invalid("a key is UTF-8 text; names of other bytes are made through a mount")),
    }
}

/// Returns the directory of the raw names `dirs`, if all of it exists.
pub(crate) fn find_dir(view: &View, dirs: &[Bytes]) -> Result<Option<Ino>> {
    let mut at = Ino::ROOT;
    for dir in dirs {
        match view.entry(at, dir)? {
            Some(entry) if entry.kind == FileType::Directory => at = entry.ino,
            _ => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Returns the object under a key, if there is one: a file, a link, the marker of a directory, or an explicit directory that is
/// empty. Pipes, sockets and devices are no objects.
pub(crate) fn find_object(view: &View, key: &[u8]) -> Result<Option<Found>> {
    let (dirs, last) = split_key(key);
    let Some(dir) = find_dir(view, &dirs)? else { return Ok(None) };
    let ino = match view.entry(dir, &last)? {
        Some(entry) if matches!(entry.kind, FileType::File | FileType::Symlink) => entry.ino,
        None if last.is_empty() && !dirs.is_empty() && is_empty_object(view, dir)? => dir,
        _ => return Ok(None),
    };
    let inode = view.inode(ino)?;
    let known = Known::of(view, ino, &inode)?;
    Ok(Some(Found { ino, inode, known }))
}

/// Returns whether a directory is an object itself: somebody made it, and nothing is in it.
pub(crate) fn is_empty_object(view: &View, dir: Ino) -> Result<bool> {
    Ok(view.entries(dir, &[]).next().transpose()?.is_none() && !view.inode(dir)?.implicit)
}

/// Returns the object under a key.
///
/// # Errors
/// `NotFound`.
pub(crate) fn need_object(view: &View, key: &[u8]) -> Result<Found> {
    find_object(view, key)?.ok_or_else(|| Error::not_found(format!("no object {:?}", String::from_utf8_lossy(key))))
}

/// Returns an object: the one under a key, or one version of the key.
///
/// # Errors
/// `NotFound`; `ReadOnly` when the version is a marker.
pub(crate) fn found(view: &View, setting: Versions, key: &[u8], version: Option<VersionId>) -> Result<Found> {
    let Some(id) = version else { return need_object(view, key) };
    match find_version(view, setting, key, id)?.ok_or_else(|| no_version(key, id))? {
        Versioned::Object(found) => Ok(found),
        Versioned::Marker(_) => Err(Error::new(
            ErrorKind::ReadOnly,
            format!("version {id} of {:?} is a deletion and has no content", String::from_utf8_lossy(key)),
        )),
    }
}
