//! A bundle: many objects of one instant in one answer, a tar archive that is made, and compressed where that is asked for, as it is sent.
//!
//! Which keys there are is known before the first byte, so that the headers tell the truth; a failure after that breaks the connection, and
//! no client takes a part for the whole.

use super::pack::{Compression, packed};
use super::tar;
use super::{Call, document};
use crate::body::{PIECE, read};
use crate::errors::{About, error, of};
use crate::names::{key_of, text_of};
use crate::vendor::{self, argument};
use crate::verbs::Verbs;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use mw_model::ErrorKind;
use mw_world::{At, Object, Session};
use s3s::dto::StreamingBlob;
use s3s::{Body, S3Error, S3ErrorCode, S3Response, S3Result};
use serde_json::{Value, json};
use std::sync::Arc;

/// The most keys of one bundle.
const KEYS_MAX: usize = 5000;
/// The name under which a bundle tells what is not in it.
const ERRORS: &[u8] = b"__bundle_errors.json";

/// What goes into a bundle.
struct Plan {
    objects: Vec<Arc<Object>>,
    /// What is not in it, each with its reason.
    skipped: Vec<(Bytes, S3Error)>,
}

/// Something to send.
enum Step {
    Bytes(Bytes),
    Piece { object: Arc<Object>, offset: u64, length: u64 },
}

/// Answers many objects at once.
pub(super) async fn bundle(verbs: &Verbs, call: Call) -> S3Result<S3Response<Body>> {
    let said = |name: &str, known: &[&str]| match vendor::text(&call.asked.headers, name)? {
        None => Ok(known[0].to_owned()),
        Some(value) if known.contains(&value) => Ok(value.to_owned()),
        Some(value) => Err(error(
            S3ErrorCode::NotImplemented,
            format!("{name}: {value} is not implemented; there is {}.", known.join(", ")),
        )),
    };
    said(vendor::BUNDLE_FORMAT, &["tar"])?;
    let compression = match said(vendor::BUNDLE_COMPRESSION, &["none", "gzip", "zstd"])?.as_str() {
        "gzip" => Some(Compression::Gzip),
        "zstd" => Some(Compression::Zstd),
        _ => None,
    };
    let strict = said(vendor::BUNDLE_ON_ERROR, &["skip", "fail"])? == "fail";
    let keys = keys(&document(&call.body)?)?;
    let at = vendor::version(&call.asked.headers, vendor::VERSION)?;
    let plan = verbs
        .within(&call.asked, &call.target.bucket, move |session| {
            // All objects are of one instant, whatever happens meanwhile.
            let version = match at {
                Some(version) => version,
                None => session.info().map_err(|e| of(&e, About::World))?.version,
            };
            let session = session.at(&At::Version(version)).map_err(|e| of(&e, About::Version))?;
            plan(&session, keys, strict)
        })
        .await?;
    answer(verbs, plan, compression)
}

fn keys(ask: &Value) -> S3Result<Vec<Bytes>> {
    let keys = ask
        .get("keys")
        .and_then(Value::as_array)
        .ok_or_else(|| argument("A bundle names its keys: {\"keys\": [...]}."))?;
    if keys.is_empty() || keys.len() > KEYS_MAX {
        return Err(argument(format!("A bundle is of 1 to {KEYS_MAX} keys.")));
    }
    keys.iter().map(|key| key.as_str().ok_or_else(|| argument("A key is a text.")).and_then(key_of)).collect()
}

fn plan(session: &Session, keys: Vec<Bytes>, strict: bool) -> S3Result<Plan> {
    let mut plan = Plan { objects: Vec::new(), skipped: Vec::new() };
    for key in keys {
        match session.get(&key) {
            Ok(object) => plan.objects.push(Arc::new(object)),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Denied) && !strict => {
                plan.skipped.push((key, of(&e, About::Key)));
            }
            Err(e) => return Err(of(&e, About::Key)),
        }
    }
    Ok(plan)
}

fn answer(verbs: &Verbs, plan: Plan, compression: Option<Compression>) -> S3Result<S3Response<Body>> {
    let figures = [
        ("x-tigris-bundle-count", plan.objects.len() as u64),
        ("x-tigris-bundle-bytes", plan.objects.iter().map(|object| object.info.size).sum()),
        ("x-tigris-bundle-skipped", plan.skipped.len() as u64),
    ];
    let pool = verbs.pool.clone();
    let pieces = stream::iter(steps(plan))
        .then(move |step| {
            let pool = pool.clone();
            // A task of its own, so that the stream can be shared as the body of an answer must be.
            tokio::spawn(async move {
                match step {
                    Step::Bytes(bytes) => Ok(bytes),
                    Step::Piece { object, offset, length } => read(&pool, object, offset, length).await,
                }
            })
        })
        .map(|read| read.map_err(std::io::Error::other)?.map_err(std::io::Error::other));
    let (body, kind) = match compression {
        None => (StreamingBlob::wrap(pieces.into_stream()), "application/x-tar"),
        Some(how) => (StreamingBlob::wrap(packed(verbs.pool.clone(), pieces, how)?), how.media_type()),
    };
    let mut answer = S3Response { status: Some(StatusCode::OK), ..S3Response::new(Body::from(body)) };
    // A type and no Content-Encoding: the file is compressed, not the way to it.
    answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, figure) in figures {
        answer.headers.insert(name, HeaderValue::from(figure));
    }
    Ok(answer)
}

fn steps(plan: Plan) -> impl Iterator<Item = Step> + Send + Sync + 'static {
    let told = (!plan.skipped.is_empty()).then(|| Bytes::from(errors(&plan.skipped)));
    plan.objects.into_iter().flat_map(of_object).chain(told.map(Step::Bytes)).chain([Step::Bytes(tar::end().into())])
}

/// The header, the content and the zeros behind it.
fn of_object(object: Arc<Object>) -> impl Iterator<Item = Step> {
    let size = object.info.size;
    let header = tar::header(&object.info.key, size, object.info.modified / 1_000_000_000);
    let pieces = (0..size).step_by(PIECE).map(move |offset| Step::Piece {
        object: Arc::clone(&object),
        offset,
        length: (size - offset).min(PIECE as u64),
    });
    let fill = Bytes::from(vec![0; tar::padding(size)]);
    [Step::Bytes(header.into())].into_iter().chain(pieces).chain([Step::Bytes(fill)]).filter(|step| match step {
        Step::Bytes(bytes) => !bytes.is_empty(),
        Step::Piece { .. } => true,
    })
}

/// The entry that tells what is not in the bundle, and why.
fn errors(skipped: &[(Bytes, S3Error)]) -> Vec<u8> {
    let told = |(key, why): &(Bytes, S3Error)| json!({ "key": text_of(key), "error": why.code().as_str(), "message": why.message() });
    let text = Value::Array(skipped.iter().map(told).collect()).to_string();
    let mut entry = tar::header(ERRORS, text.len() as u64, 0);
    entry.extend_from_slice(text.as_bytes());
    entry.resize(entry.len() + tar::padding(text.len() as u64), 0);
    entry
}
