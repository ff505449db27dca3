//! What batches require, remembered. Nearly every batch requires the same few values (a world is alive, a key is as it was) and that
//! one key at the end of a row is absent; looking that up in the tables costs more than all else that a small batch needs.
//!
//! Invariant: a remembered value is the one that a reader would find, because whoever changes it is under the same lock.

use bytes::Bytes;
use std::collections::HashMap;

/// How many values are remembered, and of what length at most, in bytes.
const VALUES: (usize, usize) = (256, 1024);
/// How many gaps are remembered.
const GAPS: usize = 16;

/// The values of keys that batches required lately.
#[derive(Debug, Default)]
pub(super) struct Values(HashMap<Bytes, Bytes>);

impl Values {
    /// Returns the value of `key` when it is remembered.
    pub(super) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.0.get(key).cloned()
    }

    /// Remembers the value of `key`.
    pub(super) fn keep(&mut self, key: &[u8], value: &Bytes) {
        let (most, len) = VALUES;
        if value.len() > len {
            return;
        }
        if self.0.len() >= most {
            self.0.clear();
        }
        // Copied, because a slice would keep the whole record in memory that it came in.
        self.0.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    }

    /// Forgets `key`, which changes.
    pub(super) fn forget(&mut self, key: &[u8]) {
        self.0.remove(key);
    }
}

/// Neighbours in the order of keys between which a snapshot of the tree has nothing. `None` is the end of all keys.
pub(super) type Gap = (Option<Bytes>, Option<Bytes>);

/// The gaps of one snapshot of the tree, which does not change.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<Gap>);

impl Gaps {
    /// Returns whether `key` is known to be absent.
    pub(super) fn hold(&self, key: &[u8]) -> bool {
        let after = |start: &Option<Bytes>| start.as_ref().is_none_or(|start| &start[..] < key);
        let before = |end: &Option<Bytes>| end.as_ref().is_none_or(|end| key < &end[..]);
        self.0.iter().any(|(start, end)| after(start) && before(end))
    }

    /// Remembers a gap.
    pub(super) fn keep(&mut self, gap: Gap) {
        if self.0.len() >= GAPS {
            self.0.remove(0);
        }
        self.0.push(gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_open_intervals() {
        let key = Bytes::from_static;
        let mut gaps = Gaps::default();
        assert!(!gaps.hold(b"b"));
        gaps.keep((Some(key(b"a")), Some(key(b"c"))));
        gaps.keep((Some(key(b"x")), None));
        for (found, wanted) in [(&b"a"[..], false), (b"b", true), (b"c", false), (b"x", false), (b"xx", true)] {
            assert_eq!(gaps.hold(found), wanted, "{}", found.escape_ascii());
        }
        for n in 0..GAPS as u8 {
            gaps.keep((Some(vec![b'd', n].into()), Some(vec![b'd', n, 0].into())));
        }
        assert!(!gaps.hold(b"b"), "the oldest goes first");
    }

    #[test]
    fn values_are_bounded_and_forgotten() {
        let mut values = Values::default();
        values.keep(b"long", &vec![0; 2000].into());
        assert_eq!(values.get(b"long"), None);
        for n in 0..1000_u32 {
            values.keep(&n.to_be_bytes(), &Bytes::from_static(b"v"));
        }
        assert!(values.0.len() <= VALUES.0);
        values.forget(&999_u32.to_be_bytes());
        assert_eq!(values.get(&999_u32.to_be_bytes()), None);
        assert_eq!(values.get(&998_u32.to_be_bytes()), Some(Bytes::from_static(b"v")));
    }
}
