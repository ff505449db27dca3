//! The one owner of every bucket, and what requests may say of others: nothing.

use crate::auth::Asked;
use crate::errors::error;
use s3s::dto::{Initiator, Owner};
use s3s::{S3ErrorCode, S3Result};

/// Returns the one owner that S3 asks for everywhere.
pub(crate) fn owner() -> Owner {
    Owner { display_name: Some("manyworlds".to_owned()), id: Some("manyworlds".to_owned()) }
}

/// Returns who began an upload: the one owner, as keys are not named to others.
pub(crate) fn initiator() -> Initiator {
    let Owner { display_name, id } = owner();
    Initiator { display_name, id }
}

/// The canned lists that say what is so anyway.
const SAID: [&str; 2] = ["private", "bucket-owner-full-control"];

/// The headers that grant something beyond it.
const GRANTS: [&str; 5] = [
    "x-amz-grant-full-control",
    "x-amz-grant-read",
    "x-amz-grant-read-acp",
    "x-amz-grant-write",
    "x-amz-grant-write-acp",
];

pub(crate) fn not_supported() -> s3s::S3Error {
    error(S3ErrorCode::AccessControlListNotSupported, "The bucket does not allow ACLs")
}

/// Refuses a request whose headers give more than the owner has.
///
/// # Errors
/// `AccessControlListNotSupported`.
pub(crate) fn owner_alone(asked: &Asked) -> S3Result<()> {
    let canned = asked.header("x-amz-acl").is_none_or(|acl| SAID.contains(&acl));
    if canned && !GRANTS.iter().any(|name| asked.headers.contains_key(*name)) { Ok(()) } else { Err(not_supported()) }
}
