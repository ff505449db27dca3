//! Procedures that look: attributes, names, links, room and limits; and SETATTR beside GETATTR.

use super::{Door, Outcome, Place};
use crate::access::{self, EXECUTE, READ, WRITE};
use crate::attributes;
use crate::handle;
use crate::shared::MAX_DATA;
use crate::status::Status;
use crate::xdr::{Reader, Result, Writer};
use mw_model::{Attr, FileType};
use mw_world::{SetAttr, SetTime};

/// What the file system can do: links, symbolic links, one set of limits everywhere, times to set (RFC 1813, section 3.3.19).
const PROPERTIES: u32 = 0x01 | 0x02 | 0x08 | 0x10;
/// The largest file, in bytes.
const MAX_FILE: u64 = i64::MAX as u64;
/// The most names of an inode.
const MAX_LINKS: u32 = 65_000;

impl Door<'_> {
    pub(super) fn get_attributes(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let handle = handle::read(r)?;
        match self.attr(&handle) {
            Ok(attr) => {
                Self::status(w, Status::Ok);
                attributes::write(w, self.shared.realm, &attr);
            }
            Err(status) => Self::status(w, status),
        }
        Ok(())
    }

    pub(super) fn set_attributes(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (handle, set) = (handle::read(r)?, attributes::read(r)?);
        let guard = r.bool()?.then(|| attributes::read_time(r)).transpose()?;
        let before = self.attr(&handle);
        let outcome = before.and_then(|before| self.set(&before, set, guard));
        Self::status(w, outcome.err().unwrap_or(Status::Ok));
        self.change(w, before.ok().as_ref());
        Ok(())
    }

    fn set(&self, before: &Attr, mut set: SetAttr, guard: Option<i64>) -> Outcome<()> {
        self.writable()?;
        if guard.is_some_and(|guard| guard != before.ctime) {
            return Err(Status::NotSync);
        }
        let (caller, owner) = (self.caller, self.caller.owns(before));
        if set.uid.is_some_and(|uid| uid != before.uid) && !caller.is_root() {
            return Err(Status::Permission);
        }
        if set.gid.is_some_and(|gid| gid != before.gid && !(caller.is_root() || owner && caller.is_in(gid))) {
            return Err(Status::Permission);
        }
        if set.mode.is_some() && !owner {
            return Err(Status::Permission);
        }
        let given = |time: Option<SetTime>| matches!(time, Some(SetTime::At(_)));
        if (given(set.atime) || given(set.mtime)) && !owner {
            return Err(Status::Permission);
        }
        if set.size.is_some() || set.atime.is_some() || set.mtime.is_some() {
            caller.need_content(before, WRITE)?;
        }
        if (set.uid.is_some() || set.gid.is_some()) && !caller.is_root() && before.kind == FileType::File {
            // Who gives a program away does not give his rights with it.
            set.mode = Some(set.mode.unwrap_or(before.mode) & !0o6000);
        }
        self.shared.session.set_attr(before.ino, &set)?;
        Ok(())
    }

    pub(super) fn lookup(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let place = Place::read(r)?;
        let dir = self.dir(&place.dir);
        let found = dir.and_then(|dir| match &place.name[..] {
            b"." => Ok(dir),
            b".." => self.attr_of(self.shared.session.open_dir(dir.ino)?.parent()),
            name => Ok(self.shared.session.lookup(dir.ino, name)?),
        });
        match &found {
            Ok(attr) => {
                Self::status(w, Status::Ok);
                self.shared.realm.write(w, attr.ino);
                self.after(w, Some(attr));
            }
            Err(status) => Self::status(w, *status),
        }
        self.after(w, dir.ok().as_ref());
        Ok(())
    }

    pub(super) fn access(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (handle, asked) = (handle::read(r)?, r.u32()?);
        let attr = self.attr(&handle);
        Self::status(w, attr.err().unwrap_or(Status::Ok));
        self.after(w, attr.ok().as_ref());
        if let Ok(attr) = attr {
            w.u32(access::granted(self.caller, &attr, self.shared.read_only, asked));
        }
        Ok(())
    }

    pub(super) fn read_link(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let handle = handle::read(r)?;
        let attr = self.attr(&handle);
        let target = attr.and_then(|attr| match attr.kind {
            FileType::Symlink => Ok(self.shared.session.read_link(attr.ino)?),
            _ => Err(Status::Invalid),
        });
        Self::status(w, target.as_ref().err().copied().unwrap_or(Status::Ok));
        self.after(w, attr.ok().as_ref());
        if let Ok(target) = target {
            w.opaque(&target);
        }
        Ok(())
    }

    /// FSSTAT.
    pub(super) fn space(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let handle = handle::read(r)?;
        let attr = self.attr(&handle);
        let space = attr.and_then(|_| Ok(self.shared.session.stat_fs()?));
        Self::status(w, space.err().unwrap_or(Status::Ok));
        self.after(w, attr.ok().as_ref());
        if let Ok(space) = space {
            w.u64(space.bytes).u64(space.bytes_free).u64(space.bytes_free);
            w.u64(space.files).u64(space.files_free).u64(space.files_free).u32(0);
        }
        Ok(())
    }

    /// FSINFO.
    pub(super) fn limits(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let handle = handle::read(r)?;
        let attr = self.attr(&handle);
        Self::status(w, attr.err().unwrap_or(Status::Ok));
        self.after(w, attr.ok().as_ref());
        if attr.is_ok() {
            let most = MAX_DATA as u32;
            w.u32(most).u32(most).u32(4096).u32(most).u32(most).u32(4096).u32(64 << 10);
            w.u64(MAX_FILE).u32(0).u32(1).u32(PROPERTIES);
        }
        Ok(())
    }

    /// PATHCONF.
    pub(super) fn path_limits(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let handle = handle::read(r)?;
        let attr = self.attr(&handle);
        Self::status(w, attr.err().unwrap_or(Status::Ok));
        self.after(w, attr.ok().as_ref());
        if attr.is_ok() {
            // Names too long are refused and not cut, only root gives files away, case counts and is kept.
            w.u32(MAX_LINKS).u32(mw_model::name::MAX_NAME as u32).bool(true).bool(true).bool(false).bool(true);
        }
        Ok(())
    }

    /// Returns whether a caller may list a directory.
    pub(super) fn listable(&self, handle: &bytes::Bytes) -> Outcome<Attr> {
        let dir = self.attr(handle)?;
        if dir.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        self.caller.need(&dir, READ)?;
        Ok(dir)
    }

    /// Returns whether entries of a directory may be told with their attributes.
    pub(super) fn searchable(&self, dir: &Attr) -> bool {
        self.caller.may(dir, EXECUTE)
    }
}
