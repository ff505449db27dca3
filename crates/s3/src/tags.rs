//! Tags of an object.

use crate::auth::Asked;
use crate::errors::{About, of};
use crate::meta::tags;
use crate::names::key_of;
use crate::verbs::Verbs;
use s3s::dto::*;
use s3s::{S3Response, S3Result};
use std::sync::Arc;

/// Answers an object's tags.
pub(crate) async fn get_object_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetObjectTaggingInput,
) -> S3Result<S3Response<GetObjectTaggingOutput>> {
    let key = key_of(&input.key)?;
    let (door, version) = (verbs.clone(), input.version_id);
    let info = verbs
        .pool
        .run(move || {
            door.session(&asked, &input.bucket, version.as_deref())?.head(&key).map_err(|e| of(&e, About::Key))
        })
        .await?;
    let tag_set = info.meta.tags.into_iter().map(|(key, value)| Tag { key: Some(key), value: Some(value) }).collect();
    Ok(S3Response::new(GetObjectTaggingOutput { tag_set, version_id: None }))
}

/// Replaces an object's tags.
pub(crate) async fn put_object_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutObjectTaggingInput,
) -> S3Result<S3Response<PutObjectTaggingOutput>> {
    let key = key_of(&input.key)?;
    let set = input.tagging.tag_set.into_iter().map(|t| (t.key.unwrap_or_default(), t.value.unwrap_or_default()));
    let set = tags(set.collect())?;
    verbs.within(&asked, &input.bucket, move |s| s.set_tags(&key, set).map_err(|e| of(&e, About::Key))).await?;
    Ok(S3Response::new(PutObjectTaggingOutput::default()))
}

/// Removes an object's tags.
pub(crate) async fn delete_object_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: DeleteObjectTaggingInput,
) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
    let key = key_of(&input.key)?;
    verbs.within(&asked, &input.bucket, move |s| s.set_tags(&key, Vec::new()).map_err(|e| of(&e, About::Key))).await?;
    Ok(S3Response::new(DeleteObjectTaggingOutput::default()))
}
