//! Conditional and range headers, read after the signature was verified and before the router sees them.
//!
//! RFC 9110 decides: a date or range that cannot be read is as if it were absent (13.1.3, 14.2), several ETags may be listed, and
//! the order of evaluation is that of 13.2.2. AWS adds that several ranges give the whole object.

use crate::errors::{custom, error, precondition};
use hyper::HeaderMap;
use mw_world::Conditions;
use s3s::dto::{Timestamp, TimestampFormat};
use s3s::{S3Error, S3ErrorCode, S3Result};

const SECOND: u64 = 1_000_000_000;

/// The headers that `conditions` reads; the router never sees them.
pub(crate) const NAMES: [&str; 10] = [
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "if-range",
    "range",
    "x-amz-copy-source-if-match",
    "x-amz-copy-source-if-none-match",
    "x-amz-copy-source-if-modified-since",
    "x-amz-copy-source-if-unmodified-since",
];

/// Reads the four conditions whose names start with `prefix`.
pub(crate) fn read(headers: &HeaderMap, prefix: &str) -> Conditions {
    let get = |name: &str| {
        let values: Vec<_> =
            headers.get_all(format!("{prefix}{name}")).iter().map(|v| String::from_utf8_lossy(v.as_bytes())).collect();
        (!values.is_empty()).then(|| values.join(","))
    };
    Conditions {
        if_match: get("if-match").map(|v| etags(&v)),
        if_none_match: get("if-none-match").map(|v| etags(&v)),
        if_modified_since: get("if-modified-since").and_then(|v| date(&v)),
        if_unmodified_since: get("if-unmodified-since").and_then(|v| date(&v)),
    }
}

/// Splits a list of entity tags; quotes and the mark of a weak tag are dropped.
fn etags(list: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = list.trim();
    while !rest.is_empty() {
        let tag = rest.strip_prefix("W/").unwrap_or(rest);
        let (one, after) = match tag.strip_prefix('"') {
            Some(open) => open.split_once('"').unwrap_or((open, "")),
            None => tag.split_once(',').unwrap_or((tag, "")),
        };
        tags.push(one.trim().to_owned());
        rest = after.trim_start_matches([',', ' ', '\t']);
    }
    tags
}

/// Reads an HTTP date as nanoseconds.
fn date(text: &str) -> Option<u64> {
    let stamp = Timestamp::parse(TimestampFormat::HttpDate, text.trim()).ok()?;
    let mut seconds = Vec::new();
    stamp.format(TimestampFormat::EpochSeconds, &mut seconds).ok()?;
    let seconds: f64 = String::from_utf8(seconds).ok()?.parse().ok()?;
    (seconds >= 0.0).then_some(seconds as u64)?.checked_mul(SECOND)
}

fn names(tags: &[String], etag: &str) -> bool {
    tags.iter().any(|t| t == "*" || t == etag)
}

/// Evaluates the conditions of a read (RFC 9110, 13.2.2). `modified` is in nanoseconds; dates compare in whole seconds.
///
/// # Errors
/// `PreconditionFailed`, or `NotModified` with status 304.
pub(crate) fn check(conditions: &Conditions, etag: &str, modified: u64) -> S3Result<()> {
    let modified = modified / SECOND;
    let since = |at: u64| modified > at / SECOND;
    match (&conditions.if_match, conditions.if_unmodified_since) {
        (Some(tags), _) if !names(tags, etag) => return Err(precondition()),
        (None, Some(at)) if since(at) => return Err(precondition()),
        _ => {}
    }
    match (&conditions.if_none_match, conditions.if_modified_since) {
        (Some(tags), _) if names(tags, etag) => Err(S3ErrorCode::NotModified.into()),
        (None, Some(at)) if !since(at) => Err(S3ErrorCode::NotModified.into()),
        _ => Ok(()),
    }
}

/// Which bytes were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// From the first to the last position, both included; the last is absent for "to the end".
    From(u64, Option<u64>),
    /// So many bytes at the end.
    Last(u64),
}

/// Reads a `Range`. `None` when it is absent, malformed, not of bytes, or names several ranges.
pub(crate) fn span(headers: &HeaderMap) -> Option<Span> {
    parse_span(headers.get("range")?.to_str().ok()?)
}

/// Reads the value of a `Range` or of `x-amz-copy-source-range`.
pub(crate) fn parse_span(value: &str) -> Option<Span> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // A number past 64 bits lies past the end of any object.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (unit, range) = value.trim().split_once('=')?;
    let (first, last) = range.trim().split_once('-').filter(|_| unit.trim().eq_ignore_ascii_case("bytes"))?;
    match (first.trim(), last.trim()) {
        ("", last) => Some(Span::Last(number(last)?)),
        (first, "") => Some(Span::From(number(first)?, None)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Span::From(first, Some(last)))
        }
    }
}

impl Span {
    /// Returns the offset and the length of the bytes meant, of an object of `size` bytes; `None` when that is the whole of an empty
    /// object, which has no range to name.
    ///
    /// # Errors
    /// `InvalidRange`, with the header that says the size.
    pub(crate) fn within(self, size: u64) -> S3Result<Option<(u64, u64)>> {
        match self {
            Self::Last(0) => Err(out_of_range(size)),
            Self::Last(_) if size == 0 => Ok(None),
            Self::Last(n) => Ok(Some((size.saturating_sub(n), n.min(size)))),
            Self::From(first, _) if first >= size => Err(out_of_range(size)),
            Self::From(first, last) => {
                let end = last.map_or(size, |last| size.min(last.saturating_add(1)));
                Ok(Some((first, end - first)))
            }
        }
    }
}

fn out_of_range(size: u64) -> S3Error {
    let mut error = error(S3ErrorCode::InvalidRange, "The requested range is not satisfiable");
    let mut headers = HeaderMap::new();
    if let Ok(value) = format!("bytes */{size}").parse() {
        headers.insert(hyper::header::CONTENT_RANGE, value);
    }
    headers.insert(hyper::header::CONTENT_TYPE, hyper::http::HeaderValue::from_static("application/xml"));
    error.set_headers(headers);
    error
}

/// Makes the answer to a part number that the object does not have.
pub(crate) fn no_such_part() -> S3Error {
    custom("InvalidPartNumber", 416, "The requested partnumber is not satisfiable")
}

/// Whether the range still holds: `If-Range` names the present ETag, or a date not before the last change.
pub(crate) fn if_range(headers: &HeaderMap, etag: &str, modified: u64) -> bool {
    let Some(value) = headers.get("if-range") else { return true };
    let value = String::from_utf8_lossy(value.as_bytes());
    match date(&value) {
        Some(at) => modified / SECOND <= at / SECOND,
        None => !value.starts_with("W/") && value.trim().trim_matches('"') == etag,
    }
}

#[cfg(test)]
mod tests;
