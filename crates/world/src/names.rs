//! Names of inodes, found from their records: what a directory is called, which path leads to it, every name that a file has.

use crate::error::{Error, Result};
use crate::record::{self, Kind};
use crate::view::{self, View};
use bytes::Bytes;
use mw_model::Ino;

/// Returns one parent of an inode and the raw name it has there.
pub(crate) fn parent_of(view: &View, ino: Ino) -> Result<Option<(Ino, Bytes)>> {
    match view.kind(ino, Kind::Parent).next().transpose()? {
        None => Ok(None),
        Some((key, _)) => {
            let (_, _, suffix) = record::split(&key)?;
            let (number, _) = suffix.split_at_checked(8).ok_or_else(|| Error::corrupt("a parent record is short"))?;
            Ok(Some((Ino(view::number(number)), key.slice(17..))))
        }
    }
}

/// Returns one path of an inode.
pub(crate) fn path_of(view: &View, mut ino: Ino) -> Result<Option<Bytes>> {
    let mut parts: Vec<Bytes> = Vec::new();
    while ino != Ino::ROOT {
        let Some((parent, name)) = parent_of(view, ino)? else { return Ok(None) };
        parts.push(name);
        ino = parent;
        if parts.len() > 4096 {
            return Err(Error::corrupt(format!("inode {ino} is its own ancestor; run `mw fsck`")));
        }
    }
    let path: Vec<u8> = parts.iter().rev().flatten().copied().collect();
    Ok(Some(path.into()))
}

/// Returns every name of an inode: the directory's number and the raw name.
pub(crate) fn names_of(view: &View, ino: Ino) -> Result<Vec<(Ino, Bytes)>> {
    let mut names = Vec::new();
    for item in view.kind(ino, Kind::Parent) {
        let (key, _) = item?;
        let (_, _, suffix) = record::split(&key)?;
        if let Some((number, _)) = suffix.split_at_checked(8) {
            names.push((Ino(view::number(number)), key.slice(17..)));
        }
    }
    Ok(names)
}
