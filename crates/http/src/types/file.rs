//! Documents about files.

use super::{Done, ErrorBody, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file, directory, link or object as `ls` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The path in the world.
    pub path: String,
    /// The type.
    pub kind: Kind,
    /// The permission bits, in octal.
    pub mode: String,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The number of names; 1 for what only S3 shows.
    pub links: u32,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change of content.
    pub modified: String,
    /// The inode number.
    pub ino: String,
    /// The target of a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether only S3 shows it: its name cannot be on a mount, or a directory of the same name stands before it.
    #[serde(default)]
    pub hidden: bool,
}

/// Entries, in the order of their paths within each directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entries {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// One line of a listing's stream. The last one is an end or an error; a stream without it broke off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// An entry.
    Entry(Entry),
    /// The listing is whole.
    End(Done),
    /// The failure; nothing more comes.
    Error(ErrorBody),
}

/// A request to remove a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The path.
    pub path: String,
    /// Remove a directory with all that is in it.
    #[serde(default)]
    pub recursive: bool,
}

/// A place: a world, an instant of it, a path in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The world's name.
    pub world: String,
    /// The instant; now when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The path.
    pub path: String,
}

/// A request to copy or move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// From where.
    pub from: Place,
    /// To where. A directory that is there, or a path that ends in `/`, takes the thing under its own name.
    pub to: Place,
    /// Copy a directory with all that is in it.
    #[serde(default)]
    pub recursive: bool,
}

/// What a transfer of files did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic and further hard links.
    pub links: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// What could not travel, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}
