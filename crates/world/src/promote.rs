//! Promote and rebase (a merge of fork and base, committed as one entry of the changed world), revert and restore.

use crate::diff::DiffEntry;
use crate::error::{Error, Result};
use crate::merge::{Conflict, Policy, Side};
use crate::session::Session;
use crate::time::At;
use bytes::Bytes;
use mw_model::{ErrorKind, Version};
use std::collections::BTreeMap;

/// How a promote or rebase is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromoteOptions {
    /// Says what the real one would do, and touches nothing.
    pub dry_run: bool,
    /// Takes only what lies under this prefix of paths.
    pub only: Option<Bytes>,
    /// What is done with conflicts that `resolve` does not name.
    pub policy: Policy,
    /// Decisions by path.
    pub resolve: BTreeMap<Bytes, Side>,
    /// What history shows.
    pub message: Option<String>,
    /// Objects (key, content) written into the changed world by the same commit.
    pub extra: Vec<(Bytes, Bytes)>,
}

/// What a promote, rebase, revert or restore did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Promoted {
    /// The version of the change; none when nothing was changed.
    pub version: Option<Version>,
    /// The snapshot of the changed world that was taken first.
    pub snapshot: Option<Version>,
    /// Whether one root took the place of another.
    pub fast: bool,
    /// What became different in the changed world.
    pub changes: Vec<DiffEntry>,
    /// Files to which both sides appended: both tails are kept.
    pub merged: Vec<Bytes>,
    /// What could not be merged. With any that is not decided nothing was applied.
    pub conflicts: Vec<Conflict>,
    /// Whether this was a dry run.
    pub dry_run: bool,
}

impl Session {
    /// Brings the changes of this fork to its base.
    ///
    /// # Errors
    /// `Denied` below reader on the fork or admin on the base; `NotFound` when the world is no fork, or its base was deleted.
    /// Conflicts are no error: see [`Promoted::conflicts`].
    pub fn promote(&self, options: &PromoteOptions) -> Result<Promoted> {
        let _ = options;
        Err(Error::new(ErrorKind::Unsupported, "promote is not offered yet"))
    }

    /// Brings the changes of the base to this fork.
    ///
    /// # Errors
    /// Those of [`Session::promote`], with the roles exchanged.
    pub fn rebase(&self, options: &PromoteOptions) -> Result<Promoted> {
        let _ = options;
        Err(Error::new(ErrorKind::Unsupported, "rebase is not offered yet"))
    }

    /// Makes the world again what it was at an instant, as a new change.
    ///
    /// # Errors
    /// `Denied` below admin; `NotFound` when the instant is not retained.
    pub fn revert(&self, to: At) -> Result<Promoted> {
        let _ = to;
        Err(Error::new(ErrorKind::Unsupported, "revert is not offered yet"))
    }

    /// Makes one file or directory again what it was at an instant, as a new change.
    ///
    /// # Errors
    /// `Denied` below editor; `NotFound` when the instant is not retained or had nothing there.
    pub fn restore(&self, from: At, path: &[u8]) -> Result<Promoted> {
        let _ = (from, path);
        Err(Error::new(ErrorKind::Unsupported, "restore is not offered yet"))
    }
}
