//! The records of kept versions: under inode 0, by key and then newest first.
//!
//! A key stands in a record's key such that records sort as keys do, whatever bytes are in them: 0 and 1 are written as the pairs
//! `1 1` and `1 2`, and a 0 ends the key. Eight bytes follow: the time of the version, inverted.

use crate::error::{Error, Result};
use crate::record::{self, Kind};
use crate::versioning::VersionId;
use crate::view::{self, View};
use bytes::Bytes;
use mw_model::codec::{Reader, Writer};
use mw_model::{Ino, Version};
use mw_tree::Value;

/// The most bytes of a written key. A longer one (through a mount, or full of NUL) has no versions: what replaces it is final.
const LONGEST: usize = 1150;

/// One kept version of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub time: Version,
    /// The version `null`.
    pub null: bool,
    /// The inode of what was there; none: a marker, there was a deletion.
    pub ino: Option<Ino>,
}

impl Kept {
    pub(crate) fn id(&self) -> VersionId {
        if self.null { VersionId::Null } else { VersionId::At(self.time) }
    }

    pub(crate) fn encode(&self) -> Value {
        let mut w = Writer::new();
        w.u8(1).u8(u8::from(self.null) | u8::from(self.ino.is_none()) << 1).u64(self.ino.map_or(0, |ino| ino.0));
        record::plain(w.0)
    }

    fn decode(time: Version, value: &Value) -> Result<Self> {
        let mut r = Reader::new(&value.data);
        record::version(&mut r)?;
        let (flags, ino) = (r.u8()?, Ino(r.u64()?));
        r.end()?;
        Ok(Self { time, null: flags & 1 != 0, ino: (flags & 2 == 0).then_some(ino) })
    }
}

/// Writes a key, or the start of one, such that it sorts as it is.
fn written(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 9);
    for b in key {
        match b {
            0 | 1 => out.extend_from_slice(&[1, b + 1]),
            b => out.push(*b),
        }
    }
    out
}

fn place(written: &[u8], end: &[u8]) -> Bytes {
    record::key(Ino(0), Kind::Version, &[written, end].concat())
}

/// Makes the key of a kept version's record; none for a key that has no versions.
pub(crate) fn key(key: &[u8], time: Version) -> Option<Bytes> {
    let mut written = written(key);
    if written.len() > LONGEST {
        return None;
    }
    written.push(0);
    Some(place(&written, &(!time.0).to_be_bytes()))
}

/// Reads a record: the key and the version.
pub(crate) fn read(record: &[u8], value: &Value) -> Result<(Bytes, Kept)> {
    let broken = || Error::corrupt("the record of a version is broken; run `mw fsck`");
    let (_, _, suffix) = record::split(record)?;
    let (name, time) = suffix.len().checked_sub(8).and_then(|at| suffix.split_at_checked(at)).ok_or_else(broken)?;
    let name = name.strip_suffix(&[0]).ok_or_else(broken)?;
    let mut key = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(b) = bytes.next() {
        match b {
            0 => return Err(broken()),
            1 => key.push(bytes.next().filter(|b| (1..=2).contains(*b)).ok_or_else(broken)? - 1),
            b => key.push(*b),
        }
    }
    Ok((key.into(), Kept::decode(Version(!view::number(time)), value)?))
}

/// Walks the kept versions of one key, newest first: those older than `before`, or all.
pub(crate) fn of(view: &View, key: &[u8], before: Option<Version>) -> impl Iterator<Item = Result<Kept>> + use<> {
    let mut start = written(key);
    let end = place(&start, &[1]);
    start.push(0);
    let start = match before {
        None => place(&start, &[]),
        Some(Version(time)) => place(&start, &(!time.saturating_sub(1)).to_be_bytes()),
    };
    view.scan(start, end).map(|item| item.and_then(|(at, value)| Ok(read(&at, &value)?.1)))
}

/// Walks the kept versions of all keys at or after `from`, by key and then newest first.
pub(crate) fn all(view: &View, from: &[u8]) -> impl Iterator<Item = Result<(Bytes, Kept)>> + use<> {
    let (start, end) = (place(&written(from), &[]), record::key_after(Ino(0), Kind::Version));
    view.scan(start, end).map(|item| item.and_then(|(at, value)| read(&at, &value)))
}

/// Returns whether a view keeps any version.
pub(crate) fn any(view: &View) -> Result<bool> {
    Ok(all(view, &[]).next().transpose()?.is_some())
}

/// Returns one kept version of a key.
pub(crate) fn find(view: &View, name: &[u8], id: VersionId) -> Result<Option<Kept>> {
    match id {
        VersionId::At(time) => {
            let Some(at) = key(name, time) else { return Ok(None) };
            let kept = view.get(&at)?.map(|value| Kept::decode(time, &value)).transpose()?;
            Ok(kept.filter(|kept| !kept.null))
        }
        VersionId::Null => of(view, name, None).find(|kept| kept.as_ref().map_or(true, |kept| kept.null)).transpose(),
    }
}

#[cfg(test)]
mod tests;
