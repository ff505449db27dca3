//! Which parameters of a query have a meaning, and where.
//!
//! S3 grows by properties: what yesterday was no parameter makes tomorrow another operation of the same method and path. A router that does
//! not know `PUT /b/k?renameObject` or `PUT /b/k?encryption` would take them for a PUT and replace the object by their document, and
//! `DELETE /b/k?annotation` would delete the object. So a change is done only when every parameter is known where it stands. A read may
//! carry others that have a value, as AWS ignores them; one without a value would be a property, and is refused too.

use crate::errors::error;
use crate::target::Target;
use crate::vendor::Place;
use hyper::Method;
use s3s::{S3ErrorCode, S3Result};

/// Properties of a bucket that the router can tell apart by each method.
const GET_BUCKET: [&str; 27] = [
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "lifecycle",
    "location",
    "logging",
    "metadata",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "session",
    "tagging",
    "uploads",
    "versioning",
    "versions",
    "website",
];
const PUT_BUCKET: [&str; 21] = [
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "encryption",
    "id",
    "intelligent-tiering",
    "inventory",
    "lifecycle",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "tagging",
    "versioning",
    "website",
];
const DELETE_BUCKET: [&str; 15] = [
    "analytics",
    "cors",
    "encryption",
    "id",
    "intelligent-tiering",
    "inventory",
    "lifecycle",
    "metadataTable",
    "metrics",
    "ownershipControls",
    "policy",
    "publicAccessBlock",
    "replication",
    "tagging",
    "website",
];
const POST_BUCKET: [&str; 4] = ["bundle", "delete", "metadataTable", "restore"];

/// What a listing may be given without a value.
const LISTING: [&str; 12] = [
    "continuation-token",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "key-marker",
    "list-type",
    "marker",
    "max-keys",
    "prefix",
    "start-after",
    "upload-id-marker",
    "version-id-marker",
];

/// The same of an object.
const GET_OBJECT: [&str; 8] =
    ["acl", "attributes", "legal-hold", "retention", "tagging", "torrent", "uploadId", "versionId"];
const PUT_OBJECT: [&str; 7] = ["acl", "legal-hold", "partNumber", "retention", "tagging", "uploadId", "versionId"];
const DELETE_OBJECT: [&str; 3] = ["tagging", "uploadId", "versionId"];
const POST_OBJECT: [&str; 6] = ["restore", "select", "select-type", "uploadId", "uploads", "versionId"];

/// Refuses a request with a parameter that asks for something else than would be done.
///
/// # Errors
/// `NotImplemented`, naming the parameter.
pub(crate) fn check(method: &Method, target: &Target) -> S3Result<()> {
    let (known, reads): (&[&str], bool) = match (target.place(), method) {
        (Place::Bucket, &Method::GET | &Method::HEAD) => (&GET_BUCKET, true),
        (Place::Bucket, &Method::PUT) => (&PUT_BUCKET, false),
        (Place::Bucket, &Method::DELETE) => (&DELETE_BUCKET, false),
        (Place::Bucket, &Method::POST) => (&POST_BUCKET, false),
        (Place::Object, &Method::GET | &Method::HEAD) => (&GET_OBJECT, true),
        (Place::Object, &Method::PUT) => (&PUT_OBJECT, false),
        (Place::Object, &Method::DELETE) => (&DELETE_OBJECT, false),
        (Place::Object, &Method::POST) => (&POST_OBJECT, false),
        _ => return Ok(()),
    };
    // AWS keeps names that start with `x-` free for whoever wants to find a request again in a log.
    let meant = |name: &str, value: &str| {
        known.contains(&name) || name.starts_with("x-") || reads && (!value.is_empty() || LISTING.contains(&name))
    };
    match target.query.iter().find(|(name, value)| !meant(name, value)) {
        None => Ok(()),
        Some((name, _)) => Err(error(
            S3ErrorCode::NotImplemented,
            format!("A parameter you provided implies functionality that is not implemented: {name}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    //! Every list serves its own method and place.

    use super::*;
    use hyper::HeaderMap;

    fn passes(method: Method, uri: &str) -> bool {
        check(&method, &Target::of(&uri.parse().unwrap(), &HeaderMap::new(), None)).is_ok()
    }

    #[test]
    fn what_is_known_passes_where_it_is_known() {
        assert!(passes(Method::PUT, "/b/k?x-id=PutObject&X-Amz-Signature=1"));
        assert!(passes(Method::PUT, "/b/k?partNumber=1&uploadId=a"));
        assert!(passes(Method::GET, "/b?list-type=2&prefix=&delimiter=&allow-unordered=true"));
        assert!(passes(Method::GET, "/b/k?response-content-type=a&page=7"));
        assert!(passes(Method::POST, "/?Action=x"));
        assert!(!passes(Method::PUT, "/b/k?encryption"));
        assert!(passes(Method::PUT, "/b?encryption"));
        assert!(!passes(Method::DELETE, "/b/k?acl"));
        assert!(!passes(Method::PUT, "/b/k?append&position=0"));
        assert!(!passes(Method::GET, "/b?abac"));
        assert!(!passes(Method::GET, "/b/k?annotation"));
    }
}
