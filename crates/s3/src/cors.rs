//! Cross-origin requests: what a bucket allows browsers, their first question, and the headers of every answer (AWS, *Using
//! cross-origin resource sharing*; the Fetch standard, *HTTP extensions*).
//!
//! The first question carries no signature. A bucket that allows nothing and one that does not exist give one answer.

mod rules;

use crate::auth::Asked;
use crate::errors::{About, custom, error, internal, of};
use crate::host::{Suffix, place};
use crate::verbs::Verbs;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN, VARY,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Response, StatusCode};
use mw_model::policy::Action;
use rules::{Rule, Rules};
use s3s::dto::*;
use s3s::{Body, S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// The name of the setting.
const SETTING: &str = "cors";

const VARIES: &str = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method";

/// Answers what a bucket allows.
pub(crate) async fn get_bucket_cors(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetBucketCorsInput,
) -> S3Result<S3Response<GetBucketCorsOutput>> {
    let stored = verbs
        .within(&asked, &input.bucket, |session| {
            session.setting(SETTING, Some(Action::GetBucketCors)).map_err(|e| of(&e, About::World))
        })
        .await?
        .ok_or_else(|| error(S3ErrorCode::NoSuchCORSConfiguration, "The CORS configuration does not exist"))?;
    let rules = Rules::read(&stored).map_err(|e| internal(&e))?;
    Ok(S3Response::new(GetBucketCorsOutput { cors_rules: Some(rules.0.into_iter().map(Into::into).collect()) }))
}

/// Sets what a bucket allows.
pub(crate) async fn put_bucket_cors(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutBucketCorsInput,
) -> S3Result<S3Response<PutBucketCorsOutput>> {
    let rules = Rules::of(input.cors_configuration)?;
    let written = rules.write().map_err(|e| internal(&e))?;
    verbs
        .within(&asked, &input.bucket, move |session| {
            session.set_setting(SETTING, Some(Action::PutBucketCors), Some(&written)).map_err(|e| of(&e, About::World))
        })
        .await?;
    Ok(S3Response::new(PutBucketCorsOutput::default()))
}

/// Takes back what a bucket allows.
pub(crate) async fn delete_bucket_cors(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: DeleteBucketCorsInput,
) -> S3Result<S3Response<DeleteBucketCorsOutput>> {
    verbs
        .within(&asked, &input.bucket, |session| {
            session.set_setting(SETTING, Some(Action::PutBucketCors), None).map_err(|e| of(&e, About::World))
        })
        .await?;
    Ok(S3Response::new(DeleteBucketCorsOutput::default()))
}

/// What a request says of where it comes from.
pub(crate) struct Cross {
    bucket: String,
    origin: String,
    method: String,
}

impl Cross {
    /// Reads it from a request that is no first question; none where it comes from no other origin, or names no bucket.
    pub(crate) fn of(parts: &Parts, suffix: Option<&Suffix>) -> Option<Self> {
        let origin = parts.headers.get(ORIGIN)?.to_str().ok()?.to_owned();
        let bucket = place(parts, suffix)?.0;
        Some(Self { bucket, origin, method: parts.method.as_str().to_owned() })
    }

    /// Adds what a browser must know to the answer, where the bucket allows the request.
    pub(crate) async fn allow(&self, verbs: &Verbs, answer: &mut Response<Body>) {
        let Ok(rules) = rules_of(verbs, self.bucket.clone()).await else { return };
        if let Some(rule) = rules.find(&self.origin, &self.method, &[]) {
            said(rule, &self.origin, answer.headers_mut());
        }
    }
}

async fn rules_of(verbs: &Verbs, bucket: String) -> S3Result<Rules> {
    let store = Arc::clone(&verbs.store);
    let stored = verbs.pool.run(move || store.setting(&bucket, SETTING).map_err(|e| of(&e, About::World))).await?;
    stored.map_or_else(|| Ok(Rules::default()), |stored| Rules::read(&stored).map_err(|e| internal(&e)))
}

/// Answers a browser's first question.
///
/// # Errors
/// `AccessForbidden` for what the bucket does not allow; `BadRequest` for a question that asks nothing.
pub(crate) async fn preflight(verbs: &Verbs, parts: &Parts, suffix: Option<&Suffix>) -> S3Result<Response<Body>> {
    let text = |name: HeaderName| parts.headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let bad = |message: &'static str| custom("BadRequest", 400, message);
    let origin = text(ORIGIN).ok_or_else(|| bad("Insufficient information. Origin request header needed."))?;
    let method = text(ACCESS_CONTROL_REQUEST_METHOD)
        .ok_or_else(|| bad("Invalid Access-Control-Request-Method: it is missing."))?;
    let asked: Vec<String> = text(ACCESS_CONTROL_REQUEST_HEADERS)
        .unwrap_or_default()
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    let forbidden = |message: &'static str| custom("AccessForbidden", 403, message);
    let disabled = || forbidden("CORSResponse: CORS is not enabled for this bucket.");
    let (bucket, _) = place(parts, suffix).ok_or_else(disabled)?;
    let rules = rules_of(verbs, bucket).await?;
    if rules.0.is_empty() {
        return Err(disabled());
    }
    let rule = rules.find(origin, method, &asked).ok_or_else(|| {
        forbidden(
            "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / \
             Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.",
        )
    })?;
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::OK;
    let headers = answer.headers_mut();
    said(rule, origin, headers);
    if !asked.is_empty() {
        set(headers, ACCESS_CONTROL_ALLOW_HEADERS, &asked.join(", "));
    }
    if let Some(age) = rule.max_age {
        set(headers, ACCESS_CONTROL_MAX_AGE, &age.to_string());
    }
    Ok(answer)
}

/// What every allowed answer says.
fn said(rule: &Rule, origin: &str, headers: &mut HeaderMap) {
    let anyone = rule.allows_anyone();
    set(headers, ACCESS_CONTROL_ALLOW_ORIGIN, if anyone { "*" } else { origin });
    if !anyone {
        set(headers, ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
    }
    set(headers, ACCESS_CONTROL_ALLOW_METHODS, &rule.methods.join(", "));
    if !rule.expose.is_empty() {
        set(headers, ACCESS_CONTROL_EXPOSE_HEADERS, &rule.expose.join(", "));
    }
    set(headers, VARY, VARIES);
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
