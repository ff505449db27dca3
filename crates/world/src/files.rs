//! The POSIX verbs, by inode. Permission bits are not checked here: the kernel does, for mounts.
//!
//! Names: a directory's entry is `name/`, anything else's is `name`. The mount shows the directory where both exist; the
//! object behind it stays, and appears again when the directory goes.

mod acl;
mod attr;
mod dir;
mod hidden;
mod io;
mod make;
mod open;
mod path;
mod remove;
mod rename;
mod xattr;

pub use attr::{SetAttr, SetTime, StatFs};
pub use dir::{Dir, DirEntry};
pub use hidden::{ESCAPE, escaped};
pub use io::{Allocate, SeekFor, WriteAt, Written};
pub use make::Make;
pub use rename::RenameFlag;
pub use xattr::XattrFlag;

pub(crate) use path::{find, resolve, split_key};
