//! Time: instants of a world's history, and read-only sessions of them.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::principal::Principal;
use crate::session::Session;
use crate::snapshot::SnapshotRecord;
use crate::state::State;
use crate::store::Store;
use crate::sync::SyncPoints;
use crate::world::World;
use mw_meta::{Batch, Durability, Order};
use mw_model::{ErrorKind, Seq, Version};
use std::sync::Arc;

/// An instant of a world: a version, or the label of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// UNIX nanoseconds: the world as it was then.
    Version(Version),
    /// The newest snapshot of that label.
    Label(String),
}

impl At {
    /// Reads an instant: UNIX nanoseconds in decimal, an RFC 3339 time, or else a snapshot's label.
    ///
    /// # Errors
    /// `Invalid` when it is empty or a number out of range.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::invalid("the version is empty; use a version, an RFC 3339 time or a snapshot's label"));
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return text
                .parse()
                .map(|n| Self::Version(Version(n)))
                .map_err(|_| Error::invalid(format!("version {text} is out of range; versions are UNIX nanoseconds")));
        }
        match rfc3339(text) {
            Some(n) => Ok(Self::Version(Version(n))),
            None => Ok(Self::Label(text.to_owned())),
        }
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(v) => write!(f, "{v}"),
            Self::Label(label) => f.write_str(label),
        }
    }
}

/// Reads an RFC 3339 time as UNIX nanoseconds.
fn rfc3339(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| bytes.get(*at) != Some(mark)) || !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut nanos = 0i64;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        let nine: String = fraction[..digits].chars().chain(std::iter::repeat('0')).take(9).collect();
        nanos = nine.parse().ok()?;
        rest = &fraction[digits..];
    }
    let shift = match rest {
        "Z" | "z" => 0,
        _ => {
            let sign = if rest.starts_with('-') { -1 } else { 1 };
            let part = |from: usize| rest.get(from..from + 2)?.parse::<i64>().ok();
            if rest.len() != 6 || !rest.starts_with(['+', '-']) || rest.as_bytes()[3] != b':' {
                return None;
            }
            sign * (part(1)? * 3600 + part(4)? * 60)
        }
    };
    // Days from the civil calendar (Howard Hinnant, *chrono-compatible low-level date algorithms*).
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y - era * 400;
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - shift;
    u64::try_from(i128::from(seconds) * 1_000_000_000 + i128::from(nanos)).ok()
}

impl Store {
    /// Returns a read-only session of a retained instant.
    ///
    /// # Errors
    /// Those of [`Store::session`]; `NotFound` when the instant is not retained; `Invalid` when it lies in the future.
    pub fn session_at(self: &Arc<Self>, who: &Principal, world: &str, at: At) -> Result<Session> {
        let session = self.session(who, world)?;
        session.at(&at)
    }

    /// Returns the state of a world at an instant.
    pub(crate) fn state_at(&self, world: &World, at: &At) -> Result<State> {
        let version = self.version_of(world, at)?;
        if let Some(bytes) = self.meta.get(&layout::snapshot(world.id, version))? {
            return Ok(SnapshotRecord::decode(&bytes)?.state);
        }
        {
            let mut head = world.head.lock();
            if version >= head.time {
                if version.0 > self.env.now() && version > head.time {
                    return Err(Error::invalid(format!("version {version} lies in the future")));
                }
                if version > head.time && version > head.floor {
                    // A later entry must not come to lie before an instant that was read.
                    let mut batch = Batch::new();
                    batch.put(layout::raw(Tag::Counter, &world.id.0.to_be_bytes()), version.0.to_be_bytes().to_vec());
                    self.meta.commit(batch, Durability::Soon)?;
                    head.floor = version;
                }
                return Ok(world.state_now(&head));
            }
        }
        let seq = self.seq_at(world, version)?;
        self.state_upto(world, seq)
    }

    /// Returns the version that an instant names.
    pub(crate) fn version_of(&self, world: &World, at: &At) -> Result<Version> {
        match at {
            At::Version(version) => Ok(*version),
            At::Label(label) => self.labelled(world, label),
        }
    }

    /// Returns the state of a world after its entry `seq`.
    pub(crate) fn state_upto(&self, world: &World, seq: Seq) -> Result<State> {
        let (start, _) = layout::all_of(Tag::History, world.id);
        let end = layout::numbered(Tag::History, world.id, seq.0 + 1);
        let found = self.meta.scan(&start, &end, 1, Order::Down)?;
        let (_, bytes) = found.first().ok_or_else(|| not_retained(world))?;
        let state = State::decode(bytes)?;
        if state.seq == seq {
            return Ok(state);
        }
        let entry = self.entry(world, seq)?.ok_or_else(|| not_retained(world))?;
        Ok(state.upto(world.id, seq, entry.time, entry.chain()))
    }

    /// Returns the last entry at or before an instant, by bisection: times rise with sequence numbers.
    fn seq_at(&self, world: &World, version: Version) -> Result<Seq> {
        let (start, end) = layout::all_of(Tag::History, world.id);
        let found = self.meta.scan(&start, &end, 1, Order::Up)?;
        let (_, bytes) = found.first().ok_or_else(|| not_retained(world))?;
        let first = State::decode(bytes)?;
        if version < first.time {
            return Err(not_retained(world));
        }
        let (mut low, mut high) = (first.seq.0, world.head.lock().seq.0);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let time = self.entry(world, Seq(middle))?.ok_or_else(|| not_retained(world))?.time;
            if time <= version {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Ok(Seq(low))
    }

    pub(crate) fn entry(&self, world: &World, seq: Seq) -> Result<Option<crate::entry::Entry>> {
        self.meta.get(&layout::log(world.id, seq))?.map(|b| crate::entry::Entry::decode(&b)).transpose()
    }

    fn labelled(&self, world: &World, label: &str) -> Result<Version> {
        let (start, end) = layout::all_of(Tag::Snapshot, world.id);
        for (key, value) in self.meta.scan(&start, &end, usize::MAX, Order::Down)? {
            if SnapshotRecord::decode(&value)?.label.as_deref() == Some(label) {
                return Ok(Version(layout::number(&key)));
            }
        }
        let name = &world.record.read().name;
        Err(Error::not_found(format!("world {name} has no snapshot {label:?}; `mw snapshot list {name}` shows them")))
    }
}

fn not_retained(world: &World) -> Error {
    let name = &world.record.read().name;
    Error::new(
        ErrorKind::NotFound,
        format!(
            "that instant of world {name} is not retained; `mw world retention {name}` tells how far back it is, `mw snapshot list \
             {name}` what was kept besides"
        ),
    )
}

impl Session {
    /// Returns this session at an instant, read-only.
    ///
    /// # Errors
    /// `NotFound` when the instant is not retained; `Invalid` when it lies in the future.
    pub fn at(&self, at: &At) -> Result<Self> {
        let state = self.store.state_at(&self.world, at)?;
        let (view, _) = self.store.view_of(self.world.id, &state, state.seq)?;
        Ok(Self { at: Some(Arc::new(view)), ..self.clone() })
    }

    /// Returns this fork as it began, read-only. It is readable as long as the fork lives, also for a key that may not read the base:
    /// the fork holds the same.
    ///
    /// # Errors
    /// `Invalid` when the world is no fork.
    pub fn fork_point(&self) -> Result<Self> {
        let points = self.store.meta.get(&layout::of(Tag::Sync, self.world.id))?.ok_or_else(|| {
            Error::invalid(format!("world {} is not a fork; compare it with a version of its own", self.name))
        })?;
        let points = SyncPoints::decode(&points)?;
        let first = &points.points[0].common;
        let (view, _) = self.store.view_of(points.base, first, first.seq)?;
        Ok(Self { at: Some(Arc::new(view)), ..self.clone() })
    }
}

#[cfg(test)]
mod tests;
