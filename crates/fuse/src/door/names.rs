//! Verbs on names: look up, make, link, remove, rename.

use super::{Door, Result};
use crate::errors::{errno, held};
use bytes::Bytes;
use fuser::{Errno, RenameFlags};
use mw_model::{Attr, FileType, Ino};
use mw_world::{Make, RenameFlag};
use rustix::fs::OFlags;

/// Something new with a name.
pub(crate) struct New {
    pub(crate) parent: u64,
    pub(crate) name: Bytes,
    pub(crate) kind: FileType,
    /// Permission bits, before the umask.
    pub(crate) mode: u32,
    pub(crate) umask: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    pub(crate) target: Bytes,
}

const SETGID: u32 = 0o2000;

impl Door {
    /// Makes something. In a directory with the setgid bit it takes the directory's group, and a directory the bit too
    /// (Linux, mkdir(2) and open(2)).
    pub(crate) fn make(&self, new: New) -> Result<Attr> {
        let (parent, umask, name) = (Ino(new.parent), new.umask, new.name.clone());
        self.session.make_masked(parent, &name, &self.made_in(new)?, umask).map_err(|e| errno(&e))
    }

    /// Makes a file without a name and opens it (`O_TMPFILE`); a link gives it one.
    pub(crate) fn make_unnamed(&self, new: New, flags: i32) -> Result<Attr> {
        let (parent, umask) = (Ino(new.parent), new.umask);
        let made = self.session.make_unnamed_in(parent, &self.made_in(new)?, umask).map_err(|e| errno(&e))?;
        self.opens.add(made.ino.0, self.is_writing(flags));
        Ok(made)
    }

    fn made_in(&self, new: New) -> Result<Make> {
        let parent = self.attr(new.parent)?;
        let mut make = Make {
            kind: new.kind,
            mode: new.mode & 0o7777,
            uid: self.owners.user(new.uid),
            gid: self.owners.group(new.gid),
            rdev: new.rdev,
            target: new.target,
        };
        if parent.mode & SETGID != 0 {
            make.gid = parent.gid;
            if make.kind == FileType::Directory {
                make.mode |= SETGID;
            }
        }
        Ok(make)
    }

    /// Makes a file and opens it; the mode is for later opens, not for this one (POSIX open).
    ///
    /// When the name exists the kernel's memory of it is old: with `O_EXCL` that is the answer, otherwise ESTALE makes the
    /// kernel look again and check the permissions of what it finds.
    pub(crate) fn create(&self, new: New, flags: i32) -> Result<Attr> {
        let exclusive = OFlags::from_bits_retain(flags as u32).contains(OFlags::EXCL);
        let made = self.make(new).map_err(|e| if e == Errno::EEXIST && !exclusive { Errno::ESTALE } else { e })?;
        self.open(made.ino.0, flags)?;
        Ok(made)
    }

    /// Opens a file. `O_TRUNC` comes as a change of the size, after it.
    pub(crate) fn open(&self, ino: u64, flags: i32) -> Result<()> {
        self.session.open(Ino(ino)).map_err(|e| held(&e))?;
        self.opens.add(ino, self.is_writing(flags));
        self.fill(ino, OFlags::from_bits_retain(flags as u32));
        Ok(())
    }

    /// Ends one open.
    pub(crate) fn close(&self, ino: u64, flags: i32) {
        let begun = self.gate.begun(ino);
        if self.opens.remove(ino, self.is_writing(flags)) {
            self.session.release(Ino(ino));
        }
        if let Some(begun) = begun
            && !self.opens.has(ino)
        {
            self.gate.closed(ino, begun);
        }
    }

    /// Gives an inode another name.
    pub(crate) fn link(&self, ino: u64, parent: u64, name: &[u8]) -> Result<Attr> {
        self.session.link(Ino(ino), Ino(parent), name).map_err(|e| errno(&e))
    }

    /// Removes a name of anything but a directory.
    pub(crate) fn unlink(&self, parent: u64, name: &[u8]) -> Result<()> {
        self.session.unlink(Ino(parent), name).map_err(|e| errno(&e))
    }

    /// Removes an empty directory.
    pub(crate) fn rmdir(&self, parent: u64, name: &[u8]) -> Result<()> {
        self.session.rmdir(Ino(parent), name).map_err(|e| errno(&e))
    }

    /// Renames. Flags that are not understood are refused before anything changes (renameat2(2)).
    pub(crate) fn rename(&self, from: (u64, &[u8]), to: (u64, &[u8]), flags: RenameFlags) -> Result<()> {
        let flag = match flags {
            f if f.is_empty() => RenameFlag::Replace,
            RenameFlags::RENAME_NOREPLACE => RenameFlag::NoReplace,
            RenameFlags::RENAME_EXCHANGE => RenameFlag::Exchange,
            _ => return Err(Errno::EINVAL),
        };
        self.session.rename(Ino(from.0), from.1, Ino(to.0), to.1, flag).map_err(|e| errno(&e))
    }

    /// Returns where a symbolic link points.
    pub(crate) fn read_link(&self, ino: u64) -> Result<Bytes> {
        self.session.read_link(Ino(ino)).map_err(|e| held(&e))
    }
}
