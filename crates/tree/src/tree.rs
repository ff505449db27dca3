//! The map's verbs, on one handle. Each is in a file of its own; a tree holds no state but segments and cache, and all that
//! it needs to know of a map is in the [`Root`].

use crate::cache::Cache;
use crate::diff::Diff;
use crate::root::Root;
use crate::scan::Scan;
use crate::shape::Salt;
use crate::store::Store;
use crate::value::Value;
use crate::walk::Visit;
use crate::{Result, check, edit, get, walk};
use bytes::Bytes;
use mw_segments::{BlobRef, Owner, Segments};
use std::ops::Bound;
use std::sync::Arc;

/// Persistent ordered maps over segments. Cheap to clone; one for any number of maps.
#[derive(Debug, Clone)]
pub struct Tree {
    store: Store,
}

impl Tree {
    /// Makes a tree that reads and writes `segments` and keeps decoded nodes in `cache`.
    pub fn new(segments: Arc<dyn Segments>, cache: Arc<Cache>) -> Self {
        Self { store: Store::new(segments, cache) }
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// `Corrupt` when a node on the way does not verify; those of the segments.
    pub fn get(&self, root: &Root, key: &[u8]) -> Result<Option<Value>> {
        get::get(&self.store, root, key)
    }

    /// Returns the values of `keys` (sorted; repeats are fine), in their order. Each node on the way is visited once.
    ///
    /// # Errors
    /// `Invalid` when the keys are not sorted; those of [`Tree::get`].
    pub fn get_many(&self, root: &Root, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
        get::get_many(&self.store, root, keys)
    }

    /// Walks the entries of a range from either end, lazily. Starting costs O(log n). A range that ends before it begins is
    /// empty.
    pub fn scan(&self, root: &Root, range: (Bound<Bytes>, Bound<Bytes>)) -> Scan {
        Scan::new(self.store.clone(), root.clone(), range)
    }

    /// Applies `edits` (sorted, each key once; `None` removes) and returns the new map. The old one stays as it is.
    ///
    /// Each touched node is written once, for `owner`. A value takes the place of the old one with its locator; all other
    /// entries keep theirs. Removing an absent key is fine. Edits that change nothing, not even a locator, return the same
    /// root and write nothing. Values that are in the tree already cost no new out-of-line record.
    ///
    /// # Errors
    /// `Invalid` when the edits are not sorted or the tree was shaped with another salt; `NameTooLong` over
    /// [`MAX_KEY`](crate::MAX_KEY); `TooLarge` over [`MAX_BLOB`](mw_segments::MAX_BLOB) of data or
    /// [`MAX_LOCATOR`](crate::MAX_LOCATOR); all of these before anything is written. `NoSpace` and other errors of the segments:
    /// the old map is untouched, and what was written is garbage of `owner`.
    pub fn edit(&self, root: &Root, salt: &Salt, owner: Owner, edits: &[(Bytes, Option<Value>)]) -> Result<Root> {
        edit::edit(&self.store, root, salt, owner, edits)
    }

    /// Returns what differs from `a` (left) to `b` (right) in data or weight, in O(changes) when both have one salt. Locators
    /// and addresses are ignored.
    pub fn diff(&self, a: &Root, b: &Root) -> Diff {
        Diff::new(self.store.clone(), a, b)
    }

    /// Returns a blob that a value refers to and that is small and asked for again and again: verified, and kept in the cache.
    ///
    /// # Errors
    /// Those of [`Tree::get`].
    pub fn referred(&self, blob: &BlobRef) -> Result<Bytes> {
        self.store.referred(blob)
    }

    /// Shows every blob and entry of the map to `visit`, in the order of keys. Reads what is stored, past the cache, and
    /// verifies it, out-of-line records included.
    ///
    /// # Errors
    /// Those of [`Tree::get`]; the walk ends at the first.
    pub fn walk(&self, root: &Root, visit: &mut dyn Visit) -> Result<()> {
        walk::walk(&self.store, root, visit)
    }

    /// Proves that the map is whole: every blob verifies, and order, counts, weights, logical hashes and shape, all computed
    /// again, are what the tree says. Reads what is stored, past the cache.
    ///
    /// # Errors
    /// [`Error::Check`](crate::Error::Check) (kind `Corrupt`, or that of the failed read) names the keys between which the
    /// first fault lies.
    pub fn check(&self, root: &Root) -> Result<()> {
        check::check(&self.store, root)
    }
}
