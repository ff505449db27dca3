//! What a fork and its base last had in common: the states that a merge compares both sides with.
//!
//! Invariant: *both* sides are compared with one common state, the last that both have seen whole: the fork point; after a
//! promote the fork's state, since the base has all of it while the fork knows nothing of what the base did meanwhile; after
//! a rebase the base's. design/0002 says what is lost otherwise.

use crate::error::Result;
use crate::record;
use crate::state::State;
use bytes::Bytes;
use mw_model::codec::{Reader, Writer};
use mw_model::{Seq, WorldId};

/// How many points are kept: the fork point, and the latest of the others. Each keeps two states from the sweep.
const KEPT: usize = 16;

/// A fork, promote or rebase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    /// What both sides are compared with.
    pub common: State,
    /// The base at that moment. A file to which both append has the base's own tail there, before the common one.
    pub base_then: State,
    /// The world that the merge changed and the entry that did it; none for the fork point.
    pub changed: Option<(WorldId, Seq)>,
}

/// The points of a fork and its base, oldest first; stored under the fork's id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SyncPoints {
    pub base: WorldId,
    /// Never empty: the fork point is the first.
    pub points: Vec<Point>,
}

impl SyncPoints {
    /// Makes the record of a fresh fork.
    pub(crate) fn at_fork(base: WorldId, state: &State) -> Self {
        let point = Point { common: state.clone(), base_then: state.clone(), changed: None };
        Self { base, points: vec![point] }
    }

    /// Adds the point of a merge.
    pub(crate) fn push(&mut self, point: Point) {
        self.points.push(point);
        if self.points.len() > KEPT {
            self.points.remove(1);
        }
    }

    /// Returns the latest point that `undone` does not refuse; the fork point stays whatever happens.
    pub(crate) fn latest(&self, undone: impl Fn(WorldId, Seq) -> bool) -> &Point {
        let valid = |point: &&Point| point.changed.is_none_or(|(world, seq)| !undone(world, seq));
        self.points.iter().rev().find(valid).unwrap_or(&self.points[0])
    }

    /// Returns every state that must stay readable.
    pub(crate) fn into_states(self) -> impl Iterator<Item = State> {
        self.points.into_iter().flat_map(|point| [point.common, point.base_then])
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).u64(self.base.0).var(self.points.len() as u64);
        for point in &self.points {
            w.raw(&point.common.encode()).raw(&point.base_then.encode());
            let (world, seq) = point.changed.unwrap_or_default();
            w.u64(world.0).var(seq.0);
        }
        w.0.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        record::version(&mut r)?;
        let base = WorldId(r.u64()?);
        let mut points = Vec::new();
        for _ in 0..r.var()? {
            let (common, base_then) = (State::read(&mut r)?, State::read(&mut r)?);
            let (world, seq) = (WorldId(r.u64()?), Seq(r.var()?));
            points.push(Point { common, base_then, changed: (world.0 != 0).then_some((world, seq)) });
        }
        r.end()?;
        if points.is_empty() {
            return Err(crate::error::Error::corrupt("a fork has no sync point; run `mw fsck`"));
        }
        Ok(Self { base, points })
    }
}

/// The reverts of a world: at which entry, and to the content after which earlier one. They decide what its content still holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reverts(pub Vec<(Seq, Seq)>);

impl Reverts {
    /// Returns whether the content after entry `now` has lost what entry `seq` did.
    pub(crate) fn undid(&self, seq: Seq, mut now: Seq) -> bool {
        // From the latest revert backwards: what it went back to is the content that counts from there.
        for (at, to) in self.0.iter().rev() {
            if *at > now || *at < seq {
                continue;
            }
            now = *to;
        }
        seq > now
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).var(self.0.len() as u64);
        for (at, to) in &self.0 {
            w.var(at.0).var(to.0);
        }
        w.0.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        record::version(&mut r)?;
        let mut reverts = Vec::new();
        for _ in 0..r.var()? {
            reverts.push((Seq(r.var()?), Seq(r.var()?)));
        }
        r.end()?;
        Ok(Self(reverts))
    }
}

#[cfg(test)]
mod tests;
