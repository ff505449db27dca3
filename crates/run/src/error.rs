//! Why a run could not be started, shown or ended. What an attempt does is in its record, never an error.

use mw_model::ErrorKind;

/// What went wrong.
#[derive(Debug)]
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
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) if self.message.is_empty() => write!(f, "{source}"),
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

impl From<mw_world::Error> for Error {
    fn from(e: mw_world::Error) -> Self {
        Self::caused(e.kind(), "", e)
    }
}

impl From<mw_meta::Error> for Error {
    fn from(e: mw_meta::Error) -> Self {
        Self::caused(e.kind(), "the metadata store failed", e)
    }
}

impl From<mw_sandbox::Error> for Error {
    fn from(e: mw_sandbox::Error) -> Self {
        Self::caused(e.kind(), "", e)
    }
}
