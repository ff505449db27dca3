//! What of an inode travels between worlds: type, content, mode, owner, extended attributes, metadata. Never the inode number,
//! how content is cut, link counts or times.

use super::content::{FileIn, same_start};
use crate::content::Content;
use crate::error::Result;
use crate::object::{Known, ObjectMeta};
use crate::record::{self, Inode, Kind};
use crate::view::View;
use bytes::Bytes;
use mw_model::{FileType, Ino};
use std::collections::BTreeMap;

/// An inode with everything that travels but its bytes, which are read only when they must be.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub ino: Ino,
    pub inode: Inode,
    pub xattrs: BTreeMap<Bytes, Bytes>,
    pub meta: ObjectMeta,
}

/// How two items differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    None,
    Attributes,
    Content,
    Type,
}

impl Item {
    /// Reads an inode, if it is there.
    pub(crate) fn read(view: &View, ino: Ino) -> Result<Option<Self>> {
        let Some(inode) = view.find_inode(ino)? else { return Ok(None) };
        let mut xattrs = BTreeMap::new();
        for item in view.kind(ino, Kind::Xattr) {
            let (key, value) = item?;
            xattrs.insert(key.slice(9..), value.data);
        }
        let known = view.get(&record::key(ino, Kind::Object, &[]))?;
        let meta = known.map(|value| Known::decode(&value)).transpose()?.unwrap_or_default().meta;
        Ok(Some(Self { ino, inode, xattrs, meta }))
    }

    /// Reads an inode, if it is there and no implicit directory, which is a party to nothing.
    pub(crate) fn read_party(view: &View, ino: Ino) -> Result<Option<Self>> {
        Ok(Self::read(view, ino)?.filter(|item| !item.inode.implicit))
    }

    /// Returns whether both have the same attributes that travel.
    pub(crate) fn same_attributes(&self, other: &Self) -> bool {
        let (a, b) = (&self.inode, &other.inode);
        (a.mode, a.uid, a.gid, a.rdev) == (b.mode, b.uid, b.gid, b.rdev)
            && self.xattrs == other.xattrs
            && self.meta == other.meta
    }
}

/// Returns whether two inodes hold the same bytes.
pub(crate) fn same_content(content: &Content, a: (&View, &Item), b: (&View, &Item)) -> Result<bool> {
    if a.1.inode.kind == FileType::Directory {
        return Ok(true);
    }
    if a.1.inode.size != b.1.inode.size {
        return Ok(false);
    }
    let (left, right) = (FileIn { view: a.0, ino: a.1.ino }, FileIn { view: b.0, ino: b.1.ino });
    same_start(content, left, right, a.1.inode.size)
}

/// Returns how one item differs from another.
pub(crate) fn difference(content: &Content, a: (&View, &Item), b: (&View, &Item)) -> Result<Difference> {
    Ok(if a.1.inode.kind != b.1.inode.kind {
        Difference::Type
    } else if !same_content(content, a, b)? {
        Difference::Content
    } else if !a.1.same_attributes(b.1) {
        Difference::Attributes
    } else {
        Difference::None
    })
}
