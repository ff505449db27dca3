//! The one error of this crate. Each variant carries what its message must name; [`Error::kind`] says what a caller can do.

use crate::addr::{BlobRef, SegmentId};
use crate::blob::Flaw;
use mw_model::ErrorKind;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a call on segments failed.
#[derive(Debug, Clone)]
pub enum Error {
    /// The content is over [`crate::MAX_BLOB`].
    TooLarge {
        /// Its length in bytes.
        len: usize,
    },
    /// The disk is full. What was stored before is untouched; later calls work when there is room again.
    NoSpace {
        /// The bytes that were asked for.
        need: u64,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
    /// A blob does not verify.
    Blob {
        /// The blob.
        blob: BlobRef,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// The committed claims contradict each other or the files.
    Claims {
        /// What is wrong, naming the segments.
        what: String,
    },
    /// A data file is not one of ours, or is damaged.
    File {
        /// The name of the file.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A data file was written by a newer version of the store.
    Newer {
        /// The name of the file.
        name: String,
        /// Its format version.
        version: u32,
    },
    /// The caller broke a rule of the seam.
    Invalid {
        /// The rule, naming the thing.
        what: String,
    },
    /// A sync failed, now or earlier: nothing may be assumed about what is on disk, so nothing more is written.
    Stopped {
        /// What the failed sync said.
        source: Arc<io::Error>,
    },
    /// The operating system refused.
    Io {
        /// What was being done.
        what: String,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
}

impl Error {
    /// Returns what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::NoSpace { .. } => ErrorKind::NoSpace,
            Self::Blob { .. } | Self::Claims { .. } | Self::File { .. } => ErrorKind::Corrupt,
            Self::Newer { .. } => ErrorKind::Unsupported,
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::Stopped { .. } => ErrorKind::Io,
            Self::Io { source, .. } => ErrorKind::of_io(source),
        }
    }

    /// Wraps a failed system call; `what` says what was being done.
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source: Arc::new(source) }
    }

    /// Makes the error of a broken rule.
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    /// Makes the error of a segment that nobody owns.
    pub(crate) fn unowned(segment: SegmentId) -> Self {
        Self::invalid(format!("segment {segment} has no owner; was it freed before?"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { len } => {
                write!(f, "a blob of {len} bytes is over the limit of {}; cut it into pieces", crate::MAX_BLOB)
            }
            Self::NoSpace { need, .. } => {
                write!(
                    f,
                    "the disk of the store has no room for {need} bytes; make room on it, or drop worlds and snapshots, or keep \
                     history for a shorter time (`mw world retention`), and run `mw gc`"
                )
            }
            Self::Blob { blob, flaw } => write!(f, "blob {} at {}: {flaw}", blob.hash, blob.addr),
            Self::Claims { what } => write!(f, "the claims on segments are corrupt: {what}"),
            Self::File { name, what } => write!(f, "data file {name}: {what}"),
            Self::Newer { name, version } => {
                write!(f, "data file {name} has format version {version}, which is newer than this program; upgrade it")
            }
            Self::Invalid { what } => f.write_str(what),
            Self::Stopped { source } => write!(
                f,
                "a sync of the data files failed ({source}), so nothing more is written; restart the server so that it reopens from disk"
            ),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoSpace { source, .. } | Self::Stopped { source } | Self::Io { source, .. } => Some(source.as_ref()),
            Self::Blob { flaw, .. } => Some(flaw),
            Self::TooLarge { .. }
            | Self::Claims { .. }
            | Self::File { .. }
            | Self::Newer { .. }
            | Self::Invalid { .. } => None,
        }
    }
}
