//! A verified request on its way to its verb, and an answer on its way back, before it is HTTP.

use crate::body::{self, Body};
use crate::host::Hosts;
use crate::route::Verb;
use crate::{Error, Result};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use mw_env::Env;
use mw_model::ErrorKind;
use mw_world::{Principal, Store};
use std::sync::Arc;

/// What the verbs act on.
pub(crate) struct Inner {
    pub(crate) store: Arc<Store>,
    pub(crate) hosts: Hosts,
    pub(crate) env: Env,
    /// Names this life of the server.
    pub(crate) instance: String,
}

/// An answer, before it is HTTP.
pub(crate) enum Reply {
    Json(StatusCode, Vec<u8>),
    Stream(&'static str, Body),
}

impl Reply {
    pub(crate) fn json(document: &impl serde::Serialize) -> Result<Self> {
        Self::with_status(StatusCode::OK, document)
    }

    pub(crate) fn with_status(status: StatusCode, document: &impl serde::Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(document)
            .map_err(|e| Error::new(ErrorKind::Io, "the answer cannot be written as JSON").with_source(e))?;
        Ok(Self::Json(status, bytes))
    }

    /// Lines of JSON, sent as they come.
    pub(crate) fn lines(body: Body) -> Self {
        Self::Stream("application/x-ndjson", body)
    }

    pub(crate) fn response(self) -> Response<Body> {
        let (status, kind, body) = match self {
            Self::Json(status, bytes) => (status, "application/json", body::full(bytes)),
            Self::Stream(kind, body) => (StatusCode::OK, kind, body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }
}

/// What a verified request may do and asks for.
pub(crate) struct Call {
    pub(crate) who: Principal,
    pub(crate) verb: Verb,
    pub(crate) idempotency: Option<String>,
}
