//! Documents about exports over NFS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request to export a world, or one instant of it, over NFS to the server's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewExport {
    /// The world's name.
    pub world: String,
    /// The instant; now, and writable, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The port on 127.0.0.1; a free one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Take no changes.
    #[serde(default)]
    pub read_only: bool,
}

/// An export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Export {
    /// The world's name.
    pub world: String,
    /// The instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The port on 127.0.0.1, of NFS and of the MOUNT protocol.
    pub port: u16,
    /// Whether it takes no changes.
    pub read_only: bool,
    /// How many clients are connected.
    pub clients: u64,
    /// Why it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Exports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exports {
    /// The exports, by port.
    pub exports: Vec<Export>,
}
