//! Why a sandbox did not start. What a command does once it runs is an [`crate::Outcome`], never an error.

use mw_model::ErrorKind;
use std::fmt;
use std::io;

/// What kept a sandbox from being built, started or fed.
#[derive(Debug)]
pub enum Error {
    /// The request breaks a rule; the message says which.
    Invalid(String),
    /// The machine cannot isolate commands; the message names what is missing and the remedy.
    Unavailable(String),
    /// The sandbox could not be built; the message is the last of what the builder said.
    Setup(String),
    /// The sandbox was not ready in time.
    Slow(String),
    /// The command cannot be executed inside.
    Command {
        /// The program or directory, as given.
        what: String,
        /// What `execve` or `chdir` said.
        source: io::Error,
    },
    /// The operating system refused.
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
}

impl Error {
    /// Returns what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Unavailable(_) => ErrorKind::Unsupported,
            Self::Setup(_) => ErrorKind::Io,
            Self::Slow(_) => ErrorKind::Deadline,
            Self::Command { source, .. } | Self::Io { source, .. } => ErrorKind::of_io(source),
        }
    }

    /// Returns a function that says what was being done when the operating system refused.
    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { doing, source: source.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(message) => write!(f, "{message}"),
            Self::Unavailable(message) => write!(f, "no sandbox here: {message}"),
            Self::Setup(message) => write!(f, "the sandbox could not be built: {message}"),
            Self::Slow(message) => write!(f, "the sandbox was not ready in time: {message}"),
            Self::Command { what, .. } => write!(f, "cannot run `{what}` in the sandbox"),
            Self::Io { doing, .. } => write!(f, "sandbox: cannot {doing}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Command { source, .. } | Self::Io { source, .. } => Some(source),
            Self::Invalid(_) | Self::Unavailable(_) | Self::Setup(_) | Self::Slow(_) => None,
        }
    }
}
