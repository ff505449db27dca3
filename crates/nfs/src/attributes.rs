//! Attributes as they travel (RFC 1813, section 2.6).

use crate::handle::Realm;
use crate::xdr::{Reader, Result, Writer};
use mw_model::{Attr, FileType};
use mw_world::{SetAttr, SetTime};

/// Nanoseconds in a second.
const SECOND: i64 = 1_000_000_000;

/// Returns the number of a type.
pub(crate) fn type_number(kind: FileType) -> u32 {
    match kind {
        FileType::File => 1,
        FileType::Directory => 2,
        FileType::BlockDevice => 3,
        FileType::CharDevice => 4,
        FileType::Symlink => 5,
        FileType::Socket => 6,
        FileType::Fifo => 7,
    }
}

/// Writes a time. Times before 1970 and after 2106 cannot be said.
fn time(w: &mut Writer, nanoseconds: i64) {
    let seconds = u32::try_from(nanoseconds.div_euclid(SECOND)).unwrap_or(if nanoseconds < 0 { 0 } else { u32::MAX });
    w.u32(seconds).u32(nanoseconds.rem_euclid(SECOND) as u32);
}

/// Writes attributes.
pub(crate) fn write(w: &mut Writer, realm: Realm, attr: &Attr) {
    w.u32(type_number(attr.kind)).u32(attr.mode).u32(attr.nlink).u32(attr.uid).u32(attr.gid);
    w.u64(attr.size).u64(attr.allocated);
    w.u32(attr.rdev >> 8 & 0xFFF).u32(attr.rdev & 0xFF | attr.rdev >> 12 & 0xF_FF00);
    w.u64(realm.world.0 ^ realm.version).u64(attr.ino.0);
    time(w, attr.atime);
    time(w, attr.mtime);
    time(w, attr.ctime);
}

/// Writes attributes if they are known.
pub(crate) fn after(w: &mut Writer, realm: Realm, attr: Option<&Attr>) {
    w.bool(attr.is_some());
    if let Some(attr) = attr {
        write(w, realm, attr);
    }
}

/// Writes what an inode was before and is after, so that a client knows whether it alone changed it.
pub(crate) fn change(w: &mut Writer, realm: Realm, before: Option<&Attr>, now: Option<&Attr>) {
    w.bool(before.is_some());
    if let Some(before) = before {
        w.u64(before.size);
        time(w, before.mtime);
        time(w, before.ctime);
    }
    after(w, realm, now);
}

/// Reads a time.
pub(crate) fn read_time(r: &mut Reader) -> Result<i64> {
    let (seconds, nanoseconds) = (r.u32()?, r.u32()?);
    Ok(i64::from(seconds) * SECOND + i64::from(nanoseconds.min(999_999_999)))
}

/// Reads attributes that are to be set.
pub(crate) fn read(r: &mut Reader) -> Result<SetAttr> {
    let mut set = SetAttr::default();
    if r.bool()? {
        set.mode = Some(r.u32()? & 0o7777);
    }
    if r.bool()? {
        set.uid = Some(r.u32()?);
    }
    if r.bool()? {
        set.gid = Some(r.u32()?);
    }
    if r.bool()? {
        set.size = Some(r.u64()?);
    }
    set.atime = set_time(r)?;
    set.mtime = set_time(r)?;
    Ok(set)
}

fn set_time(r: &mut Reader) -> Result<Option<SetTime>> {
    Ok(match r.u32()? {
        0 => None,
        1 => Some(SetTime::Now),
        2 => Some(SetTime::At(read_time(r)?)),
        _ => return Err(crate::xdr::Garbage),
    })
}
