//! An object put into the namespace: its directories, its inode, its entry; and an entry taken out again.

use super::find::{Found, find_dir, is_empty_object};
use crate::error::{Error, Result};
use crate::files::split_key;
use crate::object::{Known, known};
use crate::record::{Entry, Inode};
use crate::txn::Txn;
use crate::versioning::Versioning;
use bytes::Bytes;
use mw_model::{ErrorKind, FileType, Ino};
use mw_tree::Value;

/// A file that is about to stand under a key.
pub(crate) struct NewObject {
    /// Its bytes, as records of extents by their offsets; what they leave out is a hole.
    pub extents: Vec<(u64, Value)>,
    pub len: u64,
    /// `content` is filled in when the object is placed.
    pub known: Known,
    /// Attributes that the caller asks for.
    pub asked: Attributes,
    /// Attributes where neither the caller nor a file that is replaced says any.
    pub inherited: Attributes,
}

/// Attributes of a new file; what is none is decided by whoever comes next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub mtime: Option<i64>,
}

/// The permission bits of what S3 made.
const FILE_MODE: u32 = 0o644;
const DIR_MODE: u32 = 0o755;

impl Attributes {
    /// Returns what is said here, or else there.
    fn or(self, other: Self) -> Self {
        Self {
            mode: self.mode.or(other.mode),
            uid: self.uid.or(other.uid),
            gid: self.gid.or(other.gid),
            mtime: self.mtime.or(other.mtime),
        }
    }

    /// Returns who owns a file and what they may do with it.
    pub(crate) fn of(inode: &Inode) -> Self {
        Self { mode: Some(inode.mode), uid: Some(inode.uid), gid: Some(inode.gid), mtime: None }
    }
}

impl Txn<'_> {
    /// Puts a new file under a key: a new inode whose entry takes the place of the old one.
    ///
    /// A file that is replaced hands on its mode and owner, so that a script stays executable; its extended attributes go with
    /// it. Other names of the old inode (hard links) keep it.
    pub(crate) fn place(&mut self, key: &[u8], new: NewObject) -> Result<Found> {
        let (dirs, last) = split_key(key);
        let dir = self.make_dirs(&dirs)?;
        let mut attributes = new.asked;
        if let Some(old) = self.view.entry(dir, &last)? {
            if old.kind == FileType::File {
                attributes = attributes.or(Attributes::of(&self.view.inode(old.ino)?));
            }
            self.remove_entry(dir, &last, old.ino);
            self.unlink_inode(old.ino)?;
        }
        let attributes = attributes.or(new.inherited);
        let (uid, gid) = self.store.options.owner;
        let mut inode = Inode::new(
            FileType::File,
            attributes.mode.unwrap_or(FILE_MODE),
            attributes.uid.unwrap_or(uid),
            attributes.gid.unwrap_or(gid),
            self.now,
        );
        inode.mtime = attributes.mtime.unwrap_or(inode.mtime);
        inode.size = new.len;
        inode.allocated = new.extents.iter().map(|(_, extent)| extent.weight).sum();
        let ino = self.fresh()?;
        self.put_extents(ino, new.extents);
        let unversioned = self.world.versions().versioning == Versioning::Suspended;
        let known = Known { content: inode.content, unversioned, ..new.known };
        self.put_inode(ino, &inode);
        self.put(known::key(ino), known.encode());
        self.put_entry(dir, &last, Entry { ino, kind: FileType::File });
        self.touch_dir(dir)?;
        if last.is_empty() {
            self.make_explicit(dir)?;
        }
        Ok(Found { ino, inode, known })
    }

    /// Returns the directory of the raw names `dirs`; those that are missing are made, and go with their last key.
    pub(crate) fn make_dirs(&mut self, dirs: &[Bytes]) -> Result<Ino> {
        let mut at = Ino::ROOT;
        for raw in dirs {
            at = match self.view.entry(at, raw)? {
                Some(entry) if entry.kind == FileType::Directory => entry.ino,
                Some(_) => return Err(Error::new(ErrorKind::Corrupt, "a directory's name stands for something else")),
                None => self.make_dir(at, raw)?,
            };
        }
        Ok(at)
    }

    fn make_dir(&mut self, parent: Ino, raw: &[u8]) -> Result<Ino> {
        let (uid, gid) = self.store.options.owner;
        let ino = self.fresh()?;
        let mut inode = Inode::new(FileType::Directory, DIR_MODE, uid, gid, self.now);
        inode.implicit = true;
        self.put_inode(ino, &inode);
        self.put_entry(parent, raw, Entry { ino, kind: FileType::Directory });
        let mut above = self.view.inode(parent)?;
        above.nlink += 1;
        above.mtime = self.time();
        above.ctime = self.time();
        self.put_inode(parent, &above);
        Ok(ino)
    }

    /// Takes the object under a key out of the namespace, and the implicit directories that it alone kept. Returns whether there
    /// was one.
    ///
    /// `d/` is the marker of `d`, which is implicit from then on; where an explicit `d` is empty it is the directory itself.
    pub(crate) fn take_out(&mut self, key: &[u8]) -> Result<bool> {
        let (dirs, last) = split_key(key);
        let Some(dir) = find_dir(&self.view, &dirs)? else { return Ok(false) };
        match self.view.entry(dir, &last)? {
            Some(entry) if matches!(entry.kind, FileType::File | FileType::Symlink) => {
                self.remove_entry(dir, &last, entry.ino);
                self.unlink_inode(entry.ino)?;
                self.touch_dir(dir)?;
            }
            None if last.is_empty() && dir != Ino::ROOT && is_empty_object(&self.view, dir)? => {}
            _ => return Ok(false),
        }
        if last.is_empty() && dir != Ino::ROOT {
            let mut inode = self.view.inode(dir)?;
            inode.implicit = true;
            self.put_inode(dir, &inode);
        }
        self.prune_implicit(dir)?;
        Ok(true)
    }
}
