//! Which write(2) may have more to come. No kernel is needed here.
//!
//! The kernel sends one write(2) as several requests where it must: at the end of a page that it began in the middle of and
//! does not know, after as many bytes or pages as a request holds. Nothing in a request says whether it is the last. But a
//! write(2) holds its inode's lock from its first request to its last, and a thread is in one system call at a time. So what
//! was begun goes on with the same thread at the offset where it stopped, and it is whole as soon as any other request
//! comes that the kernel sends under that lock, or when nobody has the file open.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The largest write of one request.
pub(crate) const MAX_WRITE: u32 = 1 << 20;
const PAGE: u64 = 4096;
/// Around the kernel's pages a request ends where it holds its fill of a program's pages, each at least a byte.
const MAX_PAGES: u64 = MAX_WRITE as u64 / PAGE;

/// A request to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) ino: u64,
    /// The thread that writes.
    pub(crate) task: u32,
    /// As the kernel has it, also where the store appends elsewhere.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// It goes around the kernel's pages.
    pub(crate) direct: bool,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    fn may_go_on(&self) -> bool {
        if self.direct {
            self.len >= MAX_PAGES
        } else {
            self.end().is_multiple_of(PAGE) || self.len >= u64::from(MAX_WRITE)
        }
    }
}

/// Which thread wrote, and how far.
pub(crate) type Begun = (u32, u64);

/// Every inode whose last write may go on.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Unfinished(HashMap<u64, Begun>);

impl Unfinished {
    /// Returns whether `piece` goes on with what was begun. One that does not proves that what was begun is whole.
    pub(crate) fn continues(&mut self, piece: &Piece) -> bool {
        let goes_on = self.0.get(&piece.ino) == Some(&(piece.task, piece.offset));
        if !goes_on {
            self.0.remove(&piece.ino);
        }
        goes_on
    }

    /// Notes a piece that is let through.
    pub(crate) fn begins(&mut self, piece: &Piece) {
        if piece.may_go_on() {
            self.0.insert(piece.ino, (piece.task, piece.end()));
        } else {
            self.0.remove(&piece.ino);
        }
    }

    /// Notes that no write of `ino` is under way. Returns whether that was news.
    pub(crate) fn ended(&mut self, ino: u64) -> bool {
        self.0.remove(&ino).is_some()
    }

    pub(crate) fn begun(&self, ino: u64) -> Option<Begun> {
        self.0.get(&ino).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn inodes(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests;
