//! The error of this crate: mounting and unmounting. What a program on the mount sees is in `errors`.

use mw_model::ErrorKind;
use std::io;
use std::path::Path;

/// Why a mount could not be made or ended.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
}

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Makes the error of a system call: `what` says what was tried and what to do.
    pub(crate) fn io(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        Self { kind: ErrorKind::of_io(&source), message: what.into(), source: Some(source) }
    }

    /// Makes the error for a mount point that cannot be used.
    pub(crate) fn mount_point(dir: &Path, source: io::Error) -> Self {
        Self::io(format!("cannot use {} as a mount point; it must be an existing directory", dir.display()), source)
    }

    /// Returns what a caller can act on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<mw_world::Error> for Error {
    fn from(error: mw_world::Error) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
