//! What differs between two worlds, or two instants, by path: a difference of records lifted to entries.

mod content;
mod item;
mod lift;
mod records;

use crate::error::Result;
use crate::principal::Role;
use crate::session::Session;
use bytes::Bytes;
use mw_model::FileType;

pub(crate) use content::{FileIn, same_start};
pub(crate) use item::{Item, same_content};
pub(crate) use lift::lift;
pub(crate) use records::{Records, records};

/// How a path differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Only the second has it.
    Added,
    /// Only the first has it.
    Deleted,
    /// Another content.
    Modified,
    /// Another path; the content may differ too.
    Renamed {
        /// The path in the first.
        from: Bytes,
    },
    /// Another type.
    TypeChanged,
    /// The same content with other attributes (mode, owner, extended attributes, metadata).
    Attributes,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffEntry {
    /// The path, of a directory with its slash; of a deleted one, the path in the first.
    pub path: Bytes,
    /// How it differs.
    pub change: Change,
    /// The type, in the second where that has it.
    pub kind: FileType,
    /// The size in the first, in bytes; 0 for what is not there and for directories.
    pub old_size: u64,
    /// The size in the second, in bytes.
    pub new_size: u64,
}

/// Returns what leads from one world or instant to another, by path. A directory whose only change is its times is no change.
///
/// # Errors
/// `Denied` below reader on either; `NotFound` when an instant is no longer retained; `Busy` when the kernel of a mount with write-back
/// does not give up in time what it holds.
pub fn diff(from: &Session, to: &Session) -> Result<Vec<DiffEntry>> {
    from.need(Role::Reader)?;
    to.need(Role::Reader)?;
    for side in [from, to] {
        if side.version().is_none() {
            side.world.listeners.write_back()?;
        }
    }
    let (a, b) = (from.view(), to.view());
    lift(&from.store.content, &a, &b, &records(&a, &b)?)
}
