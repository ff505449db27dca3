//! Multipart uploads: start, parts, complete, abort.
//!
//! The checksum of the object is made from those of its parts, never by reading them again: CRCs of a full object are combined
//! mathematically, composite ones are digests of digests.

use crate::auth::Asked;
use crate::body::{Received, expected, receive};
use crate::conditions::read;
use crate::digest::{ALGORITHMS, Claims, etag_of_parts, header, name, named, of_parts};
use crate::errors::{About, bad_digest, error, of, part_order};
use crate::meta::{algorithm, etag, of_request, stamp, sum, sum_type, sums, sums_typed};
use crate::names::key_of;
use crate::owner::{initiator, owner};
use crate::verbs::Verbs;
use crate::versions::id_of;
use mw_world::{
    Checksum as Sum, ChecksumAlgorithm as Algorithm, ObjectInfo, PartInfo, Session, UploadInfo, UploadOptions,
};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most parts of one upload (AWS: 10,000).
const PARTS_MAX: i32 = 10_000;
/// The most parts of one page.
const PAGE_MAX: usize = 1000;

/// What an upload without a declared algorithm computes, as AWS does.
pub(crate) const DEFAULT: Algorithm = Algorithm::Crc64Nvme;

/// Checks a part's number.
///
/// # Errors
/// `InvalidArgument` outside 1 to 10,000.
pub(crate) fn part_number(number: i32) -> S3Result<u32> {
    match number {
        1..=PARTS_MAX => Ok(number as u32),
        _ => Err(error(S3ErrorCode::InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive")),
    }
}

/// Decides whether checksums are composite (AWS, "Checking object integrity", table of types).
fn composite(algorithm: Algorithm, kind: Option<&str>) -> S3Result<bool> {
    let impossible = || {
        error(
            S3ErrorCode::InvalidRequest,
            format!(
                "The {} checksum type cannot be used with the {} checksum algorithm.",
                kind.unwrap_or_default(),
                name(algorithm)
            ),
        )
    };
    match (algorithm, kind) {
        (_, Some(kind)) if !matches!(kind, "COMPOSITE" | "FULL_OBJECT") => Err(impossible()),
        (Algorithm::Crc64Nvme, Some("COMPOSITE")) | (Algorithm::Sha1 | Algorithm::Sha256, Some("FULL_OBJECT")) => {
            Err(impossible())
        }
        (Algorithm::Crc64Nvme, _) => Ok(false),
        (Algorithm::Sha1 | Algorithm::Sha256, _) => Ok(true),
        (Algorithm::Crc32 | Algorithm::Crc32c, kind) => Ok(kind != Some("FULL_OBJECT")),
    }
}

/// Starts an upload.
pub(crate) async fn create_multipart_upload(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: CreateMultipartUploadInput,
) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
    let key = key_of(&input.key)?;
    let declared = input.checksum_algorithm.as_ref().map(|a| named(a.as_str())).transpose()?;
    let kind = input.checksum_type.as_ref().map(ChecksumType::as_str);
    if kind.is_some() && declared.is_none() {
        return Err(error(
            S3ErrorCode::InvalidRequest,
            "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
        ));
    }
    let of_parts = declared.map(|a| composite(a, kind)).transpose()?;
    let meta = of_request(&asked, input.metadata)?;
    let options = UploadOptions { meta, algorithm: declared, composite: of_parts.unwrap_or(false) };
    let id = verbs
        .within(&asked, &input.bucket, move |s| s.create_upload(&key, &options).map_err(|e| of(&e, About::Key)))
        .await?;
    Ok(S3Response::new(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(id),
        checksum_algorithm: declared.map(algorithm),
        checksum_type: of_parts.map(sum_type),
        ..CreateMultipartUploadOutput::default()
    }))
}

/// Takes a part.
pub(crate) async fn upload_part(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: UploadPartInput,
) -> S3Result<S3Response<UploadPartOutput>> {
    let key = key_of(&input.key)?;
    let number = part_number(input.part_number)?;
    let (at, id) = (key.clone(), input.upload_id.clone());
    let (session, upload, staged) = verbs
        .within(&asked, &input.bucket, move |session| {
            let staged = session.stage().map_err(|e| of(&e, About::Key))?;
            let upload = session.upload(&at, &id).map_err(|e| of(&e, About::Upload))?;
            Ok((session, upload, staged))
        })
        .await?;
    expected(&asked)?;
    let sent = Claims::of(&asked.headers)?.sent();
    if let (Some(declared), Some(sent)) = (upload.options.algorithm, sent)
        && declared != sent
    {
        return Err(error(
            S3ErrorCode::InvalidRequest,
            format!(
                "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
                name(declared).to_ascii_lowercase(),
                name(sent).to_ascii_lowercase()
            ),
        ));
    }
    let always = upload.options.algorithm.unwrap_or(DEFAULT);
    let Received { staged, digested } = receive(verbs, staged, input.body, &asked, Some(always), &[]).await?;
    let tag = digested.etag();
    // The client is told what it sent or what the upload declared, not what is computed for later.
    let told: Vec<Sum> = digested
        .checksums
        .iter()
        .filter(|c| Some(c.algorithm) == sent || Some(c.algorithm) == upload.options.algorithm)
        .cloned()
        .collect();
    let mut output = UploadPartOutput { e_tag: Some(etag(&tag)), ..UploadPartOutput::default() };
    sums!(output, &told);
    verbs
        .pool
        .run(move || {
            session
                .put_part(&key, &input.upload_id, number, staged, &tag, digested.checksums)
                .map_err(|e| of(&e, About::Upload))
        })
        .await?;
    Ok(S3Response::new(output))
}

/// Forgets an upload and its parts.
pub(crate) async fn abort_multipart_upload(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: AbortMultipartUploadInput,
) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
    let key = key_of(&input.key)?;
    verbs
        .within(&asked, &input.bucket, move |s| {
            s.abort_upload(&key, &input.upload_id).map_err(|e| of(&e, About::Upload))
        })
        .await?;
    Ok(S3Response::new(AbortMultipartUploadOutput::default()))
}

/// Lists the parts that have arrived.
pub(crate) async fn list_parts(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: ListPartsInput,
) -> S3Result<S3Response<ListPartsOutput>> {
    let key = key_of(&input.key)?;
    let number = |n: i32| {
        u32::try_from(n).map_err(|_| error(S3ErrorCode::InvalidArgument, "A marker and a limit cannot be negative"))
    };
    let after = number(input.part_number_marker.unwrap_or(0))?;
    let limit = (number(input.max_parts.unwrap_or(PAGE_MAX as i32))? as usize).min(PAGE_MAX);
    let id = input.upload_id.clone();
    let (upload, parts, more) = verbs
        .within(&asked, &input.bucket, move |session| {
            let upload = session.upload(&key, &id).map_err(|e| of(&e, About::Upload))?;
            let (parts, more) = match limit {
                0 => (Vec::new(), false),
                limit => session.parts(&key, &id, after, limit).map_err(|e| of(&e, About::Upload))?,
            };
            Ok((upload, parts, more))
        })
        .await?;
    let last = parts.last().map_or(after, |p| p.number);
    Ok(S3Response::new(ListPartsOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        part_number_marker: Some(after as i32),
        next_part_number_marker: Some(last as i32),
        max_parts: Some(limit as i32),
        is_truncated: Some(more),
        initiator: Some(initiator()),
        owner: Some(owner()),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        checksum_algorithm: upload.options.algorithm.map(algorithm),
        checksum_type: upload.options.algorithm.map(|_| sum_type(upload.options.composite)),
        parts: Some(parts.iter().map(|p| part(p, &upload)).collect()),
        ..ListPartsOutput::default()
    }))
}

fn part(info: &PartInfo, upload: &UploadInfo) -> Part {
    let mut part = Part {
        part_number: Some(info.number as i32),
        e_tag: Some(etag(&info.etag)),
        size: Some(info.size as i64),
        last_modified: Some(stamp(info.modified)),
        ..Part::default()
    };
    if upload.options.algorithm.is_some() {
        sums!(part, &info.checksums);
    }
    part
}

/// Makes the parts an object.
pub(crate) async fn complete_multipart_upload(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: CompleteMultipartUploadInput,
) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
    let key = key_of(&input.key)?;
    let named = input.multipart_upload.and_then(|m| m.parts).unwrap_or_default();
    let location = location(verbs, &asked, &input.bucket, &input.key);
    let plan = Plan { named, size: input.mpu_object_size, kind: input.checksum_type };
    let (conditions, id) = (read(&asked.headers, ""), input.upload_id);
    let caller = Arc::clone(&asked);
    let (info, version_id) = verbs
        .within(&asked, &input.bucket, move |session| {
            let complete = || {
                let upload = session.upload(&key, &id).map_err(|e| of(&e, About::Upload))?;
                let Made { parts, etag, checksums } = plan.make(&session, &upload, &caller)?;
                let made = session.complete_upload(&key, &id, &parts, &etag, checksums, &conditions);
                made.map_err(|e| of(&e, About::Upload))
            };
            let info = match complete() {
                // Who lost the answer asks again, and hears what it said (AWS does the same).
                Err(e) if *e.code() == S3ErrorCode::NoSuchUpload => {
                    let made = session.completed(&key, &id).map_err(|e| of(&e, About::Upload))?;
                    made.filter(|info| plan.is_of(info)).ok_or(e)?
                }
                done => done?,
            };
            let id = id_of(&session, &info);
            Ok((info, id))
        })
        .await?;
    let mut output = CompleteMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        location: Some(location),
        e_tag: Some(etag(&info.etag)),
        version_id,
        ..CompleteMultipartUploadOutput::default()
    };
    sums_typed!(output, &info.checksums);
    Ok(S3Response::new(output))
}

fn location(verbs: &Verbs, asked: &Asked, bucket: &str, key: &str) -> String {
    let base = verbs.base(asked);
    format!("{base}/{bucket}/{}", crate::names::percent(key))
}

/// What the client says the object is.
struct Plan {
    named: Vec<CompletedPart>,
    size: Option<i64>,
    kind: Option<ChecksumType>,
}

/// What the engine is asked to make.
struct Made {
    parts: Vec<(u32, String)>,
    etag: String,
    checksums: Vec<Sum>,
}

impl Plan {
    /// Compares what the client says with the parts that are there.
    fn make(&self, session: &Session, upload: &UploadInfo, asked: &Asked) -> S3Result<Made> {
        let parts = self.in_order()?;
        let there = all_parts(session, upload)?;
        let mut chosen = Vec::with_capacity(parts.len());
        for ((number, tag), claimed) in parts.iter().zip(&self.named) {
            let found = there.get(number).filter(|p| p.etag == *tag).ok_or_else(no_such_part)?;
            if ALGORITHMS
                .iter()
                .any(|a| claim(claimed, *a).is_some_and(|c| sum(&found.checksums, *a).is_some_and(|s| s != *c)))
            {
                return Err(no_such_part());
            }
            chosen.push(found);
        }
        if self.size.is_some_and(|size| size as u64 != chosen.iter().map(|p| p.size).sum::<u64>()) {
            return Err(error(
                S3ErrorCode::InvalidRequest,
                "The x-amz-mp-object-size header does not match the parts.",
            ));
        }
        let checksums = self.checksum(upload, &chosen, asked)?.into_iter().collect();
        let etag = etag_of_parts(parts.iter().map(|(_, tag)| tag.as_str()));
        Ok(Made { parts, etag, checksums })
    }

    /// Whether an object is made of the parts as named.
    fn is_of(&self, info: &ObjectInfo) -> bool {
        self.in_order().is_ok_and(|parts| etag_of_parts(parts.iter().map(|(_, tag)| tag.as_str())) == info.etag)
    }

    /// Returns the parts as named, which must ascend.
    fn in_order(&self) -> S3Result<Vec<(u32, String)>> {
        let malformed = || {
            error(
                S3ErrorCode::MalformedXML,
                "The XML you provided was not well-formed or did not validate against our published schema",
            )
        };
        if self.named.is_empty() {
            return Err(malformed());
        }
        let mut parts: Vec<(u32, String)> = Vec::with_capacity(self.named.len());
        for part in &self.named {
            let number = part_number(part.part_number.ok_or_else(malformed)?)?;
            if parts.last().is_some_and(|(before, _)| *before >= number) {
                return Err(part_order());
            }
            let tag = part.e_tag.as_ref().ok_or_else(malformed)?.value().trim_matches('"').to_owned();
            parts.push((number, tag));
        }
        Ok(parts)
    }

    /// Makes the checksum of the object and compares it with the one that the client expects.
    fn checksum(&self, upload: &UploadInfo, parts: &[&PartInfo], asked: &Asked) -> S3Result<Option<Sum>> {
        let expected = ALGORITHMS.into_iter().find_map(|a| Some((a, asked.header(header(a))?)));
        let algorithm = upload.options.algorithm.or(expected.map(|(a, _)| a)).unwrap_or(DEFAULT);
        let kind = self.kind.as_ref().map(ChecksumType::as_str);
        let of_each = match upload.options.algorithm {
            Some(_) => upload.options.composite,
            None => composite(algorithm, kind)?,
        };
        if kind.is_some_and(|k| (k == ChecksumType::COMPOSITE) != of_each) {
            return Err(error(
                S3ErrorCode::InvalidRequest,
                "The upload was created with another checksum type than the one that was given to complete it.",
            ));
        }
        let sums: Vec<_> = parts.iter().map(|p| (sum(&p.checksums, algorithm), p.size)).collect();
        let sums: Vec<_> = sums.iter().map(|(s, size)| (s.as_deref(), *size)).collect();
        let made = of_parts(algorithm, of_each, &sums);
        match (expected, &made) {
            (None, _) => {}
            (Some((a, value)), Some(made)) if a == made.algorithm && same(value, &made.value) => {}
            (Some((a, _)), Some(_)) => return Err(bad_digest(name(a))),
            (Some(_), None) => {
                return Err(error(
                    S3ErrorCode::InvalidRequest,
                    "The checksum of the object cannot be made from its parts: one was copied or has no such checksum.",
                ));
            }
        }
        Ok(made)
    }
}

/// A composite value may be given without the number of parts.
fn same(expected: &str, made: &str) -> bool {
    expected == made || made.split_once('-').is_some_and(|(digest, _)| digest == expected)
}

fn claim(part: &CompletedPart, algorithm: Algorithm) -> Option<&String> {
    match algorithm {
        Algorithm::Crc32 => part.checksum_crc32.as_ref(),
        Algorithm::Crc32c => part.checksum_crc32c.as_ref(),
        Algorithm::Sha1 => part.checksum_sha1.as_ref(),
        Algorithm::Sha256 => part.checksum_sha256.as_ref(),
        Algorithm::Crc64Nvme => part.checksum_crc64nvme.as_ref(),
    }
}

fn no_such_part() -> s3s::S3Error {
    error(
        S3ErrorCode::InvalidPart,
        "One or more of the specified parts could not be found. The part might not have been uploaded, or the specified entity \
         tag might not have matched the part's entity tag.",
    )
}

fn all_parts(session: &Session, upload: &UploadInfo) -> S3Result<BTreeMap<u32, PartInfo>> {
    let (mut all, mut after) = (BTreeMap::new(), 0);
    loop {
        let (page, more) =
            session.parts(&upload.key, &upload.id, after, PAGE_MAX).map_err(|e| of(&e, About::Upload))?;
        after = page.last().map_or(after, |p| p.number);
        let ended = page.is_empty() || !more;
        all.extend(page.into_iter().map(|p| (p.number, p)));
        if ended {
            return Ok(all);
        }
    }
}
