//! A persistent ordered map over segments, whose shape depends on its content only. It does not know worlds, users or files.
//!
//! - [`Value`] and [`Root`]: what goes in and what names a whole map;
//! - [`Tree`]: get, multi-get, scan both ways, edit, diff, walk;
//! - `node`: the encoding and hashing of one node;
//! - `shape`: where a node ends;
//! - `cache`: the node cache of all worlds, weighed in bytes.

mod cache;
mod diff;
mod edit;
mod error;
mod node;
mod root;
mod scan;
mod shape;
mod tree;
mod value;
mod walk;

pub use cache::Cache;
pub use diff::{Change, Diff};
pub use error::Error;
pub use root::{Root, Salt};
pub use scan::Scan;
pub use tree::Tree;
pub use value::Value;
pub use walk::Visit;

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;
