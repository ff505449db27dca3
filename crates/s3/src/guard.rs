//! What is refused before a signature is even looked at.
//!
//! `s3s` verifies signatures; this file refuses the requests for which the question "who signed it?" would have two answers or
//! where something that matters was not signed: old signatures, two credentials at once, headers that the signature leaves out.

use crate::errors::{custom, error};
use crate::names::unpercent;
use crate::vendor::is_vendor;
use hyper::HeaderMap;
use hyper::http::request::Parts;
use s3s::{S3Error, S3ErrorCode, S3Result};

/// The longest life of a presigned URL, in seconds (AWS: seven days).
const EXPIRES_MAX: u64 = 7 * 24 * 60 * 60;

/// The query parameters of a presigned URL.
const PRESIGNED: [&str; 6] =
    ["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-Date", "X-Amz-SignedHeaders", "X-Amz-Expires"];

/// Headers whose value the signature covers by other means than the list of signed headers, or that a proxy adds.
const COVERED: [&str; 3] = ["x-amz-content-sha256", "x-amz-date", "x-amz-cf-id"];

/// How the body of an admitted request is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framed {
    /// As HTTP frames it.
    Plain,
    /// In signed chunks.
    Signed(u64),
    /// In unsigned chunks, with a trailer.
    Unsigned(u64),
}

/// Decides whether a request goes on to the verifier.
///
/// # Errors
/// The S3 error to answer with.
pub(crate) fn admit(parts: &Parts) -> S3Result<Framed> {
    let query: Vec<(String, String)> = pairs(parts.uri.query().unwrap_or_default());
    let param = |name: &str| query.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let headers = &parts.headers;
    let presigned = PRESIGNED.iter().any(|name| param(name).is_some());
    let authorization = authorization(headers)?;

    if param("AWSAccessKeyId").is_some()
        || param("Signature").is_some()
        || authorization.is_some_and(|a| a.starts_with("AWS "))
    {
        return Err(error(
            S3ErrorCode::InvalidRequest,
            "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256. (This was Signature \
             Version 2; the AWS CLI presigns with it when no region is set: set AWS_DEFAULT_REGION.)",
        ));
    }
    if presigned && authorization.is_some() {
        return Err(error(
            S3ErrorCode::InvalidArgument,
            "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter or the Authorization header should be \
             specified",
        ));
    }
    let token = |name: &str| name.eq_ignore_ascii_case("x-amz-security-token");
    let tokens =
        headers.get_all("x-amz-security-token").iter().count() + query.iter().filter(|(n, _)| token(n)).count();
    if tokens > 1 {
        return Err(error(S3ErrorCode::InvalidArgument, "The session token is given more than once."));
    }
    if let Some(authorization) = authorization {
        if !authorization.starts_with("AWS4-HMAC-SHA256") {
            return Err(error(S3ErrorCode::InvalidArgument, "Unsupported Authorization Type; use AWS4-HMAC-SHA256."));
        }
        let signed = authorization.split([' ', ',']).find_map(|part| part.trim().strip_prefix("SignedHeaders="));
        everything_signed(headers, signed.unwrap_or_default())?;
    }
    if presigned {
        if PRESIGNED.iter().any(|name| query.iter().filter(|(n, _)| n == name).count() != 1) {
            return Err(query_error(
                "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, \
                 X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters, each once.",
            ));
        }
        match number(param("X-Amz-Expires").unwrap_or_default()) {
            Some(1..=EXPIRES_MAX) => {}
            Some(0) | None => return Err(query_error("X-Amz-Expires should be a number of seconds over zero")),
            Some(_) => {
                return Err(query_error(
                    "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than \
                     604800 seconds",
                ));
            }
        }
        everything_signed(headers, param("X-Amz-SignedHeaders").unwrap_or_default())?;
    }
    framing(headers)
}

/// Splits a query; names and values decoded as the signature has them.
pub(crate) fn pairs(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| String::from_utf8_lossy(&unpercent(text.replace('+', " ").as_bytes())).into_owned();
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

/// Reads a number that is digits alone: the parser of the language would take a sign too.
fn number(text: &str) -> Option<u64> {
    Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

fn query_error(message: &'static str) -> S3Error {
    error(S3ErrorCode::AuthorizationQueryParametersError, message)
}

fn authorization(headers: &HeaderMap) -> S3Result<Option<&str>> {
    let mut values = headers.get_all(hyper::header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(error(
            S3ErrorCode::InvalidArgument,
            "Only one auth mechanism allowed; there are two Authorization headers",
        ));
    }
    let text =
        value.to_str().map_err(|_| error(S3ErrorCode::InvalidArgument, "The Authorization header is not ASCII."))?;
    Ok(Some(text))
}

/// An `x-amz-*` header left out of the signature could turn one operation into another (a presigned PUT into a copy).
fn everything_signed(headers: &HeaderMap, signed: &str) -> S3Result<()> {
    let signed: Vec<&str> = signed.split(';').collect();
    let covers = |name: &str| signed.iter().any(|s| s.eq_ignore_ascii_case(name));
    if !covers("host") {
        return Err(error(S3ErrorCode::AccessDenied, "The host header must be among the signed headers."));
    }
    let open = headers
        .keys()
        .map(|n| n.as_str())
        .find(|name| (name.starts_with("x-amz-") || is_vendor(name)) && !COVERED.contains(name) && !covers(name));
    match open {
        None => Ok(()),
        Some(name) => Err(error(
            S3ErrorCode::AccessDenied,
            format!("There were headers present in the request which were not signed: {name}"),
        )),
    }
}

fn framing(headers: &HeaderMap) -> S3Result<Framed> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let sha = text("x-amz-content-sha256");
    if !sha.starts_with("STREAMING-") {
        // The word alone is no framing (AWS drops it); with what belongs to frames, frames would be stored as content.
        let chunked = text("content-encoding").split(',').any(|c| c.trim().eq_ignore_ascii_case("aws-chunked"));
        let framed = ["x-amz-decoded-content-length", "x-amz-trailer"].into_iter().find(|n| headers.contains_key(*n));
        return match framed.filter(|_| chunked) {
            Some(name) => Err(error(
                S3ErrorCode::InvalidRequest,
                format!(
                    "Content-Encoding says aws-chunked and there is {name}, but x-amz-content-sha256 does not name a streaming payload."
                ),
            )),
            None => Ok(Framed::Plain),
        };
    }
    let length = number(text("x-amz-decoded-content-length")).ok_or_else(|| {
        custom("MissingContentLength", 411, "You must provide the x-amz-decoded-content-length HTTP header.")
    })?;
    Ok(if sha.starts_with("STREAMING-UNSIGNED") { Framed::Unsigned(length) } else { Framed::Signed(length) })
}

#[cfg(test)]
mod tests;
