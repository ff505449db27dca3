//! Versions of objects, as S3 has them: every version that S3 acknowledged stays under its key until S3 deletes that version.
//!
//! The object under a key is its current version and nothing else. What it replaced is *kept*: its inode stays, without a name and
//! marked so, and a record names it by key and time, newest first. A deletion is a record too, the *marker*. All of this lies in the
//! world's tree, so forks, instants and the sweep need to know nothing of it. `design/0009` says why.
//!
//! Invariant: a kept inode is never changed but by its tags, has no name, and exactly one record refers to it.
//!
//! - `record`: the records, and their order; `keep`: what a change replaced or removed, kept in the same entry.
//!
//! What S3 asks of versions are verbs in `objects`; `promote` sees to them where a whole view takes the place of another.

mod keep;
mod record;

pub(crate) use keep::{Touched, is_object, keep, settle};
pub(crate) use record::{Kept, all, any, find, key, of, read};
