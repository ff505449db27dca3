//! Which bytes of which segments something refers to, and so which are dead.
//!
//! Invariant: what was added is never dead. Pure; it does not know what refers to the bytes.

use mw_segments::{Addr, Dead, SegmentId};
use std::collections::HashMap;

/// Blobs begin at multiples of this; what lies between the end of one and the start of the next belongs to it.
const ALIGN: u32 = 8;

/// Places in segments.
#[derive(Default)]
pub(super) struct Live(HashMap<SegmentId, Ranges>);

/// Ranges of one segment, start to end: disjoint ones in order, and those that came since they were last put in order.
#[derive(Default)]
struct Ranges {
    sorted: Vec<(u32, u32)>,
    fresh: Vec<(u32, u32)>,
}

impl Live {
    /// Adds the place of a blob.
    pub(super) fn add(&mut self, addr: &Addr) {
        let end = addr.offset.saturating_add(addr.len).checked_next_multiple_of(ALIGN).unwrap_or(u32::MAX);
        self.0.entry(addr.segment).or_default().add((addr.offset, end));
    }

    /// Returns whether anything in a segment is referred to.
    pub(super) fn has(&self, segment: SegmentId) -> bool {
        self.0.contains_key(&segment)
    }

    /// Returns what nothing refers to of the first `end` bytes of a segment.
    pub(super) fn dead(&mut self, segment: SegmentId, end: u32) -> Dead {
        let mut ranges = Vec::new();
        let mut at = 0;
        for &(start, stop) in self.0.get_mut(&segment).map_or(&[][..], Ranges::in_order) {
            let start = start.min(end);
            if start > at {
                ranges.push((at, start - at));
            }
            at = at.max(stop);
        }
        if end > at {
            ranges.push((at, end - at));
        }
        Dead { segment, ranges }
    }
}

impl Ranges {
    fn add(&mut self, range: (u32, u32)) {
        // Blobs of one segment are often met one after another.
        match self.fresh.last_mut() {
            Some(last) if last.0 <= range.0 && range.0 <= last.1 => last.1 = last.1.max(range.1),
            _ => self.fresh.push(range),
        }
        if self.fresh.len() > 64 + self.sorted.len() {
            self.in_order();
        }
    }

    /// Puts all ranges in order; those that touch become one.
    fn in_order(&mut self) -> &[(u32, u32)] {
        if !self.fresh.is_empty() {
            let mut all = std::mem::take(&mut self.sorted);
            all.append(&mut self.fresh);
            all.sort_unstable();
            all.dedup_by(|next, last| {
                let touch = next.0 <= last.1;
                if touch {
                    last.1 = last.1.max(next.1);
                }
                touch
            });
            self.sorted = all;
        }
        &self.sorted
    }
}

#[cfg(test)]
mod tests;
