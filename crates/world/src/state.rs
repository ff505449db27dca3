//! What a world, a snapshot or a point of history *is*: a root, the log ranges to replay over it, and the place in the log.

use crate::error::Result;
use crate::record;
use bytes::Bytes;
use mw_model::codec::{Reader, Writer};
use mw_model::{Hash, Seq, Version, WorldId};
use mw_tree::Root;

/// Entries of one world's log: those after `after`, up to and with `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Range {
    pub world: WorldId,
    pub after: Seq,
    pub to: Seq,
}

/// A state: `root`, with the entries of `lean` replayed over it in order, is the content at `seq`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub root: Root,
    pub lean: Vec<Range>,
    pub seq: Seq,
    pub time: Version,
    /// The chain hash of entry `seq`.
    pub chain: Hash,
}

impl State {
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).var(self.seq.0).var(self.time.0).hash(&self.chain);
        w.var(self.lean.len() as u64);
        for range in &self.lean {
            w.u64(range.world.0).var(range.after.0).var(range.to.0);
        }
        self.root.encode(&mut w);
        w.0.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let state = Self::read(&mut r)?;
        r.end()?;
        Ok(state)
    }

    /// Reads a state that other fields follow.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self> {
        record::version(r)?;
        let (seq, time, chain) = (Seq(r.var()?), Version(r.var()?), r.hash()?);
        let mut lean = Vec::new();
        for _ in 0..r.var()? {
            lean.push(Range { world: WorldId(r.u64()?), after: Seq(r.var()?), to: Seq(r.var()?) });
        }
        let root = Root::decode(r)?;
        Ok(Self { root, lean, seq, time, chain })
    }

    /// Returns this state moved on to `seq` of `world`'s own log.
    pub(crate) fn upto(&self, world: WorldId, seq: Seq, time: Version, chain: Hash) -> Self {
        let mut lean = self.lean.clone();
        if seq > self.seq {
            lean.push(Range { world, after: self.seq, to: seq });
        }
        Self { root: self.root.clone(), lean, seq, time, chain }
    }
}
