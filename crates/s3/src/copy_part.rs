//! A range of an object copied into a part of an upload. No byte is written; bytes are read only where the upload wants a checksum of
//! them that nobody has.

use crate::auth::Asked;
use crate::body::PIECE;
use crate::conditions::{Span, parse_span};
use crate::copy::{From, both, source, source_holds};
use crate::digest::Digests;
use crate::errors::{About, error, of};
use crate::meta::{etag, stamp, sums};
use crate::multipart::{DEFAULT, part_number};
use crate::names::key_of;
use crate::verbs::Verbs;
use crate::versions::object;
use mw_model::ErrorKind;
use mw_world::{ObjectInfo, PartCopy, PartInfo, PartSaid, UploadInfo};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// How often a source that keeps changing is looked at again.
const TRIES: usize = 8;

/// Copies a range of an object into a part.
pub(crate) async fn upload_part_copy(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: UploadPartCopyInput,
) -> S3Result<S3Response<UploadPartCopyOutput>> {
    let source = source(&asked)?;
    let key = key_of(&input.key)?;
    let number = part_number(input.part_number)?;
    let range = input.copy_source_range.as_deref().map(source_range).transpose()?;
    let door = verbs.clone();
    let (part, source_id) = verbs
        .pool
        .run(move || {
            let (to, from) = both(&door, &asked, &input.bucket, &source)?;
            let upload = to.upload(&key, &input.upload_id).map_err(|e| of(&e, About::Upload))?;
            for attempt in 1.. {
                let (found, source_id) = source_holds(&asked, &from, &source)?;
                if range.is_some_and(|(_, last)| last >= found.size) {
                    return Err(error(
                        S3ErrorCode::InvalidArgument,
                        format!("Range specified is not valid for source object of size: {}", found.size),
                    ));
                }
                let said = said(&from, &source.key, &found, range, &upload)?;
                let copy = PartCopy { version: from.version, range, said };
                match to.copy_part(&from.session, &source.key, &copy, &key, &input.upload_id, number) {
                    Err(e) if e.kind() == ErrorKind::Busy && attempt < TRIES => {}
                    done => return Ok((done.map_err(|e| of(&e, About::Key))?, source_id.or(source.version))),
                }
            }
            Err(error(S3ErrorCode::SlowDown, "Please reduce your request rate."))
        })
        .await?;
    Ok(answer(&part, source_id))
}

fn answer(part: &PartInfo, source_id: Option<String>) -> S3Response<UploadPartCopyOutput> {
    let mut result = CopyPartResult {
        e_tag: Some(etag(&part.etag)),
        last_modified: Some(stamp(part.modified)),
        ..CopyPartResult::default()
    };
    sums!(result, &part.checksums);
    S3Response::new(UploadPartCopyOutput {
        copy_part_result: Some(result),
        copy_source_version_id: source_id,
        ..UploadPartCopyOutput::default()
    })
}

/// Says what is known of the bytes to be copied: what the source knows of itself when all of it is copied, or what reading them shows
/// when the upload was begun with a checksum.
fn said(
    from: &From,
    key: &[u8],
    found: &ObjectInfo,
    range: Option<(u64, u64)>,
    upload: &UploadInfo,
) -> S3Result<Option<PartSaid>> {
    let whole = range.is_none_or(|(first, last)| first == 0 && last + 1 == found.size);
    let wanted = upload.options.algorithm.unwrap_or(DEFAULT);
    let md5 = found.etag.len() == 32 && found.etag.bytes().all(|b| b.is_ascii_hexdigit());
    let known = found.checksums.iter().find(|sum| sum.algorithm == wanted && !sum.composite);
    if let Some(sum) = known.filter(|_| whole && md5) {
        return Ok(Some(PartSaid {
            ino: found.ino,
            content: found.version,
            etag: found.etag.clone(),
            checksums: vec![sum.clone()],
        }));
    }
    if upload.options.algorithm.is_none() {
        return Ok(None);
    }
    let object = object(&from.session, key, from.version)?;
    let mut digests = Digests::new(&[wanted]);
    let (mut at, end) = range.map_or((0, object.info.size), |(first, last)| (first, last + 1));
    while at < end {
        let piece = object.read(at, PIECE.min((end - at) as usize)).map_err(|e| of(&e, About::Key))?;
        if piece.is_empty() {
            break;
        }
        at += piece.len() as u64;
        digests.update(&piece);
    }
    let digested = digests.finish();
    Ok(Some(PartSaid {
        ino: object.info.ino,
        content: object.info.version,
        etag: digested.etag(),
        checksums: digested.checksums,
    }))
}

/// Reads a range of the source: unlike a `Range`, it must name both ends.
fn source_range(value: &str) -> S3Result<(u64, u64)> {
    match parse_span(value) {
        Some(Span::From(first, Some(last))) => Ok((first, last)),
        _ => Err(error(
            S3ErrorCode::InvalidArgument,
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based \
             offsets of the first and last bytes to copy",
        )),
    }
}
