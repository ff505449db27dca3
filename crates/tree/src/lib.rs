//! A persistent ordered map over segments, whose shape depends on its content only. It does not know worlds, users or files.
//!
//! - [`Value`] and [`Root`]: what goes in and what names a whole map;
//! - [`Tree`]: get, multi-get, scan both ways, edit, diff, walk, check; each verb in the file of its name;
//! - `shape`: where a node ends;
//! - `node` and `build`: the encoding of one node, read and written;
//! - `store` and [`Cache`]: blobs as nodes, and the node cache of all worlds, weighed in bytes;
//! - `cursor`: walks the nodes of one level, for `edit`.
//!
//! The law of the crate: equal content and equal salt give an equal [`Root::hash`], whatever the order and batching of the
//! edits that led there. Everything else follows from it: `diff` passes over what has equal hashes, and `check` can compute
//! again what every node must be.

mod build;
mod cache;
mod check;
mod cursor;
mod diff;
mod edit;
mod error;
mod get;
mod node;
mod root;
mod scan;
mod shape;
mod store;
mod tree;
mod value;
mod walk;

pub use cache::{Cache, CacheStats};
pub use diff::{Change, Diff};
pub use error::{Error, Fault, Flaw};
pub use root::Root;
pub use scan::Scan;
pub use shape::Salt;
pub use tree::Tree;
pub use value::{MAX_INLINE, MAX_KEY, MAX_LOCATOR, Value};
pub use walk::Visit;

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;
