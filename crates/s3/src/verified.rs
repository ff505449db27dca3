//! After the signature and before the router: the principal is resolved, and the request is made plain for decoding.
//!
//! Headers that the router would judge otherwise than S3 does (ranges, conditions, the copy source, `Expires`) are taken out here and
//! kept in [`Asked`]. This can be done only now: before, they are part of what was signed.

use crate::auth::{Asked, Encrypted, RequestId, presented, token};
use crate::body::{faulty, whole};
use crate::bucket_tags;
use crate::chunks::Faults;
use crate::conditions;
use crate::contents::Contents;
use crate::dialect::Manner;
use crate::digest::{Claims, digest};
use crate::errors::{denied, error, internal};
use crate::get;
use crate::guard::pairs;
use crate::host::{Suffix, is_virtual};
use crate::iam;
use crate::meta::promises;
use crate::owner::owner;
use crate::parameters;
use crate::target::Target;
use crate::tigris::{self, Call};
use crate::vendor::{self, Place};
use crate::verbs::Verbs;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, EXPIRES, HeaderName, HeaderValue};
use hyper::http::Extensions;
use hyper::{HeaderMap, Method, Uri};
use s3s::route::S3Route;
use s3s::service::S3Service;
use s3s::{Body, S3ErrorCode, S3Request, S3Response, S3Result};
use std::net::SocketAddr;
use std::sync::Arc;

/// The longest body that is read whole: a bulk delete of 1,000 keys of 1,024 bytes, each byte written as an XML entity.
const WHOLE_MAX: u64 = 16 << 20;

/// What stands in for the copy source, so that the router sees that there is one.
const SOURCE: HeaderValue = HeaderValue::from_static("source/source");

/// Parameters that make a PUT of an object one of its properties.
const SUBRESOURCES: [&str; 4] = ["acl", "tagging", "retention", "legal-hold"];

/// Parameters under which the body is a document whose own checksum the headers give.
const DOCUMENTS: [&str; 5] = ["delete", "tagging", "cors", "versioning", "acl"];

/// Takes every verified request.
pub(crate) struct Verified {
    pub(crate) verbs: Verbs,
    pub(crate) suffix: Option<Suffix>,
    /// The router, without authentication.
    pub(crate) router: S3Service,
}

#[async_trait::async_trait]
impl S3Route for Verified {
    fn is_match(&self, _: &Method, _: &Uri, _: &HeaderMap, _: &mut Extensions) -> bool {
        true
    }

    async fn check_access(&self, request: &mut S3Request<Body>) -> S3Result<()> {
        match request.credentials {
            Some(_) => Ok(()),
            None => Err(denied()),
        }
    }

    async fn call(&self, request: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let key = request.credentials.as_ref().ok_or_else(denied)?.access_key.clone();
        let source = request.extensions.get::<SocketAddr>().map(SocketAddr::ip);
        let token = token(&request.uri, &request.headers);
        let principal = presented(&self.verbs.store, &key, token.as_deref(), source)?;
        let encrypted = request.extensions.get::<Encrypted>().is_some();
        let faults = request.extensions.get::<Faults>().cloned().unwrap_or_default();
        let id = request.extensions.get::<RequestId>().map_or_else(String::new, |id| id.0.clone());
        let query = pairs(request.uri.query().unwrap_or_default());
        let service = request.service.as_deref().unwrap_or("s3");
        let place = if is_virtual(self.suffix.as_ref(), &request.headers) { "" } else { request.uri.path() };
        if let Some(call) = iam::call_of(&request.method, place, request.uri.query(), &request.headers) {
            let asked = Asked {
                principal,
                encrypted,
                at: None,
                region: String::new(),
                headers: request.headers,
                settings: Vec::new(),
                faults,
                trailer: request.trailing_headers,
            };
            return iam::answer(&self.verbs.store, &self.verbs.pool, call, &query, &asked, &id, request.input).await;
        }
        if service != "s3" {
            return Err(error(
                S3ErrorCode::SignatureDoesNotMatch,
                "Credential should be scoped to correct service: 's3'.",
            ));
        }
        let mut headers = request.headers;
        if let Some(encoding) = headers.remove(CONTENT_ENCODING).and_then(|e| without_chunked(&e)) {
            headers.insert(CONTENT_ENCODING, encoding);
        }
        hoisted(&query, &mut headers);
        expected_owner(&headers)?;
        let target = Target::of(&request.uri, &headers, self.suffix.as_ref());
        let aim = target.aim(&request.method, &headers);
        let plain = aim.plain;
        aim.check(&headers)?;
        promises(&headers)?;
        parameters::check(&request.method, &target)?;
        let attributes = target.param("attributes").is_some();
        let manner = request.extensions.get::<Manner>().cloned().ok_or_else(denied)?;
        let wish = tigris::wish(&request.method, &target, &headers, manner.json)?;
        let body = if is_content(&request.method, &target) {
            request.input
        } else {
            small(request.input, &headers, &query, &faults).await?
        };
        let makes = request.method == Method::PUT && target.place() == Place::Bucket && plain;
        let settings = if makes { bucket_tags::of_new(&body)? } else { Vec::new() };
        let reads = matches!(request.method, Method::GET | Method::HEAD);
        let asked = Asked {
            principal,
            encrypted,
            at: if reads { vendor::version(&headers, vendor::VERSION)? } else { None },
            region: request.region.map_or_else(|| "us-east-1".to_owned(), |r| r.as_str().to_owned()),
            headers: headers.clone(),
            settings,
            faults,
            trailer: request.trailing_headers,
        };
        let asked = Arc::new(asked);
        if let Some(wish) = wish {
            return tigris::grant(&self.verbs, wish, Call { asked, target, manner, body }).await;
        }
        for name in conditions::NAMES.iter().map(|n| HeaderName::from_static(n)).chain([AUTHORIZATION, EXPIRES]) {
            headers.remove(name);
        }
        if let Some(source) = headers.get_mut("x-amz-copy-source") {
            *source = SOURCE;
        }
        let mut plain = hyper::Request::new(body);
        *plain.method_mut() = request.method;
        *plain.uri_mut() = without_signature(&request.uri)?;
        *plain.headers_mut() = headers;
        plain.extensions_mut().insert(asked);
        let answer = self.router.call(plain).await.map_err(|e| internal(&format!("{e:?}")))?;
        let (mut parts, mut body) = answer.into_parts();
        if attributes && parts.status.is_success() {
            parts.headers.remove(CONTENT_LENGTH);
            body = get::with_bare_etag(body);
        }
        if let Some(contents) = parts.extensions.remove::<Contents>() {
            parts.headers.remove(CONTENT_LENGTH);
            body = contents.fill(body);
        }
        Ok(S3Response {
            output: body,
            status: Some(parts.status),
            headers: parts.headers,
            extensions: parts.extensions,
        })
    }
}

/// A client that names the owner whom it expects would rather be refused than served by another.
fn expected_owner(headers: &HeaderMap) -> S3Result<()> {
    let ours = owner().id.unwrap_or_default();
    let names = ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"];
    let other = names.iter().filter_map(|name| headers.get(*name)).any(|value| value.as_bytes() != ours.as_bytes());
    if other { Err(denied()) } else { Ok(()) }
}

/// Whether the body is content to be streamed; every other body is small.
fn is_content(method: &Method, target: &Target) -> bool {
    method == Method::PUT
        && target.place() == Place::Object
        && !target.query.iter().any(|(name, _)| SUBRESOURCES.contains(&name.as_str()))
}

/// Reads a small body whole and checks what the client claims about it.
async fn small(body: Body, headers: &HeaderMap, query: &[(String, String)], faults: &Faults) -> S3Result<Body> {
    let declared = headers.get("content-length").and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    let too_long = || error(S3ErrorCode::MaxMessageLengthExceeded, "Your request was too big.");
    if declared.is_some_and(|n| n > WHOLE_MAX) {
        return Err(too_long());
    }
    let data = whole(body, WHOLE_MAX).await.map_err(|e| faulty(&e, faults))?.ok_or_else(too_long)?;
    // At Complete the checksum headers are about the object, not about this body.
    let about_body = query.iter().any(|(name, _)| DOCUMENTS.contains(&name.as_str()));
    if about_body {
        let claims = Claims::of(headers)?;
        claims.verify(&digest(&data, &claims.algorithms(&[])))?;
    }
    Ok(Body::from(data))
}

/// `aws-chunked` is framing and no property of the object.
fn without_chunked(encoding: &HeaderValue) -> Option<HeaderValue> {
    let chunked = |coding: &&str| coding.eq_ignore_ascii_case("aws-chunked");
    let text = encoding.to_str().ok().filter(|text| text.split(',').map(str::trim).any(|c| chunked(&c)));
    // What holds no such word is answered as it was given, to the space.
    let Some(text) = text else { return Some(encoding.clone()) };
    let kept: Vec<_> = text.split(',').map(str::trim).filter(|c| !c.is_empty() && !chunked(c)).collect();
    if kept.is_empty() { None } else { HeaderValue::from_str(&kept.join(",")).ok() }
}

/// Some SDKs move headers of a presigned URL into its query. Checksums there are not taken: they are of the empty body that was
/// presigned.
fn hoisted(query: &[(String, String)], headers: &mut HeaderMap) {
    for (name, value) in query {
        let name = name.to_ascii_lowercase();
        if !(name.starts_with("x-amz-meta-") || matches!(name.as_str(), "x-amz-tagging" | "x-amz-storage-class")) {
            continue;
        }
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value))
            && !headers.contains_key(&name)
        {
            headers.insert(name, value);
        }
    }
}

/// Drops the parameters of the signature, which the router would take for a request to verify again.
fn without_signature(uri: &Uri) -> S3Result<Uri> {
    let Some(query) = uri.query() else { return Ok(uri.clone()) };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            let name = pairs(pair).pop().map(|(name, _)| name.to_ascii_lowercase()).unwrap_or_default();
            !name.starts_with("x-amz-")
        })
        .collect();
    let target = if kept.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), kept.join("&")) };
    target.parse().map_err(|e| internal(&e))
}
