//! The object record: what only S3 knows of an inode, and which content it was said of.
//!
//! Invariant: entity tag, checksums and part sizes count only while the inode's content is the one they were given with; when
//! another door changes the bytes they are stale by themselves, without a write. Headers, user metadata and tags stay.

use super::meta::{Checksum, ChecksumAlgorithm, ObjectInfo, ObjectMeta, PartSums};
use crate::error::{Error, Result};
use crate::record::{self, Inode, Kind};
use crate::view::View;
use bytes::Bytes;
use mw_model::codec::{Reader, Writer};
use mw_model::{Hash, Ino, Version};
use mw_tree::Value;

/// The version of the record of what was put whole.
const WHOLE: u8 = 1;
/// The version of one of an upload, which says which and has the checksums of its parts. What was put whole is still written as it always
/// was, so that equal content has equal bytes.
const UPLOADED: u8 = 2;

/// The object record of an inode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The content that the tag, checksums and parts belong to.
    pub content: Version,
    /// Empty: none was given.
    pub etag: String,
    pub checksums: Vec<Checksum>,
    /// The sizes of the parts.
    pub parts: Vec<u64>,
    /// The upload that it was made by; empty: none, or one that was completed before this was kept.
    pub upload: String,
    /// Their checksums, where the upload was begun with an algorithm.
    pub sums: Option<PartSums>,
    pub meta: ObjectMeta,
    /// Put while versions were suspended: the version `null`, whatever its time.
    pub unversioned: bool,
}

/// Makes the key of an inode's object record.
pub(crate) fn key(ino: Ino) -> Bytes {
    record::key(ino, Kind::Object, &[])
}

impl Known {
    /// Encodes the record. The content's version comes first in eight bytes: what follows is what travels between worlds.
    pub(crate) fn encode(&self) -> Value {
        let mut w = Writer::new();
        let uploaded = !self.upload.is_empty();
        w.u8(if uploaded { UPLOADED } else { WHOLE }).u64(self.content.0).str(&self.etag);
        checksums(&mut w, &self.checksums);
        w.var(self.parts.len() as u64);
        for size in &self.parts {
            w.var(*size);
        }
        if uploaded {
            w.str(&self.upload);
            match &self.sums {
                Some(sums) => {
                    debug_assert_eq!(sums.values.len(), self.parts.len(), "each part has a checksum, or none has");
                    w.u8(sums.algorithm.to_u8());
                    for value in &sums.values {
                        w.str(value);
                    }
                }
                None => {
                    w.u8(0);
                }
            }
        }
        meta(&mut w, &self.meta);
        if self.unversioned {
            w.u8(1);
        }
        record::plain(w.0)
    }

    pub(crate) fn decode(value: &Value) -> Result<Self> {
        let mut r = Reader::new(&value.data);
        let uploaded = read_uploaded(&mut r)?;
        let (content, etag) = (Version(r.u64()?), r.str()?.to_owned());
        let checksums = read_checksums(&mut r)?;
        let mut parts = Vec::new();
        for _ in 0..r.var()? {
            parts.push(r.var()?);
        }
        let (mut upload, mut sums) = (String::new(), None);
        if uploaded {
            r.str()?.clone_into(&mut upload);
            sums = read_part_sums(&mut r, parts.len())?;
        }
        let meta = read_meta(&mut r)?;
        let unversioned = !r.0.is_empty() && r.u8()? == 1;
        r.end()?;
        Ok(Self { content, etag, checksums, parts, upload, sums, meta, unversioned })
    }

    /// Returns what is known of an inode, without what is stale.
    pub(crate) fn of(view: &View, ino: Ino, inode: &Inode) -> Result<Self> {
        Self::fresh(view.get(&key(ino))?.as_ref(), inode)
    }

    /// Reads the record of an inode, without what is stale.
    pub(crate) fn fresh(value: Option<&Value>, inode: &Inode) -> Result<Self> {
        let known = value.map(Self::decode).transpose()?.unwrap_or_default();
        if known.content == inode.content {
            return Ok(known);
        }
        Ok(Self { content: inode.content, meta: known.meta, ..Self::default() })
    }

    /// Describes the object that an inode is under a key.
    pub(crate) fn info(self, key: Bytes, ino: Ino, inode: &Inode) -> ObjectInfo {
        ObjectInfo {
            key,
            ino,
            size: inode.size,
            modified: inode.content.0,
            version: inode.content,
            unversioned: self.unversioned,
            etag: if self.etag.is_empty() { made_etag(ino, inode.content) } else { self.etag },
            meta: self.meta,
            checksums: self.checksums,
            parts: self.parts,
            part_sums: self.sums,
            kind: inode.kind,
            mode: inode.mode,
            uid: inode.uid,
            gid: inode.gid,
            mtime: inode.mtime,
        }
    }
}

/// Makes the entity tag of content that came without one. The `-0` tells clients that it is no MD5.
pub(crate) fn made_etag(ino: Ino, content: Version) -> String {
    let mut w = Writer::new();
    w.str("etag").u64(ino.0).u64(content.0);
    format!("{}-0", hex::encode(&Hash::of(&w.0).0[..16]))
}

/// Reads the version of a record: whether it is of what was uploaded in parts.
pub(crate) fn read_uploaded(r: &mut Reader<'_>) -> Result<bool> {
    match r.u8()? {
        WHOLE => Ok(false),
        UPLOADED => Ok(true),
        n => Err(record::newer(n)),
    }
}

/// Writes checksums.
pub(crate) fn checksums(w: &mut Writer, checksums: &[Checksum]) {
    w.var(checksums.len() as u64);
    for sum in checksums {
        w.u8(sum.algorithm.to_u8()).u8(u8::from(sum.composite)).str(&sum.value);
    }
}

/// Reads checksums.
pub(crate) fn read_checksums(r: &mut Reader<'_>) -> Result<Vec<Checksum>> {
    let mut checksums = Vec::new();
    for _ in 0..r.var()? {
        let algorithm = read_algorithm(r.u8()?)?;
        checksums.push(Checksum { algorithm, composite: r.u8()? == 1, value: r.str()?.to_owned() });
    }
    Ok(checksums)
}

/// Reads the checksums of so many parts, where there are any.
fn read_part_sums(r: &mut Reader<'_>, parts: usize) -> Result<Option<PartSums>> {
    let algorithm = match r.u8()? {
        0 => return Ok(None),
        n => read_algorithm(n)?,
    };
    let values = (0..parts).map(|_| Ok(r.str()?.to_owned())).collect::<Result<_>>()?;
    Ok(Some(PartSums { algorithm, values }))
}

/// Reads an algorithm's number.
pub(crate) fn read_algorithm(n: u8) -> Result<ChecksumAlgorithm> {
    ChecksumAlgorithm::from_u8(n)
        .ok_or_else(|| Error::corrupt(format!("checksum algorithm {n} is unknown; use a newer `mw`")))
}

/// Writes headers, user metadata and tags.
pub(crate) fn meta(w: &mut Writer, meta: &ObjectMeta) {
    let headers = [
        &meta.content_type,
        &meta.cache_control,
        &meta.content_disposition,
        &meta.content_encoding,
        &meta.content_language,
        &meta.expires,
        &meta.storage_class,
    ];
    for header in headers {
        match header {
            Some(text) => w.u8(1).str(text),
            None => w.u8(0),
        };
    }
    for pairs in [&meta.user, &meta.tags] {
        w.var(pairs.len() as u64);
        for (name, value) in pairs {
            w.str(name).str(value);
        }
    }
}

/// Reads the headers, each where it lies.
fn read_headers<'a>(r: &mut Reader<'a>) -> Result<[Option<&'a str>; 7]> {
    let mut headers = [None; 7];
    for header in &mut headers {
        if r.u8()? == 1 {
            *header = Some(r.str()?);
        }
    }
    Ok(headers)
}

/// Reads the storage class, and nothing behind it.
pub(crate) fn read_class<'a>(r: &mut Reader<'a>) -> Result<Option<&'a str>> {
    let [.., class] = read_headers(r)?;
    Ok(class)
}

/// Reads headers, user metadata and tags.
pub(crate) fn read_meta(r: &mut Reader<'_>) -> Result<ObjectMeta> {
    let headers = read_headers(r)?.map(|header| header.map(str::to_owned));
    let mut pairs: [Vec<(String, String)>; 2] = Default::default();
    for list in &mut pairs {
        for _ in 0..r.var()? {
            list.push((r.str()?.to_owned(), r.str()?.to_owned()));
        }
    }
    let [content_type, cache_control, content_disposition, content_encoding, content_language, expires, storage_class] =
        headers;
    let [user, tags] = pairs;
    Ok(ObjectMeta {
        content_type,
        cache_control,
        content_disposition,
        content_encoding,
        content_language,
        expires,
        user,
        tags,
        storage_class,
    })
}

#[cfg(test)]
mod tests;
