//! An upload made an object: its parts' extents one after another, in one commit that also ends the upload.

use super::conditions::Conditions;
use super::find::{find_object, need_key};
use super::parts::Part;
use super::place::{Attributes, NewObject};
use super::upload::{Piece, UploadInfo, place};
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::object::Known;
use crate::object::{Checksum, ChecksumAlgorithm, ObjectInfo, PartSums};
use crate::record::{Extent, rows};
use crate::session::Session;
use crate::world::Staging;
use bytes::Bytes;
use mw_meta::{Durability, Expect};
use mw_model::policy::Action;

/// The least size of a part that is not the last, in bytes (AWS: 5 MiB).
const MIN_PART: u64 = 5 << 20;

/// The parts of an object to be.
#[derive(Default)]
struct Joined {
    extents: Vec<(u64, Extent)>,
    len: u64,
    sizes: Vec<u64>,
    /// Their checksums, as long as each has one of the upload's algorithm.
    sums: Option<PartSums>,
    /// The parts' records as they were read: the commit requires them unchanged.
    records: Vec<(u32, Bytes)>,
}

impl Session {
    /// Makes the named parts, in their order, the object's content; durable on return, and the upload is gone. No byte is moved.
    ///
    /// # Errors
    /// `NotFound` for an upload that has ended; `Precondition`; `Invalid`, whose text begins with `InvalidPart` (a part that is not
    /// there, or has another entity tag), `InvalidPartOrder` (numbers that do not ascend) or `EntityTooSmall` (a part of less than
    /// 5 MiB that is not the last).
    pub fn complete_upload(
        &self,
        key: &[u8],
        upload: &str,
        parts: &[(u32, String)],
        etag: &str,
        checksums: Vec<Checksum>,
        conditions: &Conditions,
    ) -> Result<ObjectInfo> {
        self.need_now()?;
        let permit = self.may(Action::PutObject, key)?;
        need_key(key)?;
        let (UploadInfo { options, .. }, record) = self.find_upload(key, upload)?;
        // Before the lists are stored, and again in the commit.
        conditions.hold(&self.view(), key)?;
        let joined = self.join(upload, parts, options.algorithm)?;
        // The lists of its pieces are on disk before an entry refers to them, and no sweep takes them till then.
        let _staging = Staging::begin(&self.world);
        let extents = self.store.content.listed(self.world.owner, joined.extents)?;
        if extents.iter().any(|(_, extent)| extent.is_list()) {
            self.store.segments.sync()?;
        }
        let known = Known {
            etag: etag.to_owned(),
            checksums,
            parts: joined.sizes,
            upload: upload.to_owned(),
            sums: joined.sums,
            meta: options.meta,
            ..Known::default()
        };
        let new = NewObject {
            extents: rows(&extents),
            len: joined.len,
            known,
            asked: Attributes::default(),
            inherited: Attributes::default(),
        };
        let id = self.world.id;
        let outcome = self.change_with(permit, Verb::Put, Durability::Durable, |txn| {
            conditions.hold(&txn.view, key)?;
            txn.meta.require(place(id, upload, Piece::Upload, 0), Expect::Value(record));
            for (number, record) in joined.records {
                txn.meta.require(place(id, upload, Piece::Part, number), Expect::Value(record));
            }
            self.store.end_upload(id, upload, &mut txn.meta)?;
            txn.path = Some(Bytes::copy_from_slice(key));
            Ok(txn.place(key, new)?.info(key))
        });
        self.upload_outcome(key, upload, outcome)
    }

    /// Returns the object that an upload became, for whoever lost the answer and asks again; none when another stands under its key by now,
    /// or none does. What is returned is durable.
    ///
    /// # Errors
    /// Those of a sync.
    pub fn completed(&self, key: &[u8], upload: &str) -> Result<Option<ObjectInfo>> {
        self.need_now()?;
        self.may(Action::PutObject, key)?;
        let found = find_object(&self.view(), key)?.filter(|found| !upload.is_empty() && found.known.upload == upload);
        let Some(found) = found else { return Ok(None) };
        // It may be seen before whoever completed it has heard that it lasts.
        self.sync()?;
        Ok(Some(found.info(key)))
    }

    /// Reads the named parts and lays them end to end.
    fn join(&self, upload: &str, parts: &[(u32, String)], algorithm: Option<ChecksumAlgorithm>) -> Result<Joined> {
        if parts.is_empty() {
            return Err(Error::invalid("InvalidPart: an object has at least one part"));
        }
        if let Some(pair) = parts.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(Error::invalid(format!(
                "InvalidPartOrder: part {} comes before part {}",
                pair[0].0, pair[1].0
            )));
        }
        let sums = algorithm.map(|algorithm| PartSums { algorithm, values: Vec::new() });
        let mut joined = Joined { sums, ..Joined::default() };
        for (i, (number, etag)) in parts.iter().enumerate() {
            let Part { info, record, extents } = self
                .part(upload, *number)?
                .filter(|part| part.info.etag == etag.trim_matches('"'))
                .ok_or_else(|| no_part(*number, etag))?;
            let size = info.size;
            if size < MIN_PART && i + 1 < parts.len() {
                return Err(Error::invalid(format!(
                    "EntityTooSmall: part {number} has {size} bytes; all but the last have at least {MIN_PART}"
                )));
            }
            let start = joined.len;
            joined.extents.extend(extents.into_iter().map(|(at, extent)| (start + at, extent)));
            joined.len += size;
            joined.sizes.push(size);
            joined.sums = joined.sums.and_then(|mut sums| {
                let sum = info.checksums.into_iter().find(|sum| sum.algorithm == sums.algorithm)?;
                sums.values.push(sum.value);
                Some(sums)
            });
            joined.records.push((*number, record));
        }
        Ok(joined)
    }
}

fn no_part(number: u32, etag: &str) -> Error {
    Error::invalid(format!("InvalidPart: there is no part {number} with the entity tag {etag:?}; list the parts"))
}
