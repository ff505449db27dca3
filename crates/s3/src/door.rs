//! The door itself: one service behind a listener, and the last touch on every answer.

use crate::auth::{Asked, Encrypted, RequestId, Secrets, dated, presented, token};
use crate::chunks::{Faults, Framing};
use crate::cors::{self, Cross};
use crate::dialect::{self, Manner};
use crate::form;
use crate::guard::{Framed, admit, pairs};
use crate::host::{Suffix, is_virtual};
use crate::iam::{self, Call, Dialect};
use crate::names::{is_sound, repaired};
use crate::pool::Pool;
use crate::share::Shares;
use crate::verbs::Verbs;
use crate::verified::Verified;
use hyper::body::Body as _;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, EXPECT, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use mw_world::Store;
use s3s::dto::StreamingBlob;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::validation::NameValidation;
use s3s::{Body, S3Result};
use std::net::SocketAddr;
use std::sync::Arc;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// How the door is set up.
#[derive(Debug, Clone)]
pub struct S3Options {
    /// The suffix of virtual hosts: with `s3.example`, the host `w.s3.example` names the bucket `w`. Path style always works.
    pub host_suffix: Option<String>,
    /// The address under which clients reach the store, without a trailing slash; used where S3 answers with a URL.
    pub public_url: Option<String>,
    /// The address of the encrypted listener, where there is one: URLs for whoever came by another one name it.
    pub encrypted_url: Option<String>,
    /// How many calls of the engine run at once.
    pub workers: usize,
    /// How many bytes of content on their way in are in memory at once, about.
    pub arriving: usize,
}

impl Default for S3Options {
    fn default() -> Self {
        Self { host_suffix: None, public_url: None, encrypted_url: None, workers: 64, arriving: 32 << 20 }
    }
}

/// The S3 door. Cheap to clone.
#[derive(Clone)]
pub struct S3Door {
    verifier: S3Service,
    store: Arc<Store>,
    verbs: Verbs,
    suffix: Option<Suffix>,
}

impl std::fmt::Debug for S3Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Door").finish_non_exhaustive()
    }
}

/// Makes the door of `store`.
pub fn service(store: Arc<Store>, options: S3Options) -> S3Door {
    let pool = Pool::new(options.workers);
    let suffix = options.host_suffix.as_deref().map(Suffix::new);
    let build = |mut builder: S3ServiceBuilder| {
        builder.set_validation(AnyName);
        if let Some(suffix) = suffix.clone() {
            builder.set_host(suffix);
        }
        builder
    };
    let S3Options { public_url, encrypted_url, arriving, .. } = options;
    let shares = Shares::new(arriving);
    let verbs = Verbs { store: Arc::clone(&store), pool, shares, public_url, encrypted_url };
    let router = build(S3ServiceBuilder::new(verbs.clone())).build();
    let mut verifier = build(S3ServiceBuilder::new(Nothing));
    verifier.set_auth(Secrets { store: Arc::clone(&store) });
    verifier.set_route(Verified { verbs: verbs.clone(), suffix: suffix.clone(), router });
    S3Door { verifier: verifier.build(), store, verbs, suffix }
}

impl S3Door {
    /// Answers one request. Never fails: what goes wrong is an S3 error in the answer.
    pub async fn call<B: Into<Body>>(&self, request: Request<B>) -> Response<Body> {
        let id = self.store.env().token(16).to_ascii_uppercase();
        let (mut parts, body) = request.into_parts();
        let body: Body = body.into();
        let manner = Manner::of(&parts, &id);
        parts.extensions.insert(manner.clone());
        // Whoever expects to be asked for content may get the answer at once: when there is no content, or when it is refused unread.
        // One client (botocore) then misreads the next answer on the connection; on a new one it does not.
        let expects = parts.headers.contains_key(EXPECT);
        let empty = body.is_end_stream();
        let cross = Cross::of(&parts, self.suffix.as_ref());
        let place = if is_virtual(self.suffix.as_ref(), &parts.headers) { "" } else { parts.uri.path() };
        let call = iam::call_of(&parts.method, place, parts.uri.query(), &parts.headers);
        let dialect = Dialect::of(&parts.headers);
        let answer = if parts.method == Method::OPTIONS {
            cors::preflight(&self.verbs, &parts, self.suffix.as_ref()).await
        } else if form::is_form(&parts) {
            self.form(&parts, body).await
        } else {
            self.admitted(parts, body, call, &id).await
        };
        let answer = answer.unwrap_or_else(|error| error.to_http_response().unwrap_or_else(|_| failed()));
        let mut answer = spoken(finish(answer, &id), &manner);
        if call.is_some() {
            answer = iam::translated(answer, dialect, &id);
        }
        if let Some(cross) = cross {
            cross.allow(&self.verbs, &mut answer).await;
        }
        if expects && (empty || answer.status().is_client_error() || answer.status().is_server_error()) {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

impl S3Door {
    async fn admitted(&self, mut parts: Parts, body: Body, call: Option<Call>, id: &str) -> S3Result<Response<Body>> {
        let framed = admit(&parts)?;
        dated(&mut parts.headers);
        if let Some(call) = call.filter(|_| iam::signed::is_for_iam(&parts.headers)) {
            return self.iam(parts, body, call, id).await;
        }
        let faults = Faults::default();
        let body = watched(body, framed, faults.clone());
        parts.extensions.insert(faults);
        parts.extensions.insert(RequestId(id.to_owned()));
        Ok(self.verifier.call(Request::from_parts(parts, body)).await.unwrap_or_else(|e| {
            tracing::error!(error = ?e, "the S3 door could not answer");
            failed()
        }))
    }

    /// Answers a call that is signed for a service which the verifier of S3 does not take.
    async fn iam(&self, parts: Parts, body: Body, call: Call, id: &str) -> S3Result<Response<Body>> {
        let (store, pool) = (&self.verbs.store, &self.verbs.pool);
        let (key, data) = iam::signed::verified(store, pool, &parts, body).await?;
        let source = parts.extensions.get::<SocketAddr>().map(SocketAddr::ip);
        let principal = presented(store, &key, token(&parts.uri, &parts.headers).as_deref(), source)?;
        let query = pairs(parts.uri.query().unwrap_or_default());
        let (region, faults, trailer) = (String::new(), Faults::default(), None);
        let encrypted = parts.extensions.get::<Encrypted>().is_some();
        let (at, settings, headers) = (None, Vec::new(), parts.headers);
        let asked = Asked { principal, encrypted, at, region, headers, settings, faults, trailer };
        let answer = iam::answer(store, pool, call, &query, &asked, id, Body::from(data)).await?;
        let mut response = Response::new(answer.output);
        *response.status_mut() = answer.status.unwrap_or_default();
        *response.headers_mut() = answer.headers;
        Ok(response)
    }

    async fn form(&self, parts: &Parts, body: Body) -> S3Result<Response<Body>> {
        form::signed_once(parts)?;
        form::post(&self.verbs, self.suffix.as_ref(), parts, body).await
    }
}

fn watched(body: Body, framed: Framed, faults: Faults) -> Body {
    match framed {
        Framed::Plain => body,
        Framed::Signed(length) => Body::from(StreamingBlob::new(Framing::new(body, false, length, faults))),
        Framed::Unsigned(length) => Body::from(StreamingBlob::new(Framing::new(body, true, length, faults))),
    }
}

fn failed() -> Response<Body> {
    let mut answer = Response::new(Body::from("<Error><Code>InternalError</Code></Error>".to_owned()));
    *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer
}

/// Names the request, and repairs what the XML writer leaves wrong. Content of objects is a stream and is never touched.
fn finish(mut answer: Response<Body>, id: &str) -> Response<Body> {
    if let Ok(value) = HeaderValue::from_str(id) {
        answer.headers_mut().insert(REQUEST_ID, value);
    }
    if answer.status() == StatusCode::OK && answer.headers().contains_key(CONTENT_RANGE) {
        // The encoder of HEAD knows no 206; GET and HEAD say the same (RFC 9110, 9.3.2).
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    if answer.status() == StatusCode::NOT_MODIFIED {
        // RFC 9110, 15.4.5: no content, and no fields that describe it.
        answer.headers_mut().remove(CONTENT_TYPE);
        answer.headers_mut().remove(CONTENT_LENGTH);
        *answer.body_mut() = Body::empty();
        return answer;
    }
    let xml = answer.headers().get(CONTENT_TYPE).is_some_and(|v| v == "application/xml");
    if let Some(body) = answer.body().bytes().filter(|b| xml && !b.is_empty()) {
        let error = answer.status().is_client_error() || answer.status().is_server_error();
        if !error && is_sound(&body) {
            return answer;
        }
        // Only keys and other texts of clients can bring what XML cannot carry.
        let mut text = repaired(&String::from_utf8_lossy(&body));
        if error && let Some(end) = text.rfind("</Error>") {
            let message = if text.contains("<Message>") { "" } else { message_of(&text) };
            text.insert_str(end, &format!("{message}<RequestId>{id}</RequestId>"));
        }
        answer.headers_mut().remove(CONTENT_LENGTH);
        *answer.body_mut() = Body::from(text);
    }
    answer
}

/// Turns an error into the dialect of whoever asked.
fn spoken(mut answer: Response<Body>, manner: &Manner) -> Response<Body> {
    let error = answer.status().is_client_error() || answer.status().is_server_error();
    let xml = answer.headers().get(CONTENT_TYPE).is_some_and(|v| v == "application/xml");
    if let Some(body) = answer.body().bytes().filter(|b| manner.json && error && xml && !b.is_empty()) {
        let text = dialect::of_xml(&String::from_utf8_lossy(&body), &manner.id);
        answer.headers_mut().remove(CONTENT_LENGTH);
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *answer.body_mut() = Body::from(text);
    }
    answer
}

/// Texts for the codes that come without one from the verifier and the decoder.
fn message_of(xml: &str) -> &'static str {
    let code = xml.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map_or("", |(code, _)| code);
    match code {
        "SignatureDoesNotMatch" => {
            "<Message>The request signature we calculated does not match the signature you provided. Check your key and signing \
             method.</Message>"
        }
        "MalformedXML" => {
            "<Message>The XML you provided was not well-formed or did not validate against our published schema.</Message>"
        }
        "NotImplemented" => "<Message>A header you provided implies functionality that is not implemented.</Message>",
        "InvalidURI" => "<Message>Couldn't parse the specified URI.</Message>",
        "KeyTooLongError" => "<Message>Your key is too long.</Message>",
        "MethodNotAllowed" => "<Message>The specified method is not allowed against this resource.</Message>",
        "MissingContentLength" => "<Message>You must provide the Content-Length HTTP header.</Message>",
        "MissingRequestBodyError" => "<Message>Request body is empty.</Message>",
        _ => "<Message>The request was refused.</Message>",
    }
}

/// Every name passes here: whether it can name a world is said by the store, after it was said whether the key may ask.
struct AnyName;

impl NameValidation for AnyName {
    fn validate_bucket_name(&self, name: &str) -> bool {
        !name.is_empty()
    }
}

/// The verifier has no operations; its route takes every request.
struct Nothing;

impl s3s::S3 for Nothing {}
