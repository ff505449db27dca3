//! The signature of a form: of its policy's text, by the key that its credential names (AWS, *Authenticating requests in
//! browser-based uploads using POST*).

use crate::auth::Secrets;
use crate::errors::{denied, error};
use mw_model::when;
use mw_sigv4::{is_hmac, signing_key};
use s3s::auth::S3Auth;
use s3s::{S3ErrorCode, S3Result};

/// How long a signing key is good for, and how far a clock may run ahead, in nanoseconds.
const OLDEST: u64 = 7 * 24 * 3600 * 1_000_000_000;
const AHEAD: u64 = 15 * 60 * 1_000_000_000;

/// What a form was signed with.
pub(super) struct Signed<'f> {
    pub(super) key: &'f str,
    pub(super) region: &'f str,
    pub(super) policy: &'f str,
}

/// Verifies a form's signature. `now` is in nanoseconds.
///
/// # Errors
/// `AccessDenied` for a form that is not signed; `SignatureDoesNotMatch`; `InvalidAccessKeyId`; `InvalidArgument` for fields that are
/// missing or not as they must be.
pub(super) async fn verify<'f>(secrets: &Secrets, fields: &'f [(String, String)], now: u64) -> S3Result<Signed<'f>> {
    let get = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
    if get("awsaccesskeyid").is_some() || get("signature").is_some() {
        return Err(error(
            S3ErrorCode::InvalidRequest,
            "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
        ));
    }
    let Some(policy) = get("policy") else { return Err(denied()) };
    let need = |name: &'static str| {
        get(name).ok_or_else(|| {
            error(S3ErrorCode::InvalidArgument, format!("Bucket POST must contain a field named '{name}'."))
        })
    };
    let (algorithm, signature) = (need("x-amz-algorithm")?, need("x-amz-signature")?);
    let (credential, date) = (need("x-amz-credential")?, need("x-amz-date")?);
    if algorithm != "AWS4-HMAC-SHA256" {
        return Err(error(S3ErrorCode::InvalidArgument, "X-Amz-Algorithm must be AWS4-HMAC-SHA256."));
    }
    let wrong = || error(S3ErrorCode::InvalidArgument, "The X-Amz-Credential field is malformed.");
    let scope: Vec<&str> = credential.rsplitn(5, '/').collect();
    let [end, service, region, day, key] = scope[..] else { return Err(wrong()) };
    let known = service == "s3" && end == "aws4_request" && !region.is_empty() && !key.is_empty();
    let at = instant(date).filter(|_| known && date.get(..8) == Some(day)).ok_or_else(wrong)?;
    if at > now.saturating_add(AHEAD) || at.saturating_add(OLDEST) < now {
        return Err(error(
            S3ErrorCode::AccessDenied,
            "The form was signed more than seven days ago, or in the future.",
        ));
    }
    let secret = secrets.get_secret_key(key).await?;
    let signing = signing_key(secret.expose(), day, region, service);
    if unhex(signature).is_some_and(|given| is_hmac(&signing, policy.as_bytes(), &given)) {
        return Ok(Signed { key, region, policy });
    }
    Err(error(
        S3ErrorCode::SignatureDoesNotMatch,
        "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
    ))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let lower = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 64 || !text.bytes().all(lower) {
        return None;
    }
    (0..32).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()).collect()
}

/// Reads a time such as `20260131T235959Z`, in nanoseconds.
fn instant(text: &str) -> Option<u64> {
    if text.len() != 16 || text.get(8..9) != Some("T") || text.get(15..) != Some("Z") {
        return None;
    }
    let part = |from: usize, to: usize| text.get(from..to);
    let (date, clock) = ((part(0, 4)?, part(4, 6)?, part(6, 8)?), (part(9, 11)?, part(11, 13)?, part(13, 15)?));
    when::parse_instant(&format!("{}-{}-{}T{}:{}:{}Z", date.0, date.1, date.2, clock.0, clock.1, clock.2))
}
