//! The three-way merge: what each side did since their common state, decided entry by entry without I/O.
//!
//! It knows nothing of worlds, logs or commits: `promote` hands over three views, and commits what comes out.
//!
//! - `moves`: what a side renamed; `weave`: three trees as one set of nodes; `facts`: what is known of a node;
//! - `combine`: contents that both changed, as text or JSON;
//! - `decide`: one node, a pure function; `settle`: all of them, such that they hold together;
//! - `apply`: the plan as edits of the changed world; `adopt`: an inode brought over.

mod adopt;
mod apply;
mod combine;
mod decide;
mod facts;
mod moves;
mod settle;
mod weave;

use crate::content::Content;
use crate::diff::records;
use crate::error::Result;
use crate::txn::Txn;
use crate::view::View;
use bytes::Bytes;
use std::collections::BTreeMap;

pub(crate) use adopt::adopt_tree;
pub use combine::Combine;

/// The trees of a merge.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub content: &'a Content,
    /// What both sides are compared with.
    pub common: &'a View,
    /// The world to be changed.
    pub ours: &'a View,
    /// The other world.
    pub theirs: &'a View,
    /// The base at the moment of the common state: needed for appended files alone.
    pub base_then: Option<&'a View>,
    /// Whether the changed world is the base: in a file to which both appended, the base's tail comes first.
    pub into_base: bool,
}

/// How a merge is decided.
#[derive(Clone, Copy)]
pub(crate) struct Decide<'a> {
    pub policy: Policy,
    pub resolve: &'a BTreeMap<Bytes, Side>,
    /// Only paths that start with this.
    pub only: &'a [u8],
    /// What is done with contents that both sides changed.
    pub combine: Combine,
    /// Whether nothing is to be written but the plan.
    pub dry_run: bool,
    /// Hears how far it is, and may end it.
    pub watch: &'a dyn Watch,
}

/// Hears how far a merge is: what it does, and how much of how much is done where that is known.
pub(crate) trait Watch {
    /// # Errors
    /// The merge is to end here. Nothing was committed.
    fn at(&self, what: &str, done: usize, of: usize) -> Result<()>;
}

/// How many nodes lie between two looks at the watch.
const LOOK: usize = 256;

/// What a merge came to.
pub(crate) struct Merged {
    /// What nobody decided. When there is any, nothing was applied.
    pub conflicts: Vec<Conflict>,
    /// Files whose content is made of both sides'.
    pub merged: Vec<Bytes>,
}

/// Merges what theirs did since the common state into a mutation that sees ours.
pub(crate) fn merge(txn: &mut Txn<'_>, sides: &Sides<'_>, how: &Decide<'_>) -> Result<Merged> {
    how.watch.at("comparing both sides with what they had in common", 0, 0)?;
    let (ours, theirs) = (records(sides.common, sides.ours)?, records(sides.common, sides.theirs)?);
    how.watch.at("deciding", 0, 0)?;
    let mut weave = weave::Weave::new([sides.common, sides.ours, sides.theirs], &ours, &theirs)?;
    let plan = settle::settle(&mut weave, sides, how)?;
    if plan.conflicts.is_empty() {
        apply::apply(txn, &mut weave, &plan, sides.into_base, how)?;
    }
    Ok(Merged { merged: plan.merged(), conflicts: plan.conflicts })
}

/// What a merge does with conflicts. *Ours* is the world that is changed: the base of a promote, the fork of a rebase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Nothing is applied when there is any conflict.
    #[default]
    Fail,
    /// The changed world's side stays.
    Ours,
    /// The other world's side comes.
    Theirs,
}

/// A side of a merge, to decide the conflict at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The changed world's.
    Ours,
    /// The other world's.
    Theirs,
}

/// Why a path cannot be merged. *First* the changed world's doing, *then* the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConflictKind {
    /// Both sides changed the content.
    BothModified,
    /// Both sides added the path, with a difference.
    BothAdded,
    /// The changed world modified what the other deleted.
    ModifyDelete,
    /// The changed world deleted what the other modified.
    DeleteModify,
    /// Both sides renamed the same thing to different names, or different things to the same name.
    RenameRename,
    /// Both sides moved directories such that each would lie in the other.
    RenameCycle,
    /// One side added or moved something into a directory that the other deleted.
    ParentDeleted,
    /// One side made it another type, and the other changed it too.
    TypeChanged,
    /// Both sides changed the same attribute differently.
    Attributes,
}

impl ConflictKind {
    /// Returns the stable lower-case name used in JSON and on the terminal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BothModified => "both-modified",
            Self::BothAdded => "both-added",
            Self::ModifyDelete => "modify-delete",
            Self::DeleteModify => "delete-modify",
            Self::RenameRename => "rename-rename",
            Self::RenameCycle => "rename-cycle",
            Self::ParentDeleted => "parent-deleted",
            Self::TypeChanged => "type-changed",
            Self::Attributes => "attributes",
        }
    }
}

impl std::fmt::Display for ConflictKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One path that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The path in the changed world (of a directory with its slash); the key to decide it by in a resolution.
    pub path: Bytes,
    /// The reason.
    pub kind: ConflictKind,
    /// What each side did, in a sentence.
    pub detail: String,
}
