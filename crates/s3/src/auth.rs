//! Who asks: secrets for the verifier, and the principal for the verbs.
//!
//! The secret comes from the store at every request, so that a deleted key is dead with its next request.

use crate::chunks::Faults;
use crate::errors::{About, error, of};
use crate::guard::pairs;
use hyper::header::{AUTHORIZATION, DATE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Uri};
use mw_model::Version;
use mw_world::{Principal, Store};
use s3s::auth::{S3Auth, SecretKey};
use s3s::dto::{Timestamp, TimestampFormat};
use s3s::{S3ErrorCode, S3Request, S3Result, TrailingHeaders};
use std::net::IpAddr;
use std::sync::Arc;

const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");

/// The secrets of the store.
pub(crate) struct Secrets {
    pub(crate) store: Arc<Store>,
}

#[async_trait::async_trait]
impl S3Auth for Secrets {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let secret = self.store.secret(access_key).map_err(|e| of(&e, About::World))?;
        secret.map(SecretKey::from).ok_or_else(|| {
            error(S3ErrorCode::InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records.")
        })
    }
}

/// The id under which the answer names the request.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// The mark of a request that came over an encrypted connection, left among its extensions by whoever listens: URLs of this store are
/// then of the scheme `https`.
#[derive(Debug, Clone, Copy)]
pub struct Encrypted;

/// What was asked for and by whom, as the verifier left it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The key that signed.
    pub(crate) principal: Principal,
    /// The region of the credential's scope, echoed where S3 names one.
    pub(crate) region: String,
    /// The headers as signed, with those that the router does not see.
    pub(crate) headers: HeaderMap,
    /// Whether it came over an encrypted connection.
    pub(crate) encrypted: bool,
    /// The instant that is read, where a header names one; none: now.
    pub(crate) at: Option<Version>,
    /// What a bucket that is made keeps from the start, as far as the router reads past it: name and value.
    pub(crate) settings: Vec<(String, Vec<u8>)>,
    /// What the watch over the framing found.
    pub(crate) faults: Faults,
    /// The trailer, once the body was read.
    pub(crate) trailer: Option<TrailingHeaders>,
}

impl Asked {
    /// Returns what `verified` left in the request.
    pub(crate) fn of<T>(request: &S3Request<T>) -> S3Result<Arc<Self>> {
        // Without it the request did not pass the verifier; then nothing may be done for it.
        request.extensions.get::<Arc<Self>>().cloned().ok_or_else(crate::errors::denied)
    }

    /// Returns a header's text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok()).filter(|v| !v.is_empty())
    }
}

/// Gives a request that is dated by `Date` alone the header that the verifiers read. The signature holds the time besides, so that nobody
/// else can put another one in (AWS, *Common Request Headers*: either is enough, and `x-amz-date` counts where both are).
pub(crate) fn dated(headers: &mut HeaderMap) {
    let signed = headers.get(AUTHORIZATION).is_some_and(|v| v.as_bytes().starts_with(b"AWS4-HMAC-SHA256"));
    if !signed || headers.contains_key(AMZ_DATE) {
        return;
    }
    let date = headers.get(DATE).and_then(|v| v.to_str().ok()).and_then(basic);
    if let Some(date) = date.and_then(|date| HeaderValue::from_str(&date).ok()) {
        headers.insert(AMZ_DATE, date);
    }
}

/// Writes a date of HTTP, or of mail as some clients have it, as signatures do; one that is so already stays.
fn basic(date: &str) -> Option<String> {
    let zone = ["+0000", "-0000", "UTC"].iter().find_map(|zone| date.strip_suffix(zone));
    let http = zone.map_or_else(|| date.to_owned(), |rest| format!("{rest}GMT"));
    let Ok(date) = Timestamp::parse(TimestampFormat::HttpDate, &http) else { return Some(http) };
    let mut text = Vec::new();
    date.format(TimestampFormat::DateTime, &mut text).ok()?;
    let text = String::from_utf8(text).ok()?;
    // 2013-05-24T00:00:00.000Z
    let digits: String = text.get(..19)?.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    Some(format!("{digits}Z"))
}

/// Where a session token comes.
const TOKEN: &str = "x-amz-security-token";

/// Returns the session token, from the header or from the query; there is one of them at most.
pub(crate) fn token(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let given = headers.get(TOKEN).and_then(|v| v.to_str().ok()).map(str::to_owned);
    given.or_else(|| {
        let query = pairs(uri.query().unwrap_or_default());
        query.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(TOKEN)).map(|(_, value)| value)
    })
}

/// Resolves who presents a key, with the session token that it needs, if it needs one.
///
/// It looks into memory, as the verifier's look for the secret does, and at the worst for one page of the metadata's tree: to hand
/// that to another thread would cost more than it takes.
///
/// # Errors
/// `InvalidToken`; the one refusal for a key that is dead.
pub(crate) fn presented(store: &Store, key: &str, token: Option<&str>, source: Option<IpAddr>) -> S3Result<Principal> {
    if !store.token_fits(key, token).map_err(|e| of(&e, About::World))? {
        return Err(error(S3ErrorCode::InvalidToken, "The provided token is malformed or otherwise invalid."));
    }
    Ok(store.principal(key).map_err(|e| of(&e, About::World))?.speaking_from(source))
}

#[cfg(test)]
mod tests {
    //! Which dates are read.

    use super::basic;

    #[test]
    fn dates_of_http_and_of_mail_become_those_of_signatures() {
        for date in ["Fri, 24 May 2013 00:00:00 GMT", "Fri, 24 May 2013 00:00:00 -0000", "20130524T000000Z"] {
            assert_eq!(basic(date).as_deref(), Some("20130524T000000Z"), "{date}");
        }
    }
}
