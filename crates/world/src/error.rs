//! The error of this crate: a kind that tells the caller what to do, a sentence that names the thing, the reason and the remedy.

use mw_model::ErrorKind;
use mw_model::codec::DecodeError;

/// What went wrong in a verb.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error that nothing else caused.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Makes an error that `source` caused.
    pub fn caused(
        kind: ErrorKind,
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(Box::new(source)) }
    }

    /// Returns what a caller can act on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The one answer for a world that the principal may not reach, whether it exists or not.
    pub fn denied() -> Self {
        Self::new(
            ErrorKind::Denied,
            "access denied: this key has no such right on that world; ask the key's maker for a grant",
        )
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {self}", self.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

impl From<mw_meta::Error> for Error {
    fn from(e: mw_meta::Error) -> Self {
        Self::caused(e.kind(), "the metadata store failed", e)
    }
}

impl From<mw_segments::Error> for Error {
    fn from(e: mw_segments::Error) -> Self {
        Self::caused(e.kind(), "the segment store failed", e)
    }
}

impl From<mw_tree::Error> for Error {
    fn from(e: mw_tree::Error) -> Self {
        Self::caused(e.kind(), "the tree failed", e)
    }
}

impl From<DecodeError> for Error {
    fn from(e: DecodeError) -> Self {
        Self::caused(ErrorKind::Corrupt, "a stored record does not decode; run `mw fsck`", e)
    }
}
