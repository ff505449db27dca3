//! The one error of this crate. Every variant names the thing, the reason and, where there is one, the remedy.
//!
//! Errors are cheap to clone, because one failed sync is told to every thread that waited for it.

use bytes::Bytes;
use mw_model::ErrorKind;
use std::io;
use std::sync::Arc;

/// Why a call failed.
#[derive(Debug, Clone)]
pub enum Error {
    /// A requirement of the batch does not hold; nothing was applied.
    Conflict {
        /// The key whose requirement failed.
        key: Bytes,
    },
    /// A key is longer than [`crate::MAX_KEY`].
    KeyTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A batch is larger than [`crate::MAX_BATCH`].
    BatchTooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// The disk refused.
    Io {
        /// What the store was doing.
        doing: &'static str,
        /// What the disk said.
        source: Arc<io::Error>,
    },
    /// The B-tree refused.
    Tree {
        /// What the store was doing.
        doing: &'static str,
        /// What the B-tree said.
        source: Arc<redb::Error>,
    },
    /// The store takes no more commits, because of an earlier failure.
    ReadOnly {
        /// The failure.
        cause: Arc<Error>,
    },
    /// Stored bytes do not verify.
    Corrupt {
        /// Which bytes, and how that is known.
        what: String,
    },
    /// The store was written by a newer release.
    Newer {
        /// Which part of the store.
        what: String,
        /// The format version found.
        found: u32,
        /// The newest format version that this release reads.
        known: u32,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, source: io::Error) -> Self {
        Self::Io { doing, source: Arc::new(source) }
    }

    pub(crate) fn tree(doing: &'static str, source: impl Into<redb::Error>) -> Self {
        Self::Tree { doing, source: Arc::new(source.into()) }
    }

    /// Returns what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::KeyTooLong { .. } => ErrorKind::NameTooLong,
            Self::BatchTooLarge { .. } => ErrorKind::TooLarge,
            Self::Io { source, .. } => of_io(source),
            Self::Tree { source, .. } => match &**source {
                redb::Error::Io(source) => of_io(source),
                redb::Error::Corrupted(_) => ErrorKind::Corrupt,
                redb::Error::UpgradeRequired(_) => ErrorKind::Unsupported,
                _ => ErrorKind::Io,
            },
            Self::ReadOnly { cause } => cause.kind(),
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Newer { .. } => ErrorKind::Unsupported,
        }
    }
}

/// Only a full disk is told apart: every other refusal of the disk is the same to a caller of this crate, and a missing
/// file of the store must not look like a missing key.
fn of_io(error: &io::Error) -> ErrorKind {
    match ErrorKind::of_io(error) {
        ErrorKind::NoSpace | ErrorKind::Quota => ErrorKind::NoSpace,
        _ => ErrorKind::Io,
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Conflict { key } => {
                write!(
                    f,
                    "the batch requires something of key {} that does not hold; read it again and retry",
                    key.escape_ascii()
                )
            }
            Self::KeyTooLong { len } => {
                write!(f, "a key has {len} bytes; at most {} are allowed", crate::MAX_KEY)
            }
            Self::BatchTooLarge { size } => {
                write!(f, "a batch has {size} bytes; at most {} are allowed: split it", crate::MAX_BATCH)
            }
            Self::Io { doing, source } => {
                write!(f, "the metadata store failed while {doing}: {source}")?;
                match self.kind() {
                    ErrorKind::NoSpace => f.write_str("; make room on the disk, then retry"),
                    _ => Ok(()),
                }
            }
            Self::Tree { doing, source } => write!(f, "the metadata store's tree failed while {doing}: {source}"),
            Self::ReadOnly { cause } => {
                write!(
                    f,
                    "the metadata store is read-only since an earlier failure ({cause}); check the disk and its free space, then restart: the store reopens from what is on disk"
                )
            }
            Self::Corrupt { what } => {
                write!(
                    f,
                    "the metadata store is damaged: {what}; restore it from a copy, or keep the files for inspection"
                )
            }
            Self::Newer { what, found, known } => {
                write!(
                    f,
                    "{what} has format version {found}, and this release reads up to {known}; use the release that wrote it, or a newer one"
                )
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(&**source),
            Self::Tree { source, .. } => Some(&**source),
            Self::ReadOnly { cause } => Some(&**cause),
            _ => None,
        }
    }
}
