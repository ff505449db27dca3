//! Documents about worlds, snapshots and the store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct World {
    /// The name.
    pub name: String,
    /// The identity, never reused.
    pub id: String,
    /// When it was made.
    pub created: String,
    /// The latest version.
    pub version: String,
    /// What it was forked from; left out when the key may not read that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// When it will be discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The run that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether S3 shows object versions.
    pub versioned: bool,
    /// Whether forks of it live.
    pub has_forks: bool,
}

/// Where a fork came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parent {
    /// The base's name.
    pub name: String,
    /// The base's version at the fork point.
    pub version: String,
}

/// The worlds that the key may read, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worlds {
    /// The worlds.
    pub worlds: Vec<World>,
}

/// A request for a new, empty world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorld {
    /// The name: the rules of an S3 bucket.
    pub name: String,
}

/// A request for a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFork {
    /// The fork's name.
    pub name: String,
    /// The instant to fork at: a version, an RFC 3339 time or a snapshot's label; now when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// After how many seconds the fork is discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// Space that a deletion gave back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Freed {
    /// Bytes given back at once.
    pub bytes: u64,
    /// Bytes that other worlds may still need, or that somebody is still reading: the next sweep decides.
    pub later: u64,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The version: UNIX nanoseconds.
    pub version: String,
    /// The label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it was taken.
    pub created: String,
    /// The bytes of content in it.
    pub bytes: u64,
}

/// Snapshots, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshots {
    /// The snapshots.
    pub snapshots: Vec<Snapshot>,
}

/// A request for a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSnapshot {
    /// The label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// What a world holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Objects as S3 counts them.
    pub objects: u64,
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Bytes stored for this world alone.
    pub own: u64,
    /// Inodes.
    pub inodes: u64,
}

/// What a check of the whole store found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fsck {
    /// Worlds checked.
    pub worlds: u64,
    /// Roots checked.
    pub roots: u64,
    /// Blobs checked.
    pub blobs: u64,
    /// Bytes checked.
    pub bytes: u64,
    /// Everything that does not verify, by name. Empty: the store is whole.
    pub problems: Vec<String>,
}

/// What a sweep gave back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swept {
    /// Bytes freed: whole segments, and what `inside` counts.
    pub freed: u64,
    /// Segments freed.
    pub segments: u64,
    /// Bytes freed inside segments in which something lives on.
    #[serde(default)]
    pub inside: u64,
    /// Deleted worlds whose last bytes went.
    pub worlds: u64,
    /// Log entries that fell out of the retention window.
    pub entries: u64,
    /// Forks that were discarded as their time was over.
    pub reaped: Vec<String>,
}

/// The state of the server and its store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The server's process id.
    pub pid: u32,
    /// Live mounts.
    pub mounts: u64,
    /// Every mount.
    #[serde(default)]
    pub mounted: Vec<super::Mount>,
    /// Runs that are not finished.
    pub runs: u64,
    /// Counts of the store: worlds, bytes, syncs, memory.
    pub store: serde_json::Value,
}

/// How far a restart of the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartState {
    /// It has begun.
    UnderWay,
    /// The new server answers.
    Done,
    /// It was given up, and the old server goes on.
    Failed,
}

/// A restart of the server in place, which its clients and the programs on its mounts do not notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restart {
    /// Its name, made when it was asked for.
    pub id: String,
    /// How far it is.
    pub state: RestartState,
    /// The version of the program that answers.
    pub version: String,
    /// The server's process, which stays the same.
    pub pid: u32,
    /// Mounts that were handed over.
    #[serde(default)]
    pub mounts: u64,
    /// Files and directories that programs have open in them.
    #[serde(default)]
    pub open: u64,
    /// Listeners that were handed over, those of exports among them.
    #[serde(default)]
    pub listeners: u64,
    /// How long clients waited, in milliseconds.
    #[serde(default)]
    pub waited: u64,
    /// Why it was given up, or what was not handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The answer of `/-/healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Always true; a server that cannot answer does not.
    pub ok: bool,
    /// The life of the server: changes with every start.
    pub instance: String,
}

/// A request to set how long a world's history stays readable; without a number, the store's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewRetention {
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// How far back a world can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetentionReport {
    /// How long history stays readable, in seconds.
    pub seconds: u64,
    /// Whether that is the store's default.
    pub default: bool,
    /// The oldest instant that can be read, snapshots aside.
    pub oldest: String,
}

/// A request to set a world's quota; what is left out has no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewQuota {
    /// Bytes of content, holes not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Files, directories and links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
}

/// A world's quota, and what counts against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaReport {
    /// The most bytes of content, holes not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The most files, directories and links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    /// The bytes of content; 0 while there is no quota.
    pub held_bytes: u64,
    /// The files, directories and links; 0 while there is no quota.
    pub held_inodes: u64,
}
