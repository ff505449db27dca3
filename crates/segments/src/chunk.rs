//! Cutting large contents by content (FastCDC 2020), so that an edit in the middle changes the pieces around it only.
//!
//! Invariant: the pieces, joined, are the input; where it is cut depends on the input alone, never on how it was pushed. That is
//! why the scan is kept here, byte by byte, on the tables of the crate `fastcdc`: its own scans want the input whole. It does not
//! know where pieces go.

use crate::MAX_BLOB;
use fastcdc::v2020::{Normalization, get_gear_with_seed, select_masks};
use std::sync::LazyLock;

/// How long pieces are that begin in one stretch of the input, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// No piece but the last is shorter.
    pub min: usize,
    /// What pieces are about as long as.
    pub avg: usize,
    /// No piece is longer.
    pub max: usize,
}

/// In the first [`FINE_UNTIL`] bytes.
pub const FINE: Sizes = Sizes { min: 32 << 10, avg: 128 << 10, max: 512 << 10 };

/// Behind them: what is that large is copied and compared piece by piece, and mostly read in order.
pub const COARSE: Sizes = Sizes { min: 256 << 10, avg: 512 << 10, max: MAX_BLOB };

/// Up to where pieces begin small, in bytes.
pub const FINE_UNTIL: u64 = 16 << 20;

/// The numbers that the rolling hash adds for each byte.
///
/// They and the sizes are part of the format in so far as others would find few pieces of an older version again.
static GEAR: LazyLock<[u64; 256]> = LazyLock::new(|| {
    let (table, _) = get_gear_with_seed(0);
    let mut gear = [0; 256];
    gear.copy_from_slice(&table);
    gear
});

/// [`Sizes`], and what the rolling hash must have none of to cut before and after the average.
#[derive(Debug)]
struct Rule {
    sizes: Sizes,
    strict: u64,
    loose: u64,
}

static RULES: LazyLock<[Rule; 2]> = LazyLock::new(|| {
    [FINE, COARSE].map(|sizes| {
        let (strict, loose) = select_masks(sizes.avg, Normalization::Level1);
        Rule { sizes, strict, loose }
    })
});

/// A streaming cutter. It holds at most one piece, and never cuts the end of the input by itself: call [`Chunker::finish`].
#[derive(Debug, Default)]
pub struct Chunker {
    /// The piece so far: scanned, and not yet cut.
    piece: Vec<u8>,
    hash: u64,
    /// Where the piece begins in the input.
    start: u64,
}

impl Chunker {
    /// Starts before the first byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more of the input and hands each piece that is finished by it to `take`, until that fails.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn push<E>(&mut self, mut input: &[u8], mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        while let Some(len) = self.cut(input) {
            let (head, tail) = input.split_at(len);
            input = tail;
            self.hash = 0;
            if self.piece.is_empty() {
                self.start += head.len() as u64;
                take(head)?;
                continue;
            }
            self.hold(head);
            self.start += self.piece.len() as u64;
            let done = take(&self.piece);
            self.piece.clear();
            done?;
        }
        self.hold(input);
        Ok(())
    }

    /// Adds to the piece, whose memory grows to that of the longest and not beyond.
    fn hold(&mut self, more: &[u8]) {
        let (len, room) = (self.piece.len(), self.piece.capacity());
        let need = len + more.len();
        if need > room {
            let grown = (2 * room).min(self.rule().sizes.max).max(need);
            self.piece.reserve_exact(grown - len);
        }
        self.piece.extend_from_slice(more);
    }

    /// Ends the input and returns the last piece, unless it is empty. The cutter is then as new.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        let piece = std::mem::take(self).piece;
        (!piece.is_empty()).then_some(piece)
    }

    /// Returns the bytes that are held back, waiting for a cut.
    pub fn held(&self) -> usize {
        self.piece.len()
    }

    /// Returns how the piece so far is cut: by where it begins.
    fn rule(&self) -> &'static Rule {
        &RULES[usize::from(self.start >= FINE_UNTIL)]
    }

    /// Scans `input`, which follows the piece so far, and returns how much of it belongs to the piece when it is cut there.
    fn cut(&mut self, input: &[u8]) -> Option<usize> {
        let (gear, rule) = (&*GEAR, self.rule());
        let Sizes { min, avg, max } = rule.sizes;
        let start = self.piece.len();
        let end = (start + input.len()).min(max);
        let mut at = start.max(min);
        for (limit, mask) in [(avg, rule.strict), (max, rule.loose)] {
            let limit = limit.min(end);
            if at >= limit {
                continue;
            }
            let mut hash = self.hash;
            for (i, &byte) in input[at - start..limit - start].iter().enumerate() {
                hash = (hash << 1).wrapping_add(gear[usize::from(byte)]);
                if hash & mask == 0 {
                    return Some(at + i - start);
                }
            }
            self.hash = hash;
            at = limit;
        }
        (end == max).then_some(max - start)
    }
}

#[cfg(test)]
mod tests;
