//! The keys of `meta`: a tenant, a tag, and what the tag needs. FORMAT.md lists them; nothing else in the store makes such keys.

use bytes::Bytes;
use mw_model::{Seq, Version, WorldId};
use mw_segments::SegmentId;

/// The tags, one for each kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    /// A world is alive; the value says whether it has lent bytes (`shared_out`).
    Alive = b'A',
    /// A deleted world whose space is not all given back.
    Dying = b'B',
    /// Counters that are leased in blocks.
    Counter = b'C',
    /// What a door keeps with a world.
    Setting = b'D',
    /// How long a world's history stays readable, where that is not the store's default.
    Retention = b'E',
    /// A fork of a base (the base's index).
    Child = b'F',
    /// A state that history can start from.
    History = b'H',
    /// The result of a call with an idempotency key.
    Idempotency = b'I',
    /// A key.
    Key = b'K',
    /// An entry of a log.
    Log = b'L',
    /// How far a world is durable.
    Mark = b'M',
    /// A name.
    Name = b'N',
    /// A world's quota.
    Quota = b'Q',
    /// A world's state: root and the log ranges after it.
    State = b'R',
    /// A claimed segment.
    Segment = b'S',
    /// A world that a key owns (the key's index).
    Owned = b'O',
    /// A policy.
    Policy = b'P',
    /// A sync pair of a fork.
    Sync = b'T',
    /// A multipart upload and its parts.
    Upload = b'U',
    /// The reverts of a world.
    Reverts = b'Y',
    /// A snapshot.
    Snapshot = b'V',
    /// A world.
    World = b'W',
    /// The store's own settings: signing key, inode prefix, format.
    Store = b'X',
    // `J` is a run (crate `run`).
}

/// Starts a key.
fn start(tag: Tag) -> Vec<u8> {
    let mut key = vec![0, 0, 0, 0, tag as u8];
    key.reserve(24);
    key
}

/// Makes a key of a tag and raw bytes.
pub(crate) fn raw(tag: Tag, rest: &[u8]) -> Bytes {
    let mut key = start(tag);
    key.extend_from_slice(rest);
    key.into()
}

/// Makes the key of a world's record.
pub(crate) fn of(tag: Tag, world: WorldId) -> Bytes {
    raw(tag, &world.0.to_be_bytes())
}

/// Makes a key of a world and a number (sequence, version, other world).
pub(crate) fn numbered(tag: Tag, world: WorldId, n: u64) -> Bytes {
    let mut key = start(tag);
    key.extend_from_slice(&world.0.to_be_bytes());
    key.extend_from_slice(&n.to_be_bytes());
    key.into()
}

/// Makes a key of a world and raw bytes.
pub(crate) fn suffixed(tag: Tag, world: WorldId, rest: &[u8]) -> Bytes {
    let mut key = start(tag);
    key.extend_from_slice(&world.0.to_be_bytes());
    key.extend_from_slice(rest);
    key.into()
}

/// Makes the key of an entry.
pub(crate) fn log(world: WorldId, seq: Seq) -> Bytes {
    numbered(Tag::Log, world, seq.0)
}

/// Makes the key of a snapshot.
pub(crate) fn snapshot(world: WorldId, version: Version) -> Bytes {
    numbered(Tag::Snapshot, world, version.0)
}

/// Makes the key of a claimed segment.
pub(crate) fn segment(world: WorldId, id: SegmentId) -> Bytes {
    numbered(Tag::Segment, world, id.0)
}

/// Makes the key that says that a key owns a world. The id of a key has no NUL.
pub(crate) fn owned_by(key: &str, world: WorldId) -> Bytes {
    raw(Tag::Owned, &[key.as_bytes(), &[0], &world.0.to_be_bytes()].concat())
}

/// Returns the range `[start, end)` of what says which worlds a key owns.
pub(crate) fn owned(key: &str) -> (Bytes, Bytes) {
    (raw(Tag::Owned, &[key.as_bytes(), &[0]].concat()), raw(Tag::Owned, &[key.as_bytes(), &[1]].concat()))
}

/// Returns the range `[start, end)` of all keys of a tag.
pub(crate) fn all(tag: Tag) -> (Bytes, Bytes) {
    (raw(tag, &[]), Bytes::from(vec![0, 0, 0, 0, tag as u8 + 1]))
}

/// Returns the range `[start, end)` of all keys of a tag and a world.
pub(crate) fn all_of(tag: Tag, world: WorldId) -> (Bytes, Bytes) {
    let end = match world.0.checked_add(1) {
        Some(next) => raw(tag, &next.to_be_bytes()),
        None => all(tag).1,
    };
    (of(tag, world), end)
}

/// Returns the last eight bytes of a key as a number.
pub(crate) fn number(key: &[u8]) -> u64 {
    let mut eight = [0; 8];
    if let Some(tail) = key.len().checked_sub(8).and_then(|at| key.get(at..)) {
        eight.copy_from_slice(tail);
    }
    u64::from_be_bytes(eight)
}

/// Returns what follows the tag.
pub(crate) fn rest(key: &[u8]) -> &[u8] {
    key.get(5..).unwrap_or_default()
}
