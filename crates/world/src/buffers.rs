//! Buffers that large reads are assembled in, lent and given back: asking the system for fresh memory at every read costs as much as
//! the read.
//!
//! Invariant: a buffer is in one reader's hands, or here. It comes with what was read in it before, perhaps from another world, so who
//! takes one fills all of it.

use bytes::Bytes;
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Shorter ones are not worth a look here, in bytes.
const LEAST: usize = 64 << 10;
/// Longer ones are not kept, in bytes.
const MOST: usize = 1 << 20;
/// How many are kept.
const KEPT: usize = 16;

/// The buffers of a store that nobody uses just now.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

/// A buffer that goes back when it is dropped.
pub(crate) struct Lent {
    bytes: Vec<u8>,
    len: usize,
    home: Arc<Buffers>,
}

impl Buffers {
    /// Returns a buffer of `len` bytes, with anything in it.
    pub(crate) fn lend(self: &Arc<Self>, len: usize) -> Lent {
        let kept = if (LEAST..=MOST).contains(&len) { self.0.lock().pop() } else { None };
        let mut bytes = kept.unwrap_or_default();
        if bytes.len() < len {
            // Not grown in place: what is in it need not be copied.
            bytes = vec![0; len];
        }
        Lent { bytes, len, home: self.clone() }
    }
}

impl Lent {
    /// Makes bytes of it that many can hold; it goes back with the last of them.
    pub(crate) fn share(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if (LEAST..=MOST).contains(&self.bytes.len()) {
            let mut kept = self.home.0.lock();
            if kept.len() < KEPT {
                kept.push(std::mem::take(&mut self.bytes));
            }
        }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_ref()
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_with_its_last_reader_and_large_ones_are_let_go() {
        let buffers = Arc::new(Buffers::default());
        let mut lent = buffers.lend(MOST);
        lent.fill(7);
        let shared = lent.share();
        let part = shared.slice(5..10);
        drop(shared);
        assert!(buffers.0.lock().is_empty());
        assert_eq!(&part[..], [7; 5]);
        drop(part);
        assert_eq!(buffers.0.lock().len(), 1);
        assert_eq!(buffers.lend(LEAST).len(), LEAST);
        drop(buffers.lend(MOST + 1));
        drop(buffers.lend(LEAST - 1));
        assert_eq!(buffers.0.lock().len(), 1);
        let many: Vec<_> = (0..2 * KEPT).map(|_| buffers.lend(MOST)).collect();
        drop(many);
        assert_eq!(buffers.0.lock().len(), KEPT);
    }
}
