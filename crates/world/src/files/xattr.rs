//! Extended attributes.

use super::acl::is_acl;
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::record::{self, Kind};
use crate::session::Session;
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;
use mw_model::{ErrorKind, Ino};

/// What setxattr(2) does with an attribute that is there, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XattrFlag {
    /// Makes or replaces it.
    Any,
    /// Fails when it is there.
    Create,
    /// Fails when it is not.
    Replace,
}

/// The longest attribute name and value, in bytes (Linux `XATTR_NAME_MAX`, `XATTR_SIZE_MAX`).
const MAX_NAME: usize = 255;
pub(crate) const MAX_VALUE: usize = 65_536;

fn absent(name: &[u8]) -> Error {
    Error::not_found(format!("extended attribute {:?} does not exist", String::from_utf8_lossy(name)))
}

impl Session {
    /// Returns an attribute's value.
    ///
    /// # Errors
    /// `NotFound` (ENODATA).
    pub fn get_xattr(&self, ino: Ino, name: &[u8]) -> Result<Bytes> {
        self.may_see(ino)?;
        let value = self.view().get(&record::key(ino, Kind::Xattr, name))?.ok_or_else(|| absent(name))?;
        Ok(value.data.slice(1..))
    }

    /// Sets an attribute. An access control list takes the permission bits with it.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound` as the flag says; `TooLarge`; `NameTooLong`; `Invalid` for a list that is none.
    pub fn set_xattr(&self, ino: Ino, name: &[u8], value: &[u8], flag: XattrFlag) -> Result<()> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Error::new(ErrorKind::NameTooLong, format!("an attribute's name has 1 to {MAX_NAME} bytes")));
        }
        if value.len() > MAX_VALUE {
            return Err(Error::new(ErrorKind::TooLarge, format!("an attribute has at most {MAX_VALUE} bytes")));
        }
        let permit = self.may_ino(Action::PutObject, ino)?;
        self.change_with(permit, Verb::Xattr, Durability::Soon, |txn| {
            let place = record::key(ino, Kind::Xattr, name);
            match (flag, txn.view.get(&place)?.is_some()) {
                (XattrFlag::Create, true) => {
                    return Err(Error::new(ErrorKind::AlreadyExists, "the extended attribute already exists"));
                }
                (XattrFlag::Replace, false) => return Err(absent(name)),
                _ => {}
            }
            let mut inode = txn.view.inode(ino)?;
            if is_acl(name) {
                txn.set_acl(ino, &mut inode, name, value)?;
            } else {
                let mut data = Vec::with_capacity(value.len() + 1);
                data.push(1);
                data.extend_from_slice(value);
                txn.put(place, record::plain(data));
            }
            inode.ctime = txn.time();
            inode.implicit = false;
            txn.put_inode(ino, &inode);
            Ok(())
        })
    }

    /// Returns the names of an inode's attributes.
    ///
    /// # Errors
    /// `NotFound` for the inode.
    pub fn list_xattr(&self, ino: Ino) -> Result<Vec<Bytes>> {
        self.may_see(ino)?;
        let view = self.view();
        view.inode(ino)?;
        view.kind(ino, Kind::Xattr).map(|item| item.map(|(key, _)| key.slice(9..))).collect()
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// `NotFound` (ENODATA).
    pub fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        let permit = self.may_ino(Action::PutObject, ino)?;
        self.change_with(permit, Verb::Xattr, Durability::Soon, |txn| {
            let place = record::key(ino, Kind::Xattr, name);
            if txn.view.get(&place)?.is_none() {
                // A file without a list has the one that its bits say: taking it away is no mistake.
                return if is_acl(name) { txn.view.inode(ino).map(drop) } else { Err(absent(name)) };
            }
            txn.remove(place);
            let mut inode = txn.view.inode(ino)?;
            inode.ctime = txn.time();
            inode.implicit = false;
            txn.put_inode(ino, &inode);
            Ok(())
        })
    }
}
