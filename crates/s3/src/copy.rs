//! Copies: of an object, which shares its extents, and of a range of one into a part of an upload.
//!
//! The source is a second resource: its world is opened for the caller like any other, so that a world that the key may not read gives
//! the one refusal here too.

use crate::auth::Asked;
use crate::conditions::{Span, check, parse_span, read};
use crate::errors::{About, error, of, precondition};
use crate::meta::{etag, of_request, stamp, sums, sums_typed};
use crate::multipart::part_number;
use crate::names::key_of;
use crate::source::Source;
use crate::verbs::Verbs;
use mw_world::{CopyOptions, ObjectInfo, ObjectMeta, Session};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// The prefix of the conditions that are about the source.
const OF_SOURCE: &str = "x-amz-copy-source-";

/// Reads the copy source. Whoever names none gets an answer that says so.
fn source(asked: &Asked) -> S3Result<Source> {
    Source::parse(asked.headers.get("x-amz-copy-source").map(|v| v.as_bytes()).unwrap_or_default())
}

/// Opens both worlds, the target first.
fn both(verbs: &Verbs, asked: &Asked, bucket: &str, source: &Source) -> S3Result<(Session, Session)> {
    let to = verbs.session(asked, bucket, None)?;
    let from = verbs.session(asked, &source.bucket, source.version.as_deref())?;
    Ok((to, from))
}

/// A condition on the source that does not hold is always a failed precondition (AWS, CopyObject).
fn source_holds(asked: &Asked, from: &Session, source: &Source) -> S3Result<ObjectInfo> {
    let conditions = read(&asked.headers, OF_SOURCE);
    let info = from.head(&source.key).map_err(|e| of(&e, About::Key))?;
    check(&conditions, &info.etag, info.modified).map_err(|_| precondition())?;
    Ok(info)
}

/// Copies an object, in constant time.
pub(crate) async fn copy_object(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: CopyObjectInput,
) -> S3Result<S3Response<CopyObjectOutput>> {
    let source = source(&asked)?;
    let key = key_of(&input.key)?;
    let replace = directive(input.metadata_directive.as_ref().map(MetadataDirective::as_str))?;
    let replace_tags = directive(input.tagging_directive.as_ref().map(TaggingDirective::as_str))?;
    let meta = of_request(&asked, input.metadata)?;
    let itself = source.bucket == input.bucket && source.key == key && source.version.is_none();
    if itself && !replace && !replace_tags && meta.storage_class.is_none() {
        return Err(error(
            S3ErrorCode::InvalidRequest,
            "This copy request is illegal because it is trying to copy an object to itself without changing the object's \
             metadata, storage class, website redirect location or encryption attributes.",
        ));
    }
    // A storage class is set on the copy even when the rest is taken from the source.
    let class = meta.storage_class.clone().filter(|_| !replace);
    let mut options = CopyOptions {
        replace_tags: replace_tags.then(|| meta.tags.clone()),
        replace: replace.then_some(meta),
        source: read(&asked.headers, OF_SOURCE),
        conditions: read(&asked.headers, ""),
    };
    let (door, version) = (verbs.clone(), source.version.clone());
    let info = verbs
        .pool
        .run(move || {
            let (to, from) = both(&door, &asked, &input.bucket, &source)?;
            let found = source_holds(&asked, &from, &source)?;
            if class.is_some() {
                options.replace = Some(ObjectMeta { storage_class: class, ..found.meta });
            }
            to.copy(&from, &source.key, &key, &options).map_err(|e| of(&e, About::Key))
        })
        .await?;
    let mut result = CopyObjectResult {
        e_tag: Some(etag(&info.etag)),
        last_modified: Some(stamp(info.modified)),
        ..CopyObjectResult::default()
    };
    sums_typed!(result, &info.checksums);
    Ok(S3Response::new(CopyObjectOutput {
        copy_object_result: Some(result),
        copy_source_version_id: version,
        ..CopyObjectOutput::default()
    }))
}

fn directive(value: Option<&str>) -> S3Result<bool> {
    match value {
        None | Some("COPY") => Ok(false),
        Some("REPLACE") => Ok(true),
        Some(_) => Err(error(S3ErrorCode::InvalidArgument, "Unknown metadata or tagging directive.")),
    }
}

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
    let (door, version) = (verbs.clone(), source.version.clone());
    let part = verbs
        .pool
        .run(move || {
            let (to, from) = both(&door, &asked, &input.bucket, &source)?;
            let size = source_holds(&asked, &from, &source)?.size;
            to.upload(&key, &input.upload_id).map_err(|e| of(&e, About::Upload))?;
            if range.is_some_and(|(_, last)| last >= size) {
                return Err(error(
                    S3ErrorCode::InvalidArgument,
                    format!("Range specified is not valid for source object of size: {size}"),
                ));
            }
            to.copy_part(&from, &source.key, range, &key, &input.upload_id, number).map_err(|e| of(&e, About::Key))
        })
        .await?;
    let mut result = CopyPartResult {
        e_tag: Some(etag(&part.etag)),
        last_modified: Some(stamp(part.modified)),
        ..CopyPartResult::default()
    };
    sums!(result, &part.checksums);
    Ok(S3Response::new(UploadPartCopyOutput {
        copy_part_result: Some(result),
        copy_source_version_id: version,
        ..UploadPartCopyOutput::default()
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
