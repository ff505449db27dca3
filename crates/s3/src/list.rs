//! Listings: objects by both versions of the API, and uploads in progress.
//!
//! Keys and rolled-up prefixes form one sorted stream and count together. A page is truncated exactly when there is a token, and the
//! token is the place at which the engine goes on, opaque to the client.

use crate::auth::Asked;
use crate::contents::{Contents, Writer};
use crate::errors::{About, error, of};
use crate::meta::{algorithm, stamp, sum_type};
use crate::names::{Written, key_of};
use crate::owner::{initiator, owner};
use crate::verbs::Verbs;
use bytes::Bytes;
use mw_world::{ListRequest, Session, Shown, UploadInfo};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// The most that one page holds (AWS: 1,000).
const PAGE_MAX: usize = 1000;

/// The first byte of a token: the form of the rest.
const TOKEN: u8 = 1;

/// Reads how much one page may hold.
pub(crate) fn limit(asked: Option<i32>) -> S3Result<usize> {
    match asked {
        None => Ok(PAGE_MAX),
        Some(n) => usize::try_from(n).map(|n| n.min(PAGE_MAX)).map_err(|_| {
            error(S3ErrorCode::InvalidArgument, "Argument maxKeys must be an integer between 0 and 2147483647")
        }),
    }
}

pub(crate) fn bytes(text: Option<&String>) -> S3Result<Bytes> {
    text.map_or_else(|| Ok(Bytes::new()), |t| key_of(t))
}

/// A page, its objects written.
struct Page {
    contents: Contents,
    prefixes: Vec<CommonPrefix>,
    count: usize,
    next: Option<Bytes>,
}

/// Asks the engine for one page, and writes its objects from where they lie. A page of nothing is not truncated: a client would go on
/// for ever.
fn page(session: &Session, request: &ListRequest, written: Written, owned: bool) -> S3Result<Page> {
    let listing = session.list_briefly(request).map_err(|e| of(&e, About::World))?;
    let (mut objects, mut prefixes) = (Writer::new(listing.len(), written, owned), Vec::new());
    let shown = listing.show(|item| match item {
        Shown::Object(brief) => objects.add(&brief),
        Shown::Prefix(prefix) => prefixes.push(CommonPrefix { prefix: Some(written.write(prefix)) }),
    });
    shown.map_err(|e| of(&e, About::World))?;
    Ok(Page { contents: objects.finish()?, prefixes, count: listing.len(), next: listing.next })
}

/// Makes an answer that the objects of the page belong into.
fn answer<T>(output: T, contents: Contents) -> S3Response<T> {
    let mut answer = S3Response::new(output);
    answer.extensions.insert(contents);
    answer
}

/// Lists by the first version of the API: a page goes on after a key.
pub(crate) async fn list_objects(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: ListObjectsInput,
) -> S3Result<S3Response<ListObjectsOutput>> {
    let written = Written::of(input.encoding_type.as_ref())?;
    let limit = limit(input.max_keys)?;
    let (prefix, delimiter) = (bytes(input.prefix.as_ref())?, bytes(input.delimiter.as_ref())?);
    let marker = bytes(input.marker.as_ref())?;
    let rolled = !delimiter.is_empty();
    let mut output = ListObjectsOutput {
        name: Some(input.bucket.clone()),
        prefix: Some(written.write(&prefix)),
        marker: Some(written.write(&marker)),
        max_keys: Some(limit as i32),
        delimiter: rolled.then(|| written.write(&delimiter)),
        encoding_type: input.encoding_type,
        ..ListObjectsOutput::default()
    };
    let request = ListRequest { prefix, delimiter: rolled.then_some(delimiter), after: marker, limit };
    let page = verbs.within(&asked, &input.bucket, move |s| page(&s, &request, written, true)).await?;
    output.is_truncated = Some(page.next.is_some());
    // Without a delimiter a client goes on after the last key, as AWS has it.
    output.next_marker = page.next.filter(|_| rolled).map(|next| written.write(&next));
    output.contents = Some(page.contents.place());
    output.common_prefixes = Some(page.prefixes);
    Ok(answer(output, page.contents))
}

/// Lists by the second version of the API: a page goes on at a token.
pub(crate) async fn list_objects_v2(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: ListObjectsV2Input,
) -> S3Result<S3Response<ListObjectsV2Output>> {
    let written = Written::of(input.encoding_type.as_ref())?;
    let limit = limit(input.max_keys)?;
    let (prefix, delimiter) = (bytes(input.prefix.as_ref())?, bytes(input.delimiter.as_ref())?);
    let start = bytes(input.start_after.as_ref())?;
    let after = match &input.continuation_token {
        Some(token) => after(token)?,
        None => start.clone(),
    };
    let (rolled, owned) = (!delimiter.is_empty(), input.fetch_owner == Some(true));
    let mut output = ListObjectsV2Output {
        name: Some(input.bucket.clone()),
        prefix: Some(written.write(&prefix)),
        max_keys: Some(limit as i32),
        continuation_token: input.continuation_token,
        delimiter: rolled.then(|| written.write(&delimiter)),
        encoding_type: input.encoding_type,
        start_after: input.start_after.map(|_| written.write(&start)),
        ..ListObjectsV2Output::default()
    };
    let request = ListRequest { prefix, delimiter: rolled.then_some(delimiter), after, limit };
    let page = verbs.within(&asked, &input.bucket, move |s| page(&s, &request, written, owned)).await?;
    output.key_count = Some(page.count as i32);
    output.is_truncated = Some(page.next.is_some());
    output.next_continuation_token = page.next.map(|next| token(&next));
    output.contents = Some(page.contents.place());
    output.common_prefixes = Some(page.prefixes);
    Ok(answer(output, page.contents))
}

fn token(next: &[u8]) -> String {
    base64_simd::URL_SAFE_NO_PAD.encode_to_string([&[TOKEN], next].concat())
}

fn after(token: &str) -> S3Result<Bytes> {
    let raw = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(token).unwrap_or_default();
    match raw.split_first() {
        Some((&TOKEN, next)) => Ok(Bytes::copy_from_slice(next)),
        _ => Err(error(S3ErrorCode::InvalidArgument, "The continuation token provided is incorrect")),
    }
}

/// Lists the uploads in progress.
pub(crate) async fn list_multipart_uploads(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: ListMultipartUploadsInput,
) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
    let written = Written::of(input.encoding_type.as_ref())?;
    let limit = limit(input.max_uploads)?;
    let (prefix, delimiter) = (bytes(input.prefix.as_ref())?, bytes(input.delimiter.as_ref())?);
    let marker = bytes(input.key_marker.as_ref())?;
    // AWS: the marker of uploads counts only beside a marker of keys. Without it a key is left behind with all its uploads.
    let after = (!marker.is_empty()).then(|| (marker.clone(), input.upload_id_marker.clone().unwrap_or_else(past)));
    let mut output = ListMultipartUploadsOutput {
        bucket: Some(input.bucket.clone()),
        prefix: Some(written.write(&prefix)),
        delimiter: (!delimiter.is_empty()).then(|| written.write(&delimiter)),
        key_marker: Some(written.write(&marker)),
        upload_id_marker: input.upload_id_marker,
        max_uploads: Some(limit as i32),
        encoding_type: input.encoding_type,
        ..ListMultipartUploadsOutput::default()
    };
    let found = verbs.within(&asked, &input.bucket, move |s| uploads(&s, &prefix, &delimiter, after, limit)).await?;
    output.is_truncated = Some(found.next.is_some());
    if let Some((key, id)) = found.next {
        output.next_key_marker = Some(written.write(&key));
        output.next_upload_id_marker = (id != past()).then_some(id);
    }
    output.common_prefixes =
        Some(found.prefixes.iter().map(|p| CommonPrefix { prefix: Some(written.write(p)) }).collect());
    output.uploads = Some(found.uploads.iter().map(|u| upload(u, written)).collect());
    Ok(S3Response::new(output))
}

/// An upload id after every upload id.
fn past() -> String {
    "\u{10FFFF}".to_owned()
}

fn upload(info: &UploadInfo, written: Written) -> MultipartUpload {
    MultipartUpload {
        key: Some(written.write(&info.key)),
        upload_id: Some(info.id.clone()),
        initiated: Some(stamp(info.created)),
        initiator: Some(initiator()),
        owner: Some(owner()),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        checksum_algorithm: info.options.algorithm.map(algorithm),
        checksum_type: info.options.algorithm.map(|_| sum_type(info.options.composite)),
    }
}

#[derive(Default)]
struct Uploads {
    uploads: Vec<UploadInfo>,
    prefixes: Vec<Bytes>,
    next: Option<(Bytes, String)>,
}

/// Collects a page of uploads, rolled up at the delimiter.
fn uploads(
    session: &Session,
    prefix: &Bytes,
    delimiter: &Bytes,
    mut after: Option<(Bytes, String)>,
    limit: usize,
) -> S3Result<Uploads> {
    let mut page = Uploads::default();
    if limit == 0 {
        return Ok(page);
    }
    // A marker may lie in a prefix that an earlier page rolled up.
    let mut rolled = after.as_ref().and_then(|(key, _)| rolled_up(key, prefix, delimiter));
    loop {
        let (found, more) = session.uploads(prefix, after.clone(), PAGE_MAX).map_err(|e| of(&e, About::World))?;
        for info in found {
            let here = (info.key.clone(), info.id.clone());
            let up = rolled_up(&info.key, prefix, delimiter);
            if up.is_some() && up == rolled {
                after = Some(here);
                continue;
            }
            if page.uploads.len() + page.prefixes.len() == limit {
                page.next = after.map(|(key, id)| if rolled.is_some() { (key, past()) } else { (key, id) });
                return Ok(page);
            }
            match &up {
                Some(up) => page.prefixes.push(up.clone()),
                None => page.uploads.push(info),
            }
            rolled = up;
            after = Some(here);
        }
        if !more {
            return Ok(page);
        }
    }
}

fn rolled_up(key: &Bytes, prefix: &Bytes, delimiter: &Bytes) -> Option<Bytes> {
    let rest = key.strip_prefix(&prefix[..])?;
    let at = (!delimiter.is_empty()).then(|| rest.windows(delimiter.len()).position(|w| w == &delimiter[..]))??;
    Some(key.slice(..prefix.len() + at + delimiter.len()))
}
