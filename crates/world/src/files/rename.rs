//! Renaming, as renameat2(2) has it.

use super::make::{raw_name, subdirs};
use super::path::{find, missing, need_name};
use crate::allowed::Permit;
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::record::Entry;
use crate::session::Session;
use crate::txn::Txn;
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;
use mw_model::{ErrorKind, FileType, Ino};

/// What a rename does with a target that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameFlag {
    /// It is replaced.
    Replace,
    /// The rename is refused (`RENAME_NOREPLACE`).
    NoReplace,
    /// The two swap places (`RENAME_EXCHANGE`).
    Exchange,
}

/// One side of a rename.
struct Place {
    parent: Ino,
    raw: Bytes,
    entry: Entry,
}

impl Session {
    /// Renames.
    ///
    /// # Errors
    /// `NotFound`; `AlreadyExists`; `NotEmpty`; `IsDirectory`; `NotDirectory`; `Invalid` for a directory moved into itself.
    pub fn rename(&self, parent: Ino, name: &[u8], new_parent: Ino, new_name: &[u8], flag: RenameFlag) -> Result<()> {
        need_name(new_name)?;
        let permit = self.may_rename(parent, name, new_parent, new_name, flag)?;
        self.change_with(permit, Verb::Rename, Durability::Soon, |txn| {
            let (raw, entry) = find(&txn.view, parent, name)?.ok_or_else(|| missing(name))?;
            let from = Place { parent, raw, entry };
            txn.need_live_dir(new_parent)?;
            let target = find(&txn.view, new_parent, new_name)?;
            txn.path = Some(Bytes::copy_from_slice(new_name));
            txn.note = String::from_utf8_lossy(name).into_owned();
            if flag == RenameFlag::Replace {
                // In the order in which Linux refuses (do_renameat2): before it looks at types.
                txn.need_apart(&from, new_parent, target.as_ref().map(|(_, entry)| entry))?;
            }
            match (flag, target) {
                (RenameFlag::Exchange, None) => Err(missing(new_name)),
                (RenameFlag::Exchange, Some((raw, entry))) => {
                    txn.exchange(&from, name, &Place { parent: new_parent, raw, entry }, new_name)
                }
                (RenameFlag::NoReplace, Some(_)) => Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("{:?} already exists", String::from_utf8_lossy(new_name)),
                )),
                (_, target) => txn.move_over(&from, new_parent, new_name, target),
            }
        })
    }
}

impl Session {
    /// A directory takes with it what no single key says, so that all of the world is asked about.
    fn may_rename(&self, parent: Ino, name: &[u8], to: Ino, new_name: &[u8], flag: RenameFlag) -> Result<Permit> {
        self.may_entry(Action::GetObject, parent, name)?;
        self.may_entry(Action::DeleteObject, parent, name)?;
        let permit = self.may_entry(Action::PutObject, to, new_name)?;
        if self.is_limited() {
            let found = find(&self.view(), parent, name)?;
            if flag == RenameFlag::Exchange || found.is_some_and(|(_, entry)| entry.kind == FileType::Directory) {
                self.need_writable()?;
            }
        }
        Ok(permit)
    }
}

impl Txn<'_> {
    fn move_over(&mut self, from: &Place, to: Ino, name: &[u8], target: Option<(Bytes, Entry)>) -> Result<()> {
        let (ino, kind) = (from.entry.ino, from.entry.kind);
        let mut dirs_gone = 0;
        if let Some((raw, old)) = target {
            if old.ino == ino {
                return Ok(()); // POSIX rename: two names of one inode; nothing happens.
            }
            match (kind == FileType::Directory, old.kind == FileType::Directory) {
                (true, false) => return Err(Error::new(ErrorKind::NotDirectory, "the target is not a directory")),
                (false, true) => return Err(Error::new(ErrorKind::IsDirectory, "the target is a directory")),
                (true, true) => {
                    self.remove_dir(to, &raw, old.ino)?;
                    dirs_gone = 1;
                }
                (false, false) => {
                    self.remove_entry(to, &raw, old.ino);
                    self.unlink_inode(old.ino)?;
                }
            }
        }
        if kind == FileType::Directory {
            self.need_not_within(to, ino)?;
        }
        self.remove_entry(from.parent, &from.raw, ino);
        self.put_entry(to, &raw_name(name, kind), from.entry);
        self.touch_inode(ino)?;
        let moved = subdirs(kind);
        if from.parent == to {
            self.touch_used_dir(to, -dirs_gone)
        } else {
            self.touch_used_dir(from.parent, -moved)?;
            self.touch_used_dir(to, moved - dirs_gone)
        }
    }

    fn exchange(&mut self, a: &Place, a_name: &[u8], b: &Place, b_name: &[u8]) -> Result<()> {
        if a.entry.ino == b.entry.ino {
            return Ok(());
        }
        for (dir, into) in [(&a.entry, b.parent), (&b.entry, a.parent)] {
            if dir.kind == FileType::Directory {
                self.need_not_within(into, dir.ino)?;
            }
        }
        let (a_raw, b_raw) = (raw_name(b_name, a.entry.kind), raw_name(a_name, b.entry.kind));
        if a.entry.kind != b.entry.kind {
            // A hidden object may stand where one of the two would go; it must not be lost.
            for (parent, raw, own) in [(b.parent, &a_raw, &b.raw), (a.parent, &b_raw, &a.raw)] {
                if raw != own && self.view.entry(parent, raw)?.is_some() {
                    return Err(Error::new(
                        ErrorKind::AlreadyExists,
                        "an object of the same name stands behind the directory",
                    ));
                }
            }
        }
        self.remove_entry(a.parent, &a.raw, a.entry.ino);
        self.remove_entry(b.parent, &b.raw, b.entry.ino);
        self.put_entry(b.parent, &a_raw, a.entry);
        self.put_entry(a.parent, &b_raw, b.entry);
        self.touch_inode(a.entry.ino)?;
        self.touch_inode(b.entry.ino)?;
        let moved = subdirs(a.entry.kind) - subdirs(b.entry.kind);
        if a.parent == b.parent {
            return self.touch_used_dir(a.parent, 0);
        }
        self.touch_used_dir(a.parent, -moved)?;
        self.touch_used_dir(b.parent, moved)
    }

    /// Refuses a source above its target's place, and a target above its source's.
    fn need_apart(&self, from: &Place, to: Ino, target: Option<&Entry>) -> Result<()> {
        if from.entry.kind == FileType::Directory {
            self.need_not_within(to, from.entry.ino)?;
        }
        match target {
            Some(old) if old.kind == FileType::Directory => self
                .need_not_within(from.parent, old.ino)
                .map_err(|_| Error::new(ErrorKind::NotEmpty, "the target holds what is to be renamed")),
            _ => Ok(()),
        }
    }

    fn touch_inode(&mut self, ino: Ino) -> Result<()> {
        let mut inode = self.view.inode(ino)?;
        inode.ctime = self.time();
        self.put_inode(ino, &inode);
        Ok(())
    }

    /// Refuses to move a directory into itself or below.
    fn need_not_within(&self, mut at: Ino, dir: Ino) -> Result<()> {
        while at != Ino::ROOT {
            if at == dir {
                return Err(Error::invalid("a directory cannot be moved into itself"));
            }
            match self.parent_of(at)? {
                Some((parent, _)) => at = parent,
                None => break,
            }
        }
        Ok(())
    }
}
