//! Procedures that change names: create, make, remove, rename, link. NFS has them durable when they return.

use super::{Door, MAX_TARGET, Outcome, Place};
use crate::access::WRITE;
use crate::attributes;
use crate::handle;
use crate::status::Status;
use crate::xdr::{Garbage, Reader, Result, Writer};
use bytes::Bytes;
use mw_model::{Attr, FileType};
use mw_world::{Make, RenameFlag, SetAttr, SetTime};

/// How a file is created.
enum How {
    /// One that is there is taken as it is.
    Unchecked(SetAttr),
    /// One that is there is refused.
    Guarded(SetAttr),
    /// One that is there is refused unless the same call made it.
    Exclusive([u8; 8]),
}

/// Seconds as nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// The verifier of an exclusive create is kept in the times, which the client sets next.
fn verifier(eight: [u8; 8]) -> SetAttr {
    let number = u64::from_be_bytes(eight);
    let time = |n: u64| Some(SetTime::At(i64::from(n as u32) * SECOND));
    SetAttr { atime: time(number >> 32), mtime: time(number), ..SetAttr::default() }
}

fn holds(attr: &Attr, set: &SetAttr) -> bool {
    set.atime == Some(SetTime::At(attr.atime)) && set.mtime == Some(SetTime::At(attr.mtime))
}

impl Door<'_> {
    pub(super) fn create(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let place = Place::read(r)?;
        let how = match r.u32()? {
            0 => How::Unchecked(attributes::read(r)?),
            1 => How::Guarded(attributes::read(r)?),
            2 => How::Exclusive(r.eight()?),
            _ => return Err(Garbage),
        };
        self.made(w, &place, |dir| {
            let set = match &how {
                How::Unchecked(set) | How::Guarded(set) => *set,
                How::Exclusive(eight) => verifier(*eight),
            };
            match self.make(dir, &place.name, FileType::File, 0, Bytes::new(), set) {
                Err(Status::Exists) => {}
                other => return other,
            }
            let there = self.shared.session.lookup(dir.ino, &place.name)?;
            match how {
                How::Unchecked(set) => {
                    if let (Some(size), FileType::File) = (set.size, there.kind) {
                        self.caller.need_content(&there, WRITE)?;
                        let cut = SetAttr { size: Some(size), ..SetAttr::default() };
                        return Ok(self.shared.session.set_attr(there.ino, &cut)?);
                    }
                    Ok(there)
                }
                How::Exclusive(_) if holds(&there, &set) => Ok(there),
                How::Guarded(_) | How::Exclusive(_) => Err(Status::Exists),
            }
        });
        Ok(())
    }

    pub(super) fn make_directory(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (place, set) = (Place::read(r)?, attributes::read(r)?);
        self.made(w, &place, |dir| self.make(dir, &place.name, FileType::Directory, 0, Bytes::new(), set));
        Ok(())
    }

    pub(super) fn make_link(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (place, set, target) = (Place::read(r)?, attributes::read(r)?, r.opaque(MAX_TARGET)?);
        self.made(w, &place, |dir| self.make(dir, &place.name, FileType::Symlink, 0, target, set));
        Ok(())
    }

    pub(super) fn make_node(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (place, number) = (Place::read(r)?, r.u32()?);
        let kind = match number {
            3 => FileType::BlockDevice,
            4 => FileType::CharDevice,
            6 => FileType::Socket,
            7 => FileType::Fifo,
            _ => {
                self.made(w, &place, |_| Err(Status::BadType));
                return Ok(());
            }
        };
        let set = attributes::read(r)?;
        let device = matches!(kind, FileType::BlockDevice | FileType::CharDevice);
        let rdev = if device {
            let (major, minor) = (r.u32()?, r.u32()?);
            minor & 0xFF | (major & 0xFFF) << 8 | (minor & 0xF_FF00) << 12
        } else {
            0
        };
        self.made(w, &place, |dir| {
            if device && !self.caller.is_root() {
                return Err(Status::Permission);
            }
            self.make(dir, &place.name, kind, rdev, Bytes::new(), set)
        });
        Ok(())
    }

    fn make(&self, dir: &Attr, name: &[u8], kind: FileType, rdev: u32, target: Bytes, set: SetAttr) -> Outcome<Attr> {
        let (caller, session) = (self.caller, &self.shared.session);
        let inherits = dir.mode & 0o2000 != 0;
        let given = |wanted: Option<u32>, own: u32| if caller.is_root() { wanted.unwrap_or(own) } else { own };
        let gid = if inherits { dir.gid } else { given(set.gid, caller.gid) };
        let mut mode = set.mode.unwrap_or(match kind {
            FileType::Directory => 0o755,
            FileType::Symlink => 0o777,
            _ => 0o644,
        });
        if inherits && kind == FileType::Directory {
            mode |= 0o2000;
        }
        let make = Make { kind, mode, uid: given(set.uid, caller.uid), gid, rdev, target };
        let made = session.make(dir.ino, name, &make)?;
        let size = set.size.filter(|size| *size > 0 && kind == FileType::File);
        let rest = SetAttr { size, atime: set.atime, mtime: set.mtime, ..SetAttr::default() };
        if rest.size.is_some() || rest.atime.is_some() || rest.mtime.is_some() {
            return Ok(session.set_attr(made.ino, &rest)?);
        }
        Ok(made)
    }

    /// Makes something in a directory, and answers with it.
    fn made(&self, w: &mut Writer, place: &Place, make: impl FnOnce(&Attr) -> Outcome<Attr>) {
        let before = self.attr(&place.dir);
        let made = self.writable_dir(place).and_then(|dir| {
            let made = make(&dir)?;
            self.shared.session.sync()?;
            Ok(made)
        });
        Self::status(w, made.as_ref().err().copied().unwrap_or(Status::Ok));
        if let Ok(made) = &made {
            w.bool(true);
            self.shared.realm.write(w, made.ino);
            self.after(w, Some(made));
        }
        self.change(w, before.ok().as_ref());
    }

    /// REMOVE and RMDIR.
    pub(super) fn remove(&self, r: &mut Reader, w: &mut Writer, directory: bool) -> Result<()> {
        let place = Place::read(r)?;
        let before = self.attr(&place.dir);
        let outcome = self.removed(&place, directory);
        Self::status(w, outcome.err().unwrap_or(Status::Ok));
        self.change(w, before.ok().as_ref());
        Ok(())
    }

    fn removed(&self, place: &Place, directory: bool) -> Outcome<()> {
        if directory && &place.name[..] == b"." {
            return Err(Status::Invalid);
        }
        let (dir, session) = (self.writable_dir(place)?, &self.shared.session);
        let child = session.lookup(dir.ino, &place.name)?;
        self.caller.need_removal(&dir, &child)?;
        if directory {
            session.rmdir(dir.ino, &place.name)?;
        } else {
            session.unlink(dir.ino, &place.name)?;
        }
        Ok(session.sync()?)
    }

    pub(super) fn rename(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (from, to) = (Place::read(r)?, Place::read(r)?);
        let before = (self.attr(&from.dir), self.attr(&to.dir));
        let outcome = self.renamed(&from, &to);
        Self::status(w, outcome.err().unwrap_or(Status::Ok));
        self.change(w, before.0.ok().as_ref());
        self.change(w, before.1.ok().as_ref());
        Ok(())
    }

    fn renamed(&self, from: &Place, to: &Place) -> Outcome<()> {
        let session = &self.shared.session;
        let (from_dir, to_dir) = (self.writable_dir(from)?, self.writable_dir(to)?);
        let child = session.lookup(from_dir.ino, &from.name)?;
        self.caller.need_removal(&from_dir, &child)?;
        if let Ok(there) = session.lookup(to_dir.ino, &to.name) {
            self.caller.need_removal(&to_dir, &there)?;
        }
        if child.kind == FileType::Directory && from_dir.ino != to_dir.ino {
            // Its entry `..` changes.
            self.caller.need(&child, WRITE)?;
        }
        session.rename(from_dir.ino, &from.name, to_dir.ino, &to.name, RenameFlag::Replace)?;
        Ok(session.sync()?)
    }

    pub(super) fn link(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (handle, place) = (handle::read(r)?, Place::read(r)?);
        let before = self.attr(&place.dir);
        let outcome = self.attr(&handle).and_then(|attr| {
            let dir = self.writable_dir(&place)?;
            let linked = self.shared.session.link(attr.ino, dir.ino, &place.name)?;
            self.shared.session.sync()?;
            Ok(linked)
        });
        Self::status(w, outcome.as_ref().err().copied().unwrap_or(Status::Ok));
        self.after(w, outcome.ok().as_ref());
        self.change(w, before.ok().as_ref());
        Ok(())
    }
}
