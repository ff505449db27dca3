//! Why a command did not do what it was asked, and with which exit code it ends.

use mw_http::types::ErrorBody;
use mw_model::ErrorKind;

/// The result of this program's calls.
pub type Result<T> = std::result::Result<T, Failure>;

/// It was done.
pub const DONE: u8 = 0;
/// It failed.
pub const FAILED: u8 = 1;
/// The command line, or a name or number in it, is wrong.
pub const USAGE: u8 = 2;
/// Two changes contradict each other, or a name is taken.
pub const CONFLICT: u8 = 3;
/// The named thing does not exist.
pub const NOT_FOUND: u8 = 4;
/// The key may not do this.
pub const DENIED: u8 = 5;
/// The server cannot be reached.
pub const UNREACHABLE: u8 = 6;
/// The time limit passed.
pub const DEADLINE: u8 = 124;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The server, or this program, refused or failed.
    Kind(ErrorKind, String),
    /// The server cannot be reached.
    Unreachable(String),
}

impl Failure {
    /// Makes a failure of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Kind(kind, message.into())
    }

    /// Makes a failure of the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Kind(ErrorKind::Invalid, message.into())
    }

    /// Makes a failure of a system call on `what`.
    pub fn io(what: impl std::fmt::Display, error: impl Into<std::io::Error>) -> Self {
        let error = error.into();
        Self::Kind(ErrorKind::of_io(&error), format!("{what}: {error}"))
    }

    /// Makes the failure that a server told of.
    pub fn told(body: ErrorBody) -> Self {
        Self::Kind(ErrorKind::parse(&body.kind).unwrap_or(ErrorKind::Io), body.message)
    }

    /// Returns what the caller can act on.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Kind(kind, _) => *kind,
            Self::Unreachable(_) => ErrorKind::Io,
        }
    }

    /// Returns the exit code.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Kind(kind, _) => exit_of(*kind),
            Self::Unreachable(_) => UNREACHABLE,
        }
    }

    /// Returns the failure as the JSON body that is printed.
    pub fn body(&self) -> ErrorBody {
        let kind = match self {
            Self::Kind(kind, _) => kind.as_str(),
            Self::Unreachable(_) => "unreachable",
        };
        ErrorBody { kind: kind.to_owned(), message: self.to_string() }
    }
}

/// Returns the exit code of a kind.
fn exit_of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::Conflict | ErrorKind::Precondition => CONFLICT,
        ErrorKind::Denied => DENIED,
        ErrorKind::Invalid | ErrorKind::NameTooLong => USAGE,
        ErrorKind::Deadline => DEADLINE,
        ErrorKind::NotEmpty
        | ErrorKind::IsDirectory
        | ErrorKind::NotDirectory
        | ErrorKind::TooLarge
        | ErrorKind::NoSpace
        | ErrorKind::Quota
        | ErrorKind::ReadOnly
        | ErrorKind::Busy
        | ErrorKind::Corrupt
        | ErrorKind::Unsupported
        | ErrorKind::Cancelled
        | ErrorKind::Io => FAILED,
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kind(_, message) | Self::Unreachable(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

impl From<mw_http::Error> for Failure {
    fn from(error: mw_http::Error) -> Self {
        Self::Kind(error.kind(), error.to_string())
    }
}

impl From<mw_http::sigv4::Error> for Failure {
    fn from(error: mw_http::sigv4::Error) -> Self {
        Self::Kind(error.kind(), error.to_string())
    }
}

impl From<mw_world::Error> for Failure {
    fn from(error: mw_world::Error) -> Self {
        Self::Kind(error.kind(), error.to_string())
    }
}
