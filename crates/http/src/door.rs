//! [`ControlDoor`]: authenticate, read the body, do the verb on a blocking thread, answer.
//!
//! One verifier stands before all verbs but `/-/healthz` and the schema. A failure is logged here, where it is handled, and nowhere
//! below.

use crate::body::{self, Body};
use crate::call::{Call, Inner, Reply};
use crate::host::Hosts;
use crate::route::{self, Verb};
use crate::types::Health;
use crate::{Error, Result, error, schema, sigv4, verbs};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use mw_model::ErrorKind;
use mw_world::{Principal, Store};
use std::net::SocketAddr;
use std::sync::Arc;

/// The hyper service of everything under `/-/`. Cheap to clone.
#[derive(Clone)]
pub struct ControlDoor(pub(crate) Arc<Inner>);

impl std::fmt::Debug for ControlDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlDoor").field("instance", &self.0.instance).finish_non_exhaustive()
    }
}

/// Signatures as for S3, with the hash of the body among the headers.
const TAKEN: sigv4::Taken<'static> = sigv4::Taken { services: &["s3"], body: None };

/// The longest Idempotency-Key, in bytes.
const MAX_IDEMPOTENCY: usize = 255;

impl ControlDoor {
    /// Makes the door. `instance` names this life of the server, so that a client can tell it from another one on the same port.
    pub fn new(store: Arc<Store>, hosts: Hosts, instance: String) -> Self {
        let env = store.env().clone();
        Self(Arc::new(Inner { store, hosts, env, instance }))
    }

    /// Answers one request. Never fails: failures are answers too.
    pub async fn call(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        match self.answer(&parts, body).await {
            Ok(reply) => reply.response(),
            Err(error) => refuse(&parts, &error),
        }
    }

    async fn answer(&self, parts: &Parts, mut body: Body) -> Result<Reply> {
        let query = parts.uri.query().unwrap_or("");
        let verb = route::parse(&parts.method, parts.uri.path(), query)?;
        match verb {
            Verb::Health => return Reply::json(&Health { ok: true, instance: self.0.instance.clone() }),
            Verb::Schema => return Reply::json(&schema::all()),
            _ => {}
        }
        let (who, payload) = self.identify(parts).await?;
        let idempotency = idempotency(parts)?;
        let call = Call { who, verb, idempotency };
        if let Verb::Put { .. } = call.verb {
            // The body is a stream, read while it is acted on.
            let (feed, source) = body::source();
            let inner = self.0.clone();
            let work = blocking(move || verbs::put(&inner, &call, source));
            let (outcome, ()) = tokio::join!(work, body::pump(body, feed));
            return outcome;
        }
        let document = body::collect(&mut body, body::MAX_JSON).await?;
        payload.check(&document)?;
        let inner = self.0.clone();
        blocking(move || verbs::run(&inner, call, &document)).await
    }

    /// Verifies the signature of a request. Whoever reads the body must check it against the payload.
    ///
    /// # Errors
    /// `Denied`; those of the store.
    pub async fn identify(&self, parts: &Parts) -> Result<(Principal, sigv4::Payload)> {
        let inner = self.0.clone();
        let (method, uri, headers) = (parts.method.clone(), parts.uri.clone(), parts.headers.clone());
        let source = parts.extensions.get::<SocketAddr>().map(SocketAddr::ip);
        blocking(move || {
            let request =
                sigv4::Request { method: method.as_str(), path: uri.path(), query: uri.query().unwrap_or("") };
            let verified =
                sigv4::verify(request, &headers, inner.env.now(), TAKEN, |id| Ok::<_, Error>(inner.store.secret(id)?))?;
            let token = sigv4::token(&headers)?;
            if !inner.store.token_fits(&verified.key, token)? {
                return Err(Error::new(
                    ErrorKind::Denied,
                    "access denied: a temporary key needs its session token and a lasting one has none; see AWS_SESSION_TOKEN",
                ));
            }
            Ok((inner.store.principal(&verified.key)?.speaking_from(source), verified.payload))
        })
        .await
    }
}

fn idempotency(parts: &Parts) -> Result<Option<String>> {
    let Some(value) = parts.headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| !text.is_empty() && text.len() <= MAX_IDEMPOTENCY);
    text.map(|text| Some(text.to_owned()))
        .ok_or_else(|| Error::invalid(format!("the Idempotency-Key must be 1 to {MAX_IDEMPOTENCY} plain characters")))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| {
        Err(Error::new(ErrorKind::Io, "the server failed at this request; its log says more").with_source(e))
    })
}

fn refuse(parts: &Parts, error: &Error) -> Response<Body> {
    let status = error::status(error.kind());
    if matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt | ErrorKind::NoSpace) {
        let source = std::error::Error::source(error).map(ToString::to_string);
        tracing::error!(method = %parts.method, path = parts.uri.path(), %error, source, "request failed");
    } else {
        tracing::debug!(method = %parts.method, path = parts.uri.path(), %error, "request refused");
    }
    let bytes = serde_json::to_vec(&error.reply()).unwrap_or_default();
    Reply::Json(status, bytes).response()
}
