//! Tags of an object, or of one version of it.

use crate::auth::Asked;
use crate::errors::{About, error, of};
use crate::meta::tags;
use crate::names::key_of;
use crate::verbs::Verbs;
use crate::versions::{id_of, info};
use mw_world::Versioning;
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// Answers an object's tags.
pub(crate) async fn get_object_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetObjectTaggingInput,
) -> S3Result<S3Response<GetObjectTaggingOutput>> {
    let key = key_of(&input.key)?;
    let (door, version) = (verbs.clone(), input.version_id);
    let (info, version_id) = verbs
        .pool
        .run(move || {
            let (session, version) = door.versioned(&asked, &input.bucket, version.as_deref())?;
            let info = info(&session, &key, version)?;
            let id = id_of(&session, &info);
            Ok((info, id))
        })
        .await?;
    let tag_set = info.meta.tags.into_iter().map(|(key, value)| Tag { key: Some(key), value: Some(value) }).collect();
    Ok(S3Response::new(GetObjectTaggingOutput { tag_set, version_id }))
}

/// Sets the tags of an object; returns the version that has them now.
async fn set(
    verbs: &Verbs,
    asked: Arc<Asked>,
    bucket: String,
    key: &str,
    version: Option<String>,
    set: Vec<(String, String)>,
) -> S3Result<Option<String>> {
    let key = key_of(key)?;
    let door = verbs.clone();
    verbs
        .pool
        .run(move || {
            let session = door.session(&asked, &bucket, None)?;
            let named = version.as_deref().filter(|v| !v.is_empty());
            let version = match (session.versioning(), named) {
                (Versioning::Never, Some(v)) if v != "null" => {
                    return Err(error(S3ErrorCode::NoSuchVersion, "The specified version does not exist."));
                }
                (Versioning::Never, _) | (_, None) => None,
                (_, Some(v)) => Some(crate::versions::parsed(v)?),
            };
            // A deletion, and a key that was deleted, say so.
            let info = info(&session, &key, version)?;
            session.set_tags_of(&key, version, set).map_err(|e| of(&e, About::Key))?;
            Ok(id_of(&session, &info))
        })
        .await
}

/// Replaces an object's tags.
pub(crate) async fn put_object_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutObjectTaggingInput,
) -> S3Result<S3Response<PutObjectTaggingOutput>> {
    let given = input.tagging.tag_set.into_iter().map(|t| (t.key.unwrap_or_default(), t.value.unwrap_or_default()));
    let given = tags(given.collect())?;
    let version_id = set(verbs, asked, input.bucket, &input.key, input.version_id, given).await?;
    Ok(S3Response::new(PutObjectTaggingOutput { version_id }))
}

/// Removes an object's tags.
pub(crate) async fn delete_object_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: DeleteObjectTaggingInput,
) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
    let version_id = set(verbs, asked, input.bucket, &input.key, input.version_id, Vec::new()).await?;
    Ok(S3Response::new(DeleteObjectTaggingOutput { version_id }))
}
