//! How large a world may grow, and how it is kept to that: what an entry would add is known before it is committed.
//!
//! Invariant: what is counted is what the head's view holds, whenever it is counted at all. A world without a quota counts
//! nothing; the first write under a quota counts the inodes once.

use crate::error::{Error, Result};
use crate::record::{Inode, Kind};
use crate::view::View;
use bytes::Bytes;
use mw_model::ErrorKind;
use mw_model::codec::{Reader, Writer};
use mw_tree::Value;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that a world may hold. History and snapshots are not counted; a fork counts what it shares, and has its base's quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Quota {
    /// Bytes of content, holes not counted.
    pub bytes: Option<u64>,
    /// Inodes: files, directories, links.
    pub inodes: Option<u64>,
}

/// What a world holds, as far as quotas go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Bytes of content, holes not counted.
    pub bytes: u64,
    /// Inodes.
    pub inodes: u64,
}

/// What an entry adds, or takes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    bytes: i64,
    inodes: i64,
}

/// The part of a head that keeps its world to its quota.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Room {
    pub quota: Quota,
    /// None: not counted yet.
    held: Option<Held>,
}

/// The bytes that a world may still take in, for those who do not hold its head. No promise: the commit decides.
#[derive(Debug)]
pub(crate) struct Left(AtomicU64);

/// Stands in [`Left`] for a world under a quota that was not counted yet.
const UNKNOWN: u64 = u64::MAX - 1;

impl Quota {
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }

    /// A limit of 0 stands for none, which no world could keep to: it has a root.
    pub(crate) fn encode(self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).var(self.bytes.map_or(0, |n| n.saturating_add(1))).var(self.inodes.map_or(0, |n| n.saturating_add(1)));
        w.0.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        match r.u8()? {
            1 => {}
            n => return Err(crate::record::newer(n)),
        }
        let (bytes, inodes) = (r.var()?.checked_sub(1), r.var()?.checked_sub(1));
        r.end()?;
        Ok(Self { bytes, inodes })
    }
}

impl Room {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, held: None }
    }

    /// Returns what counts against the quota, as far as it was counted.
    pub(crate) fn held(&self) -> Held {
        self.held.unwrap_or_default()
    }

    /// Puts another quota in the place of this one. What was counted still holds, as every entry since was counted too.
    pub(crate) fn bound(&mut self, quota: Quota) {
        *self = Self { quota, held: self.held.filter(|_| !quota.is_none()) };
    }

    /// Returns what a mutation adds: by the records that it changes, or, when another root takes the place of the world's, by counting
    /// what will be there.
    ///
    /// # Errors
    /// `Quota` when it adds to what has no room.
    pub(crate) fn charge(
        &mut self,
        before: impl FnOnce() -> View,
        after: &View,
        swapped: bool,
        name: impl Fn() -> String,
    ) -> Result<Growth> {
        if self.quota.is_none() {
            return Ok(Growth::default());
        }
        let before = before();
        let held = self.count(&before)?;
        let mut growth = Growth::default();
        if swapped {
            let then = count(after)?;
            growth.bytes = then.bytes.cast_signed().saturating_sub(held.bytes.cast_signed());
            growth.inodes = then.inodes.cast_signed().saturating_sub(held.inodes.cast_signed());
        } else {
            for (key, new) in &after.own {
                if is_inode(key) {
                    growth.of(before.get(key)?.as_ref(), new.as_ref())?;
                }
            }
        }
        check(self.quota.bytes, held.bytes, growth.bytes, "bytes", &name)?;
        check(self.quota.inodes, held.inodes, growth.inodes, "inodes", &name)?;
        Ok(growth)
    }

    /// Counts what was committed.
    pub(crate) fn add(&mut self, growth: Growth, left: &Left) {
        let Some(held) = &mut self.held else { return };
        held.bytes = held.bytes.saturating_add_signed(growth.bytes);
        held.inodes = held.inodes.saturating_add_signed(growth.inodes);
        left.set(self.quota, *held);
    }

    /// Counts what a view holds, unless it is known.
    pub(crate) fn count(&mut self, view: &View) -> Result<Held> {
        if let Some(held) = self.held {
            return Ok(held);
        }
        let held = count(view)?;
        self.held = Some(held);
        Ok(held)
    }
}

fn count(view: &View) -> Result<Held> {
    let mut held = Held::default();
    for item in view.scan(Bytes::from_static(&[0; 8]), Bytes::from(vec![u8::MAX; 10])) {
        let (key, value) = item?;
        if is_inode(&key) {
            held.inodes += 1;
            held.bytes += Inode::decode(&value)?.allocated;
        }
    }
    Ok(held)
}

impl Growth {
    fn of(&mut self, old: Option<&Value>, new: Option<&Value>) -> Result<()> {
        let bytes = |value: Option<&Value>| -> Result<i64> {
            let allocated = value.map(Inode::decode).transpose()?.map_or(0, |inode| inode.allocated);
            Ok(i64::try_from(allocated).unwrap_or(i64::MAX))
        };
        self.bytes = self.bytes.saturating_add(bytes(new)?.saturating_sub(bytes(old)?));
        self.inodes += i64::from(new.is_some()) - i64::from(old.is_some());
        Ok(())
    }
}

fn is_inode(key: &[u8]) -> bool {
    key.len() == 9 && key[8] == Kind::Inode as u8
}

fn check(limit: Option<u64>, held: u64, growth: i64, what: &str, name: &impl Fn() -> String) -> Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    // Whoever is over it may still make room.
    if growth <= 0 || held.saturating_add_signed(growth) <= limit {
        return Ok(());
    }
    Err(full(&name(), what, limit, held, growth.unsigned_abs()))
}

fn full(name: &str, what: &str, limit: u64, held: u64, more: u64) -> Error {
    Error::new(
        ErrorKind::Quota,
        format!(
            "world {name} holds {held} of the {limit} {what} of its quota, and this needs {more} more; delete something, or have \
             the quota raised (`mw world quota {name}`)"
        ),
    )
}

impl Left {
    pub(crate) fn new(quota: Quota) -> Self {
        Self(AtomicU64::new(if quota.bytes.is_some() { UNKNOWN } else { u64::MAX }))
    }

    pub(crate) fn set(&self, quota: Quota, held: Held) {
        self.0.store(quota.bytes.map_or(u64::MAX, |limit| limit.saturating_sub(held.bytes)), Ordering::Relaxed);
    }

    /// Forgets, until it is set again.
    pub(crate) fn reset(&self, quota: Quota) {
        self.0.store(Self::new(quota).0.into_inner(), Ordering::Relaxed);
    }

    /// Returns whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.0.load(Ordering::Relaxed) != u64::MAX
    }

    /// Returns whether there is a limit that was not counted against yet.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.load(Ordering::Relaxed) == UNKNOWN
    }

    /// Refuses content that cannot fit, before it is written.
    ///
    /// # Errors
    /// `Quota`.
    pub(crate) fn need(&self, bytes: u64, name: impl Fn() -> String) -> Result<()> {
        let left = self.0.load(Ordering::Relaxed);
        if bytes <= left {
            return Ok(());
        }
        let name = name();
        Err(Error::new(
            ErrorKind::Quota,
            format!(
                "world {name} has {left} bytes left of its quota, and this needs {bytes} or more; delete something, or have the \
                 quota raised (`mw world quota {name}`)"
            ),
        ))
    }
}
