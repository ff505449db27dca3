//! The S3 verbs, by key. A key is a path whose parts are raw names; no link is ever followed.
//!
//! Invariant: a reader sees the object that was there, or the one that replaced it, never a mixture; a verb that returned is
//! durable. What an S3 request or answer looks like is not known here.
//!
//! - `conditions`: what must hold; `versions`: versions of objects;
//! - `find`: keys to inodes; `stage`: content on its way in; `place`: an object put into the namespace;
//! - `put`, `read`, `delete`, `list`, `copy`, `rename`, `tags`: the verbs; `walk`: keys in byte order; `lend`: another world's bytes;
//! - `upload`, `parts`, `complete`: multipart uploads.

mod complete;
mod conditions;
mod copy;
mod delete;
mod find;
mod lend;
mod list;
mod parts;
mod place;
mod put;
mod read;
mod rename;
mod stage;
mod tags;
mod upload;
mod versions;
mod walk;

pub use conditions::Conditions;
pub use copy::CopyOptions;
pub use list::{BriefListing, ListRequest, Listed, Listing, Shown};
pub use parts::{PartCopy, PartInfo, PartSaid};
pub use put::PutOptions;
pub use read::{Object, Stretch};
pub use rename::RenameOptions;
pub use stage::Staged;
pub use upload::{UploadInfo, UploadOptions};
pub use versions::{Deleted, ListedVersion, Marker, Versioned, VersionsListing, VersionsRequest};

pub(crate) use parts::upload_blobs;
pub(crate) use place::{Attributes, NewObject};
