//! Memory for content on its way in: the more of it comes at once, the shorter are the pieces in which each is handed on.
//!
//! Nobody waits for a share, so that no client can keep another from sending by being slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The longest piece, in bytes.
const MOST: usize = 1 << 20;
/// The shortest, in bytes: below this, handing it on costs more than storing it.
const LEAST: usize = 64 << 10;

/// What all content that is coming in shares.
#[derive(Debug, Clone)]
pub(crate) struct Shares(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// In bytes.
    memory: usize,
    count: AtomicUsize,
}

/// The share of one content, as long as it comes.
#[derive(Debug)]
pub(crate) struct Share(Shares);

impl Shares {
    /// Makes shares of so many bytes.
    pub(crate) fn new(memory: usize) -> Self {
        Self(Arc::new(Shared { memory, count: AtomicUsize::new(0) }))
    }

    /// Takes a share.
    pub(crate) fn join(&self) -> Share {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        Share(self.clone())
    }
}

impl Share {
    /// Returns how long a piece may be now, of which two are in memory.
    pub(crate) fn piece(&self) -> usize {
        let Shared { memory, count } = &*self.0.0;
        (memory / 2 / count.load(Ordering::Relaxed).max(1)).clamp(LEAST, MOST)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_shorter_the_more_content_comes() {
        let shares = Shares::new(64 << 20);
        let first = shares.join();
        assert_eq!(first.piece(), MOST);
        let many: Vec<Share> = (1..64).map(|_| shares.join()).collect();
        assert_eq!(first.piece(), 512 << 10);
        let more: Vec<Share> = (0..10_000).map(|_| shares.join()).collect();
        assert_eq!(first.piece(), LEAST);
        drop((many, more));
        assert_eq!(first.piece(), MOST);
    }
}
