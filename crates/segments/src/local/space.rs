//! Which segments are owned, which space is free, and how far each file reaches.
//!
//! Invariant: every unit behind the header of a file, up to the file's end, is in one owned segment, in one free block, or in
//! a segment that is being freed just now. Pure: it plans, and the engine does what is planned. It does not know what lies in a segment.

use super::buddy::{Buddy, Place};
use crate::addr::{FIRST_LOG2, LAST_LOG2, UNIT};
use crate::{Claim, Error, Owner, Result, SegmentId, Usage};
use std::collections::HashMap;

/// How a file would have to grow to hold a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Growth {
    /// The file; one past the last means a new one.
    pub(super) file: u16,
    /// Its end now, in bytes.
    pub(super) from: u64,
    /// Its end then.
    pub(super) to: u64,
    /// Whether growing by less would do.
    pub(super) shrinkable: bool,
}

/// The space of all data files.
#[derive(Debug)]
pub(super) struct Space {
    buddy: Buddy,
    owned: HashMap<SegmentId, Owner>,
    /// The end of each file, in bytes; 0 for one that was never formatted.
    ends: Vec<u64>,
    /// What a file grows to at most.
    file_size: u64,
    claimed: u64,
    adopted: bool,
}

/// Returns the block of a segment.
fn block(id: SegmentId) -> (Place, u8) {
    ((id.file(), (id.offset() / UNIT) as u32), (id.size().trailing_zeros() as u8).saturating_sub(FIRST_LOG2))
}

/// Returns whether `id` can be a segment of a file, whatever the file's length.
pub(super) fn plausible(id: SegmentId) -> bool {
    let size = id.size();
    (1 << FIRST_LOG2..=1 << LAST_LOG2).contains(&size) && id.offset() >= UNIT && id.offset().is_multiple_of(size)
}

impl Space {
    /// Starts from files that end at `ends`, with nothing owned and nothing free until [`Space::adopt`].
    pub(super) fn new(ends: Vec<u64>, file_size: u64) -> Self {
        Self { buddy: Buddy::new(), owned: HashMap::new(), ends, file_size, claimed: 0, adopted: false }
    }

    /// Says who owns what; everything else is free.
    pub(super) fn adopt(&mut self, claims: &[Claim]) -> Result<()> {
        if self.adopted {
            return Err(Error::invalid("the segments were adopted before; that is done once, after opening"));
        }
        let mut sorted: Vec<&Claim> = claims.iter().collect();
        sorted.sort_by_key(|claim| (claim.segment.file(), claim.segment.offset()));
        for claim in &sorted {
            self.check(claim)?;
        }
        for pair in sorted.windows(2) {
            let [a, b] = [pair[0].segment, pair[1].segment];
            if a.file() == b.file() && a.offset() + a.size() > b.offset() {
                return Err(Error::Claims { what: format!("segments {a} and {b} overlap") });
            }
        }
        let mut rest = sorted.iter().peekable();
        for (file, &end) in (0..).zip(&self.ends) {
            let mut free_from = 1;
            while let Some(claim) = rest.next_if(|claim| claim.segment.file() == file) {
                let ((_, unit), order) = block(claim.segment);
                self.buddy.give_range(file, free_from, unit);
                free_from = unit + (1 << order);
            }
            self.buddy.give_range(file, free_from, (end / UNIT) as u32);
        }
        for claim in sorted {
            self.own(claim.segment, claim.owner);
        }
        self.adopted = true;
        Ok(())
    }

    fn check(&self, claim: &Claim) -> Result<()> {
        let id = claim.segment;
        let end = self.ends.get(usize::from(id.file())).copied().unwrap_or(0);
        let why = if !plausible(id) {
            "is no segment of a data file"
        } else if id.offset() + id.size() > end {
            "lies outside the data files"
        } else if u64::from(claim.used) > id.size() {
            "is used beyond its size"
        } else {
            return Ok(());
        };
        Err(Error::Claims { what: format!("segment {id} (world {}) {why}", claim.owner.world) })
    }

    /// Returns whether the free space is known.
    pub(super) fn is_adopted(&self) -> bool {
        self.adopted
    }

    fn own(&mut self, id: SegmentId, owner: Owner) {
        self.owned.insert(id, owner);
        self.claimed += id.size();
    }

    /// Takes a free segment of `1 << log2` bytes for `owner`.
    pub(super) fn take(&mut self, log2: u8, owner: Owner) -> Option<SegmentId> {
        let (file, unit) = self.buddy.take(log2.checked_sub(FIRST_LOG2)?)?;
        let id = SegmentId::new(file, u64::from(unit) * UNIT, log2);
        self.own(id, owner);
        Some(id)
    }

    /// Plans growth by about `step` bytes that makes room for a segment of `1 << log2` bytes: in the first file that can
    /// still hold it, or in a new one. Nothing when there can be no further file.
    pub(super) fn plan_growth(&self, log2: u8, step: u64) -> Option<Growth> {
        let size = 1u64 << log2;
        let holds = |end: u64| {
            let needed = end.max(UNIT).next_multiple_of(size) + size;
            (needed <= self.file_size).then_some(needed)
        };
        let (file, from, needed) = (0..)
            .zip(&self.ends)
            .find_map(|(file, &end)| Some((file, end, holds(end)?)))
            .or_else(|| Some((u16::try_from(self.ends.len()).ok()?, 0, holds(0)?)))?;
        let wanted = (from + step).min(self.file_size) / UNIT * UNIT;
        Some(Growth { file, from, to: wanted.max(needed), shrinkable: wanted > needed })
    }

    /// Notes that a file, which was added if it is new, has grown as planned.
    pub(super) fn grow(&mut self, growth: Growth) {
        self.ends[usize::from(growth.file)] = growth.to;
        self.buddy.give_range(growth.file, (growth.from.max(UNIT) / UNIT) as u32, (growth.to / UNIT) as u32);
    }

    /// Notes a new, empty file.
    pub(super) fn add_file(&mut self) {
        self.ends.push(0);
    }

    /// Returns the owner of a segment.
    pub(super) fn owner(&self, id: SegmentId) -> Option<Owner> {
        self.owned.get(&id).copied()
    }

    /// Ends the ownership of all of `ids`, or of none when one has no owner. Their space is not free yet: see [`Space::release`].
    pub(super) fn disown(&mut self, ids: &[SegmentId]) -> Result<Vec<(SegmentId, Owner)>> {
        let mut gone = Vec::with_capacity(ids.len());
        for &id in ids {
            match self.owned.remove(&id) {
                Some(owner) => gone.push((id, owner)),
                None => {
                    self.owned.extend(gone);
                    return Err(Error::unowned(id));
                }
            }
        }
        self.claimed -= ids.iter().map(|id| id.size()).sum::<u64>();
        Ok(gone)
    }

    /// Makes the space of a disowned segment free.
    pub(super) fn release(&mut self, id: SegmentId) {
        let (place, order) = block(id);
        self.buddy.give(place, order);
    }

    /// Returns how much is owned and how much is free.
    pub(super) fn usage(&self) -> Usage {
        Usage { claimed: self.claimed, free: self.buddy.units() * UNIT, room: None }
    }
}

#[cfg(test)]
mod tests;
