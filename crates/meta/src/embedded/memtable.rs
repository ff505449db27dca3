//! The newest changes in memory: a persistent map from key to value or tombstone.
//!
//! Invariant: keys and values are slices of the records they came in, so that the memory of a table is bounded by the log
//! file behind it. A clone is a snapshot and costs nothing. It does not know the log or the tree.

use super::wal::Change;
use bytes::Bytes;
use imbl::OrdMap;

/// What one entry costs beside its bytes, about.
const ENTRY: usize = 96;

/// A snapshot of changes; `None` is a tombstone.
#[derive(Debug, Clone, Default)]
pub(super) struct Memtable {
    pub(super) map: OrdMap<Bytes, Option<Bytes>>,
    bytes: usize,
}

impl Memtable {
    /// Applies the changes of a record, the later over the earlier.
    pub(super) fn apply(&mut self, record: &Bytes, changes: &[Change]) {
        for Change { key, value } in changes {
            let value = value.clone().map(|value| record.slice(value));
            self.bytes += value.as_ref().map_or(0, Bytes::len);
            let key_len = key.len();
            match self.map.insert(record.slice(key.clone()), value) {
                Some(old) => self.bytes -= old.map_or(0, |old| old.len()),
                None => self.bytes += key_len + ENTRY,
            }
        }
    }

    /// Returns what the table says of `key`: nothing, a tombstone or a value.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.map.get(key)
    }

    /// Returns the bytes that the entries hold, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
