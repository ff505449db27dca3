//! What a listing says of an object, lent from where its records lie. Nothing is copied.
//!
//! Invariant: it says what the whole record would ([`Known`](super::Known)); a test holds one against the other.

use super::known::{made_etag, read_algorithm, read_class, read_uploaded};
use super::meta::ChecksumAlgorithm;
use crate::error::Result;
use crate::record::Inode;
use mw_model::codec::Reader;
use mw_model::{Ino, Version};
use mw_tree::Value;
use std::borrow::Cow;

/// Which checksum an object has, and whether it is of the checksums of its parts.
pub type SumKind = (ChecksumAlgorithm, bool);

/// What a listing says of an object. The fields are those of [`ObjectInfo`](super::ObjectInfo).
#[derive(Debug, Clone)]
pub struct Brief<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its size in bytes.
    pub size: u64,
    /// The last change of its content, in UNIX nanoseconds.
    pub modified: u64,
    /// Its entity tag, without quotes.
    pub etag: Cow<'a, str>,
    /// Its checksums, without their values.
    pub checksums: &'a [SumKind],
    /// Its storage class, where one was given.
    pub storage_class: Option<&'a str>,
}

impl<'a> Brief<'a> {
    /// Describes the object that an inode is under a key. `sums` is room for its checksums.
    pub(crate) fn of(
        (key, ino): (&'a [u8], Ino),
        inode: &Inode,
        record: Option<&'a Value>,
        sums: &'a mut Vec<SumKind>,
    ) -> Result<Self> {
        sums.clear();
        let (mut tag, mut storage_class) = ("", None);
        if let Some(record) = record {
            let mut r = Reader::new(&record.data);
            let uploaded = read_uploaded(&mut r)?;
            let (content, etag) = (Version(r.u64()?), r.str()?);
            for _ in 0..r.var()? {
                let algorithm = read_algorithm(r.u8()?)?;
                sums.push((algorithm, r.u8()? == 1));
                r.bytes()?;
            }
            let parts = r.var()?;
            for _ in 0..parts {
                r.var()?;
            }
            if uploaded {
                r.bytes()?;
                if r.u8()? != 0 {
                    for _ in 0..parts {
                        r.bytes()?;
                    }
                }
            }
            storage_class = read_class(&mut r)?;
            if content == inode.content {
                tag = etag;
            } else {
                sums.clear();
            }
        }
        let etag = if tag.is_empty() { Cow::Owned(made_etag(ino, inode.content)) } else { Cow::Borrowed(tag) };
        Ok(Self { key, size: inode.size, modified: inode.content.0, etag, checksums: sums, storage_class })
    }
}
