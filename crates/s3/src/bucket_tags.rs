//! The tags of a bucket: a setting of its world, given when it is made or later.
//!
//! `s3s` reads past the tags in the document of a new bucket, so that part is read here.

use crate::auth::Asked;
use crate::errors::{About, error, internal, of};
use crate::meta::tags_within;
use crate::verbs::Verbs;
use s3s::dto::*;
use s3s::xml::{DeError, DeResult, Deserialize, DeserializeContent, Deserializer};
use s3s::{Body, S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// The name of the setting that holds a bucket's tags.
const TAGGING: &str = "tagging";
/// The most tags of a bucket (AWS: 50).
const TAGS_MAX: usize = 50;

/// Checks tags and writes them as they are kept.
fn kept(tags: TagSet) -> S3Result<Vec<u8>> {
    let given = tags.into_iter().map(|t| (t.key.unwrap_or_default(), t.value.unwrap_or_default()));
    serde_json::to_vec(&tags_within(given.collect(), TAGS_MAX)?).map_err(|e| internal(&e))
}

/// The tags in the document of a new bucket.
#[derive(Default)]
struct OfNew(Option<TagSet>);

impl<'xml> DeserializeContent<'xml> for OfNew {
    fn deserialize_content(d: &mut Deserializer<'xml>) -> DeResult<Self> {
        let mut tags = None;
        d.for_each_element(|d, name| match name {
            b"Tags" if tags.is_some() => Err(DeError::DuplicateField),
            b"Tags" => {
                tags = Some(d.list_content("Tag")?);
                Ok(())
            }
            // A list of what has no name is how this reader goes past an element.
            _ => d.list_content::<Tag>("").map(drop),
        })?;
        Ok(Self(tags))
    }
}

impl<'xml> Deserialize<'xml> for OfNew {
    fn deserialize(d: &mut Deserializer<'xml>) -> DeResult<Self> {
        d.named_element("CreateBucketConfiguration", Deserializer::content)
    }
}

/// Returns what the document of a new bucket has its world keep from the start.
///
/// # Errors
/// `MalformedXML`, `InvalidTag`.
pub(crate) fn of_new(document: &Body) -> S3Result<Vec<(String, Vec<u8>)>> {
    let document = document.bytes().unwrap_or_default();
    if document.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = Deserializer::new(&document);
    let read = OfNew::deserialize(&mut reader).and_then(|read| reader.expect_eof().map(|()| read));
    let OfNew(tags) = read.map_err(|_| S3ErrorCode::MalformedXML)?;
    let tags = tags.filter(|tags| !tags.is_empty()).map(kept).transpose()?;
    Ok(tags.map(|tags| (TAGGING.to_owned(), tags)).into_iter().collect())
}

/// Answers a bucket's tags.
pub(crate) async fn get_bucket_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetBucketTaggingInput,
) -> S3Result<S3Response<GetBucketTaggingOutput>> {
    let stored = verbs
        .within(&asked, &input.bucket, |session| session.setting(TAGGING, None).map_err(|e| of(&e, About::World)))
        .await?
        .ok_or_else(|| error(S3ErrorCode::NoSuchTagSet, "The TagSet does not exist"))?;
    let tags: Vec<(String, String)> = serde_json::from_slice(&stored).map_err(|e| internal(&e))?;
    let tag_set = tags.into_iter().map(|(key, value)| Tag { key: Some(key), value: Some(value) }).collect();
    Ok(S3Response::new(GetBucketTaggingOutput { tag_set }))
}

/// Replaces a bucket's tags.
pub(crate) async fn put_bucket_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutBucketTaggingInput,
) -> S3Result<S3Response<PutBucketTaggingOutput>> {
    let written = kept(input.tagging.tag_set)?;
    verbs
        .within(&asked, &input.bucket, move |session| {
            session.set_setting(TAGGING, None, Some(&written)).map_err(|e| of(&e, About::World))
        })
        .await?;
    Ok(S3Response::new(PutBucketTaggingOutput::default()))
}

/// Removes a bucket's tags.
pub(crate) async fn delete_bucket_tagging(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: DeleteBucketTaggingInput,
) -> S3Result<S3Response<DeleteBucketTaggingOutput>> {
    verbs
        .within(&asked, &input.bucket, |session| {
            session.set_setting(TAGGING, None, None).map_err(|e| of(&e, About::World))
        })
        .await?;
    Ok(S3Response::new(DeleteBucketTaggingOutput::default()))
}
