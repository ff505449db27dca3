//! This door's error, and the one place where kinds become HTTP statuses.

use crate::types::{ErrorBody, ErrorReply};
use hyper::StatusCode;
use mw_model::ErrorKind;

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// A refusal or failure: its kind, and a message that names the thing, the reason and the remedy.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error without a source.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Makes an error of bad input.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Keeps `source` beneath the error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message without its source.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the JSON document that a client receives.
    pub fn reply(&self) -> ErrorReply {
        ErrorReply { error: ErrorBody { kind: self.kind.as_str().to_owned(), message: self.message.clone() } }
    }
}

impl From<mw_sigv4::Error> for Error {
    fn from(error: mw_sigv4::Error) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

impl From<mw_world::Error> for Error {
    fn from(error: mw_world::Error) -> Self {
        Self { kind: error.kind(), message: error.to_string(), source: Some(Box::new(error)) }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self { kind: ErrorKind::of_io(&error), message: error.to_string(), source: Some(Box::new(error)) }
    }
}

/// Returns the HTTP status of a kind (RFC 9110 section 15).
pub fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::Conflict | ErrorKind::NotEmpty | ErrorKind::IsDirectory => {
            StatusCode::CONFLICT
        }
        ErrorKind::NotDirectory | ErrorKind::ReadOnly | ErrorKind::Cancelled => StatusCode::CONFLICT,
        ErrorKind::Denied | ErrorKind::Quota => StatusCode::FORBIDDEN,
        ErrorKind::Precondition => StatusCode::PRECONDITION_FAILED,
        ErrorKind::Invalid | ErrorKind::NameTooLong => StatusCode::BAD_REQUEST,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::Deadline => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Corrupt | ErrorKind::Io => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
