//! Removing: names of files, and directories.

use super::path::{find, missing};
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::txn::Txn;
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;
use mw_model::{ErrorKind, FileType, Ino};

impl Txn<'_> {
    /// Refuses a directory that holds more than its own marker object.
    pub(crate) fn need_empty_dir(&self, dir: Ino) -> Result<()> {
        for item in self.view.entries(dir, &[]) {
            let (name, _) = item?;
            if !name.is_empty() {
                return Err(Error::new(
                    ErrorKind::NotEmpty,
                    "the directory is not empty; names that only S3 can hold are shown by `mw ls --hidden`",
                ));
            }
        }
        Ok(())
    }

    /// Removes an empty directory's entry, its marker and its inode.
    pub(crate) fn remove_dir(&mut self, parent: Ino, raw: &[u8], dir: Ino) -> Result<()> {
        self.need_empty_dir(dir)?;
        if let Some(marker) = self.view.entry(dir, &[])? {
            self.remove_entry(dir, &[], marker.ino);
            self.unlink_inode(marker.ino)?;
        }
        self.remove_entry(parent, raw, dir);
        self.unlink_inode(dir)
    }
}

impl Session {
    /// Removes a name that is not a directory's (`unlink`).
    ///
    /// # Errors
    /// `NotFound`; `IsDirectory`.
    pub fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        let permit = self.may_entry(Action::DeleteObject, parent, name)?;
        self.change_with(permit, Verb::Unlink, Durability::Soon, |txn| {
            let (raw, entry) = find(&txn.view, parent, name)?.ok_or_else(|| missing(name))?;
            if entry.kind == FileType::Directory {
                return Err(Error::new(
                    ErrorKind::IsDirectory,
                    format!("{:?} is a directory", String::from_utf8_lossy(name)),
                ));
            }
            txn.remove_entry(parent, &raw, entry.ino);
            txn.unlink_inode(entry.ino)?;
            txn.path = Some(Bytes::copy_from_slice(name));
            txn.touch_used_dir(parent, 0)
        })
    }

    /// Removes an empty directory (`rmdir`). Its own marker object does not count; other names that a mount cannot show do.
    ///
    /// # Errors
    /// `NotFound`; `NotDirectory`; `NotEmpty`.
    pub fn rmdir(&self, parent: Ino, name: &[u8]) -> Result<()> {
        let permit = self.may_entry(Action::DeleteObject, parent, name)?;
        self.change_with(permit, Verb::Unlink, Durability::Soon, |txn| {
            let (raw, entry) = find(&txn.view, parent, name)?.ok_or_else(|| missing(name))?;
            if entry.kind != FileType::Directory {
                return Err(Error::new(
                    ErrorKind::NotDirectory,
                    format!("{:?} is not a directory", String::from_utf8_lossy(name)),
                ));
            }
            txn.remove_dir(parent, &raw, entry.ino)?;
            txn.path = Some(raw);
            txn.touch_used_dir(parent, -1)
        })
    }
}
