//! Calls that are signed for the service `iam`, as the AWS clients do, without the hash of the body in a header.
//!
//! The verifier of S3 takes the services `s3` and `sts` alone. These calls are small and of one shape, so that the body is read first and
//! its hash is what must have been signed.

use super::form::MAX;
use crate::errors::{About, denied, error, of};
use crate::pool::Pool;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::http::request::Parts;
use mw_model::ErrorKind;
use mw_sigv4::{Request, Taken, sha256_hex, verify};
use mw_world::Store;
use s3s::{Body, S3Error, S3ErrorCode, S3Result};
use std::sync::Arc;

/// The service that these calls are signed for.
const SERVICE: &str = "iam";

/// Whether a request is signed for this service.
pub(crate) fn is_for_iam(headers: &HeaderMap) -> bool {
    let value = headers.get(hyper::header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    value.and_then(mw_sigv4::service_of) == Some(SERVICE)
}

/// What may go wrong: with the signature, or with the store.
enum Fault {
    Signature(mw_sigv4::Error),
    Store(S3Error),
}

impl From<mw_sigv4::Error> for Fault {
    fn from(error: mw_sigv4::Error) -> Self {
        Self::Signature(error)
    }
}

/// Reads the body and verifies the signature over it; returns the key that signed, and the body.
///
/// # Errors
/// The S3 error to answer with.
pub(crate) async fn verified(store: &Arc<Store>, pool: &Pool, parts: &Parts, body: Body) -> S3Result<(String, Bytes)> {
    let cut = |_| error(S3ErrorCode::IncompleteBody, "The body ended before it was whole.");
    let too_long = || error(S3ErrorCode::MaxMessageLengthExceeded, "Your request was too big.");
    let data = crate::body::whole(body, MAX).await.map_err(cut)?.ok_or_else(too_long)?;
    let hash = sha256_hex(&data);
    let (store, method, uri, headers) =
        (Arc::clone(store), parts.method.clone(), parts.uri.clone(), parts.headers.clone());
    let verified = pool.run(move || {
        let request = Request { method: method.as_str(), path: uri.path(), query: uri.query().unwrap_or("") };
        let taken = Taken { services: &[SERVICE], body: Some(&hash) };
        let secret = |id: &str| store.secret(id).map_err(|e| Fault::Store(of(&e, About::World)));
        verify(request, &headers, store.env().now(), taken, secret).map_err(|fault| match fault {
            Fault::Store(error) => error,
            Fault::Signature(e) if e.kind() == ErrorKind::Denied => {
                error(S3ErrorCode::SignatureDoesNotMatch, e.to_string())
            }
            Fault::Signature(e) => error(S3ErrorCode::InvalidRequest, e.to_string()),
        })
    });
    let verified = verified.await?;
    verified.payload.check(&data).map_err(|_| denied())?;
    Ok((verified.key, data))
}
