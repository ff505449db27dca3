//! The one table from error kinds to the codes of NFS.

use mw_model::ErrorKind;
use mw_world::Error;

/// What a procedure answers (RFC 1813, section 2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Status {
    Ok = 0,
    Permission = 1,
    NotFound = 2,
    Io = 5,
    Access = 13,
    Exists = 17,
    NotDirectory = 20,
    IsDirectory = 21,
    Invalid = 22,
    TooLarge = 27,
    NoSpace = 28,
    ReadOnly = 30,
    NameTooLong = 63,
    NotEmpty = 66,
    Quota = 69,
    Stale = 70,
    BadHandle = 10_001,
    NotSync = 10_002,
    Unsupported = 10_004,
    BadType = 10_007,
    /// Try again later.
    Jukebox = 10_008,
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::AlreadyExists => Self::Exists,
            ErrorKind::Denied => Self::Access,
            ErrorKind::Conflict | ErrorKind::Busy => Self::Jukebox,
            ErrorKind::Invalid => Self::Invalid,
            ErrorKind::NotEmpty => Self::NotEmpty,
            ErrorKind::IsDirectory => Self::IsDirectory,
            ErrorKind::NotDirectory => Self::NotDirectory,
            ErrorKind::NameTooLong => Self::NameTooLong,
            ErrorKind::TooLarge => Self::TooLarge,
            ErrorKind::NoSpace => Self::NoSpace,
            ErrorKind::Quota => Self::Quota,
            ErrorKind::ReadOnly => Self::ReadOnly,
            ErrorKind::Unsupported => Self::Unsupported,
            ErrorKind::Precondition
            | ErrorKind::Corrupt
            | ErrorKind::Deadline
            | ErrorKind::Cancelled
            | ErrorKind::Io => {
                // The client sees a number; the log has the sentence.
                tracing::error!(kind = %error.kind(), "{error}");
                Self::Io
            }
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}
