//! Documents about keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a key may do in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Read, list, diff, log.
    Reader,
    /// Write, delete and snapshot as well.
    Editor,
    /// Fork, promote, discard and make keys as well.
    Admin,
}

/// A role in a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// The world's name, or `*` for all.
    pub world: String,
    /// The role.
    pub role: Role,
    /// What it is narrowed to: `get`, `list`, `put`, `delete`, `world`, joined by `+`. All of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbs: Option<String>,
    /// The start of every key that it reaches. All keys when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// A key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Key {
    /// The id, which is the S3 access key.
    pub id: String,
    /// The name.
    pub name: String,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// When it was made.
    pub created: String,
    /// When it dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// A policy of its own, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The policies attached to it, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// How many worlds it may own that it forked from those it can read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forks: u32,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// Keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Keys {
    /// The keys.
    pub keys: Vec<Key>,
}

/// A request for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// The name, for people.
    pub name: String,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// A policy of its own, as JSON (a subset of AWS's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// How many worlds it may own that it forks from those it can read. 0: it may fork where it is admin alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forks: u32,
    /// After how many seconds it dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// A request for a temporary key, which acts for the caller's: within these bounds, and never beyond what that one may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTemporaryKey {
    /// The name, for people: 2 to 64 of letters, digits and `+=,.@_-`.
    pub name: String,
    /// What it may do of what the caller may. With neither grants nor a policy it may do nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// A policy that bounds it, as JSON (a subset of AWS's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// After how many seconds it dies: 1 to 129600 (36 hours), an hour when absent. It never outlives the key that it acts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// A temporary key with its secret and its session token, shown once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemporaryKey {
    /// The id, which is the S3 access key.
    pub id: String,
    /// The secret.
    pub secret: String,
    /// The session token, which must come with every request.
    pub token: String,
    /// When it dies.
    pub expires: String,
}

impl std::fmt::Debug for TemporaryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemporaryKey").field("id", &self.id).finish_non_exhaustive()
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A key with its secret, shown once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Secret {
    /// The id, which is the S3 access key.
    pub id: String,
    /// The secret.
    pub secret: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("id", &self.id).finish_non_exhaustive()
    }
}
