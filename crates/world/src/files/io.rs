//! Bytes of files: read, write, holes, copies.

use super::attr::MAX_SIZE;
use crate::content::RIDE;
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::record::{self, Inode, Kind};
use crate::session::Session;
use crate::txn::Txn;
use crate::world::Staging;
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;
use mw_model::{Attr, ErrorKind, FileType, Ino};

/// Where a write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAt {
    /// At an offset.
    Offset(u64),
    /// At the end of the file, decided by the store with no change in between (`O_APPEND`).
    End,
}

/// What a write did.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// Where it went.
    pub offset: u64,
    /// The attributes after it.
    pub attr: Attr,
}

/// What fallocate(2) is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocate {
    /// Reserve without growing (`KEEP_SIZE`): there is nothing to reserve here, so nothing happens.
    Keep,
    /// Grow to hold the range.
    Grow,
    /// Make a hole.
    PunchHole,
    /// Make zeros.
    ZeroRange {
        /// Do not grow.
        keep_size: bool,
    },
}

/// What lseek(2) looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekFor {
    /// `SEEK_DATA`.
    Data,
    /// `SEEK_HOLE`.
    Hole,
}

/// A world that has more entries than this since its last fsync is not one that is synced often.
const OFTEN: u64 = 256;
/// Less than this rides even so, in bytes: it is hardly more than the header and the place of a blob.
const REWRITE: usize = 512;

/// The attribute that gives a program rights beyond its caller's.
const CAPABILITY: &[u8] = b"security.capability";

impl Txn<'_> {
    pub(crate) fn need_file(&self, ino: Ino) -> Result<Inode> {
        let inode = self.view.inode(ino)?;
        match inode.kind {
            FileType::File => Ok(inode),
            FileType::Directory => Err(Error::new(ErrorKind::IsDirectory, format!("inode {ino} is a directory"))),
            _ => Err(Error::invalid(format!("inode {ino} is not a regular file"))),
        }
    }

    /// Records a change of content. A capability of the file's goes with it, whoever writes (capabilities(7)).
    fn changed(&mut self, ino: Ino, inode: &mut Inode) -> Result<()> {
        let capability = record::key(ino, Kind::Xattr, CAPABILITY);
        if self.view.get(&capability)?.is_some() {
            self.remove(capability);
        }
        inode.mtime = self.time();
        inode.ctime = self.time();
        inode.content = self.now;
        self.put_inode(ino, inode);
        Ok(())
    }
}

fn end_of(offset: u64, len: u64) -> Result<u64> {
    offset
        .checked_add(len)
        .filter(|end| *end <= MAX_SIZE)
        .ok_or_else(|| Error::new(ErrorKind::TooLarge, format!("a file has at most {MAX_SIZE} bytes")))
}

impl Session {
    /// Reads `len` bytes at `offset`; fewer only at the end of the file. Holes are zeros.
    ///
    /// # Errors
    /// `NotFound`; `IsDirectory`; `Corrupt` when stored bytes do not verify.
    pub fn read(&self, ino: Ino, offset: u64, len: usize) -> Result<Bytes> {
        self.may_ino(Action::GetObject, ino)?;
        let view = self.view();
        let inode = view.inode(ino)?;
        if inode.kind == FileType::Directory {
            return Err(Error::new(ErrorKind::IsDirectory, format!("inode {ino} is a directory")));
        }
        let end = offset.saturating_add(len as u64).min(inode.size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let extents = view.extents(ino, offset, end)?;
        self.store.content.assemble_once(&extents, offset, end)
    }

    /// Returns the target of a symbolic link, byte for byte.
    ///
    /// # Errors
    /// `Invalid` for what is not one.
    pub fn read_link(&self, ino: Ino) -> Result<Bytes> {
        self.may_ino(Action::GetObject, ino)?;
        let inode = self.view().inode(ino)?;
        if inode.kind != FileType::Symlink {
            return Err(Error::invalid(format!("inode {ino} is not a symbolic link")));
        }
        self.read(ino, 0, inode.size as usize)
    }

    /// Writes; handed to the operating system on return, durable with the next [`Session::sync`] or within a second.
    ///
    /// # Errors
    /// `NotFound`; `IsDirectory`; `TooLarge`; `NoSpace`, before anything of the file is changed.
    pub fn write(&self, ino: Ino, at: WriteAt, data: &[u8]) -> Result<Written> {
        self.need_now()?;
        let permit = self.may_ino(Action::PutObject, ino)?;
        // Large content is in segments before the world is locked: a slow disk holds up nobody else.
        let _staging = Staging::begin(&self.world);
        let pieces = self.store.content.cut(self.world.owner, 0, data, self.rides(ino, at, data.len())?)?;
        let pieces = record::rows(&pieces);
        self.change_with(permit, Verb::Write, Durability::Soon, |txn| {
            let mut inode = txn.need_file(ino)?;
            let offset = match at {
                WriteAt::Offset(offset) => offset,
                WriteAt::End => inode.size,
            };
            let end = end_of(offset, data.len() as u64)?;
            if data.is_empty() {
                return Ok(Written { offset, attr: inode.attr(ino) });
            }
            inode.allocated -= txn.clear_extents(ino, offset, end.min(inode.size.max(offset)))?;
            txn.put_extents(ino, pieces.into_iter().map(|(from, record)| (offset + from, record)).collect());
            inode.allocated += data.len() as u64;
            inode.size = inode.size.max(end);
            txn.changed(ino, &mut inode)?;
            Ok(Written { offset, attr: inode.attr(ino) })
        })
    }

    /// Returns whether the content of a write rides in its entry.
    ///
    /// That saves an fsync which follows soon a sync of segments, and a fold joins what was appended in small writes. Neither holds for
    /// a file that is rewritten here and there with no fsync in sight: there it would only be moved twice more.
    fn rides(&self, ino: Ino, at: WriteAt, len: usize) -> Result<bool> {
        match at {
            WriteAt::Offset(offset) if (REWRITE..=RIDE).contains(&len) && self.world.head.lock().unsynced() > OFTEN => {
                Ok(self.view().find_inode(ino)?.is_none_or(|inode| offset >= inode.size))
            }
            _ => Ok(len <= RIDE),
        }
    }

    /// Reserves, punches or zeroes a range (fallocate(2)).
    ///
    /// # Errors
    /// `NotFound`; `IsDirectory`; `Invalid` for an empty range; `TooLarge`.
    pub fn allocate(&self, ino: Ino, how: Allocate, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Err(Error::invalid("the range is empty"));
        }
        let end = end_of(offset, len)?;
        let permit = self.may_ino(Action::PutObject, ino)?;
        self.change_with(permit, Verb::Write, Durability::Soon, |txn| {
            let mut inode = txn.need_file(ino)?;
            let grow = matches!(how, Allocate::Grow | Allocate::ZeroRange { keep_size: false }) && end > inode.size;
            match how {
                Allocate::Keep => return Ok(()),
                Allocate::Grow if !grow => return Ok(()),
                Allocate::Grow => {}
                Allocate::PunchHole | Allocate::ZeroRange { .. } => {
                    inode.allocated -= txn.clear_extents(ino, offset, end)?;
                }
            }
            if grow {
                inode.size = end;
            }
            txn.changed(ino, &mut inode)?;
            Ok(())
        })
    }

    /// Returns the next offset at or after `offset` where there is data, or a hole; the end of the file is a hole.
    ///
    /// # Errors
    /// `NotFound` when there is none (ENXIO).
    pub fn seek(&self, ino: Ino, offset: u64, what: SeekFor) -> Result<u64> {
        self.may_ino(Action::GetObject, ino)?;
        let view = self.view();
        let inode = view.inode(ino)?;
        if offset >= inode.size {
            return Err(Error::not_found("the offset is past the end of the file"));
        }
        let mut at = offset;
        for (start, extent) in view.runs(ino, offset, inode.size)? {
            match what {
                SeekFor::Data => return Ok(at.max(start)),
                SeekFor::Hole if start > at => return Ok(at),
                SeekFor::Hole => at = start + u64::from(extent.len),
            }
        }
        match what {
            SeekFor::Data => Err(Error::not_found("there is no data after the offset")),
            SeekFor::Hole => Ok(at.min(inode.size)),
        }
    }

    /// Copies a range between files of this world by sharing their extents: no byte is moved. Returns the length copied.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when ranges of one file overlap.
    pub fn copy_range(&self, from: Ino, from_offset: u64, to: Ino, to_offset: u64, len: u64) -> Result<u64> {
        self.may_ino(Action::GetObject, from)?;
        let permit = self.may_ino(Action::PutObject, to)?;
        self.change_with(permit, Verb::Copy, Durability::Soon, |txn| {
            let source = txn.need_file(from)?;
            let mut target = txn.need_file(to)?;
            let len = len.min(source.size.saturating_sub(from_offset));
            let end = end_of(to_offset, len)?;
            if len == 0 {
                return Ok(0);
            }
            if from == to && from_offset < end && to_offset < from_offset + len {
                return Err(Error::invalid("the ranges overlap"));
            }
            let mut shared = txn.view.runs(from, from_offset, from_offset + len)?;
            target.allocated -= txn.clear_extents(to, to_offset, end)?;
            for (at, extent) in &mut shared {
                *at = to_offset + (*at - from_offset);
                target.allocated += u64::from(extent.len);
            }
            txn.put_extents(to, record::rows(&shared));
            target.size = target.size.max(end);
            txn.changed(to, &mut target)?;
            Ok(len)
        })
    }
}
