//! Whether a world has versions of objects, how one is named, and which of them a change keeps.

use crate::entry::Verb;
use crate::error::{Error, Result};
use mw_model::Version;

/// Whether a world answers S3 with versions (AWS, *Using versioning in S3 buckets*). One that ever did never goes back to `Never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versioning {
    /// Nobody asked for versions.
    #[default]
    Never,
    /// Every change through S3 makes a version; what it replaces stays.
    Enabled,
    /// What was kept stays; new objects are the one version `null` of their key.
    Suspended,
}

/// A world's versions: whether it has any, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Versions {
    pub versioning: Versioning,
    /// Content that is not newer than this is the version `null`: it is older than the world's versions.
    pub since: Version,
}

/// The name of one version of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionId {
    /// The version that was made while the world had no versions.
    Null,
    /// The version made at this time of the world.
    At(Version),
}

impl std::fmt::Display for VersionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::At(version) => version.fmt(f),
        }
    }
}

impl std::str::FromStr for VersionId {
    type Err = Error;

    /// Reads `null` or UNIX nanoseconds in decimal, as they are written and in no other way.
    fn from_str(text: &str) -> Result<Self> {
        if text == "null" {
            return Ok(Self::Null);
        }
        let number = text.parse().ok().filter(|n: &u64| n.to_string() == text);
        number.map(|n| Self::At(Version(n))).ok_or_else(|| {
            Error::invalid(format!("{text:?} is no version id; use `null` or UNIX nanoseconds as they were answered"))
        })
    }
}

impl Versions {
    /// Returns the version that content of this time is; none in a world without versions.
    pub(crate) fn id_of(self, content: Version, unversioned: bool) -> Option<VersionId> {
        match self.versioning {
            Versioning::Never => None,
            _ if unversioned || content <= self.since => Some(VersionId::Null),
            _ => Some(VersionId::At(content)),
        }
    }
}

/// Which of the things that a change takes from a key are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// What S3 made, and nobody changed since.
    Acknowledged,
    /// Every object.
    Everything,
    /// Nothing: the plan has seen to it.
    Nothing,
}

impl Keep {
    /// Returns the rule of a verb.
    pub(crate) fn of(verb: Verb) -> Self {
        match verb {
            Verb::Put | Verb::Delete | Verb::Copy => Self::Everything,
            _ => Self::Acknowledged,
        }
    }
}
