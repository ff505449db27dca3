//! Multipart uploads: begun, found, listed, given up. They live in `meta`, outside the world's history, and a fork has none of them.
//!
//! Invariant: an upload's records are `id` then a kind: the upload itself, what each part is, where each part's bytes are. Changes
//! to them are made under the lock of the world's head, so that whoever ends an upload sees all of its parts.

use super::find::need_key;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::object::known;
use crate::object::{ChecksumAlgorithm, ObjectMeta};
use crate::record;
use crate::session::Session;
use crate::store::Store;
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::codec::{Reader, Writer};
use mw_model::policy::Action;
use mw_model::{ErrorKind, WorldId};
use std::sync::Arc;

/// How an upload was begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UploadOptions {
    /// Headers and tags of the object to be.
    pub meta: ObjectMeta,
    /// The checksum that its parts carry.
    pub algorithm: Option<ChecksumAlgorithm>,
    /// Whether the object's checksum will be one of the parts' checksums.
    pub composite: bool,
}

/// An upload in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadInfo {
    /// The key of the object to be.
    pub key: Bytes,
    /// The upload's id; later uploads have greater ones.
    pub id: String,
    /// When it was begun, in UNIX nanoseconds.
    pub created: u64,
    /// How it was begun.
    pub options: UploadOptions,
}

/// The kinds of record of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Piece {
    /// The upload itself.
    Upload = 0,
    /// What a part is; suffix: its number.
    Part = 1,
    /// Where a part's bytes are; suffix: its number.
    Content = 2,
}

/// The length of an id, in bytes: the time in 16 hexadecimal digits, and 16 random characters.
pub(crate) const ID: usize = 32;

/// Makes the key of an upload's record.
pub(crate) fn place(world: WorldId, id: &str, piece: Piece, number: u32) -> Bytes {
    let mut rest = id.as_bytes().to_vec();
    rest.push(piece as u8);
    if piece != Piece::Upload {
        rest.extend_from_slice(&number.to_be_bytes());
    }
    layout::suffixed(Tag::Upload, world, &rest)
}

/// Returns the range `[start, end)` of all records of an upload.
pub(crate) fn all_of(world: WorldId, id: &str) -> (Bytes, Bytes) {
    let end = [id.as_bytes(), &[u8::MAX]].concat();
    (layout::suffixed(Tag::Upload, world, id.as_bytes()), layout::suffixed(Tag::Upload, world, &end))
}

/// How many records are read at a time.
pub(crate) const PAGE: usize = 512;

fn encode(info: &UploadInfo) -> Bytes {
    let mut w = Writer::new();
    w.u8(1).bytes(&info.key).var(info.created);
    w.u8(info.options.algorithm.map_or(0, ChecksumAlgorithm::to_u8)).u8(u8::from(info.options.composite));
    known::meta(&mut w, &info.options.meta);
    w.0.into()
}

fn decode(id: &str, value: &Bytes) -> Result<UploadInfo> {
    let mut r = Reader::new(value);
    record::version(&mut r)?;
    let (key, created) = (Bytes::copy_from_slice(r.bytes()?), r.var()?);
    let algorithm = match r.u8()? {
        0 => None,
        n => Some(known::read_algorithm(n)?),
    };
    let composite = r.u8()? == 1;
    let meta = known::read_meta(&mut r)?;
    r.end()?;
    Ok(UploadInfo { key, id: id.to_owned(), created, options: UploadOptions { meta, algorithm, composite } })
}

pub(crate) fn no_upload(id: &str) -> Error {
    Error::not_found(format!("upload {id:?} of that key does not exist; it may have been completed or aborted"))
}

impl Session {
    /// Begins an upload, durable on return; returns its id.
    ///
    /// # Errors
    /// Those of [`Session::put`] for the key.
    pub fn create_upload(&self, key: &[u8], options: &UploadOptions) -> Result<String> {
        self.need_now()?;
        self.may(Action::PutObject, key)?;
        need_key(key)?;
        let created = self.store.env.now();
        let id = format!("{created:016x}{}", self.store.env.token(16));
        let info = UploadInfo { key: Bytes::copy_from_slice(key), id, created, options: options.clone() };
        let at = place(self.world.id, &info.id, Piece::Upload, 0);
        let mut batch = self.upload_batch();
        batch.require(at.clone(), Expect::Absent);
        batch.put(at, encode(&info));
        self.store.submit_for(&self.world, Some(&self.who), batch, Durability::Durable)?.wait()?;
        Ok(info.id)
    }

    /// Starts a batch that changes uploads: the world is alive, the key is as it was presented.
    pub(crate) fn upload_batch(&self) -> Batch {
        let mut batch = Batch::new();
        batch.require(layout::of(Tag::Alive, self.world.id), Expect::Present);
        require_key(&mut batch, Some(&self.who));
        batch
    }

    /// Returns an upload in progress.
    ///
    /// # Errors
    /// `NotFound`, also when the upload is of another key.
    pub fn upload(&self, key: &[u8], upload: &str) -> Result<UploadInfo> {
        self.may(Action::ListMultipartUploadParts, key)?;
        Ok(self.find_upload(key, upload)?.0)
    }

    /// Returns an upload and its record's bytes; whether it may be seen was asked before.
    pub(crate) fn find_upload(&self, key: &[u8], id: &str) -> Result<(UploadInfo, Bytes)> {
        if id.len() != ID {
            return Err(no_upload(id));
        }
        let value = self.store.meta.get(&place(self.world.id, id, Piece::Upload, 0))?.ok_or_else(|| no_upload(id))?;
        let info = decode(id, &value)?;
        if info.key != key {
            return Err(no_upload(id));
        }
        Ok((info, value))
    }

    /// Lists uploads in progress whose key starts with `prefix`, by key and id, after the pair `after`; and whether more are left.
    ///
    /// # Errors
    /// The store failed.
    pub fn uploads(
        &self,
        prefix: &[u8],
        after: Option<(Bytes, String)>,
        limit: usize,
    ) -> Result<(Vec<UploadInfo>, bool)> {
        self.may_list(Action::ListBucketMultipartUploads, prefix)?;
        let (mut start, end) = layout::all_of(Tag::Upload, self.world.id);
        let head = start.len();
        let mut found = Vec::new();
        // The upload's own record is the first of its records, so one step an upload passes over all of its parts.
        while let Some((at, value)) = self.store.meta.scan(&start, &end, 1, Order::Up)?.pop() {
            let id = at.get(head..head + ID).and_then(|id| std::str::from_utf8(id).ok());
            let id = id.ok_or_else(|| Error::corrupt("an upload's key has the wrong length"))?;
            start = all_of(self.world.id, id).1;
            if at.len() != head + ID + 1 {
                continue;
            }
            let info = decode(id, &value)?;
            let later = after.as_ref().is_none_or(|(key, id)| (&info.key, &info.id) > (key, id));
            if info.key.starts_with(prefix) && later {
                found.push(info);
            }
        }
        found.sort_unstable_by(|a, b| (&a.key, &a.id).cmp(&(&b.key, &b.id)));
        let more = found.len() > limit;
        found.truncate(limit);
        Ok((found, more))
    }

    /// Gives an upload up, durable on return; its parts' space comes back with the next sweep.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn abort_upload(&self, key: &[u8], upload: &str) -> Result<()> {
        self.need_now()?;
        self.may(Action::AbortMultipartUpload, key)?;
        let (_, value) = self.find_upload(key, upload)?;
        let head = self.world.head.lock();
        let mut batch = self.upload_batch();
        batch.require(place(self.world.id, upload, Piece::Upload, 0), Expect::Value(value));
        self.store.end_upload(self.world.id, upload, &mut batch)?;
        let ticket = self.store.submit_for(&self.world, Some(&self.who), batch, Durability::Durable);
        drop(head);
        self.upload_outcome(key, upload, ticket)?.wait()?;
        Ok(())
    }

    /// Says, when a commit was refused, whether that was because the upload has ended.
    pub(crate) fn upload_outcome<T>(&self, key: &[u8], id: &str, outcome: Result<T>) -> Result<T> {
        match outcome {
            Err(e) if e.kind() == ErrorKind::Conflict => {
                self.find_upload(key, id)?;
                Err(e)
            }
            other => other,
        }
    }
}

impl Store {
    /// Adds the removal of all records of an upload. The caller holds the lock of the world's head.
    pub(crate) fn end_upload(&self, world: WorldId, id: &str, batch: &mut Batch) -> Result<()> {
        let (mut start, end) = all_of(world, id);
        loop {
            let page = self.meta.scan(&start, &end, PAGE, Order::Up)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            start = [&last[..], b"\0"].concat().into();
            for (key, _) in page {
                batch.delete(key);
            }
        }
    }

    /// Gives up the uploads that were begun too long ago; returns how many.
    pub(crate) fn expire_uploads(self: &Arc<Self>) -> Result<u64> {
        let horizon = self.env.now().saturating_sub(self.options.uploads.as_nanos() as u64);
        let (mut start, end) = layout::all(Tag::Upload);
        let mut expired = 0;
        // The upload's own record is the first of its records, so one step an upload passes over all of its parts.
        while let Some((at, value)) = self.meta.scan(&start, &end, 1, Order::Up)?.pop() {
            let (world, rest) = layout::rest(&at).split_at_checked(8).unwrap_or_default();
            let world = WorldId(crate::view::number(world));
            let id = rest.get(..ID).and_then(|id| std::str::from_utf8(id).ok());
            let id = id.ok_or_else(|| Error::corrupt("an upload's key has the wrong length"))?;
            start = all_of(world, id).1;
            if rest.len() == ID + 1 && decode(id, &value)?.created <= horizon && self.expire_upload(world, id, value)? {
                expired += 1;
            }
        }
        Ok(expired)
    }

    fn expire_upload(self: &Arc<Self>, world: WorldId, id: &str, record: Bytes) -> Result<bool> {
        let world = match self.world(world) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let _head = world.head.lock();
        let mut batch = Batch::new();
        batch.require(place(world.id, id, Piece::Upload, 0), Expect::Value(record));
        self.end_upload(world.id, id, &mut batch)?;
        match self.meta.commit(batch, Durability::Soon) {
            Ok(_) => Ok(true),
            // Completed or given up meanwhile.
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}
