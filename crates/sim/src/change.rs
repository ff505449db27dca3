//! What was written but not synced, and what a power cut leaves of it.
//!
//! Invariant: a sector that survives reads as it did right after one of the writes that touched it, as a page cache and a disk
//! give it; which sectors survive is free. So a later write may be found while an earlier one is lost.

use crate::image::{Image, SECTOR};
use mw_env::Env;
use std::ops::Range;

/// One change that was not synced yet.
#[derive(Clone)]
pub(crate) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
    Allocate(Range<u64>),
    Punch(Range<u64>),
}

impl Change {
    pub(crate) fn apply(&self, image: &mut Image) {
        match self {
            Self::Write { offset, bytes } => image.write(bytes, *offset),
            Self::SetLen(len) => image.set_len(*len),
            Self::Allocate(range) => image.allocate(range.clone()),
            Self::Punch(range) => image.punch(range.clone()),
        }
    }

    /// Returns whether the two may change the same sector, so that their order matters. A reservation changes no bytes, and a length
    /// that was cut concerns all of them.
    pub(crate) fn touches(&self, other: &Self) -> bool {
        let range = |change: &Self| match change {
            Self::Write { offset, bytes } => *offset..offset + bytes.len() as u64,
            Self::SetLen(_) => 0..u64::MAX,
            Self::Allocate(_) => 0..0,
            Self::Punch(range) => range.clone(),
        };
        let (a, b) = (range(self), range(other));
        let sectors = |r: &Range<u64>| (r.start / SECTOR, r.end.div_ceil(SECTOR));
        let ((a, a_end), (b, b_end)) = (sectors(&a), sectors(&b));
        a < b_end && b < a_end
    }
}

/// How a power cut treats everything that was not synced. Drawn once for a crash, because the extremes (all lost, all kept)
/// would hardly ever come up one change at a time.
#[derive(Clone, Copy)]
pub(crate) enum Mood {
    Nothing,
    Everything,
    Mixed,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Kept,
    Lost,
    Torn,
}

impl Mood {
    pub(crate) fn draw(env: &Env) -> Self {
        match env.random() % 8 {
            0 => Self::Nothing,
            1 => Self::Everything,
            _ => Self::Mixed,
        }
    }

    fn fate(self, env: &Env) -> Fate {
        match (self, env.random() % 3) {
            (Self::Everything, _) | (Self::Mixed, 0) => Fate::Kept,
            (Self::Nothing, _) | (Self::Mixed, 1) => Fate::Lost,
            (Self::Mixed, _) => Fate::Torn,
        }
    }
}

/// Returns the file as found after the power came back: `durable`, and of `pending` what luck left.
pub(crate) fn survive(durable: &Image, pending: &[Change], mood: Mood, env: &Env) -> Image {
    let mut seen = durable.clone();
    let mut found = durable.clone();
    let mut len = durable.len();
    for change in pending {
        let before = seen.len();
        change.apply(&mut seen);
        let fate = mood.fate(env);
        match change {
            Change::Write { offset, bytes } if !bytes.is_empty() => {
                let end = offset + bytes.len() as u64;
                for sector in offset / SECTOR..end.div_ceil(SECTOR) {
                    if fate == Fate::Kept || fate == Fate::Torn && coin(env) {
                        found.copy_sector(&seen, sector);
                    }
                }
                // The length is written apart from the bytes: a file may be found longer, with zeros in it.
                if seen.len() > before && (fate == Fate::Kept || matches!(mood, Mood::Mixed) && coin(env)) {
                    len = seen.len();
                }
            }
            Change::Write { .. } => {}
            // The shape of a file changes through the file system's journal: whole or not at all.
            _ if fate == Fate::Lost || fate == Fate::Torn && coin(env) => {}
            Change::SetLen(to) => {
                found.punch(*to..u64::MAX);
                len = seen.len();
            }
            Change::Allocate(_) => len = seen.len(),
            Change::Punch(range) => found.punch(range.clone()),
        }
    }
    found.settle(len, &seen);
    found
}

fn coin(env: &Env) -> bool {
    env.random() & 1 == 1
}
