//! Versions of objects, as S3 has them: every version that S3 acknowledged stays under its key until S3 deletes that version.
//!
//! The object under a key is its current version and nothing else. What it replaced is *kept*: its inode stays, without a name and
//! marked so, and a record names it by key and time, newest first. A deletion is a record too, the *marker*. All of this lies in the
//! world's tree, so forks, instants and the sweep need to know nothing of it. `design/0009` says why.
//!
//! Invariant: a kept inode is never changed but by its tags, has no name, and exactly one record refers to it.
//!
//! - `setting`: whether a world has versions; `record`: the records, and their order;
//! - `keep`: what a change replaced or removed, kept in the same entry; `bulk`: the same for promote, rebase, revert and restore;
//! - `verbs`: versions read and deleted; `list`: all of them, a page at a time.

mod bulk;
mod keep;
mod list;
mod record;
mod setting;
mod verbs;

pub use list::{ListedVersion, VersionsListing, VersionsRequest};
pub use setting::{VersionId, Versioning};
pub use verbs::{Deleted, Marker, Versioned};

pub(crate) use bulk::carry;
pub(crate) use keep::{Keep, keep};
pub(crate) use record::{Kept, any, read};
pub(crate) use setting::Versions;
pub(crate) use verbs::{find_version, no_version};
