//! The free space of all data files as a buddy system: blocks of `1 << order` units, each at a multiple of its size.
//!
//! Invariant: no unit is in two free blocks, and two free buddies are always one block of the next order. Pure: no I/O, no idea
//! of what is stored in a block or whether a file is really that long.

use std::collections::BTreeSet;

/// The largest block, as a power of two of units: 1 GiB.
const TOP: u8 = 14;

/// A block's place: the file, and the offset in it in units.
pub(super) type Place = (u16, u32);

/// The free blocks, by order, lowest place first: what was freed is reused before what was never used, and files stay packed.
#[derive(Debug)]
pub(super) struct Buddy {
    free: Vec<BTreeSet<Place>>,
    units: u64,
}

impl Buddy {
    /// Starts without any free space.
    pub(super) fn new() -> Self {
        Self { free: vec![BTreeSet::new(); usize::from(TOP) + 1], units: 0 }
    }

    /// Returns how many units are free.
    pub(super) fn units(&self) -> u64 {
        self.units
    }

    /// Takes a block of `order`, splitting the smallest one that is large enough.
    pub(super) fn take(&mut self, order: u8) -> Option<Place> {
        let from = (order..=TOP).find(|&o| !self.free[usize::from(o)].is_empty())?;
        let (file, unit) = self.free[usize::from(from)].pop_first()?;
        for half in order..from {
            self.free[usize::from(half)].insert((file, unit + (1 << half)));
        }
        self.units -= 1 << order;
        Some((file, unit))
    }

    /// Gives a block back and merges it with its free buddies.
    pub(super) fn give(&mut self, (file, mut unit): Place, mut order: u8) {
        self.units += 1 << order;
        while order < TOP && self.free[usize::from(order)].remove(&(file, unit ^ (1 << order))) {
            unit &= !(1 << order);
            order += 1;
        }
        self.free[usize::from(order)].insert((file, unit));
    }

    /// Gives the units `from..to` of `file`, in the largest blocks that their places allow.
    pub(super) fn give_range(&mut self, file: u16, mut from: u32, to: u32) {
        while from < to {
            let aligned = if from == 0 { TOP } else { from.trailing_zeros() as u8 };
            let order = aligned.min((to - from).ilog2() as u8).min(TOP);
            self.give((file, from), order);
            from += 1 << order;
        }
    }
}

#[cfg(test)]
mod tests;
