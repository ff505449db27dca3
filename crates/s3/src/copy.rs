//! Copies of an object, which shares its extents.
//!
//! The source is a second resource: its world is opened for the caller like any other, so that a world that the key may not read gives
//! the one refusal here too.

use crate::auth::Asked;
use crate::conditions::{check, read};
use crate::errors::{About, error, of, precondition};
use crate::meta::{etag, of_request, stamp, sums_typed};
use crate::names::key_of;
use crate::source::Source;
use crate::vendor;
use crate::verbs::Verbs;
use crate::versions::{id_of, info};
use mw_model::Version;
use mw_world::{At, CopyOptions, ObjectInfo, ObjectMeta, RenameOptions, Session, VersionId};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// The prefix of the conditions that are about the source.
const OF_SOURCE: &str = "x-amz-copy-source-";

/// Reads the copy source. Whoever names none gets an answer that says so.
pub(crate) fn source(asked: &Asked) -> S3Result<Source> {
    Source::parse(asked.headers.get("x-amz-copy-source").map(|v| v.as_bytes()).unwrap_or_default())
}

/// A world to copy from, and the version of the key where it has versions.
pub(crate) struct From {
    pub(crate) session: Session,
    pub(crate) version: Option<VersionId>,
}

/// Opens both worlds, the target first.
pub(crate) fn both(verbs: &Verbs, asked: &Asked, bucket: &str, source: &Source) -> S3Result<(Session, From)> {
    let to = verbs.session(asked, bucket, None)?;
    let (session, version) = verbs.versioned(asked, &source.bucket, source.version.as_deref())?;
    let session = match instant(asked, source)? {
        None => session,
        Some(then) => session.at(&At::Version(then)).map_err(|e| of(&e, About::Version))?,
    };
    Ok((to, From { session, version }))
}

/// Reads the instant of the source's world that a header names. A version of the object named beside it decides alone.
fn instant(asked: &Asked, source: &Source) -> S3Result<Option<Version>> {
    Ok(vendor::version(&asked.headers, vendor::VERSION)?.filter(|_| source.version.is_none()))
}

/// A condition on the source that does not hold is always a failed precondition (AWS, CopyObject).
pub(crate) fn source_holds(asked: &Asked, from: &From, source: &Source) -> S3Result<(ObjectInfo, Option<String>)> {
    let conditions = read(&asked.headers, OF_SOURCE);
    let info = info(&from.session, &source.key, from.version).map_err(|e| match e.code() {
        S3ErrorCode::MethodNotAllowed => error(
            S3ErrorCode::InvalidRequest,
            "The source of a copy request may not specifically refer to a delete marker by version id.",
        ),
        _ => e,
    })?;
    check(&conditions, &info.etag, info.modified).map_err(|_| precondition())?;
    let id = id_of(&from.session, &info);
    Ok((info, id))
}

/// Copies an object, in constant time.
pub(crate) async fn copy_object(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: CopyObjectInput,
) -> S3Result<S3Response<CopyObjectOutput>> {
    let source = source(&asked)?;
    let key = key_of(&input.key)?;
    if vendor::flag(&asked.headers, vendor::RENAME)? {
        return rename(verbs, asked, &input, source, key).await;
    }
    let replace = directive(input.metadata_directive.as_ref().map(MetadataDirective::as_str))?;
    let replace_tags = directive(input.tagging_directive.as_ref().map(TaggingDirective::as_str))?;
    let meta = of_request(&asked, input.metadata)?;
    let then = source.version.is_some() || instant(&asked, &source)?.is_some();
    let itself = source.bucket == input.bucket && source.key == key && !then;
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
        version: None,
    };
    let door = verbs.clone();
    let (info, version_id, source_id) = verbs
        .pool
        .run(move || {
            let (to, from) = both(&door, &asked, &input.bucket, &source)?;
            let (found, source_id) = source_holds(&asked, &from, &source)?;
            options.version = from.version;
            if class.is_some() {
                options.replace = Some(ObjectMeta { storage_class: class, ..found.meta });
            }
            let info = to.copy(&from.session, &source.key, &key, &options).map_err(|e| of(&e, About::Key))?;
            let id = id_of(&to, &info);
            Ok((info, id, source_id.or(source.version)))
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
        copy_source_version_id: source_id,
        version_id,
        ..CopyObjectOutput::default()
    }))
}

/// Gives an object another key of its world, in one change. It keeps all that it carries.
async fn rename(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: &CopyObjectInput,
    source: Source,
    key: bytes::Bytes,
) -> S3Result<S3Response<CopyObjectOutput>> {
    let refused = |why: &str| Err(error(S3ErrorCode::InvalidRequest, format!("A rename {why}; nothing was done.")));
    let replaces = directive(input.metadata_directive.as_ref().map(MetadataDirective::as_str))?
        || directive(input.tagging_directive.as_ref().map(TaggingDirective::as_str))?;
    if replaces {
        return refused("keeps the object's metadata and tags");
    }
    if source.version.is_some() || instant(&asked, &source)?.is_some() {
        return refused("is of the object that is there now, not of a version");
    }
    let options = RenameOptions { source: read(&asked.headers, OF_SOURCE), conditions: read(&asked.headers, "") };
    let (door, bucket) = (verbs.clone(), input.bucket.clone());
    let (info, version_id) = verbs
        .pool
        .run(move || {
            let (to, from) = both(&door, &asked, &bucket, &source)?;
            if to.world_id() != from.session.world_id() {
                return Err(error(
                    S3ErrorCode::InvalidRequest,
                    "A rename stays within one bucket; copy the object and delete the source.",
                ));
            }
            // Conditions on the source are those of a copy: one that does not hold is a failed precondition.
            source_holds(&asked, &from, &source)?;
            let info = to.rename_object(&source.key, &key, &options).map_err(|e| of(&e, About::Key))?;
            let id = id_of(&to, &info);
            Ok((info, id))
        })
        .await?;
    let result = CopyObjectResult {
        e_tag: Some(etag(&info.etag)),
        last_modified: Some(stamp(info.modified)),
        ..CopyObjectResult::default()
    };
    Ok(S3Response::new(CopyObjectOutput {
        copy_object_result: Some(result),
        version_id,
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
