//! Parts of an upload: put, copied, listed; and what the sweep must keep for them.
//!
//! Invariant: a part is two records of one commit: what it is, and where its bytes are. The bytes belong to the world and their
//! claim is in that commit too.

use super::find::found;
use super::lend::Lent;
use super::stage::Staged;
use super::upload::{ID, PAGE, Piece, place};
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::object::Checksum;
use crate::object::known;
use crate::record::{self, Extent};
use crate::session::Session;
use crate::store::Store;
use crate::versioning::VersionId;
use bytes::Bytes;
use mw_meta::{Durability, Expect, Order};
use mw_model::codec::{Reader, Writer};
use mw_model::policy::Action;
use mw_model::{ErrorKind, Hash, Ino, Version};
use mw_segments::BlobRef;
use mw_tree::Value;

/// The greatest number of a part (AWS: 10,000).
const MAX_NUMBER: u32 = 10_000;

/// A part of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartInfo {
    /// Its number, 1 to 10,000.
    pub number: u32,
    /// Its entity tag, without quotes.
    pub etag: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was put, in UNIX nanoseconds.
    pub modified: u64,
    /// Checksums of its content.
    pub checksums: Vec<Checksum>,
}

/// What of an object is copied into a part.
#[derive(Debug, Clone, Default)]
pub struct PartCopy {
    /// The version of the source; none: what is there.
    pub version: Option<VersionId>,
    /// The first and the last byte; none: all of it.
    pub range: Option<(u64, u64)>,
    /// What is known of these bytes; none: nothing.
    pub said: Option<PartSaid>,
}

/// What is known of the bytes of a part, while the source is what it was.
#[derive(Debug, Clone)]
pub struct PartSaid {
    /// The source's inode.
    pub ino: Ino,
    /// The version of its content.
    pub content: Version,
    /// The entity tag of the part.
    pub etag: String,
    /// Checksums of the part.
    pub checksums: Vec<Checksum>,
}

/// A part with its content.
pub(crate) struct Part {
    pub info: PartInfo,
    /// The record of what it is: a commit that uses the part requires it unchanged.
    pub record: Bytes,
    /// From the start of the part.
    pub extents: Vec<(u64, Extent)>,
}

impl PartInfo {
    fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).str(&self.etag).var(self.size).var(self.modified);
        known::checksums(&mut w, &self.checksums);
        w.0.into()
    }

    pub(crate) fn decode(number: u32, value: &[u8]) -> Result<Self> {
        let mut r = Reader::new(value);
        record::version(&mut r)?;
        let (etag, size, modified) = (r.str()?.to_owned(), r.var()?, r.var()?);
        let checksums = known::read_checksums(&mut r)?;
        r.end()?;
        Ok(Self { number, etag, size, modified, checksums })
    }
}

/// Writes where a part's bytes are.
fn encode_content(extents: &[(u64, Extent)]) -> Bytes {
    let mut w = Writer::new();
    w.u8(1).var(extents.len() as u64);
    for (at, extent) in extents {
        let Value { data, locator, weight } = extent.encode();
        w.var(*at).bytes(&data).bytes(&locator).var(weight);
    }
    w.0.into()
}

/// Reads where a part's bytes are: extents from the start of the part.
pub(crate) fn decode_content(value: &Bytes) -> Result<Vec<(u64, Extent)>> {
    let mut r = Reader::new(value);
    record::version(&mut r)?;
    let mut extents = Vec::new();
    for _ in 0..r.var()? {
        let at = r.var()?;
        let (data, locator) = (value.slice_ref(r.bytes()?), value.slice_ref(r.bytes()?));
        let value = Value { data, locator, weight: r.var()? };
        let mut there = Extent::decode(&value)?;
        match (there.next().transpose()?, there.next()) {
            (Some(extent), None) if !extent.is_list() => extents.push((at, extent)),
            _ => return Err(Error::corrupt("a part of an upload holds what none can; run `mw fsck`")),
        }
    }
    r.end()?;
    Ok(extents)
}

fn need_number(number: u32) -> Result<()> {
    if (1..=MAX_NUMBER).contains(&number) {
        return Ok(());
    }
    Err(Error::invalid(format!("a part has a number from 1 to {MAX_NUMBER}, not {number}")))
}

impl Session {
    /// Puts a part, durable on return; one of the same number is replaced.
    ///
    /// # Errors
    /// `NotFound` for an upload that has ended; `Invalid` for a number out of range.
    pub fn put_part(
        &self,
        key: &[u8],
        upload: &str,
        number: u32,
        content: Staged,
        etag: &str,
        checksums: Vec<Checksum>,
    ) -> Result<()> {
        self.need_now()?;
        self.may(Action::PutObject, key)?;
        need_number(number)?;
        let (_, record) = self.find_upload(key, upload)?;
        let whole = content.finish(self, false)?;
        let modified = self.store.env.now();
        let info = PartInfo { number, etag: etag.to_owned(), size: whole.len, modified, checksums };
        let outcome = self.commit_part(upload, &record, &info, &whole.extents, None);
        self.upload_outcome(key, upload, outcome)
    }

    /// Copies an object, or a range of its bytes, into a part, by sharing its extents; durable on return.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a range that is not all in the object, or a number out of range; `Busy` when the source is not what
    /// was said of it any more.
    pub fn copy_part(
        &self,
        from: &Session,
        from_key: &[u8],
        copy: &PartCopy,
        key: &[u8],
        upload: &str,
        number: u32,
    ) -> Result<PartInfo> {
        self.need_now()?;
        self.may(Action::PutObject, key)?;
        from.may(if copy.version.is_some() { Action::GetObjectVersion } else { Action::GetObject }, from_key)?;
        need_number(number)?;
        let (_, record) = self.find_upload(key, upload)?;
        self.borrowing(from, |lent| {
            let (extents, size) = ranged(lent, from, from_key, copy)?;
            let (etag, checksums) = match &copy.said {
                Some(said) => (said.etag.clone(), said.checksums.clone()),
                None => (content_etag(&extents, size), Vec::new()),
            };
            let info = PartInfo { number, etag, size, modified: self.store.env.now(), checksums };
            // A mount's bytes may not be on disk yet, and no entry stands for these.
            self.store.segments.sync()?;
            let outcome = self.commit_part(upload, &record, &info, &extents, Some(lent));
            self.upload_outcome(key, upload, outcome)?;
            Ok(info)
        })
    }

    fn commit_part(
        &self,
        upload: &str,
        record: &Bytes,
        info: &PartInfo,
        extents: &[(u64, Extent)],
        lent: Option<&Lent>,
    ) -> Result<()> {
        let id = self.world.id;
        let mut batch = self.upload_batch();
        batch.require(place(id, upload, Piece::Upload, 0), Expect::Value(record.clone()));
        batch.put(place(id, upload, Piece::Part, info.number), info.encode());
        batch.put(place(id, upload, Piece::Content, info.number), encode_content(extents));
        if let Some(lent) = lent {
            lent.require(extents.iter().any(|(_, extent)| extent.piece.blob().is_some()), &mut batch);
        }
        let mut head = self.world.head.lock();
        self.world.need_alive()?;
        head.claim(&*self.store.segments, self.world.owner, &mut batch);
        let ticket = self.store.submit_for(&self.world, Some(&self.who), batch, Durability::Durable)?;
        head.claims.clear();
        drop(head);
        Ok(ticket.wait()?)
    }

    /// Lists the parts of an upload by number, those after `after`; and whether more are left.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn parts(&self, key: &[u8], upload: &str, after: u32, limit: usize) -> Result<(Vec<PartInfo>, bool)> {
        self.may(Action::ListMultipartUploadParts, key)?;
        self.find_upload(key, upload)?;
        let start = place(self.world.id, upload, Piece::Part, after.saturating_add(1));
        let end = place(self.world.id, upload, Piece::Content, 0);
        let mut found = self.store.meta.scan(&start, &end, limit.saturating_add(1), Order::Up)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let parts = found.iter().map(|(key, value)| PartInfo::decode(number_of(key), value)).collect::<Result<_>>()?;
        Ok((parts, more))
    }

    /// Returns a part.
    pub(crate) fn part(&self, upload: &str, number: u32) -> Result<Option<Part>> {
        let get = |piece| self.store.meta.get(&place(self.world.id, upload, piece, number));
        let (Some(record), Some(content)) = (get(Piece::Part)?, get(Piece::Content)?) else { return Ok(None) };
        let info = PartInfo::decode(number, &record)?;
        Ok(Some(Part { info, record, extents: decode_content(&content)? }))
    }
}

fn number_of(key: &[u8]) -> u32 {
    key.iter().rev().take(4).rev().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// Returns the extents of an object, or of a range of it, from the start of the part that they will be.
fn ranged(lent: &Lent, from: &Session, key: &[u8], copy: &PartCopy) -> Result<(Vec<(u64, Extent)>, u64)> {
    let found = found(&lent.view, from.world.versions(), key, copy.version)?;
    if copy.said.as_ref().is_some_and(|said| (said.ino, said.content) != (found.ino, found.inode.content)) {
        return Err(Error::new(ErrorKind::Busy, "the source changed while it was looked at; try again"));
    }
    let range = copy.range;
    let size = found.info(key).size;
    let (start, end) = match range {
        None => (0, size),
        Some((first, last)) if first <= last && last < size => (first, last + 1),
        Some((first, last)) => {
            return Err(Error::invalid(format!(
                "the range {first}-{last} is not in the source, which has {size} bytes"
            )));
        }
    };
    if start == end {
        return Ok((Vec::new(), 0));
    }
    let extents = lent.view.extents(found.ino, start, end)?.into_iter().map(|(at, extent)| {
        let (from, to) = (at.max(start), (at + u64::from(extent.len)).min(end));
        (from - start, extent.part((from - at) as u32, (to - from) as u32))
    });
    Ok((extents.collect(), end - start))
}

/// Makes an entity tag from content hashes: 32 hexadecimal digits.
fn content_etag(extents: &[(u64, Extent)], size: u64) -> String {
    let mut w = Writer::new();
    w.str("part").var(size);
    for (at, extent) in extents {
        w.var(*at).hash(&extent.piece.hash).var(u64::from(extent.skip)).var(u64::from(extent.len));
    }
    hex::encode(&Hash::of(&w.0).0[..16])
}

/// Shows every blob that an upload in progress refers to.
pub(crate) fn upload_blobs(store: &Store, visit: &mut dyn FnMut(&BlobRef)) -> Result<()> {
    let (mut start, end) = layout::all(Tag::Upload);
    loop {
        let page = store.meta.scan(&start, &end, PAGE, Order::Up)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        start = [&last[..], b"\0"].concat().into();
        for (key, value) in &page {
            // After the tag: the world in eight bytes, the id, the kind.
            if layout::rest(key).get(8 + ID) == Some(&(Piece::Content as u8)) {
                for (_, extent) in decode_content(value)? {
                    if let Some(blob) = extent.piece.blob() {
                        visit(&blob);
                    }
                }
            }
        }
    }
}
