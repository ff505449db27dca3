//! Names and paths: what a name in a directory stands for, and where a path or key leads. No link is ever followed.

use super::hidden::meant;
use crate::error::{Error, Result};
use crate::names::path_of;
use crate::record::Entry;
use crate::session::Session;
use crate::view::View;
use bytes::Bytes;
use mw_model::name::{MAX_NAME, mountable};
use mw_model::{Attr, ErrorKind, FileType, Ino};

/// Finds what a mount shows under `name`: the directory, or else the other entry, or else what only S3 can hold and `name` is
/// another name for. Returns its raw name.
pub(crate) fn find(view: &View, parent: Ino, name: &[u8]) -> Result<Option<(Bytes, Entry)>> {
    if let Some(found) = view.entry_shown(parent, name)? {
        return Ok(Some(found));
    }
    match meant(view, parent, name)? {
        Some(name) => find(view, parent, &name),
        None => Ok(None),
    }
}

/// Refuses a name that a mount cannot make.
pub(crate) fn need_name(name: &[u8]) -> Result<()> {
    if name.len() > MAX_NAME {
        return Err(Error::new(ErrorKind::NameTooLong, format!("a file name has at most {MAX_NAME} bytes")));
    }
    if !mountable(name) {
        return Err(Error::invalid(format!("{:?} cannot be a file name", String::from_utf8_lossy(name))));
    }
    Ok(())
}

/// Splits a key into its directories' raw names and the raw name of its last part (empty: a directory's marker).
pub(crate) fn split_key(key: &[u8]) -> (Vec<Bytes>, Bytes) {
    let mut parts: Vec<Bytes> = key.split_inclusive(|b| *b == b'/').map(Bytes::copy_from_slice).collect();
    let last = if key.last() == Some(&b'/') { Bytes::new() } else { parts.pop().unwrap_or_default() };
    (parts, last)
}

pub(crate) fn missing(name: &[u8]) -> Error {
    Error::not_found(format!("{:?} does not exist", String::from_utf8_lossy(name)))
}

impl Session {
    /// Returns what `name` in `parent` is.
    ///
    /// # Errors
    /// `NotFound`; `NotDirectory`; `NameTooLong`.
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        let view = self.view();
        if name.len() > MAX_NAME {
            need_name(name)?;
        }
        let sight = self.sight_in(parent, name)?;
        let found = if mountable(name) { find(&view, parent, name)? } else { None };
        let (raw, entry) = found.ok_or_else(|| missing(name))?;
        if !sight.shows(self, name, &raw, entry.kind) {
            return Err(missing(name));
        }
        Ok(view.inode(entry.ino)?.attr(entry.ino))
    }

    /// Returns what a path leads to: the root for the empty path; a directory before an object of the same name.
    ///
    /// # Errors
    /// `NotFound`; `NotDirectory` when a part on the way is something else.
    pub fn resolve(&self, path: &[u8]) -> Result<Attr> {
        let view = self.view();
        let (above, last) = path.split_at(path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1));
        let sight = self.sight(above, last)?;
        let (raw, ino, kind) = resolve_raw(&view, path)?.ok_or_else(|| missing(path))?;
        if !sight.shows(self, last, &raw, kind) {
            return Err(missing(path));
        }
        Ok(view.inode(ino)?.attr(ino))
    }

    /// Returns one path of an inode; none for an inode without a name.
    ///
    /// # Errors
    /// The store failed.
    pub fn path_of(&self, ino: Ino) -> Result<Option<Bytes>> {
        self.may_see(ino)?;
        path_of(&self.view(), ino)
    }
}

/// Returns the inode at a path, if there is one.
pub(crate) fn resolve(view: &View, path: &[u8]) -> Result<Option<Ino>> {
    Ok(resolve_raw(view, path)?.map(|(_, ino, _)| ino))
}

/// Returns what is at a path, if there is anything: its raw name (empty: the path is a directory's), its inode and kind.
fn resolve_raw(view: &View, path: &[u8]) -> Result<Option<(Bytes, Ino, FileType)>> {
    let (dirs, last) = split_key(path);
    let mut at = Ino::ROOT;
    for dir in dirs {
        match view.entry(at, &dir)? {
            Some(entry) if entry.kind == FileType::Directory => at = entry.ino,
            _ => return Ok(None),
        }
    }
    if last.is_empty() {
        return Ok(Some((Bytes::new(), at, FileType::Directory)));
    }
    Ok(find(view, at, &last)?.map(|(raw, entry)| (raw, entry.ino, entry.kind)))
}
