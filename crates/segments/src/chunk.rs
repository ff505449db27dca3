//! Cutting large contents by content (FastCDC 2020), so that an edit in the middle changes the pieces around it only.
//!
//! Invariant: the pieces, joined, are the input; where it is cut depends on the input alone, never on how it was pushed. That is
//! why the scan is kept here, byte by byte, on the tables of the crate `fastcdc`: its own scans want the input whole. It does not
//! know where pieces go.

use bytes::Bytes;
use fastcdc::v2020::{Normalization, get_gear_with_seed, select_masks};
use std::sync::LazyLock;

/// No piece but the last is shorter, in bytes.
pub const MIN: usize = 32 << 10;

/// What pieces are about as long as, in bytes.
pub const AVG: usize = 128 << 10;

/// No piece is longer, in bytes.
pub const MAX: usize = 512 << 10;

/// The numbers that the rolling hash adds for each byte, and what it must have none of to cut before and after [`AVG`].
///
/// They are part of the format in so far as a changed table would find no piece of an older version again.
#[derive(Debug)]
struct Tables {
    gear: [u64; 256],
    strict: u64,
    loose: u64,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let (table, _) = get_gear_with_seed(0);
    let (strict, loose) = select_masks(AVG, Normalization::Level1);
    let mut gear = [0; 256];
    gear.copy_from_slice(&table);
    Tables { gear, strict, loose }
});

/// A streaming cutter. It holds at most one piece, [`MAX`] bytes, and never cuts the end of the input by itself: call
/// [`Chunker::finish`].
#[derive(Debug, Default)]
pub struct Chunker {
    /// The piece so far: scanned, and not yet cut.
    piece: Vec<u8>,
    hash: u64,
}

impl Chunker {
    /// Starts before the first byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more of the input and returns the pieces that are finished by it.
    pub fn push(&mut self, mut input: &[u8]) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while let Some(len) = self.cut(input) {
            let (head, tail) = input.split_at(len);
            self.piece.extend_from_slice(head);
            pieces.push(self.take());
            input = tail;
        }
        self.piece.extend_from_slice(input);
        pieces
    }

    /// Ends the input and returns the last piece, unless it is empty. The cutter is then as new.
    pub fn finish(&mut self) -> Option<Bytes> {
        (!self.piece.is_empty()).then(|| self.take())
    }

    /// Returns the bytes that are held back, waiting for a cut.
    pub fn held(&self) -> usize {
        self.piece.len()
    }

    fn take(&mut self) -> Bytes {
        self.hash = 0;
        Bytes::from(std::mem::take(&mut self.piece))
    }

    /// Scans `input`, which follows the piece so far, and returns how much of it belongs to the piece when it is cut there.
    fn cut(&mut self, input: &[u8]) -> Option<usize> {
        let tables = &*TABLES;
        let start = self.piece.len();
        let end = (start + input.len()).min(MAX);
        let mut at = start.max(MIN);
        for (limit, mask) in [(AVG, tables.strict), (MAX, tables.loose)] {
            let limit = limit.min(end);
            if at >= limit {
                continue;
            }
            for (i, &byte) in input[at - start..limit - start].iter().enumerate() {
                self.hash = (self.hash << 1).wrapping_add(tables.gear[usize::from(byte)]);
                if self.hash & mask == 0 {
                    return Some(at + i - start);
                }
            }
            at = limit;
        }
        (end == MAX).then_some(MAX - start)
    }
}

#[cfg(test)]
mod tests;
