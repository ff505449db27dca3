//! The three-way merge: what each side did since their common state, decided entry by entry without I/O.
//!
//! It knows nothing of worlds, logs or commits: `promote` reads the two sides, hands them over, and applies the plan.

use bytes::Bytes;

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
