//! Attributes and times, from the world's form to the kernel's and back.

use fuser::{FileAttr, INodeNo, TimeOrNow};
use mw_model::{Attr, FileType};
use mw_world::SetTime;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What `stat` calls the preferred size of a read or write: one piece of large content.
const BLOCK: u32 = 128 << 10;
const SECOND: i64 = 1_000_000_000;

/// Returns the kernel's form of `attr`.
pub(crate) fn file_attr(attr: &Attr) -> FileAttr {
    FileAttr {
        ino: INodeNo(attr.ino.0),
        size: attr.size,
        blocks: attr.allocated.div_ceil(512),
        atime: system_time(attr.atime),
        mtime: system_time(attr.mtime),
        ctime: system_time(attr.ctime),
        crtime: system_time(attr.btime),
        kind: kind(attr.kind),
        perm: (attr.mode & 0o7777) as u16,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: BLOCK,
        flags: 0,
    }
}

/// Returns the answer that says "no such name", which the kernel may cache: inode 0.
pub(crate) fn absent() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: fuser::FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

/// Returns the kernel's form of a file type.
pub(crate) fn kind(kind: FileType) -> fuser::FileType {
    match kind {
        FileType::File => fuser::FileType::RegularFile,
        FileType::Directory => fuser::FileType::Directory,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::Socket => fuser::FileType::Socket,
        FileType::CharDevice => fuser::FileType::CharDevice,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
    }
}

/// Returns the type in the mode of `mknod`; a mode without a type means a regular file (POSIX).
pub(crate) fn kind_of_mode(mode: u32) -> Option<FileType> {
    use rustix::fs::FileType as Raw;
    Some(match Raw::from_raw_mode(mode) {
        Raw::RegularFile => FileType::File,
        Raw::Fifo => FileType::Fifo,
        Raw::Socket => FileType::Socket,
        Raw::CharacterDevice => FileType::CharDevice,
        Raw::BlockDevice => FileType::BlockDevice,
        Raw::Unknown if mode & 0o170_000 == 0 => FileType::File,
        Raw::Directory | Raw::Symlink | Raw::Unknown => return None,
    })
}

fn system_time(nanoseconds: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    if nanoseconds < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

/// Returns what `utimensat` asks for.
pub(crate) fn set_time(time: TimeOrNow) -> SetTime {
    match time {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(time) => SetTime::At(nanoseconds(time)),
    }
}

/// Undoes what fuser 0.18 does to a time before 1970: the kernel's (seconds, nanoseconds) with seconds < 0 arrives as
/// `UNIX_EPOCH - (|seconds|, nanoseconds)`, so the nanoseconds must be added and not subtracted. Saturates.
pub(crate) fn nanoseconds(time: SystemTime) -> i64 {
    let (seconds, part) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            (i64::try_from(before.as_secs()).map_or(i64::MIN, |s| -s), before.subsec_nanos())
        }
    };
    seconds.saturating_mul(SECOND).saturating_add(i64::from(part))
}

#[cfg(test)]
mod tests;
