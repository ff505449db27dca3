//! HEAD and GET: an object is pinned when it is found, so that it is of one version from its first byte to its last.

use super::find::need_object;
use crate::error::Result;
use crate::object::ObjectInfo;
use crate::record::Extent;
use crate::session::Session;
use crate::store::Store;
use crate::view::View;
use bytes::Bytes;
use mw_model::FileType;
use mw_model::policy::Action;
use std::ops::Range;
use std::sync::Arc;

/// An object of one version, to read from.
pub struct Object {
    /// What it is.
    pub info: ObjectInfo,
    store: Arc<Store>,
    view: View,
}

/// A part of an object's content that is read at once.
pub struct Stretch {
    /// Where it is in the content.
    pub range: Range<u64>,
    extents: Vec<(u64, Extent)>,
}

/// How much content is cut into stretches at once, in bytes.
const SPAN: u64 = 64 << 20;

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
        self.store.content.runs(&extents, offset, end, true)
    }

    /// Cuts content into stretches of at most `len` bytes that end where a piece does, so that none is read twice; a piece that is
    /// longer is one of its own, and no hole has an end. Returns the first of them; the next begin where they end.
    ///
    /// # Errors
    /// The store failed.
    pub fn stretches(&self, range: Range<u64>, len: u64) -> Result<Vec<Stretch>> {
        let end = range.end.min(self.info.size);
        if range.start >= end || len == 0 || self.info.kind == FileType::Directory {
            return Ok(Vec::new());
        }
        let upto = range.start.saturating_add(SPAN).min(end);
        let extents = self.view.extents(self.info.ino, range.start, upto)?;
        let past = |(at, extent): &(u64, Extent)| at + u64::from(extent.len);
        let upto = extents.last().map_or(upto, |last| past(last).max(upto).min(end));
        let (mut stretches, mut rest) = (Vec::new(), &extents[..]);
        let mut start = range.start;
        while start < upto {
            let most = start.saturating_add(len).min(upto);
            let here = rest.partition_point(|(at, _)| *at < most);
            let stop = match rest[..here].last() {
                Some(last) if past(last) <= most => most,
                Some((at, _)) if *at > start => *at,
                Some(last) => past(last).min(end),
                None => most,
            };
            let (those, others) = rest.split_at(rest.partition_point(|(at, _)| *at < stop));
            stretches.push(Stretch { range: start..stop, extents: those.to_vec() });
            (start, rest) = (stop, others);
        }
        Ok(stretches)
    }

    /// Reads a stretch, as runs of bytes; what is read is kept for the next who wants it, unless `asked`, all that is being read of the
    /// object, is too much for that.
    ///
    /// # Errors
    /// Those of [`Object::read`].
    pub fn read_stretch(&self, stretch: &Stretch, asked: u64) -> Result<Vec<Bytes>> {
        let content = &self.store.content;
        content.runs(&stretch.extents, stretch.range.start, stretch.range.end, content.keeps(asked))
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.info.fmt(f)
    }
}
