//! Reads of one object: GET, HEAD, and its attributes.
//!
//! GET and HEAD decide alike: conditions first, then the part or the range, then the headers; only the content differs. The object is
//! pinned when it is found, so that an answer is of one version from its first header to its last byte.

use crate::auth::Asked;
use crate::body::Outgoing;
use crate::conditions::{Span, check, if_range, no_such_part, read, span};
use crate::errors::error;
use crate::meta::{as_given, class, content_type, etag, metadata, stamp, sum_type, sums, sums_typed};
use crate::names::key_of;
use crate::verbs::Verbs;
use crate::versions;
use hyper::StatusCode;
use hyper::header::{ETAG, HeaderMap, HeaderValue, LAST_MODIFIED};
use mw_world::{Checksum as Sum, ObjectInfo};
use s3s::dto::*;
use s3s::{Body, S3Error, S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// What of an object is answered.
struct Chosen {
    offset: u64,
    length: u64,
    /// The `Content-Range`, when it is a part of the content.
    range: Option<String>,
    /// How many parts the object has, when one was asked for.
    parts: Option<i32>,
    /// The stored checksums of what is answered, where they are wanted.
    sums: Vec<Sum>,
}

/// Decides what is answered, or that nothing is.
fn choose(asked: &Asked, info: &ObjectInfo, part: Option<i32>) -> S3Result<Chosen> {
    check(&read(&asked.headers, ""), &info.etag, info.modified).map_err(|e| with_validators(e, info))?;
    let wanted = asked.header("x-amz-checksum-mode").is_some_and(|m| m.eq_ignore_ascii_case("ENABLED"));
    let of_all = || if wanted { info.checksums.clone() } else { Vec::new() };
    let whole = || Chosen { offset: 0, length: info.size, range: None, parts: None, sums: of_all() };
    let range = span(&asked.headers).filter(|_| if_range(&asked.headers, &info.etag, info.modified));
    let (offset, length, parts) = match (part, range) {
        (Some(_), Some(_)) => {
            return Err(error(
                S3ErrorCode::InvalidRequest,
                "Cannot specify both Range header and partNumber query parameter",
            ));
        }
        (None, None) => return Ok(whole()),
        (Some(number), None) => match part_of(info, number)? {
            Some(chosen) => chosen,
            None => return Ok(whole()),
        },
        (None, Some(range)) => match Span::within(range, info.size)? {
            Some((offset, length)) => (offset, length, None),
            None => return Ok(whole()),
        },
    };
    let range = format!("bytes {offset}-{}/{}", offset + length - 1, info.size);
    let of_part = part.and_then(|number| part_sum(info, number as usize - 1)).filter(|_| wanted);
    let sums = match of_part {
        Some(sum) => vec![sum],
        // What is known of all the bytes is known of these only when they are all.
        None if length == info.size => of_all(),
        None => Vec::new(),
    };
    Ok(Chosen { offset, length, range: Some(range), parts, sums })
}

/// Returns the checksum of a part, of the kind that the object's is, as AWS says it.
fn part_sum(info: &ObjectInfo, at: usize) -> Option<Sum> {
    let sums = info.part_sums.as_ref()?;
    let composite = info.checksums.iter().any(|sum| sum.algorithm == sums.algorithm && sum.composite);
    Some(Sum { algorithm: sums.algorithm, value: sums.values.get(at)?.clone(), composite })
}

/// Finds a part; an object that was put in one piece is its own first part. An empty one has no range to name.
fn part_of(info: &ObjectInfo, number: i32) -> S3Result<Option<(u64, u64, Option<i32>)>> {
    let number = usize::try_from(number).ok().filter(|n| (1..=10_000).contains(n)).ok_or_else(|| {
        error(S3ErrorCode::InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive")
    })?;
    if info.parts.is_empty() && number == 1 {
        return Ok((info.size > 0).then_some((0, info.size, None)));
    }
    let length = *info.parts.get(number - 1).ok_or_else(no_such_part)?;
    let offset = info.parts[..number - 1].iter().sum();
    Ok((length > 0).then_some((offset, length, Some(info.parts.len() as i32))))
}

/// A 304 names the version that the client has (RFC 9110, 15.4.5).
fn with_validators(mut error: S3Error, info: &ObjectInfo) -> S3Error {
    if error.status_code() == Some(StatusCode::NOT_MODIFIED) {
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_str(&format!("\"{}\"", info.etag)) {
            headers.insert(ETAG, value);
        }
        let mut date = Vec::new();
        if stamp(info.modified).format(TimestampFormat::HttpDate, &mut date).is_ok()
            && let Ok(value) = HeaderValue::from_bytes(&date)
        {
            headers.insert(LAST_MODIFIED, value);
        }
        error.set_headers(headers);
    }
    error
}

/// Fills the fields that GET and HEAD have in common.
macro_rules! described {
    ($output:expr, $info:expr, $chosen:expr) => {{
        let (info, chosen): (&ObjectInfo, &Chosen) = ($info, $chosen);
        $output.accept_ranges = Some("bytes".to_owned());
        $output.cache_control = info.meta.cache_control.clone();
        $output.content_disposition = info.meta.content_disposition.clone();
        $output.content_encoding = info.meta.content_encoding.clone();
        $output.content_language = info.meta.content_language.clone();
        $output.content_length = Some(chosen.length as i64);
        $output.content_range = chosen.range.clone();
        $output.content_type = Some(content_type(info));
        $output.e_tag = Some(etag(&info.etag));
        $output.last_modified = Some(stamp(info.modified));
        $output.metadata = metadata(info);
        $output.parts_count = chosen.parts;
        $output.storage_class = class(info);
        sums_typed!($output, &chosen.sums);
    }};
}

fn status(chosen: &Chosen) -> Option<StatusCode> {
    chosen.range.is_some().then_some(StatusCode::PARTIAL_CONTENT)
}

/// Answers an object's content.
pub(crate) async fn get_object(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetObjectInput,
) -> S3Result<S3Response<GetObjectOutput>> {
    let key = key_of(&input.key)?;
    let (door, version) = (verbs.clone(), input.version_id);
    let find = move || {
        let (session, version) = door.versioned(&asked, &input.bucket, version.as_deref())?;
        let object = versions::object(&session, &key, version)?;
        let id = versions::id_of(&session, &object.info);
        let chosen = choose(&asked, &object.info, input.part_number)?;
        let outgoing = Outgoing::new(object, chosen.offset, chosen.length)?;
        Ok((outgoing, id, chosen))
    };
    let (outgoing, id, chosen) = verbs.pool.run(find).await?;
    let info = &outgoing.object.info;
    let mut output = GetObjectOutput { version_id: id, ..GetObjectOutput::default() };
    described!(output, info, &chosen);
    let mut headers = as_given(info);
    if input.response_expires.is_some() {
        headers.remove(hyper::header::EXPIRES);
    }
    output.body = Some(outgoing.send(&verbs.pool));
    Ok(S3Response { status: status(&chosen), ..S3Response::with_headers(output, headers) })
}

/// Looks an object up, now or as it was at a version.
async fn info_of(
    verbs: &Verbs,
    asked: &Arc<Asked>,
    bucket: String,
    key: bytes::Bytes,
    version: Option<String>,
) -> S3Result<(ObjectInfo, Option<String>)> {
    let (door, caller) = (verbs.clone(), Arc::clone(asked));
    let look = move || {
        let (session, version) = door.versioned(&caller, &bucket, version.as_deref())?;
        let info = versions::info(&session, &key, version)?;
        let id = versions::id_of(&session, &info);
        Ok((info, id))
    };
    verbs.pool.run(look).await
}

/// Answers an object's headers.
pub(crate) async fn head_object(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: HeadObjectInput,
) -> S3Result<S3Response<HeadObjectOutput>> {
    let key = key_of(&input.key)?;
    let (info, id) = info_of(verbs, &asked, input.bucket, key, input.version_id).await?;
    let chosen = choose(&asked, &info, input.part_number)?;
    let mut output = HeadObjectOutput { version_id: id, ..HeadObjectOutput::default() };
    described!(output, &info, &chosen);
    let given = |value: Option<String>, field: &mut Option<String>| {
        if value.is_some() {
            *field = value;
        }
    };
    given(input.response_cache_control, &mut output.cache_control);
    given(input.response_content_disposition, &mut output.content_disposition);
    given(input.response_content_encoding, &mut output.content_encoding);
    given(input.response_content_language, &mut output.content_language);
    given(input.response_content_type, &mut output.content_type);
    let mut headers = as_given(&info);
    if let Some(expires) = input.response_expires {
        headers.remove(hyper::header::EXPIRES);
        output.expires = Some(expires);
    }
    Ok(S3Response { status: status(&chosen), ..S3Response::with_headers(output, headers) })
}

/// Answers what is asked for of an object's attributes.
pub(crate) async fn get_object_attributes(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetObjectAttributesInput,
) -> S3Result<S3Response<GetObjectAttributesOutput>> {
    let key = key_of(&input.key)?;
    let (info, id) = info_of(verbs, &asked, input.bucket, key, input.version_id).await?;
    check(&read(&asked.headers, ""), &info.etag, info.modified)?;
    let wants = |name: &str| input.object_attributes.iter().any(|a| a.as_str().split(',').any(|a| a.trim() == name));
    let mut output =
        GetObjectAttributesOutput { last_modified: Some(stamp(info.modified)), ..GetObjectAttributesOutput::default() };
    output.version_id = id;
    output.e_tag = wants("ETag").then(|| etag(&info.etag));
    output.object_size = wants("ObjectSize").then_some(info.size as i64);
    output.storage_class = wants("StorageClass")
        .then(|| class(&info).unwrap_or_else(|| StorageClass::from_static(StorageClass::STANDARD)));
    if wants("Checksum") && !info.checksums.is_empty() {
        let mut checksum = Checksum::default();
        sums!(checksum, &info.checksums);
        checksum.checksum_type = info.checksums.first().map(|c| sum_type(c.composite));
        output.checksum = Some(checksum);
    }
    if wants("ObjectParts") && !info.parts.is_empty() {
        output.object_parts = Some(parts(&info, input.part_number_marker, input.max_parts));
    }
    Ok(S3Response::new(output))
}

/// Takes the quotes off the entity tag in an answer of attributes: of all the documents of S3, AWS writes it bare in this one.
pub(crate) fn with_bare_etag(body: Body) -> Body {
    let Some(document) = body.bytes() else { return body };
    let text = String::from_utf8_lossy(&document);
    Body::from(text.replace("<ETag>\"", "<ETag>").replace("\"</ETag>", "</ETag>"))
}

fn parts(info: &ObjectInfo, marker: Option<i32>, max: Option<i32>) -> GetObjectAttributesParts {
    let after = marker.and_then(|m| usize::try_from(m).ok()).unwrap_or(0);
    let max = max.and_then(|m| usize::try_from(m).ok()).unwrap_or(1000).min(1000);
    // AWS lists the parts themselves only of uploads that were begun with an algorithm; of others only how many there are. Those that
    // were completed before checksums of parts were kept show themselves by a composite checksum.
    let shown = info.part_sums.is_some() || info.checksums.iter().any(|sum| sum.composite);
    let listed: Vec<ObjectPart> = info
        .parts
        .iter()
        .enumerate()
        .skip(after)
        .take(if shown { max } else { 0 })
        .map(|(at, size)| {
            let mut part =
                ObjectPart { part_number: Some(at as i32 + 1), size: Some(*size as i64), ..ObjectPart::default() };
            let sum: Vec<Sum> = part_sum(info, at).into_iter().collect();
            sums!(part, &sum);
            part
        })
        .collect();
    let last = listed.last().and_then(|p| p.part_number);
    GetObjectAttributesParts {
        is_truncated: Some(shown && after + listed.len() < info.parts.len()),
        max_parts: Some(max as i32),
        next_part_number_marker: last,
        part_number_marker: Some(after as i32),
        parts: (!listed.is_empty()).then_some(listed),
        total_parts_count: Some(info.parts.len() as i32),
    }
}
