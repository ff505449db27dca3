//! What can go wrong in a tree. Every error names the thing it is about; it does not know what keys mean.

use crate::value::{MAX_KEY, MAX_LOCATOR};
use bytes::Bytes;
use mw_model::ErrorKind;
use mw_model::codec::DecodeError;
use mw_segments::BlobRef;
use std::fmt;

/// Why a call failed.
#[derive(Debug)]
pub enum Error {
    /// A node or an out-of-line record could not be read.
    Read {
        /// The blob.
        blob: BlobRef,
        /// What the segments said.
        source: mw_segments::Error,
    },
    /// A node or an out-of-line record could not be written.
    Write(mw_segments::Error),
    /// A blob verifies, and yet is not the node or record that it should be.
    Node {
        /// The blob.
        blob: BlobRef,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// [`check`](crate::Tree::check) found a node that is not what its parent, or the law of the shape, says.
    Check {
        /// The node's keys lie after this one (`None`: from the first key on).
        after: Option<Bytes>,
        /// And up to this one (`None`: to the last key).
        upto: Option<Bytes>,
        /// The node's level; leaves are 0.
        level: u8,
        /// What was found.
        fault: Fault,
    },
    /// The keys of a call are not sorted, or not unique where they must be.
    Unsorted,
    /// A key is longer than [`MAX_KEY`](crate::MAX_KEY).
    KeyTooLong(usize),
    /// The data of a value is larger than one blob can hold.
    DataTooLarge(usize),
    /// A locator is longer than [`MAX_LOCATOR`](crate::MAX_LOCATOR).
    LocatorTooLong(usize),
    /// The tree was shaped with another salt.
    OtherSalt,
}

/// Why verified bytes are not a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// They do not decode.
    Decode(DecodeError),
    /// They are of a format that this release does not know.
    Format(u8),
    /// The keys are not strictly ascending.
    Order,
    /// The node stands at another level than its parent says.
    Level,
    /// The length is not the one that the entry names.
    Length,
}

/// What [`check`](crate::Tree::check) found.
#[derive(Debug)]
pub enum Fault {
    /// The node, a record of it, or a node beneath could not be read.
    Unreadable(Box<Error>),
    /// Its first key is not after the last key of the node before it.
    Overlap,
    /// Its last key is not the one that the parent names.
    LastKey,
    /// Its logical hash is not the one that the parent names.
    Hash,
    /// It does not hold as many entries as the parent says.
    Entries,
    /// Its weight is not the one that the parent names.
    Weight,
    /// It goes on past a key that ends a node.
    Long,
    /// It ends at a key that does not end a node.
    Cut,
    /// It is the top and has one child only, which should be the top.
    Chain,
}

impl Error {
    /// Returns the kind, which tells a caller what to do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read { source, .. } | Self::Write(source) => source.kind(),
            Self::Node { flaw: Flaw::Format(_), .. } => ErrorKind::Unsupported,
            Self::Node { .. } => ErrorKind::Corrupt,
            Self::Check { fault: Fault::Unreadable(source), .. } => source.kind(),
            Self::Check { .. } => ErrorKind::Corrupt,
            Self::Unsorted | Self::OtherSalt => ErrorKind::Invalid,
            Self::KeyTooLong(_) => ErrorKind::NameTooLong,
            Self::DataTooLarge(_) | Self::LocatorTooLong(_) => ErrorKind::TooLarge,
        }
    }
}

/// Writes a key so that a person can read it and a shell can take it.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { blob, .. } => {
                write!(f, "a node or record of a tree could not be read: blob {} at {}", blob.hash, blob.addr)
            }
            Self::Write(_) => f.write_str("a node or record of a tree could not be written"),
            Self::Node { blob, flaw } => {
                write!(f, "a node of a tree is not whole: {flaw}: blob {} at {}", blob.hash, blob.addr)
            }
            Self::Check { after, upto, level, fault } => {
                f.write_str("the tree is not whole between ")?;
                match after {
                    Some(key) => write!(f, "{} (excluded)", Shown(key))?,
                    None => f.write_str("its start")?,
                }
                match upto {
                    Some(key) => write!(f, " and {}", Shown(key))?,
                    None => f.write_str(" and its end")?,
                }
                write!(f, ", level {level}: {fault}")
            }
            Self::Unsorted => f.write_str("the keys are not in order; sort them, each once"),
            Self::KeyTooLong(len) => write!(f, "a key has {len} bytes; at most {} are allowed", MAX_KEY),
            Self::DataTooLarge(len) => {
                write!(f, "a value has {len} bytes; at most {} are allowed", mw_segments::MAX_BLOB)
            }
            Self::LocatorTooLong(len) => {
                write!(f, "a locator has {len} bytes; at most {} are allowed", MAX_LOCATOR)
            }
            Self::OtherSalt => {
                f.write_str("the tree was shaped with another salt; edit it with the salt of its lineage")
            }
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(e) => e.fmt(f),
            Self::Format(n) => write!(f, "it has format {n}, which this release does not know"),
            Self::Order => f.write_str("its keys are not in order"),
            Self::Level => f.write_str("it stands at another level than its parent says"),
            Self::Length => f.write_str("it has another length than its entry says"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable(_) => "a blob could not be read",
            Self::Overlap => "the first key is not after the last key of the node before",
            Self::LastKey => "the last key is not the one that the parent names",
            Self::Hash => "the logical hash is not the one that the parent names",
            Self::Entries => "the number of entries is not the one that the parent names",
            Self::Weight => "the weight is not the one that the parent names",
            Self::Long => "the node goes on past a key that ends one",
            Self::Cut => "the node ends at a key that does not end one",
            Self::Chain => "the top has one child only",
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } | Self::Write(source) => Some(source),
            Self::Check { fault: Fault::Unreadable(source), .. } => Some(source),
            Self::Node { flaw: Flaw::Decode(source), .. } => Some(source),
            _ => None,
        }
    }
}

impl From<DecodeError> for Flaw {
    fn from(e: DecodeError) -> Self {
        Self::Decode(e)
    }
}
