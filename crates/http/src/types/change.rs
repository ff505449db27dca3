//! Documents about changes: diff, log, promote and its kin.

use super::ErrorBody;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The type of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

/// How a path changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content changed.
    Modified,
    /// It has another name.
    Renamed,
    /// Something of another type stands there.
    TypeChanged,
    /// Only its attributes changed.
    Attributes,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The path.
    pub path: String,
    /// How it changed.
    pub change: How,
    /// The former path of a renamed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The type.
    pub kind: Kind,
    /// The size before, in bytes.
    pub old_size: u64,
    /// The size after, in bytes.
    pub new_size: u64,
    /// The change as a unified diff, where it was asked for and both sides are text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

/// The difference between two worlds or instants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The changes, by path.
    pub changes: Vec<Change>,
}

/// One entry of a world's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogEntry {
    /// The place in the log.
    pub seq: String,
    /// The version that it made.
    pub version: String,
    /// When.
    pub time: String,
    /// Who: the key's id.
    pub key: String,
    /// In which run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What was done.
    pub verb: String,
    /// To which path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// How many records changed.
    pub changes: u64,
    /// How many bytes of content came with it.
    pub bytes: u64,
    /// The hash that chains this entry to all before it.
    pub chain: String,
}

/// Log entries, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Log {
    /// The entries.
    pub entries: Vec<LogEntry>,
}

/// What to do about conflicts that no resolution names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Apply nothing and list them.
    #[default]
    Fail,
    /// Keep the target's side (the base in a promote, the fork in a rebase).
    Ours,
    /// Take the source's side.
    Theirs,
}

/// One side of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The target's.
    Ours,
    /// The source's.
    Theirs,
}

/// A sort of content of which both sides' changes can be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// Text, by lines.
    Text,
    /// JSON in files called `*.json`, by keys.
    Json,
}

/// A request to promote or rebase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewPromote {
    /// Say what would be done and do nothing.
    pub dry_run: bool,
    /// Only what lies under this path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// What to do about conflicts.
    pub policy: Policy,
    /// What is combined when both sides changed a content, before it is a conflict. Nothing when left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merge: Vec<Combine>,
    /// Decisions by path, stronger than the policy.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resolve: BTreeMap<String, Side>,
    /// A text for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A request to revert a world to an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRevert {
    /// The instant.
    pub to: String,
}

/// A request to bring one path back from an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRestore {
    /// The instant.
    pub from: String,
    /// The path.
    pub path: String,
}

/// What kind of contradiction a conflict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictKind {
    /// Both sides changed the content.
    BothModified,
    /// Both sides added different things.
    BothAdded,
    /// The target changed what the source deleted.
    ModifyDelete,
    /// The target deleted what the source changed.
    DeleteModify,
    /// Both sides renamed it differently.
    RenameRename,
    /// The renames of both sides together would make a cycle.
    RenameCycle,
    /// One side deleted the directory into which the other put something.
    ParentDeleted,
    /// The types of both sides differ.
    TypeChanged,
    /// Both sides changed attributes differently.
    Attributes,
}

/// Two changes that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// The path.
    pub path: String,
    /// The kind.
    pub kind: ConflictKind,
    /// More about it.
    pub detail: String,
}

/// The outcome of a promote, rebase, revert or restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promoted {
    /// The version that it made; none when nothing was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The snapshot of the target that was taken first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Whether the target was unchanged, so that one root was swapped.
    pub fast: bool,
    /// Whether it was only said what would be done.
    pub dry_run: bool,
    /// The changes of the target.
    pub changes: Vec<Change>,
    /// Files whose content is made of both sides': both appended, or what both changed was combined.
    pub merged: Vec<String>,
    /// Contradictions. Not empty: nothing was applied.
    pub conflicts: Vec<Conflict>,
    /// Stands beside conflicts that kept everything from being applied (status 409).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}
