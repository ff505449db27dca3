//! File handles: the world, the inode, and the version for a past instant. They say nothing that a restart would change.

use crate::status::Status;
use crate::xdr::{Reader, Result, Writer};
use bytes::Bytes;
use mw_model::{Ino, WorldId};

/// The longest handle, in bytes (RFC 1813, section 2.4).
const MAX: usize = 64;

/// What the handles of one export begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Realm {
    pub world: WorldId,
    /// 0: the world as it is now.
    pub version: u64,
}

impl Realm {
    pub(crate) fn write(self, w: &mut Writer, ino: Ino) {
        w.u32(24).u64(self.world.0).u64(self.version).u64(ino.0);
    }

    /// Returns the inode of a handle of this export.
    pub(crate) fn ino(self, handle: &Bytes) -> std::result::Result<Ino, Status> {
        let mut r = Reader::new(handle.clone());
        let parts = (|| Ok::<_, crate::xdr::Garbage>((r.u64()?, r.u64()?, r.u64()?)))();
        match parts {
            Ok((world, version, ino)) if handle.len() == 24 => match (world, version) == (self.world.0, self.version) {
                true => Ok(Ino(ino)),
                false => Err(Status::Stale),
            },
            _ => Err(Status::BadHandle),
        }
    }
}

pub(crate) fn read(r: &mut Reader) -> Result<Bytes> {
    r.opaque(MAX)
}
