//! What S3 knows of an object beside its bytes, and the record that keeps it with the inode.

mod brief;
pub(crate) mod known;
mod meta;

pub use brief::{Brief, SumKind};
pub use meta::{Checksum, ChecksumAlgorithm, ObjectInfo, ObjectMeta, PartSums};

pub(crate) use known::Known;
