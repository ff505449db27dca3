//! Deletes, one key or up to 1,000 at once. An absent key is no error.

use crate::auth::Asked;
use crate::conditions::read;
use crate::errors::{About, error, of};
use crate::names::{KEY_MAX, key_of};
use crate::verbs::Verbs;
use bytes::Bytes;
use mw_world::{Conditions, Session};
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// The most keys of one request (AWS: 1,000).
const KEYS_MAX: usize = 1000;

/// S3 versions of an object are not deleted one by one; `null` names the object itself.
fn present(version: Option<&str>) -> S3Result<()> {
    match version {
        None | Some("null" | "") => Ok(()),
        Some(_) => Err(error(
            S3ErrorCode::NotImplemented,
            "A version of an object cannot be deleted; history belongs to the world.",
        )),
    }
}

/// Deletes an object.
pub(crate) async fn delete_object(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: DeleteObjectInput,
) -> S3Result<S3Response<DeleteObjectOutput>> {
    let key = key_of(&input.key)?;
    let conditions = read(&asked.headers, "");
    let version = input.version_id;
    verbs
        .within(&asked, &input.bucket, move |session| {
            present(version.as_deref())?;
            session.delete(&key, &conditions).map_err(|e| of(&e, About::Key))
        })
        .await?;
    Ok(S3Response::new(DeleteObjectOutput::default()))
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
    let names: Vec<String> = objects.iter().map(|o| o.key.clone()).collect();
    let outcomes = verbs.within(&asked, &input.bucket, move |session| many(&session, &objects)).await?;
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for (name, outcome) in names.into_iter().zip(outcomes) {
        match outcome {
            Ok(()) if quiet => {}
            Ok(()) => deleted.push(DeletedObject { key: Some(name), ..DeletedObject::default() }),
            Err(e) => errors.push(Error {
                code: Some(e.code().as_str().to_owned()),
                key: Some(name),
                message: e.message().map(str::to_owned),
                version_id: None,
            }),
        }
    }
    Ok(S3Response::new(DeleteObjectsOutput { deleted: Some(deleted), errors: Some(errors), request_charged: None }))
}

/// Deletes unconditional keys in one call of the engine, and each conditional one by itself. The outcomes are in the order of the
/// request.
fn many(session: &Session, objects: &[ObjectIdentifier]) -> S3Result<Vec<Result<(), S3Error>>> {
    let mut outcomes = Vec::with_capacity(objects.len());
    let (mut keys, mut places): (Vec<Bytes>, Vec<usize>) = (Vec::new(), Vec::new());
    for (place, object) in objects.iter().enumerate() {
        outcomes.push(Ok(()));
        match checked(object) {
            Ok(key) => match &object.e_tag {
                None => {
                    keys.push(key);
                    places.push(place);
                }
                Some(etag) => {
                    let conditions =
                        Conditions { if_match: Some(vec![etag.value().to_owned()]), ..Conditions::default() };
                    outcomes[place] = session.delete(&key, &conditions).map(drop).map_err(|e| of(&e, About::Key));
                }
            },
            Err(e) => outcomes[place] = Err(e),
        }
    }
    if !keys.is_empty() {
        let results = session.delete_many(&keys).map_err(|e| of(&e, About::Key))?;
        for (place, result) in places.into_iter().zip(results) {
            outcomes[place] = result.map(drop).map_err(|e| of(&e, About::Key));
        }
    }
    Ok(outcomes)
}

fn checked(object: &ObjectIdentifier) -> S3Result<Bytes> {
    present(object.version_id.as_deref())?;
    let key = key_of(&object.key)?;
    match key.len() {
        0 => Err(error(S3ErrorCode::InvalidArgument, "A key must have at least one byte.")),
        1..=KEY_MAX => Ok(key),
        _ => Err(error(S3ErrorCode::KeyTooLongError, "Your key is too long.")),
    }
}
