//! The records of a world's tree: `(inode number, kind, suffix) -> value`, and how each is encoded.
//!
//! What is hashed stands in a value's `data`; where content lies stands in its `locator`. FORMAT.md lists every byte.

mod extent;
mod list;

pub(crate) use extent::{Extent, Locator, Piece, is_placed, rows};
pub(crate) use list::{Lists, listed, pieces};

use crate::error::{Error, Result};
use bytes::Bytes;
use mw_model::codec::{Reader, Writer};
use mw_model::{Attr, FileType, Ino, Version};
use mw_tree::Value;

/// The kinds of record of one inode, in key order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The inode itself.
    Inode = 1,
    /// What only S3 knows.
    Object = 2,
    /// An extended attribute; suffix: its name.
    Xattr = 3,
    /// A directory entry; suffix: the raw name, with a trailing `/` for a directory.
    Entry = 4,
    /// Content; suffix: the file offset.
    Extent = 5,
    /// A name of this inode; suffix: the parent's number and the entry's name.
    Parent = 6,
    /// Under inode 0: an inode without a name that somebody had open.
    Orphan = 7,
    /// Under inode 0: a version of an object that was replaced or deleted; suffix: see `versions::record`.
    Version = 8,
}

/// Makes a record key.
pub(crate) fn key(ino: Ino, kind: Kind, suffix: &[u8]) -> Bytes {
    let mut key = Vec::with_capacity(9 + suffix.len());
    key.extend_from_slice(&ino.0.to_be_bytes());
    key.push(kind as u8);
    key.extend_from_slice(suffix);
    key.into()
}

/// Makes the keys of the entry `name` and of the directory `name/`, which share their memory.
pub(crate) fn entry_keys(parent: Ino, name: &[u8]) -> (Bytes, Bytes) {
    let directory = Bytes::from([&single_key(parent, Kind::Entry)[..], name, b"/"].concat());
    (directory.slice(..directory.len() - 1), directory)
}

/// Returns the first key after all of an inode's records of a kind.
pub(crate) fn key_after(ino: Ino, kind: Kind) -> Bytes {
    let mut key = ino.0.to_be_bytes().to_vec();
    key.push(kind as u8 + 1);
    key.into()
}

/// Makes the key of a record without a suffix, of which each inode has one.
pub(crate) fn single_key(ino: Ino, kind: Kind) -> [u8; 9] {
    let mut key = [kind as u8; 9];
    key[..8].copy_from_slice(&ino.0.to_be_bytes());
    key
}

/// The length of an extent's key, in bytes.
pub(crate) const EXTENT_KEY: usize = 17;

/// Makes the key of an extent.
pub(crate) fn extent_key(ino: Ino, offset: u64) -> Bytes {
    key(ino, Kind::Extent, &offset.to_be_bytes())
}

/// Makes the key of a parent record.
pub(crate) fn parent_key(ino: Ino, parent: Ino, name: &[u8]) -> Bytes {
    let mut suffix = parent.0.to_be_bytes().to_vec();
    suffix.extend_from_slice(name);
    key(ino, Kind::Parent, &suffix)
}

/// Makes the key of an orphan record.
pub(crate) fn orphan_key(ino: Ino) -> Bytes {
    key(Ino(0), Kind::Orphan, &ino.0.to_be_bytes())
}

/// Splits a record key.
pub(crate) fn split(key: &[u8]) -> Result<(Ino, Kind, &[u8])> {
    let mut r = Reader::new(key);
    let ino = Ino(r.u64()?);
    let kind = match r.u8()? {
        1 => Kind::Inode,
        2 => Kind::Object,
        3 => Kind::Xattr,
        4 => Kind::Entry,
        5 => Kind::Extent,
        6 => Kind::Parent,
        7 => Kind::Orphan,
        8 => Kind::Version,
        n => return Err(Error::corrupt(format!("record kind {n} is unknown"))),
    };
    Ok((ino, kind, r.0))
}

/// Returns whether a record key is an extent's.
pub(crate) fn is_extent(key: &[u8]) -> bool {
    matches!(split(key), Ok((_, Kind::Extent, _)))
}

/// Makes a value without content.
pub(crate) fn plain(data: Vec<u8>) -> Value {
    Value { data: data.into(), locator: Bytes::new(), weight: 0 }
}

/// An inode as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inode {
    pub kind: FileType,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub nlink: u32,
    pub size: u64,
    /// Bytes that are not holes.
    pub allocated: u64,
    pub rdev: u32,
    pub atime: i64,
    pub mtime: i64,
    pub ctime: i64,
    pub btime: i64,
    /// The version of the last change of content.
    pub content: Version,
    /// A directory that exists only because of keys under it.
    pub implicit: bool,
    /// A kept version of an object: it has no name, and the record of the version refers to it.
    pub retained: bool,
}

impl Inode {
    /// Makes a fresh inode of one name.
    pub(crate) fn new(kind: FileType, mode: u32, uid: u32, gid: u32, now: Version) -> Self {
        let time = now.0 as i64;
        Self {
            kind,
            mode: mode & 0o7777,
            uid,
            gid,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            size: 0,
            allocated: 0,
            rdev: 0,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
            content: now,
            implicit: false,
            retained: false,
        }
    }

    /// Returns what the inode looks like from outside.
    pub(crate) fn attr(&self, ino: Ino) -> Attr {
        Attr {
            ino,
            kind: self.kind,
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            nlink: self.nlink,
            size: self.size,
            allocated: self.allocated,
            rdev: self.rdev,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            btime: self.btime,
            content: self.content,
        }
    }

    pub(crate) fn encode(&self) -> Value {
        // As long as it gets: four times in nanoseconds, and numbers of everyday size.
        let mut w = Writer(Vec::with_capacity(96));
        w.u8(1).u8(self.kind.to_u8()).u8(u8::from(self.implicit) | u8::from(self.retained) << 1);
        w.var(u64::from(self.mode)).var(u64::from(self.uid)).var(u64::from(self.gid)).var(u64::from(self.nlink));
        w.var(self.size).var(self.allocated).var(u64::from(self.rdev));
        w.int(self.atime).int(self.mtime).int(self.ctime).int(self.btime).var(self.content.0);
        plain(w.0)
    }

    pub(crate) fn decode(value: &Value) -> Result<Self> {
        let mut r = Reader::new(&value.data);
        version(&mut r)?;
        let kind = file_type(r.u8()?)?;
        let flags = r.u8()?;
        let inode = Self {
            kind,
            implicit: flags & 1 != 0,
            retained: flags & 2 != 0,
            mode: r.var32()?,
            uid: r.var32()?,
            gid: r.var32()?,
            nlink: r.var32()?,
            size: r.var()?,
            allocated: r.var()?,
            rdev: r.var32()?,
            atime: r.int()?,
            mtime: r.int()?,
            ctime: r.int()?,
            btime: r.int()?,
            content: Version(r.var()?),
        };
        r.end()?;
        Ok(inode)
    }
}

/// A directory entry as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub ino: Ino,
    pub kind: FileType,
}

impl Entry {
    pub(crate) fn encode(&self) -> Value {
        let mut w = Writer(Vec::with_capacity(10));
        w.u8(1).u64(self.ino.0).u8(self.kind.to_u8());
        plain(w.0)
    }

    pub(crate) fn decode(value: &Value) -> Result<Self> {
        let mut r = Reader::new(&value.data);
        version(&mut r)?;
        let entry = Self { ino: Ino(r.u64()?), kind: file_type(r.u8()?)? };
        r.end()?;
        Ok(entry)
    }
}

pub(crate) fn version(r: &mut Reader<'_>) -> Result<()> {
    match r.u8()? {
        1 => Ok(()),
        n => Err(newer(n)),
    }
}

pub(crate) fn newer(n: u8) -> Error {
    Error::corrupt(format!("record version {n} is newer than this program; use a newer `mw`"))
}

pub(crate) fn file_type(n: u8) -> Result<FileType> {
    FileType::from_u8(n).ok_or_else(|| Error::corrupt(format!("file type {n} is unknown; run `mw fsck`")))
}
