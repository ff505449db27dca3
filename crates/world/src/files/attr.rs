//! Attributes: stat, chmod, chown, utimens, truncate, statfs.

use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::txn::Txn;
use mw_meta::Durability;
use mw_model::policy::Action;
use mw_model::{Attr, ErrorKind, FileType, Ino};

/// What is to be set; what is `None` stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// Permission bits.
    pub mode: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The size in bytes.
    pub size: Option<u64>,
    /// The time of the last access.
    pub atime: Option<SetTime>,
    /// The time of the last change of content.
    pub mtime: Option<SetTime>,
    /// The time of the last change of anything; `None`: now. For a kernel that keeps it itself.
    pub ctime: Option<SetTime>,
}

/// A time to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The time of the entry.
    Now,
    /// Nanoseconds since the epoch.
    At(i64),
}

/// Room, as statvfs(3) has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatFs {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes free.
    pub bytes_free: u64,
    /// Inodes in all.
    pub files: u64,
    /// Inodes free.
    pub files_free: u64,
}

/// The largest file, in bytes.
pub(crate) const MAX_SIZE: u64 = i64::MAX as u64;

impl Txn<'_> {
    /// Cuts or grows a file's content; the caller sets the inode.
    pub(crate) fn resize(&mut self, ino: Ino, inode: &mut crate::record::Inode, size: u64) -> Result<()> {
        if size > MAX_SIZE {
            return Err(Error::new(ErrorKind::TooLarge, format!("a file has at most {MAX_SIZE} bytes")));
        }
        if size < inode.size {
            inode.allocated -= self.clear_extents(ino, size, inode.size)?;
        }
        inode.size = size;
        inode.mtime = self.time();
        inode.ctime = self.time();
        inode.content = self.now;
        Ok(())
    }
}

impl Session {
    /// Returns an inode's attributes.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn attr(&self, ino: Ino) -> Result<Attr> {
        self.may_see(ino)?;
        Ok(self.view().inode(ino)?.attr(ino))
    }

    /// Sets attributes.
    ///
    /// # Errors
    /// `NotFound`; `IsDirectory` or `Invalid` for the size of what is not a file; `TooLarge`.
    pub fn set_attr(&self, ino: Ino, change: &SetAttr) -> Result<Attr> {
        let verb = if change.size.is_some() { Verb::Truncate } else { Verb::Attributes };
        let permit = self.may_ino(Action::PutObject, ino)?;
        self.change_with(permit, verb, Durability::Soon, |txn| {
            let mut inode = txn.view.inode(ino)?;
            if let Some(size) = change.size {
                match inode.kind {
                    FileType::File => txn.resize(ino, &mut inode, size)?,
                    FileType::Directory => {
                        return Err(Error::new(ErrorKind::IsDirectory, "a directory has no size to set"));
                    }
                    _ => return Err(Error::invalid("only a file has a size to set")),
                }
            }
            let time = |set: SetTime, now: i64| match set {
                SetTime::Now => now,
                SetTime::At(at) => at,
            };
            if let Some(mode) = change.mode {
                inode.mode = mode & 0o7777;
                txn.chmod_acl(ino, mode)?;
            }
            inode.uid = change.uid.unwrap_or(inode.uid);
            inode.gid = change.gid.unwrap_or(inode.gid);
            inode.atime = change.atime.map_or(inode.atime, |t| time(t, txn.time()));
            inode.mtime = change.mtime.map_or(inode.mtime, |t| time(t, txn.time()));
            inode.ctime = change.ctime.map_or(txn.time(), |t| time(t, txn.time()));
            // A directory whose attributes somebody sets is one that somebody relies on.
            inode.implicit = false;
            txn.put_inode(ino, &inode);
            Ok(inode.attr(ino))
        })
    }

    /// Returns how much room there is.
    ///
    /// # Errors
    /// The store failed.
    pub fn stat_fs(&self) -> Result<StatFs> {
        let usage = self.store.segments.usage();
        let free = usage.free.saturating_add(usage.room.unwrap_or(1 << 40));
        let used = usage.claimed;
        let all =
            StatFs { bytes: used.saturating_add(free), bytes_free: free, files: 1 << 40, files_free: (1 << 40) - 1 };
        let (quota, held) = self.quota()?;
        let (bytes, bytes_free) = match quota.bytes {
            Some(limit) => (limit, limit.saturating_sub(held.bytes).min(free)),
            None => (all.bytes, all.bytes_free),
        };
        let (files, files_free) = match quota.inodes {
            Some(limit) => (limit, limit.saturating_sub(held.inodes)),
            None => (all.files, all.files_free),
        };
        Ok(StatFs { bytes, bytes_free, files, files_free })
    }
}
