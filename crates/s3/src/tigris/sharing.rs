//! Presigned URLs that the server makes, for clients that do not sign themselves.

use super::{Call, document, json};
use crate::errors::{About, denied, error, of};
use crate::names::key_of;
use crate::presign::{EXPIRES_MAX, Presign, presign as signed};
use crate::vendor::argument;
use crate::verbs::Verbs;
use hyper::StatusCode;
use s3s::{Body, S3ErrorCode, S3Response, S3Result};
use serde_json::{Value, json};

/// The life of a URL for which none is asked, in seconds.
const EXPIRES: u64 = 60 * 60;

/// Makes a presigned URL.
///
/// It is signed by the caller's own key; the root key may name another. Nobody can have a URL that does more than the key may.
pub(super) async fn presign(verbs: &Verbs, call: Call) -> S3Result<S3Response<Body>> {
    let ask = document(&call.body)?;
    let text = |name: &str| ask.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (bucket, key, version) = (text("bucket"), text("key"), text("version_id"));
    if bucket.is_empty() || key.is_empty() {
        return Err(argument("A presigned URL names a bucket and a key."));
    }
    let kind = text("type");
    let method = match kind.as_str() {
        "get" => "GET",
        "put" => "PUT",
        _ => return Err(argument("The type of a presigned URL is get or put.")),
    };
    let expires = match ask.get("expires_in") {
        None | Some(Value::Null) => EXPIRES,
        Some(n) => n
            .as_u64()
            .filter(|n| (1..=EXPIRES_MAX).contains(n))
            .ok_or_else(|| argument("A presigned URL is good for 1 second to 7 days (expires_in, in seconds)."))?,
    };
    let own = call.asked.principal.key_id().to_owned();
    let id = Some(text("key_id")).filter(|id| !id.is_empty()).unwrap_or_else(|| own.clone());
    if id != own && !call.asked.principal.is_root() {
        return Err(denied());
    }
    let door = verbs.clone();
    let url = verbs
        .pool
        .run(move || {
            let session = door.session(&call.asked, &bucket, None)?;
            if method == "PUT" && !session.allows_put(&key_of(&key)?) {
                return Err(denied());
            }
            let secret = door.store.secret(&id).map_err(|e| of(&e, About::World))?;
            let secret =
                secret.ok_or_else(|| error(S3ErrorCode::InvalidAccessKeyId, "There is no such access key."))?;
            let ask = Presign {
                base: &door.base(&call.asked),
                method,
                bucket: &bucket,
                key: &key,
                version: Some(version.as_str()).filter(|v| !v.is_empty()),
                id: &id,
                secret: &secret,
                token: call.asked.header("x-amz-security-token").filter(|_| id == own),
                now: door.store.env().now(),
                expires,
            };
            let url = signed(&ask);
            Ok(json!({
                "url": url,
                "custom_domain_url": "",
                "bucket": bucket,
                "key": key,
                "key_id": id,
                "key_secret": "",
                "type": kind,
            }))
        })
        .await?;
    Ok(json(StatusCode::OK, &url))
}
