//! Verbs on extended attributes.

use super::{Door, Result};
use crate::errors::xattr;
use bytes::Bytes;
use fuser::Errno;
use mw_model::Ino;
use mw_world::XattrFlag;
use rustix::fs::XattrFlags;

impl Door {
    /// Returns a value.
    pub(crate) fn get_xattr(&self, ino: u64, name: &[u8]) -> Result<Bytes> {
        self.session.get_xattr(Ino(ino), name).map_err(|e| xattr(&e))
    }

    /// Sets a value, by the flags of setxattr(2).
    pub(crate) fn set_xattr(&self, ino: u64, name: &[u8], value: &[u8], flags: i32) -> Result<()> {
        let flags = XattrFlags::from_bits_retain(flags as u32);
        let flag = if flags.is_empty() {
            XattrFlag::Any
        } else if flags == XattrFlags::CREATE {
            XattrFlag::Create
        } else if flags == XattrFlags::REPLACE {
            XattrFlag::Replace
        } else {
            return Err(Errno::EINVAL);
        };
        self.session.set_xattr(Ino(ino), name, value, flag).map_err(|e| xattr(&e))
    }

    /// Returns the names, each ended by NUL (listxattr(2)).
    pub(crate) fn list_xattr(&self, ino: u64) -> Result<Vec<u8>> {
        let names = self.session.list_xattr(Ino(ino)).map_err(|e| xattr(&e))?;
        Ok(names.iter().flat_map(|name| name.iter().copied().chain([0])).collect())
    }

    /// Removes a value.
    pub(crate) fn remove_xattr(&self, ino: u64, name: &[u8]) -> Result<()> {
        self.session.remove_xattr(Ino(ino), name).map_err(|e| xattr(&e))
    }
}
