//! What an object carries besides its content: system headers, user metadata, tags, and what is refused because it would be a lie.

use crate::auth::Asked;
use crate::digest::{ALGORITHMS, header, name};
use crate::errors::error;
use crate::guard::pairs;
use crate::owner::owner_alone;
use hyper::HeaderMap;
use hyper::header::{EXPIRES, HeaderName, HeaderValue};
use mw_model::FileType;
use mw_world::{Checksum, ObjectInfo, ObjectMeta};
use s3s::dto::{self, ETag, Metadata, Timestamp};
use s3s::{S3ErrorCode, S3Result};
use std::time::{Duration, SystemTime};

/// The most user metadata of one object, names and values together (AWS: 2 KB).
const METADATA_MAX: usize = 2048;
/// The most tags of one object (AWS: 10).
const TAGS_MAX: usize = 10;

const TAG_COUNT: HeaderName = HeaderName::from_static("x-amz-tagging-count");

/// The content type of a symbolic link, whose content is its target. It is never followed.
const SYMLINK: &str = "application/x-symlink";
/// The content type of an empty directory, which has no content.
const DIRECTORY: &str = "application/x-directory";
/// The content type of what came without one, as AWS has it.
const UNTYPED: &str = "binary/octet-stream";

/// The storage classes that promise nothing but a price; the archives promise a delay and are refused.
const CLASSES: [&str; 6] =
    ["STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR"];

/// Headers that ask for a promise that is not kept here.
const PROMISES: [&str; 6] = [
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-copy-source-server-side-encryption-customer-algorithm",
    "x-amz-website-redirect-location",
    "x-amz-write-offset-bytes",
];

/// Asks for a bucket whose name is its owner's alone, unless it says `global`.
const NAMESPACE: &str = "x-amz-bucket-namespace";

/// Reads what a PUT, a copy that replaces, or the start of a multipart upload says about the object.
///
/// # Errors
/// `MetadataTooLarge`, `InvalidTag`, `InvalidStorageClass`, or `NotImplemented` for a promise that is not kept.
pub(crate) fn of_request(asked: &Asked, user: Option<Metadata>) -> S3Result<ObjectMeta> {
    promises(&asked.headers)?;
    owner_alone(asked)?;
    let mut user: Vec<(String, String)> = user.into_iter().flatten().collect();
    user.sort();
    if user.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > METADATA_MAX {
        return Err(error(
            S3ErrorCode::MetadataTooLarge,
            "Your metadata headers exceed the maximum allowed metadata size",
        ));
    }
    let text = |name: &str| asked.header(name).map(str::to_owned);
    Ok(ObjectMeta {
        content_type: text("content-type"),
        cache_control: text("cache-control"),
        content_disposition: text("content-disposition"),
        content_encoding: text("content-encoding"),
        content_language: text("content-language"),
        expires: text("expires"),
        user,
        tags: asked.header("x-amz-tagging").map(|t| tags(pairs(t))).transpose()?.unwrap_or_default(),
        storage_class: storage_class(asked)?,
    })
}

/// Refuses a request whose headers ask for a promise that is not kept, whatever it does: content that was never encrypted is not what
/// whoever sends a key with its request believes to read, or to add a part to.
///
/// # Errors
/// `NotImplemented`, naming the header.
pub(crate) fn promises(headers: &HeaderMap) -> S3Result<()> {
    let kms = headers.get("x-amz-server-side-encryption").is_some_and(|v| !v.is_empty() && v != "AES256");
    let named = |name: &&str| PROMISES.contains(name) || name.starts_with("x-amz-object-lock-") || is_unkept_sum(name);
    let own_namespace = headers.get(NAMESPACE).is_some_and(|v| v != "global").then_some(NAMESPACE);
    let asked_for = headers.keys().map(|name| name.as_str()).find(named).or(own_namespace);
    match asked_for.or(kms.then_some("x-amz-server-side-encryption")) {
        None => Ok(()),
        Some(name) => Err(error(
            S3ErrorCode::NotImplemented,
            format!("A header you provided implies functionality that is not implemented: {name}"),
        )),
    }
}

/// Whether a header gives a checksum that is not computed here: it would be taken for verified.
fn is_unkept_sum(name: &str) -> bool {
    let said = ["x-amz-checksum-algorithm", "x-amz-checksum-type", "x-amz-checksum-mode"];
    name.starts_with("x-amz-checksum-")
        && !said.contains(&name)
        && !ALGORITHMS.iter().any(|algorithm| header(*algorithm) == name)
}

fn storage_class(asked: &Asked) -> S3Result<Option<String>> {
    match asked.header("x-amz-storage-class") {
        None | Some("STANDARD") => Ok(None),
        Some(class) if CLASSES.contains(&class) => Ok(Some(class.to_owned())),
        Some(_) => Err(error(S3ErrorCode::InvalidStorageClass, "The storage class you specified is not valid.")),
    }
}

/// Checks a set of tags.
///
/// # Errors
/// `InvalidTag` past the limits of AWS: ten tags, keys of 128 and values of 256 characters, no key twice.
pub(crate) fn tags(tags: Vec<(String, String)>) -> S3Result<Vec<(String, String)>> {
    tags_within(tags, TAGS_MAX)
}

/// Checks a set of at most `most` tags, as [`tags`] does.
///
/// # Errors
/// `InvalidTag`.
pub(crate) fn tags_within(tags: Vec<(String, String)>, most: usize) -> S3Result<Vec<(String, String)>> {
    let invalid = |message: &str| Err(error(S3ErrorCode::InvalidTag, message));
    if tags.len() > most {
        return invalid(&format!("Tags cannot be greater than {most}"));
    }
    for (at, (key, value)) in tags.iter().enumerate() {
        if key.is_empty() || key.chars().count() > 128 {
            return invalid("The TagKey you have provided is invalid");
        }
        if value.chars().count() > 256 {
            return invalid("The TagValue you have provided is invalid");
        }
        if tags[..at].iter().any(|(other, _)| other == key) {
            return invalid("Cannot provide multiple Tags with the same key");
        }
    }
    Ok(tags)
}

/// Returns the content type to answer with.
pub(crate) fn content_type(info: &ObjectInfo) -> String {
    match info.kind {
        FileType::Symlink => SYMLINK.to_owned(),
        FileType::Directory => DIRECTORY.to_owned(),
        _ => info.meta.content_type.clone().unwrap_or_else(|| UNTYPED.to_owned()),
    }
}

/// Returns user metadata as the answer carries it; `s3s` writes what is not ASCII by RFC 2047.
pub(crate) fn metadata(info: &ObjectInfo) -> Option<Metadata> {
    (!info.meta.user.is_empty()).then(|| info.meta.user.iter().cloned().collect())
}

/// Returns the storage class to answer with; the standard one goes unsaid.
pub(crate) fn class(info: &ObjectInfo) -> Option<dto::StorageClass> {
    info.meta.storage_class.clone().map(dto::StorageClass::from)
}

/// Returns the headers that `s3s` cannot write, or not for HEAD: `Expires` is answered as it was given and not as a date, and how many
/// tags there are is said where there are any.
pub(crate) fn as_given(info: &ObjectInfo) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !info.meta.tags.is_empty() {
        headers.insert(TAG_COUNT, HeaderValue::from(info.meta.tags.len()));
    }
    if let Some(value) = info.meta.expires.as_deref().and_then(|v| HeaderValue::from_str(v).ok()) {
        headers.insert(EXPIRES, value);
    }
    headers
}

/// Returns an instant as S3 writes it.
pub(crate) fn stamp(nanoseconds: u64) -> Timestamp {
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds))
}

/// Returns an ETag as S3 writes it.
pub(crate) fn etag(etag: &str) -> ETag {
    ETag::Strong(etag.to_owned())
}

/// Returns one checksum of several, in base64.
pub(crate) fn sum(checksums: &[Checksum], algorithm: mw_world::ChecksumAlgorithm) -> Option<String> {
    checksums.iter().find(|c| c.algorithm == algorithm).map(|c| c.value.clone())
}

/// Returns whether a checksum is of the whole object or of its parts.
pub(crate) fn sum_type(composite: bool) -> dto::ChecksumType {
    dto::ChecksumType::from_static(if composite {
        dto::ChecksumType::COMPOSITE
    } else {
        dto::ChecksumType::FULL_OBJECT
    })
}

/// Returns the S3 name of an algorithm, as `s3s` has it.
pub(crate) fn algorithm(algorithm: mw_world::ChecksumAlgorithm) -> dto::ChecksumAlgorithm {
    dto::ChecksumAlgorithm::from_static(name(algorithm))
}

/// Fills the checksum fields that so many answers of S3 have.
macro_rules! sums {
    ($output:expr, $checksums:expr) => {{
        let checksums: &[mw_world::Checksum] = $checksums;
        $output.checksum_crc32 = $crate::meta::sum(checksums, mw_world::ChecksumAlgorithm::Crc32);
        $output.checksum_crc32c = $crate::meta::sum(checksums, mw_world::ChecksumAlgorithm::Crc32c);
        $output.checksum_crc64nvme = $crate::meta::sum(checksums, mw_world::ChecksumAlgorithm::Crc64Nvme);
        $output.checksum_sha1 = $crate::meta::sum(checksums, mw_world::ChecksumAlgorithm::Sha1);
        $output.checksum_sha256 = $crate::meta::sum(checksums, mw_world::ChecksumAlgorithm::Sha256);
    }};
}

/// Fills the checksum fields, and the one that says their type.
macro_rules! sums_typed {
    ($output:expr, $checksums:expr) => {{
        let checksums: &[mw_world::Checksum] = $checksums;
        $crate::meta::sums!($output, checksums);
        $output.checksum_type = checksums.first().map(|c| $crate::meta::sum_type(c.composite));
    }};
}

pub(crate) use {sums, sums_typed};
