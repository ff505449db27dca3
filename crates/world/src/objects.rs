//! The S3 verbs, by key. A key is a path whose parts are raw names; no link is ever followed.
//!
//! Invariant: a reader sees the object that was there, or the one that replaced it, never a mixture; a verb that returned is
//! durable. What an S3 request or answer looks like is not known here.
//!
//! - `meta`: what an object is, from outside; `known`: the record of what only S3 knows; `conditions`;
//! - `find`: keys to inodes; `stage`: content on its way in; `place`: an object put into the namespace;
//! - `put`, `read`, `delete`, `list`, `copy`, `tags`: the verbs; `walk`: keys in byte order; `lend`: another world's bytes;
//! - `upload`, `parts`, `complete`: multipart uploads.

mod complete;
mod conditions;
mod copy;
mod delete;
mod find;
mod known;
mod lend;
mod list;
mod meta;
mod parts;
mod place;
mod put;
mod read;
mod stage;
mod tags;
mod upload;
mod walk;

pub use conditions::Conditions;
pub use copy::CopyOptions;
pub use list::{ListRequest, Listed, Listing};
pub use meta::{Checksum, ChecksumAlgorithm, ObjectInfo, ObjectMeta};
pub use parts::{PartCopy, PartInfo, PartSaid};
pub use put::PutOptions;
pub use read::Object;
pub use stage::Staged;
pub use upload::{UploadInfo, UploadOptions};

pub(crate) use delete::need_some_key;
pub(crate) use find::{Found, find_object};
pub(crate) use known::Known;
pub(crate) use list::{Item, page, rolled_up};
pub(crate) use parts::upload_blobs;
pub(crate) use place::{Attributes, NewObject};
pub(crate) use walk::past;
