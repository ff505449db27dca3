//! Versions of objects: whether a bucket has them, which one a request names, and all of them listed.
//!
//! A version id is `null` or a time of the world in nanoseconds. In a bucket that never had versions any instant of the world may be
//! named, and reads find the object as it was then.

use crate::auth::Asked;
use crate::errors::{About, error, missing, of};
use crate::list::{bytes, limit};
use crate::meta::{algorithm, etag, stamp, sum_type};
use crate::names::Written;
use crate::owner::owner;
use crate::verbs::Verbs;
use hyper::HeaderMap;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, LAST_MODIFIED};
use mw_model::ErrorKind;
use mw_world::{ListedVersion, Marker, Object, ObjectInfo, Session, VersionId, Versioned, Versioning, VersionsRequest};
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");

/// Reads a version id of a bucket that has versions.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn parsed(text: &str) -> S3Result<VersionId> {
    text.parse().map_err(|_| error(S3ErrorCode::InvalidArgument, "Invalid version id specified"))
}

impl Verbs {
    /// Opens a world for a read of `version`: at an instant where the world has no versions, else with the id of the version.
    ///
    /// # Errors
    /// Those of [`Verbs::session`].
    pub(crate) fn versioned(
        &self,
        asked: &Asked,
        bucket: &str,
        version: Option<&str>,
    ) -> S3Result<(Session, Option<VersionId>)> {
        let session = self.session(asked, bucket, None)?;
        let Some(version) = version.filter(|v| !v.is_empty()) else { return Ok((session, None)) };
        match session.versioning() {
            Versioning::Never => Ok((self.session(asked, bucket, Some(version))?, None)),
            Versioning::Enabled | Versioning::Suspended => Ok((session, Some(parsed(version)?))),
        }
    }
}

/// Finds an object to read: the one that is there, or a version.
///
/// # Errors
/// `NoSuchKey`, which says so when the key was deleted; `NoSuchVersion`; `MethodNotAllowed` for a version that is a deletion.
pub(crate) fn object(session: &Session, key: &[u8], version: Option<VersionId>) -> S3Result<Object> {
    let found = match version {
        None => session.get(key).map(Versioned::Object),
        Some(id) => session.get_version(key, id),
    };
    present(session, key, version, found)
}

/// Finds what an object is, as [`object`] does.
///
/// # Errors
/// Those of [`object`].
pub(crate) fn info(session: &Session, key: &[u8], version: Option<VersionId>) -> S3Result<ObjectInfo> {
    let found = match version {
        None => session.head(key).map(Versioned::Object),
        Some(id) => session.head_version(key, id),
    };
    present(session, key, version, found)
}

fn present<T>(
    session: &Session,
    key: &[u8],
    version: Option<VersionId>,
    found: mw_world::Result<Versioned<T>>,
) -> S3Result<T> {
    match found {
        Ok(Versioned::Object(object)) => Ok(object),
        Ok(Versioned::Marker(marker)) => Err(deletion(&marker)),
        Err(e) if e.kind() == ErrorKind::NotFound && version.is_none() => {
            match session.marker(key).map_err(|e| of(&e, About::Key))? {
                Some(marker) => Err(with_marker(missing(About::Key), &marker)),
                None => Err(of(&e, About::Key)),
            }
        }
        Err(e) => Err(of(&e, About::Key)),
    }
}

/// A deletion has no content: all that can be done with it is to delete it (AWS, *Working with delete markers*).
fn deletion(marker: &Marker) -> S3Error {
    let text = "The specified method is not allowed against this resource.";
    let mut error = with_marker(error(S3ErrorCode::MethodNotAllowed, text), marker);
    let mut date = Vec::new();
    if let Some(mut headers) = error.headers().cloned() {
        headers.insert(ALLOW, HeaderValue::from_static("DELETE"));
        if stamp(marker.modified).format(TimestampFormat::HttpDate, &mut date).is_ok()
            && let Ok(value) = HeaderValue::from_bytes(&date)
        {
            headers.insert(LAST_MODIFIED, value);
        }
        error.set_headers(headers);
    }
    error
}

fn with_marker(mut error: S3Error, marker: &Marker) -> S3Error {
    let mut headers = HeaderMap::new();
    headers.insert(DELETE_MARKER, HeaderValue::from_static("true"));
    if let Ok(value) = HeaderValue::from_str(&marker.id.to_string()) {
        headers.insert(VERSION_ID, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    error.set_headers(headers);
    error
}

/// Returns the version id to answer with.
pub(crate) fn id_of(session: &Session, info: &ObjectInfo) -> Option<String> {
    session.version_id(info).map(|id| id.to_string())
}

/// Says whether a bucket has versions; of one that never had any, nothing.
pub(crate) async fn get_bucket_versioning(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetBucketVersioningInput,
) -> S3Result<S3Response<GetBucketVersioningOutput>> {
    let versioning =
        verbs.within(&asked, &input.bucket, |s| s.ask_versioning().map_err(|e| of(&e, About::World))).await?;
    let status = match versioning {
        Versioning::Never => None,
        Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
        Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
    };
    let status = status.map(BucketVersioningStatus::from_static);
    Ok(S3Response::new(GetBucketVersioningOutput { status, ..GetBucketVersioningOutput::default() }))
}

/// Switches versions on or suspends them.
pub(crate) async fn put_bucket_versioning(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutBucketVersioningInput,
) -> S3Result<S3Response<PutBucketVersioningOutput>> {
    let wanted = input.versioning_configuration;
    if wanted.mfa_delete.as_ref().is_some_and(|mfa| mfa.as_str() != MFADelete::DISABLED) {
        return Err(error(S3ErrorCode::NotImplemented, "MFA delete is not implemented."));
    }
    let to = match wanted.status.as_ref().map(BucketVersioningStatus::as_str) {
        Some(BucketVersioningStatus::ENABLED) => Versioning::Enabled,
        Some(BucketVersioningStatus::SUSPENDED) => Versioning::Suspended,
        _ => {
            return Err(error(
                S3ErrorCode::IllegalVersioningConfigurationException,
                "The Versioning element must be specified, and its Status is Enabled or Suspended.",
            ));
        }
    };
    verbs
        .within(&asked, &input.bucket, move |session| session.set_versioning(to).map_err(|e| of(&e, About::World)))
        .await?;
    Ok(S3Response::new(PutBucketVersioningOutput::default()))
}

/// Lists versions and deletions. A bucket that never had versions has one of each object, `null`.
pub(crate) async fn list_object_versions(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: ListObjectVersionsInput,
) -> S3Result<S3Response<ListObjectVersionsOutput>> {
    let written = Written::of(input.encoding_type.as_ref())?;
    let limit = limit(input.max_keys)?;
    let (prefix, delimiter) = (bytes(input.prefix.as_ref())?, bytes(input.delimiter.as_ref())?);
    let after = bytes(input.key_marker.as_ref())?;
    let marker = input.version_id_marker.clone().filter(|marker| !marker.is_empty());
    if marker.is_some() && after.is_empty() {
        return Err(error(
            S3ErrorCode::InvalidArgument,
            "A version-id marker cannot be specified without a key marker.",
        ));
    }
    let after_version = marker.as_deref().map(parsed).transpose()?;
    let mut output = ListObjectVersionsOutput {
        name: Some(input.bucket.clone()),
        prefix: Some(written.write(&prefix)),
        key_marker: Some(written.write(&after)),
        version_id_marker: Some(marker.unwrap_or_default()),
        max_keys: Some(limit as i32),
        delimiter: (!delimiter.is_empty()).then(|| written.write(&delimiter)),
        encoding_type: input.encoding_type,
        ..ListObjectVersionsOutput::default()
    };
    let delimiter = (!delimiter.is_empty()).then_some(delimiter);
    let request = VersionsRequest { prefix, delimiter, after, after_version, limit };
    let listing = verbs
        .within(&asked, &input.bucket, move |s| s.list_versions(&request).map_err(|e| of(&e, About::World)))
        .await?;
    output.is_truncated = Some(listing.next.is_some());
    if let Some((key, id)) = listing.next {
        output.next_key_marker = Some(written.write(&key));
        output.next_version_id_marker = id.map(|id| id.to_string());
    }
    let (mut versions, mut markers, mut prefixes) = (Vec::new(), Vec::new(), Vec::new());
    for item in listing.items {
        match item {
            ListedVersion::Prefix(prefix) => prefixes.push(CommonPrefix { prefix: Some(written.write(&prefix)) }),
            ListedVersion::Version { key, id, latest, what } => match what {
                Versioned::Object(info) => versions.push(version(&info, id, latest, written)),
                Versioned::Marker(marker) => markers.push(DeleteMarkerEntry {
                    is_latest: Some(latest),
                    key: Some(written.write(&key)),
                    last_modified: Some(stamp(marker.modified)),
                    owner: Some(owner()),
                    version_id: Some(id.to_string()),
                }),
            },
        }
    }
    output.versions = Some(versions);
    output.delete_markers = Some(markers);
    output.common_prefixes = Some(prefixes);
    Ok(S3Response::new(output))
}

fn version(info: &ObjectInfo, id: VersionId, latest: bool, written: Written) -> ObjectVersion {
    let algorithms: Vec<_> = info.checksums.iter().map(|c| algorithm(c.algorithm)).collect();
    let class = info.meta.storage_class.clone();
    ObjectVersion {
        key: Some(written.write(&info.key)),
        version_id: Some(id.to_string()),
        is_latest: Some(latest),
        e_tag: Some(etag(&info.etag)),
        last_modified: Some(stamp(info.modified)),
        size: Some(info.size as i64),
        owner: Some(owner()),
        storage_class: Some(ObjectVersionStorageClass::from(
            class.unwrap_or_else(|| ObjectVersionStorageClass::STANDARD.to_owned()),
        )),
        checksum_type: info.checksums.first().map(|c| sum_type(c.composite)),
        checksum_algorithm: (!algorithms.is_empty()).then_some(algorithms),
        ..ObjectVersion::default()
    }
}
