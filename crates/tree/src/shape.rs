//! Where a node ends. Invariant: it depends on the content of the level alone, so that the same content has the same
//! shape whatever order it was written in. It does not know what a node looks like.
//!
//! A node ends after an entry when
//! - the entry's key *naturally* ends one: some bits of a keyed hash of the key are zero, 5 bits at the leaves (1 key in
//!   32), 6 above (1 in 64). Each level looks at bits of its own, so that a level does not inherit the fate of the one
//!   beneath, and one hash decides all levels; or
//! - the node is *full*: the hashed part of its entries has reached [`CAP`].
//!
//! Both look only at the entries since the last end. So the ends that follow a natural one are a function of the
//! entries that follow it, and two lists of entries that once end a node at the same place end all later nodes at the
//! same places for as long as their entries agree. That is what lets an edit stop early. (A rule that cuts *before* an
//! entry too many would look one entry ahead, and an edit would have to begin a node earlier.)

use std::fmt;

/// The size of the hashed part at which a node is full, in bytes. One entry more may stand in it.
pub(crate) const CAP: usize = 8 << 10;

/// The highest level that a decoder accepts. Every level is smaller than the one beneath; 2^64 entries need far fewer.
pub(crate) const MAX_LEVEL: u8 = 63;

const LEAF_BITS: usize = 5;
const INNER_BITS: usize = 6;

/// The secret of a lineage that decides where its nodes end, so that nobody outside can choose keys that never end one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Salt(pub [u8; 16]);

impl fmt::Debug for Salt {
    /// Shows nothing of it: who knows the salt can degrade the tree.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(..)")
    }
}

/// The rule, for one salt.
#[derive(Clone)]
pub(crate) struct Shape {
    key: [u8; 32],
}

impl Shape {
    pub(crate) fn new(salt: &Salt) -> Self {
        let mut key = *b"----------------mw-tree shape v1";
        key[..16].copy_from_slice(&salt.0);
        Self { key }
    }

    /// Returns whether `key` ends a node at `level` whatever its size.
    pub(crate) fn natural(&self, level: u8, key: &[u8]) -> bool {
        let hash = blake3::keyed_hash(&self.key, key);
        let (from, bits) = match usize::from(level) {
            0 => (0, LEAF_BITS),
            level => (LEAF_BITS + INNER_BITS * (level - 1), INNER_BITS),
        };
        // Levels past the end of the hash are cut by size alone; no real tree has them.
        let Some(window) = hash.as_bytes().get(from / 8..) else { return false };
        let word = window.iter().take(2).rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        from + bits <= 256 && (word >> (from % 8)) & ((1 << bits) - 1) == 0
    }

    /// Returns whether a node whose hashed part has `hashed` bytes is full.
    pub(crate) fn full(hashed: usize) -> bool {
        hashed >= CAP
    }
}

#[cfg(test)]
mod tests;
