//! HEAD and GET: an object is pinned when it is found, so that it is of one version from its first byte to its last.

use super::find::need_object;
use crate::error::Result;
use crate::object::ObjectInfo;
use crate::session::Session;
use crate::store::Store;
use crate::view::View;
use bytes::Bytes;
use mw_model::FileType;
use mw_model::policy::Action;
use std::sync::Arc;

/// An object of one version, to read from.
pub struct Object {
    /// What it is.
    pub info: ObjectInfo,
    store: Arc<Store>,
    view: View,
}

impl Session {
    /// Returns what an object is.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn head(&self, key: &[u8]) -> Result<ObjectInfo> {
        self.may(Action::GetObject, key)?;
        Ok(need_object(&self.view(), key)?.info(key))
    }

    /// Returns an object to read from. A symbolic link is an object of its target's bytes; it is never followed. `d/` is the
    /// marker of `d`, or an explicit directory that is empty.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn get(&self, key: &[u8]) -> Result<Object> {
        self.may(Action::GetObject, key)?;
        let view = self.view();
        let info = need_object(&view, key)?.info(key);
        Ok(Object::new(info, self, view))
    }
}

impl Object {
    pub(crate) fn new(info: ObjectInfo, session: &Session, view: View) -> Self {
        Self { info, store: session.store.clone(), view }
    }

    /// Reads `len` bytes at `offset`; fewer only at the end. Holes are zeros.
    ///
    /// # Errors
    /// `Corrupt` when stored bytes do not verify.
    pub fn read(&self, offset: u64, len: usize) -> Result<Bytes> {
        let end = offset.saturating_add(len as u64).min(self.info.size);
        if offset >= end || self.info.kind == FileType::Directory {
            return Ok(Bytes::new());
        }
        let extents = self.view.extents(self.info.ino, offset, end)?;
        self.store.content.assemble(&extents, offset, end)
    }

    /// Reads as [`Object::read`] does, and returns the bytes in the runs that the store has them in, which saves a copy of them.
    ///
    /// # Errors
    /// Those of [`Object::read`].
    pub fn read_runs(&self, offset: u64, len: usize) -> Result<Vec<Bytes>> {
        let end = offset.saturating_add(len as u64).min(self.info.size);
        if offset >= end || self.info.kind == FileType::Directory {
            return Ok(Vec::new());
        }
        let extents = self.view.extents(self.info.ino, offset, end)?;
        self.store.content.runs(&extents, offset, end)
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.info.fmt(f)
    }
}
