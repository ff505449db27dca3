//! Making: files, directories, links, special files.

use super::path::{find, need_name};
use crate::content::Content;
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::record::{self, Entry, Extent, Inode};
use crate::session::Session;
use crate::txn::Txn;
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::name::MAX_TARGET;
use mw_model::policy::Action;
use mw_model::{Attr, ErrorKind, FileType, Ino};

/// What is to be made.
#[derive(Debug, Clone)]
pub struct Make {
    /// The type.
    pub kind: FileType,
    /// Permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The device number of a device file.
    pub rdev: u32,
    /// The target of a symbolic link, 1 to 4,095 bytes.
    pub target: Bytes,
}

/// The most names that one inode may have (as ext4 has it).
const MAX_LINKS: u32 = 65_000;

impl Txn<'_> {
    /// Makes an inode without a name.
    pub(crate) fn make_inode(&mut self, make: &Make) -> Result<(Ino, Inode)> {
        let ino = self.fresh()?;
        let mut inode = Inode::new(make.kind, make.mode, make.uid, make.gid, self.now);
        inode.rdev = make.rdev;
        if make.kind == FileType::Symlink {
            if make.target.is_empty() || make.target.len() > MAX_TARGET {
                return Err(Error::new(ErrorKind::NameTooLong, format!("a link's target has 1 to {MAX_TARGET} bytes")));
            }
            inode.size = make.target.len() as u64;
            inode.allocated = inode.size;
            self.put_extents(ino, vec![(0, Extent::whole(Content::ride(&make.target)).encode())]);
        }
        Ok((ino, inode))
    }

    /// Moves the times of a directory that a mount changes; it is explicit from then on.
    pub(crate) fn touch_used_dir(&mut self, dir: Ino, links: i32) -> Result<()> {
        let mut inode = self.need_dir(dir)?;
        inode.mtime = self.time();
        inode.ctime = self.time();
        inode.implicit = false;
        inode.nlink = inode.nlink.saturating_add_signed(links);
        self.put_inode(dir, &inode);
        Ok(())
    }

    /// Refuses a directory in which nothing can be made: not one, or removed while open.
    pub(crate) fn need_live_dir(&self, dir: Ino) -> Result<()> {
        if self.need_dir(dir)?.nlink == 0 {
            return Err(Error::not_found(format!("directory {dir} was removed")));
        }
        Ok(())
    }
}

pub(crate) fn subdirs(kind: FileType) -> i32 {
    i32::from(kind == FileType::Directory)
}

pub(crate) fn raw_name(name: &[u8], kind: FileType) -> Bytes {
    let mut raw = name.to_vec();
    if kind == FileType::Directory {
        raw.push(b'/');
    }
    raw.into()
}

fn exists(name: &[u8]) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("{:?} already exists", String::from_utf8_lossy(name)))
}

impl Session {
    /// Makes a file, directory, link or special file (`open(O_CREAT|O_EXCL)`, `mkdir`, `symlink`, `mknod`).
    ///
    /// # Errors
    /// `AlreadyExists`; `NotFound` when the directory was removed; `NameTooLong`.
    pub fn make(&self, parent: Ino, name: &[u8], make: &Make) -> Result<Attr> {
        self.make_masked(parent, name, make, 0)
    }

    /// Makes as [`Session::make`] does, for a program with a umask: it bounds the mode unless the directory's default access
    /// control list does.
    ///
    /// # Errors
    /// Those of [`Session::make`].
    pub fn make_masked(&self, parent: Ino, name: &[u8], make: &Make, umask: u32) -> Result<Attr> {
        need_name(name)?;
        let permit = self.may_entry(Action::PutObject, parent, &raw_name(name, make.kind))?;
        self.change_with(permit, Verb::Create, Durability::Soon, |txn| {
            txn.need_live_dir(parent)?;
            if find(&txn.view, parent, name)?.is_some() {
                return Err(exists(name));
            }
            let (ino, mut inode) = txn.make_inode(make)?;
            inode.mode = txn.inherit_acl(parent, ino, &inode, umask)?;
            txn.put_inode(ino, &inode);
            txn.put_entry(parent, &raw_name(name, make.kind), Entry { ino, kind: make.kind });
            txn.touch_used_dir(parent, subdirs(make.kind))?;
            txn.path = Some(Bytes::copy_from_slice(name));
            Ok(inode.attr(ino))
        })
    }

    /// Makes a file without a name; the caller has it open and releases it.
    ///
    /// # Errors
    /// `ReadOnly`, `Denied`.
    pub fn make_unnamed(&self, make: &Make) -> Result<Attr> {
        self.unnamed(make, |_, _, inode| Ok(inode.mode))
    }

    /// Makes a file without a name that belongs to a directory (`O_TMPFILE`) as [`Session::make_masked`] does one with a name;
    /// the caller has it open and releases it.
    ///
    /// # Errors
    /// `ReadOnly`, `Denied`; `NotFound` when the directory was removed.
    pub fn make_unnamed_in(&self, parent: Ino, make: &Make, umask: u32) -> Result<Attr> {
        self.unnamed(make, |txn, ino, inode| {
            txn.need_live_dir(parent)?;
            txn.inherit_acl(parent, ino, inode, umask)
        })
    }

    fn unnamed(&self, make: &Make, mode: impl FnOnce(&mut Txn<'_>, Ino, &Inode) -> Result<u32>) -> Result<Attr> {
        self.change(Verb::Create, Durability::Soon, |txn| {
            let (ino, mut inode) = txn.make_inode(make)?;
            inode.mode = mode(txn, ino, &inode)?;
            inode.nlink = 0;
            txn.put_inode(ino, &inode);
            txn.put(record::orphan_key(ino), record::plain(vec![1]));
            *txn.world.opens.lock().entry(ino).or_default() += 1;
            Ok(inode.attr(ino))
        })
    }

    /// Gives an inode another name (`link`).
    ///
    /// # Errors
    /// `AlreadyExists`; `Denied` for a directory; `TooLarge` when it has 65,000 names.
    pub fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        need_name(name)?;
        self.may_ino(Action::GetObject, ino)?;
        let permit =
            self.may_ino(Action::PutObject, ino).and_then(|_| self.may_entry(Action::PutObject, parent, name))?;
        self.change_with(permit, Verb::Link, Durability::Soon, |txn| {
            txn.need_live_dir(parent)?;
            let mut inode = txn.view.inode(ino)?;
            if find(&txn.view, parent, name)?.is_some() {
                return Err(exists(name));
            }
            if inode.kind == FileType::Directory {
                return Err(Error::new(ErrorKind::Denied, "a directory cannot have a second name"));
            }
            if inode.nlink >= MAX_LINKS {
                return Err(Error::new(ErrorKind::TooLarge, format!("inode {ino} already has {MAX_LINKS} names")));
            }
            if inode.nlink == 0 {
                txn.remove(record::orphan_key(ino));
            }
            inode.nlink += 1;
            inode.ctime = txn.time();
            txn.put_inode(ino, &inode);
            txn.put_entry(parent, name, Entry { ino, kind: inode.kind });
            txn.touch_used_dir(parent, 0)?;
            txn.path = Some(Bytes::copy_from_slice(name));
            Ok(inode.attr(ino))
        })
    }
}
