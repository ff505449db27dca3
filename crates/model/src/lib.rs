//! Nouns without I/O, shared by every layer: ids, names, attributes, error kinds and codec helpers.
//!
//! Nothing here may know about async, disks or protocols.
//!
//! - [`kind`]: the few kinds of error, each of which tells a caller what to do;
//! - [`ids`]: tenants, worlds, inodes, sequence numbers, versions;
//! - [`name`]: world names (S3 bucket rules) and file names;
//! - [`attr`]: what an inode looks like from outside;
//! - [`hash`]: the one content hash;
//! - [`codec`]: bounded binary encoding;
//! - [`text`]: paths as text, without loss; [`when`]: times as text;
//! - [`policy`]: who may do what, decided.

pub mod attr;
pub mod codec;
pub mod hash;
pub mod ids;
pub mod kind;
pub mod name;
pub mod policy;
pub mod text;
pub mod when;

pub use attr::{Attr, FileType};
pub use hash::Hash;
pub use ids::{Incarnation, Ino, Seq, Tenant, Version, WorldId};
pub use kind::ErrorKind;
pub use name::WorldName;
