//! Verbs on content and attributes: read, write, allocate, seek, copy, set.

use super::{Door, Result};
use crate::errors::{errno, held, seek};
use crate::notify::Notice;
use crate::pieces::Piece;
use bytes::Bytes;
use fuser::{Errno, INodeNo};
use mw_model::{Attr, FileType, Ino};
use mw_world::{Allocate, SeekFor, SetAttr, SetTime, StatFs, WriteAt};
use rustix::fs::OFlags;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o0010;
/// The kernel is given files up to this length when they are opened, in bytes.
const FILL: u64 = 64 << 10;
/// The longest copy of one request; its answer has 32 bits, and the caller goes on.
const MAX_COPY: u64 = 1 << 30;

/// A write as the kernel sends it.
pub(crate) struct Write {
    /// The number by which the kernel asks for the file.
    pub(crate) node: INodeNo,
    pub(crate) offset: u64,
    /// The descriptor has `O_APPEND` and these are no mapped pages: the end is the store's, not the kernel's.
    pub(crate) append: bool,
    /// The writer may not keep setuid and setgid.
    pub(crate) kill: bool,
    /// As part of a write(2); mapped pages are none.
    pub(crate) piece: Option<Piece>,
}

/// What a write did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrote {
    pub(crate) len: u32,
    /// It went elsewhere than the kernel thinks: what the kernel has cached is wrong.
    pub(crate) moved: bool,
}

/// A change of attributes, and who asks.
#[derive(Debug, Default)]
pub(crate) struct Resize {
    pub(crate) mode: Option<u32>,
    pub(crate) owner: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) atime: Option<SetTime>,
    pub(crate) mtime: Option<SetTime>,
    /// As the kernel has it, which knows it with write-back alone.
    pub(crate) ctime: Option<i64>,
    pub(crate) uid: u32,
}

impl Door {
    /// Reads; short only at the end.
    pub(crate) fn read(&self, ino: u64, offset: u64, len: u32) -> Result<Bytes> {
        self.session.read(Ino(ino), offset, len as usize).map_err(|e| held(&e))
    }

    /// A file was opened and counted: gives the kernel all of its content when that is little, only read, and not there yet. Whoever
    /// opens it meanwhile waits. A change through another door is heard of later than this, or the answer tells the kernel to keep nothing.
    pub(crate) fn fill(&self, ino: u64, flags: OFlags) {
        if self.writes_back() {
            // Its pages may be newer than what we have.
            return;
        }
        self.filling.wait(ino);
        let mode = flags.intersection(OFlags::RWMODE);
        let first_to_read = mode != OFlags::WRONLY && self.known.take_bare(ino);
        if !first_to_read || mode != OFlags::RDONLY || flags.contains(OFlags::DIRECT) {
            return;
        }
        let (Some(kernel), Some(_alone)) = (self.kernel(), self.filling.alone(ino)) else { return };
        if self.opens.count(ino) != 1 {
            return;
        }
        // An error is told to who reads.
        if let Ok(attr) = self.session.attr(Ino(ino))
            && attr.kind == FileType::File
            && (1..=FILL).contains(&attr.size)
            && let Ok(content) = self.session.read(Ino(ino), 0, attr.size as usize)
        {
            kernel.give(ino, &content);
        }
    }

    /// Writes. The descriptor need not be open any more: mapped pages may come late.
    pub(crate) fn write(&self, write: &Write, data: &[u8]) -> Result<Wrote> {
        self.write_piece(write, data).inspect_err(|_| {
            // The kernel goes on with no write that failed.
            if write.piece.is_some() {
                self.gate.ended(self.ino(write.node));
            }
        })
    }

    fn write_piece(&self, write: &Write, data: &[u8]) -> Result<Wrote> {
        let ino = Ino(self.opened_now(write.node)?);
        let at = if write.append { WriteAt::End } else { WriteAt::Offset(write.offset) };
        let written = self.session.write(ino, at, data).map_err(|e| match held(&e) {
            // Pages: who closes the file hears ENOSPC by its name, and EIO for anything else.
            Errno::EDQUOT if write.piece.is_none() && self.writes_back() => Errno::ENOSPC,
            other => other,
        })?;
        if write.kill
            && let Some(mode) = without_privilege(&written.attr)
        {
            self.session.set_attr(ino, &SetAttr { mode: Some(mode), ..SetAttr::default() }).map_err(|e| held(&e))?;
        }
        self.unsynced.add(data.len() as u64);
        if let Some(kept) = &self.kept {
            kept.times.wrote(ino.0);
        }
        Ok(Wrote { len: data.len() as u32, moved: written.offset != write.offset })
    }

    /// Called after the answer to a write that moved: only then are the pages unlocked that must go.
    pub(crate) fn correct(&self, ino: u64) {
        self.notices.post(vec![Notice::Inode(ino)]);
    }

    /// Changes attributes. Giving a file away takes setuid and setgid from it, and so does another's truncation (POSIX chown,
    /// truncate; the kernel leaves both to us).
    pub(crate) fn set_attr(&self, node: INodeNo, change: &Resize) -> Result<Attr> {
        let ino = self.current(node)?;
        let mut set = SetAttr {
            mode: change.mode.map(|mode| mode & 0o7777),
            uid: change.owner,
            gid: change.group,
            size: change.size,
            atime: change.atime,
            mtime: change.mtime,
            ctime: change.ctime.filter(|_| self.writes_back()).map(SetTime::At),
        };
        let given = change.owner.is_some() || change.group.is_some();
        if set.mode.is_none() && (given || (change.size.is_some() && change.uid != 0)) {
            set.mode = without_privilege(&self.attr(ino)?);
        }
        let _alone = change.size.is_some().then(|| self.filling.wait_alone(ino));
        // The kernel says the times of a file once more when its last name is gone: no reason to look anything up again.
        let of_itself = self.writes_back() && SetAttr { mtime: None, ctime: None, ..set } == SetAttr::default();
        let attr = self.session.set_attr(Ino(ino), &set).map_err(|e| if of_itself { errno(&e) } else { held(&e) })?;
        if let (Some(kept), Some(ctime)) = (&self.kept, change.ctime) {
            match set.mtime {
                Some(_) => kept.times.said(ino, attr.mtime, ctime),
                None => kept.times.said_ctime(ino, ctime),
            }
        }
        Ok(attr)
    }

    /// The kernel has sent all that it had of a file: sees to it that the file has the times that the kernel shows.
    pub(crate) fn set_times(&self, ino: u64, times: &SetAttr) -> Result<()> {
        self.session.set_attr(Ino(ino), times).map(drop).map_err(|e| held(&e))
    }

    /// Makes everything done so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let before = self.unsynced.mark();
        self.session.sync().map_err(|e| errno(&e))?;
        self.unsynced.covered(before);
        Ok(())
    }

    /// Takes setuid and setgid from a file whose content a user who is not root changes (the kernel leaves that to us).
    fn take_privilege(&self, ino: u64, uid: u32) -> Result<()> {
        match without_privilege(&self.attr(ino)?) {
            Some(mode) if uid != 0 => {
                let change = SetAttr { mode: Some(mode), ..SetAttr::default() };
                self.session.set_attr(Ino(ino), &change).map(drop).map_err(|e| held(&e))
            }
            _ => Ok(()),
        }
    }

    /// Reserves, punches or zeroes, by the mode of fallocate(2).
    pub(crate) fn allocate(&self, node: INodeNo, offset: u64, len: u64, mode: i32, uid: u32) -> Result<()> {
        use rustix::fs::FallocateFlags as Flags;
        let ino = self.opened_now(node)?;
        let flags = Flags::from_bits_retain(mode as u32);
        let how = if flags.is_empty() {
            Allocate::Grow
        } else if flags == Flags::KEEP_SIZE {
            Allocate::Keep
        } else if flags == Flags::PUNCH_HOLE | Flags::KEEP_SIZE {
            Allocate::PunchHole
        } else if flags == Flags::ZERO_RANGE || flags == Flags::ZERO_RANGE | Flags::KEEP_SIZE {
            Allocate::ZeroRange { keep_size: flags.contains(Flags::KEEP_SIZE) }
        } else {
            return Err(Errno::EOPNOTSUPP);
        };
        self.session.allocate(Ino(ino), how, offset, len).map_err(|e| held(&e))?;
        self.take_privilege(ino, uid)
    }

    /// `SEEK_DATA` (3) and `SEEK_HOLE` (4); the kernel does the others itself.
    pub(crate) fn seek(&self, ino: u64, offset: i64, whence: i32) -> Result<i64> {
        let what = match whence {
            3 => SeekFor::Data,
            4 => SeekFor::Hole,
            _ => return Err(Errno::EINVAL),
        };
        let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        let found = self.session.seek(Ino(ino), offset, what).map_err(|e| seek(&e))?;
        i64::try_from(found).map_err(|_| Errno::EOVERFLOW)
    }

    /// Copies a range without moving bytes.
    pub(crate) fn copy(&self, from: (INodeNo, u64), to: (INodeNo, u64), len: u64, uid: u32) -> Result<u32> {
        let len = len.min(MAX_COPY);
        let (source, target) = (self.opened_now(from.0)?, self.opened_now(to.0)?);
        let done = self.session.copy_range(Ino(source), from.1, Ino(target), to.1, len).map_err(|e| held(&e))?;
        self.take_privilege(target, uid)?;
        Ok(done.min(MAX_COPY) as u32)
    }

    /// Returns space and inodes.
    pub(crate) fn stat_fs(&self) -> Result<StatFs> {
        self.session.stat_fs().map_err(|e| errno(&e))
    }
}

/// Returns the mode without setuid, and without setgid where it means execution; `None` when that changes nothing.
fn without_privilege(attr: &Attr) -> Option<u32> {
    if attr.kind == FileType::Directory {
        return None;
    }
    let mut mode = attr.mode & !SETUID;
    if mode & GROUP_EXECUTE != 0 {
        mode &= !SETGID;
    }
    (mode != attr.mode).then_some(mode)
}
