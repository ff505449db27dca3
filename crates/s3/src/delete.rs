//! Deletes, one key or up to 1,000 at once, or one version of a key. An absent key is no error.

use crate::auth::Asked;
use crate::conditions::read;
use crate::errors::{About, error, of};
use crate::names::{KEY_MAX, key_of};
use crate::verbs::Verbs;
use crate::versions::parsed;
use bytes::Bytes;
use mw_world::{Conditions, Deleted, Session, VersionId, Versioning};
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// The most keys of one request (AWS: 1,000).
const KEYS_MAX: usize = 1000;

/// The conditions that S3 knows for directory buckets alone. One that is not looked at would delete what was to be spared.
const UNKEPT: [&str; 2] = ["x-amz-if-match-last-modified-time", "x-amz-if-match-size"];

fn unkept(name: &str) -> S3Error {
    error(
        S3ErrorCode::NotImplemented,
        format!("The condition {name} is for directory buckets; use If-Match with the entity tag."),
    )
}

/// Deletes an object: in a bucket with versions it gets a marker. Deletes one version for good where one is named.
pub(crate) async fn delete_object(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: DeleteObjectInput,
) -> S3Result<S3Response<DeleteObjectOutput>> {
    let key = key_of(&input.key)?;
    if let Some(name) = UNKEPT.into_iter().find(|name| asked.headers.contains_key(*name)) {
        return Err(unkept(name));
    }
    let conditions = read(&asked.headers, "");
    let version = input.version_id;
    let deleted = verbs
        .within(&asked, &input.bucket, move |session| {
            match named(&session, version.as_deref())? {
                Doomed::Key => session.delete_object(&key, &conditions),
                Doomed::Version(id) => session.delete_version(&key, id, &conditions),
                Doomed::Nothing => Ok(Deleted::default()),
            }
            .map_err(|e| of(&e, About::Key))
        })
        .await?;
    Ok(S3Response::new(DeleteObjectOutput {
        delete_marker: deleted.marker.then_some(true),
        version_id: deleted.version.map(|id| id.to_string()),
        ..DeleteObjectOutput::default()
    }))
}

/// What is to be deleted.
enum Doomed {
    /// What is there.
    Key,
    /// A version of the key.
    Version(VersionId),
    /// A version of a key in a bucket that has none.
    Nothing,
}

fn named(session: &Session, version: Option<&str>) -> S3Result<Doomed> {
    let Some(version) = version.filter(|v| !v.is_empty()) else { return Ok(Doomed::Key) };
    Ok(match (session.versioning(), parsed(version)?) {
        (Versioning::Never, VersionId::Null) => Doomed::Key,
        (Versioning::Never, VersionId::At(_)) => Doomed::Nothing,
        (_, id) => Doomed::Version(id),
    })
}

/// Deletes many objects; each succeeds or fails for itself.
pub(crate) async fn delete_objects(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: DeleteObjectsInput,
) -> S3Result<S3Response<DeleteObjectsOutput>> {
    let quiet = input.delete.quiet == Some(true);
    let objects = input.delete.objects;
    if objects.is_empty() || objects.len() > KEYS_MAX {
        return Err(error(
            S3ErrorCode::MalformedXML,
            "The XML you provided was not well-formed or did not validate against our published schema",
        ));
    }
    let names: Vec<(String, Option<String>)> = objects.iter().map(|o| (o.key.clone(), o.version_id.clone())).collect();
    let outcomes = verbs.within(&asked, &input.bucket, move |session| many(&session, &objects)).await?;
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for ((name, version), outcome) in names.into_iter().zip(outcomes) {
        match outcome {
            Ok(_) if quiet => {}
            Ok(done) => deleted.push(DeletedObject {
                key: Some(name),
                delete_marker: done.marker.then_some(true),
                delete_marker_version_id: done.version.filter(|_| done.marker).map(|id| id.to_string()),
                version_id: version,
            }),
            Err(e) => errors.push(Error {
                code: Some(e.code().as_str().to_owned()),
                key: Some(name),
                message: e.message().map(str::to_owned),
                version_id: version,
            }),
        }
    }
    Ok(S3Response::new(DeleteObjectsOutput { deleted: Some(deleted), errors: Some(errors), request_charged: None }))
}

/// Deletes unconditional keys in one call of the engine, named versions in a second, and each conditional one by itself. The outcomes
/// are in the order of the request.
fn many(session: &Session, objects: &[ObjectIdentifier]) -> S3Result<Vec<Result<Deleted, S3Error>>> {
    let mut outcomes = Vec::with_capacity(objects.len());
    let (mut keys, mut versions) = (Vec::new(), Vec::new());
    let (mut key_places, mut version_places) = (Vec::new(), Vec::new());
    for (place, object) in objects.iter().enumerate() {
        outcomes.push(Ok(Deleted::default()));
        let doomed = checked(object).and_then(|key| Ok((key, named(session, object.version_id.as_deref())?)));
        match (doomed, &object.e_tag) {
            (Ok((_, Doomed::Nothing)), _) => {}
            (Ok((key, Doomed::Key)), None) => {
                keys.push(key);
                key_places.push(place);
            }
            (Ok((key, Doomed::Version(id))), None) => {
                versions.push((key, id));
                version_places.push(place);
            }
            (Ok((key, doomed)), Some(etag)) => {
                let conditions = Conditions { if_match: Some(vec![etag.value().to_owned()]), ..Conditions::default() };
                let deleted = match doomed {
                    Doomed::Version(id) => session.delete_version(&key, id, &conditions),
                    _ => session.delete_object(&key, &conditions),
                };
                outcomes[place] = deleted.map_err(|e| of(&e, About::Key));
            }
            (Err(e), _) => outcomes[place] = Err(e),
        }
    }
    let mut results = Vec::new();
    if !keys.is_empty() {
        results.push((key_places, session.delete_many(&keys).map_err(|e| of(&e, About::Key))?));
    }
    if !versions.is_empty() {
        results.push((version_places, session.delete_versions(&versions).map_err(|e| of(&e, About::Key))?));
    }
    for (places, results) in results {
        for (place, result) in places.into_iter().zip(results) {
            outcomes[place] = result.map_err(|e| of(&e, About::Key));
        }
    }
    Ok(outcomes)
}

fn checked(object: &ObjectIdentifier) -> S3Result<Bytes> {
    match (&object.last_modified_time, object.size) {
        (None, None) => {}
        (Some(_), _) => return Err(unkept("LastModifiedTime")),
        (None, Some(_)) => return Err(unkept("Size")),
    }
    let key = key_of(&object.key)?;
    match key.len() {
        0 => Err(error(S3ErrorCode::InvalidArgument, "A key must have at least one byte.")),
        1..=KEY_MAX => Ok(key),
        _ => Err(error(S3ErrorCode::KeyTooLongError, "Your key is too long.")),
    }
}
