//! Documents about mounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request to mount a world, or one instant of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMount {
    /// The world's name.
    pub world: String,
    /// The instant; now, and writable, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The directory on the server's machine, absolute.
    pub dir: String,
    /// Take no changes.
    #[serde(default)]
    pub read_only: bool,
    /// The kernel collects what programs write; the mount is then the only one of its world. See SEMANTICS, 7.3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writeback: bool,
    /// The user and group as whose things the files are shown that belong to the store's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
    /// Put it where another world, or another instant, is mounted now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub switch: bool,
}

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// The world's name.
    pub world: String,
    /// The instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The directory.
    pub dir: String,
    /// Whether it takes no changes.
    pub read_only: bool,
    /// Whether the kernel collects what programs write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writeback: bool,
    /// The world's version that it shows: that of its last change, or the instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// At most how many bytes, written through it, a power cut could still take.
    #[serde(default)]
    pub unsynced: u64,
    /// Whether it answers.
    pub alive: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mounts {
    /// The mounts.
    pub mounts: Vec<Mount>,
}

/// A request to unmount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unmount {
    /// The directory.
    pub dir: String,
    /// Detach it even if files on it are open.
    #[serde(default)]
    pub lazy: bool,
}
