//! NFS version 3 (RFC 1813, section 3.3): parameters read, one verb of the session, the answer written.
//!
//! Every procedure reads all of its parameters before it does anything, so that garbage changes nothing. `look` only looks,
//! `names` changes names, `content` reads and writes, `listing` lists directories.

mod content;
mod listing;
mod look;
mod names;

use crate::attributes;
use crate::handle;
use crate::rpc::{Call, Caller, Refusal};
use crate::shared::Shared;
use crate::status::Status;
use crate::xdr::{self, Reader, Writer};
use bytes::Bytes;
use mw_model::{Attr, Ino};

/// The number of the program.
pub(crate) const NFS: u32 = 100_003;

/// The longest name that is read, in bytes; the store's own bound is less.
const MAX_NAME: usize = 1024;
/// The longest target of a link that is read, in bytes.
const MAX_TARGET: usize = 8192;

/// Returns whether a procedure must not be done twice.
pub(crate) fn changes(procedure: u32) -> bool {
    matches!(procedure, 2 | 8..=15)
}

/// Answers a call.
pub(crate) fn answer(shared: &Shared, call: &Call, r: &mut Reader, w: &mut Writer) -> Result<(), Refusal> {
    if call.version != 3 {
        return Err(Refusal::Version(3));
    }
    let door = Door { shared, caller: &call.caller };
    match call.procedure {
        0 => {}
        1 => door.get_attributes(r, w)?,
        2 => door.set_attributes(r, w)?,
        3 => door.lookup(r, w)?,
        4 => door.access(r, w)?,
        5 => door.read_link(r, w)?,
        6 => door.read(r, w)?,
        7 => door.write(r, w)?,
        8 => door.create(r, w)?,
        9 => door.make_directory(r, w)?,
        10 => door.make_link(r, w)?,
        11 => door.make_node(r, w)?,
        12 => door.remove(r, w, false)?,
        13 => door.remove(r, w, true)?,
        14 => door.rename(r, w)?,
        15 => door.link(r, w)?,
        16 => door.list(r, w, false)?,
        17 => door.list(r, w, true)?,
        18 => door.space(r, w)?,
        19 => door.limits(r, w)?,
        20 => door.path_limits(r, w)?,
        21 => door.commit(r, w)?,
        _ => return Err(Refusal::NoProcedure),
    }
    Ok(())
}

/// One call on its way.
struct Door<'a> {
    shared: &'a Shared,
    caller: &'a Caller,
}

/// A directory and a name in it.
struct Place {
    dir: Bytes,
    name: Bytes,
}

impl Place {
    fn read(r: &mut Reader) -> xdr::Result<Self> {
        Ok(Self { dir: handle::read(r)?, name: r.opaque(MAX_NAME)? })
    }
}

type Outcome<T> = Result<T, Status>;

impl Door<'_> {
    /// Returns the inode that a handle names, as it is now.
    fn attr(&self, handle: &Bytes) -> Outcome<Attr> {
        let ino = self.shared.realm.ino(handle)?;
        self.attr_of(ino)
    }

    fn attr_of(&self, ino: Ino) -> Outcome<Attr> {
        self.shared.session.attr(ino).map_err(|e| match Status::from(&e) {
            // The client held it, and it is gone.
            Status::NotFound => Status::Stale,
            other => other,
        })
    }

    /// Returns a directory in which names may be looked up.
    fn dir(&self, handle: &Bytes) -> Outcome<Attr> {
        let dir = self.attr(handle)?;
        if dir.kind != mw_model::FileType::Directory {
            return Err(Status::NotDirectory);
        }
        self.caller.need(&dir, crate::access::EXECUTE)?;
        Ok(dir)
    }

    /// Returns a directory in which names may be changed.
    fn writable_dir(&self, place: &Place) -> Outcome<Attr> {
        self.writable()?;
        let dir = self.dir(&place.dir)?;
        self.caller.need(&dir, crate::access::WRITE)?;
        if matches!(&place.name[..], b"." | b"..") {
            return Err(Status::Exists);
        }
        Ok(dir)
    }

    fn writable(&self) -> Outcome<()> {
        if self.shared.read_only { Err(Status::ReadOnly) } else { Ok(()) }
    }

    fn status(w: &mut Writer, status: Status) {
        w.u32(status as u32);
    }

    fn after(&self, w: &mut Writer, attr: Option<&Attr>) {
        attributes::after(w, self.shared.realm, attr);
    }

    /// Writes how an inode changed; the attributes of now are looked up.
    fn change(&self, w: &mut Writer, before: Option<&Attr>) {
        let now = before.and_then(|before| self.shared.session.attr(before.ino).ok());
        attributes::change(w, self.shared.realm, before, now.as_ref());
    }
}
