//! The ranges of one file that are locked, and by whom.
//!
//! Invariant: the ranges of one owner are sorted and disjoint, and no two of them could be one. Ranges of two owners overlap only when both
//! are shared. No I/O, no waiting, no files: who asks sees to that.

use std::collections::BTreeMap;

/// A range of bytes, both ends included; one to the end of the file, however long that grows, ends with [`LockSpan::END`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockSpan {
    /// The first byte.
    pub first: u64,
    /// The last byte.
    pub last: u64,
}

impl LockSpan {
    /// The last byte that a file can have.
    pub const END: u64 = i64::MAX as u64;
    /// All bytes.
    pub const ALL: Self = Self { first: 0, last: Self::END };

    fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// What a lock keeps others from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// An exclusive lock.
    Shared,
    /// Any lock.
    Exclusive,
}

impl LockKind {
    fn excludes(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }
}

/// Whom a lock belongs to: a number that one client gave its program, or its open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub client: u64,
    pub number: u64,
}

/// How a lock came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct By {
    /// The process that took it; 0 when that is not known.
    pub process: u32,
    /// The open file through which it was taken.
    pub handle: u64,
    /// The client hears of its end only some time after the program.
    pub late: bool,
}

/// A range that is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub span: LockSpan,
    pub kind: LockKind,
    pub by: By,
}

impl Held {
    /// Returns whether `next`, which comes behind, is the same lock going on.
    fn goes_on_in(&self, next: &Self) -> bool {
        self.span.last.checked_add(1) == Some(next.span.first) && self.kind == next.kind && self.by == next.by
    }
}

/// The locked ranges of one file.
#[derive(Debug, Default)]
pub(crate) struct Spans(BTreeMap<Owner, Vec<Held>>);

impl Spans {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Returns what keeps `owner` from locking `span`.
    pub(crate) fn against(&self, owner: Owner, span: LockSpan, kind: LockKind) -> impl Iterator<Item = (Owner, &Held)> {
        let others = self.0.iter().filter(move |(other, _)| **other != owner);
        others.flat_map(move |(other, held)| {
            within(held, span).filter(move |held| held.kind.excludes(kind)).map(move |held| (*other, held))
        })
    }

    /// Returns everything that is locked.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Owner, &Held)> {
        self.0.iter().flat_map(|(owner, held)| held.iter().map(move |held| (*owner, held)))
    }

    /// Returns what `owner` itself has in `span`.
    pub(crate) fn of(&self, owner: Owner, span: LockSpan) -> impl Iterator<Item = (Owner, &Held)> {
        self.0.get(&owner).into_iter().flat_map(move |held| within(held, span)).map(move |held| (owner, held))
    }

    /// Makes `span` what `new` says for `owner`, whatever it was: locked, or free. Others are not looked at.
    pub(crate) fn set(&mut self, owner: Owner, span: LockSpan, new: Option<(LockKind, By)>) {
        let held = self.0.entry(owner).or_default();
        let from = held.partition_point(|held| held.span.last < span.first);
        let to = held.partition_point(|held| held.span.first <= span.last);
        let mut pieces = Vec::with_capacity(3);
        if let Some(first) = held.get(from..to).and_then(<[_]>::first)
            && first.span.first < span.first
        {
            pieces.push(Held { span: LockSpan { last: span.first - 1, ..first.span }, ..*first });
        }
        pieces.extend(new.map(|(kind, by)| Held { span, kind, by }));
        if let Some(last) = held.get(from..to).and_then(<[_]>::last)
            && last.span.last > span.last
        {
            pieces.push(Held { span: LockSpan { first: span.last + 1, ..last.span }, ..*last });
        }
        let end = from + pieces.len();
        held.splice(from..to, pieces);
        join(held, from.saturating_sub(1), end);
        if held.is_empty() {
            self.0.remove(&owner);
        }
    }

    /// Frees every range that `goes` says goes. Returns whether there was one.
    pub(crate) fn free(&mut self, goes: impl Fn(Owner, &Held) -> bool) -> bool {
        let before = self.len();
        self.0.retain(|owner, held| {
            held.retain(|held| !goes(*owner, held));
            !held.is_empty()
        });
        self.len() < before
    }

    /// Notes that the end of what was locked through `handle` may be on its way.
    pub(crate) fn may_end(&mut self, client: u64, handle: u64) {
        let of_client = self.0.iter_mut().filter(|(owner, _)| owner.client == client);
        for held in of_client.flat_map(|(_, held)| held) {
            held.by.late |= held.by.handle == handle;
        }
    }
}

/// Returns those of an owner's ranges that overlap `span`.
fn within(held: &[Held], span: LockSpan) -> impl Iterator<Item = &Held> {
    let from = held.partition_point(|held| held.span.last < span.first);
    held[from..].iter().take_while(move |held| held.span.overlaps(span))
}

/// Makes one of neighbours that are one lock, from the range at `at` to the one at `end`.
fn join(held: &mut Vec<Held>, mut at: usize, mut end: usize) {
    while at < end && at + 1 < held.len() {
        let next = held[at + 1];
        if held[at].goes_on_in(&next) {
            held[at].span.last = next.span.last;
            held.remove(at + 1);
            end -= 1;
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests;
