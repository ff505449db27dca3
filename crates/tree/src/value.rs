//! What a key maps to. The hashed part (data, weight) says what a value is; the locator says where bytes lie, and is
//! left out of hashes, of the shape and of `diff`.

use bytes::Bytes;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 1200;

/// The longest data kept in a leaf, in bytes; longer data is a blob of its own.
pub const MAX_INLINE: usize = 256;

/// The longest locator, in bytes: the smallest entries, as many as fit a leaf, must still fit one blob.
pub const MAX_LOCATOR: usize = 256;

/// What a key maps to.
///
/// The bytes are slices of the node that they were read from and keep it in memory: copy what is to be held for long.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Value {
    /// The content; hashed. At most [`mw_segments::MAX_BLOB`] bytes.
    pub data: Bytes,
    /// Where bytes lie that the data speaks of; not hashed. At most [`MAX_LOCATOR`] bytes.
    pub locator: Bytes,
    /// What the entry counts in the weight of the tree (bytes of content, say); hashed.
    pub weight: u64,
}

impl Value {
    /// Returns whether both are the same as far as hashes and `diff` can see: data and weight, never the locator.
    pub fn same(&self, other: &Self) -> bool {
        self.weight == other.weight && self.data == other.data
    }
}
