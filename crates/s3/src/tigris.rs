//! The Tigris dialect: what its clients ask for beside S3's own operations.
//!
//! [`wish`] decides from the verified request alone, without I/O, what is meant, or that it is an operation of S3 for the router;
//! [`grant`] does it. Forks, snapshots and merges are verbs of the engine, and every bucket that a request names, in its path, its
//! headers or its body, is opened for the caller before anything is done.
//!
//! - `buckets`: fork, snapshot, merge, rebase, delete; `listing`: the listing in JSON; `settings`: what is asked and changed of one bucket;
//! - `sharing`: presigned URLs; `bundle`, `tar`, `pack`: many objects in one answer.

mod buckets;
mod bundle;
mod listing;
mod pack;
mod settings;
mod sharing;
mod tar;

use crate::auth::Asked;
use crate::dialect::Manner;
use crate::errors::error;
use crate::target::Target;
use crate::vendor::{self, Place, argument};
use crate::verbs::Verbs;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode};
use mw_model::Version;
use s3s::{Body, S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// What a request of the dialect asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A new bucket from another one.
    Fork {
        /// The bucket to fork.
        source: String,
        /// The instant; none: now.
        at: Option<Version>,
        /// Whether version ids are asked for; a fork inherits them in any case.
        versioned: bool,
    },
    /// A snapshot, and what it is called.
    Snapshot(Option<String>),
    /// A fork's changes brought to the bucket.
    Merge(String),
    /// The base's changes brought to the bucket.
    Rebase,
    /// A snapshot deleted, and never the bucket.
    DropSnapshot(Version),
    /// The bucket deleted, perhaps with what is in it.
    Delete(bool),
    /// The listing in JSON.
    Listing,
    /// What the bucket is, in JSON.
    Metadata,
    /// Settings of the bucket changed.
    Patch,
    /// A presigned URL.
    Presign,
    /// Many objects in one answer.
    Bundle,
}

/// A request of the dialect.
pub(crate) struct Call {
    /// Who asks, and with what headers.
    pub(crate) asked: Arc<Asked>,
    /// What is addressed.
    pub(crate) target: Target,
    /// How it is answered.
    pub(crate) manner: Manner,
    /// The whole body.
    pub(crate) body: Body,
}

/// Decides what a request asks for; none: it is for the router.
///
/// # Errors
/// `InvalidArgument` and `NotImplemented` for what cannot be meant, or is not offered.
pub(crate) fn wish(method: &Method, target: &Target, headers: &HeaderMap, json: bool) -> S3Result<Option<Wish>> {
    match (target.place(), method) {
        (Place::Store, &Method::GET) if json && !headers.contains_key(vendor::SNAPSHOT) => Ok(Some(Wish::Listing)),
        (Place::Store, &Method::POST) => match target.param("func") {
            Some("presign") => Ok(Some(Wish::Presign)),
            Some(_) => Err(error(S3ErrorCode::NotImplemented, "The function is not implemented; there is presign.")),
            None => Ok(None),
        },
        (Place::Bucket, &Method::GET) if target.param("metadata").is_some() => Ok(Some(Wish::Metadata)),
        (Place::Bucket, &Method::PATCH) => Ok(Some(Wish::Patch)),
        (Place::Bucket, &Method::POST) if target.param("bundle").is_some() => Ok(Some(Wish::Bundle)),
        (Place::Bucket, &Method::POST) if target.param("restore").is_some() => Err(error(
            S3ErrorCode::NotImplemented,
            "Restoring a deleted bucket is not implemented; fork a snapshot of one that is there.",
        )),
        (Place::Bucket, &Method::PUT) => changed(headers),
        (Place::Bucket, &Method::DELETE) => deleted(headers),
        _ => Ok(None),
    }
}

/// What a PUT of a bucket asks for. Two verbs at once are none.
fn changed(headers: &HeaderMap) -> S3Result<Option<Wish>> {
    let verbs = [vendor::SNAPSHOT, vendor::FORK_SOURCE, vendor::MERGE, vendor::REBASE];
    let named: Vec<&str> = verbs.into_iter().filter(|name| headers.contains_key(*name)).collect();
    if let [first, second, ..] = named[..] {
        return Err(argument(format!(
            "The headers {first} and {second} ask for two things at once; nothing was done."
        )));
    }
    let fork = named.first() == Some(&vendor::FORK_SOURCE);
    for (name, fits) in [(vendor::FORK_AT, fork), (vendor::ENABLE, fork || named.is_empty())] {
        if headers.contains_key(name) && !fits {
            return Err(argument(format!("The header {name} does not go with this request; nothing was done.")));
        }
    }
    if let Some(label) = vendor::label(headers)? {
        return Ok(Some(Wish::Snapshot(label)));
    }
    if let Some(source) = vendor::text(headers, vendor::FORK_SOURCE)? {
        let at = vendor::version(headers, vendor::FORK_AT)?;
        let versioned = vendor::flag(headers, vendor::ENABLE)?;
        return Ok(Some(Wish::Fork { source: source.to_owned(), at, versioned }));
    }
    if let Some(fork) = vendor::text(headers, vendor::MERGE)? {
        return Ok(Some(Wish::Merge(fork.to_owned())));
    }
    match (headers.contains_key(vendor::REBASE), vendor::flag(headers, vendor::REBASE)?) {
        (false, _) => Ok(None),
        (true, true) => Ok(Some(Wish::Rebase)),
        (true, false) => Err(argument(format!("The header {} is true or absent.", vendor::REBASE))),
    }
}

/// What a DELETE of a bucket asks for.
fn deleted(headers: &HeaderMap) -> S3Result<Option<Wish>> {
    let force = vendor::flag(headers, vendor::FORCE)? || vendor::flag(headers, vendor::FORCE_BARE)?;
    match vendor::version(headers, vendor::VERSION)? {
        Some(_) if force => {
            Err(argument("A snapshot is deleted without force; the headers ask for two things, and nothing was done."))
        }
        Some(version) => Ok(Some(Wish::DropSnapshot(version))),
        None => Ok(force.then_some(Wish::Delete(true))),
    }
}

/// Does what was asked for.
///
/// # Errors
/// The one refusal for every bucket that the key may not reach; else those of the verb.
pub(crate) async fn grant(verbs: &Verbs, wish: Wish, call: Call) -> S3Result<S3Response<Body>> {
    match wish {
        Wish::Fork { source, at, versioned } => buckets::fork(verbs, call, source, at, versioned).await,
        Wish::Snapshot(label) => buckets::snapshot(verbs, call, label).await,
        Wish::Merge(fork) => buckets::merge(verbs, call, fork).await,
        Wish::Rebase => buckets::rebase(verbs, call).await,
        Wish::DropSnapshot(version) => buckets::drop_snapshot(verbs, call, version).await,
        Wish::Delete(force) => buckets::delete(verbs, call, force).await,
        Wish::Listing => listing::buckets(verbs, call).await,
        Wish::Metadata => settings::metadata(verbs, call).await,
        Wish::Patch => settings::patch(verbs, call).await,
        Wish::Presign => sharing::presign(verbs, call).await,
        Wish::Bundle => bundle::bundle(verbs, call).await,
    }
}

/// Makes an answer without content.
fn empty(status: StatusCode) -> S3Response<Body> {
    S3Response { status: Some(status), ..S3Response::new(Body::empty()) }
}

/// Makes an answer in JSON.
fn json(status: StatusCode, document: &serde_json::Value) -> S3Response<Body> {
    let mut answer = S3Response { status: Some(status), ..S3Response::new(Body::from(document.to_string())) };
    answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Says which version a verb came to.
fn with_version(mut answer: S3Response<Body>, version: Version) -> S3Response<Body> {
    if let Ok(value) = HeaderValue::from_str(&version.to_string()) {
        answer.headers.insert(vendor::VERSION, value);
    }
    answer
}

/// Writes an instant as ISO 8601.
fn date(nanoseconds: u64) -> String {
    let mut text = Vec::new();
    let stamp = crate::meta::stamp(nanoseconds);
    // Only years of more than four digits cannot be written; no clock of a store has them.
    stamp
        .format(s3s::dto::TimestampFormat::DateTime, &mut text)
        .map_or_else(|_| String::new(), |()| String::from_utf8(text).unwrap_or_default())
}

/// Reads a body that is a JSON document.
fn document(body: &Body) -> S3Result<serde_json::Value> {
    let bytes = body.bytes().unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|e| {
        error(S3ErrorCode::InvalidRequest, format!("The body is not the JSON document that this takes: {e}."))
    })
}

#[cfg(test)]
mod tests;
