//! Directories, read: a pinned view, in which a cookie is a position.

use super::path::missing;
use crate::error::{Error, Result};
use crate::names::{parent_of, path_of};
use crate::record::Entry;
use crate::session::Session;
use crate::time::At;
use crate::view::View;
use bytes::Bytes;
use mw_model::name::mountable;
use mw_model::policy::Action;
use mw_model::{Attr, ErrorKind, FileType, Ino, Version};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without the trailing slash of a directory.
    pub name: Bytes,
    /// The inode.
    pub ino: Ino,
    /// Its type.
    pub kind: FileType,
    /// The position after this entry: reading goes on behind it.
    pub cookie: u64,
}

/// An open directory.
pub struct Dir {
    session: Session,
    ino: Ino,
    attr: Attr,
    parent: Ino,
    place: Mutex<Place>,
}

/// Where the reading stands.
struct Place {
    view: View,
    /// The position of the next entry.
    next: u64,
    names: Option<Visible>,
    /// Every `STRIDE`th raw name, so that a seek does not start over.
    marks: Vec<Bytes>,
}

const STRIDE: u64 = 256;

impl Session {
    /// Opens a directory. What it holds when its first entry is read is what will be read, until it is rewound.
    ///
    /// # Errors
    /// `NotFound`; `NotDirectory`.
    pub fn open_dir(&self, ino: Ino) -> Result<Dir> {
        let path =
            if self.is_limited() { path_of(&self.view(), ino)?.ok_or_else(Error::denied)? } else { Bytes::new() };
        self.may_list(Action::ListBucket, &path)?;
        let attr = self.open(ino)?;
        if attr.kind != FileType::Directory {
            self.release(ino);
            return Err(Error::new(ErrorKind::NotDirectory, format!("inode {ino} is not a directory")));
        }
        let view = self.view();
        let parent = match parent_of(&view, ino) {
            Ok(parent) => parent.map_or(Ino::ROOT, |(parent, _)| parent),
            Err(e) => {
                self.release(ino);
                return Err(e);
            }
        };
        Ok(Dir { session: self.clone(), ino, attr, parent, place: Mutex::new(Place::new(view)) })
    }

    /// Opens a directory that was open before, as it was then: `version` is what [`Dir::version`] returned. It may have lost its name since.
    ///
    /// # Errors
    /// `NotFound`: the directory is gone, or the version is not retained any more.
    pub fn reopen_dir(&self, ino: Ino, version: Version) -> Result<Dir> {
        let now = self.view();
        let view = if version == now.time || self.at.is_some() { now } else { self.at(&At::Version(version))?.view() };
        let (attr, parent) = (view.inode(ino)?.attr(ino), parent_of(&view, ino)?);
        self.open(ino)?;
        let parent = parent.map_or(Ino::ROOT, |(parent, _)| parent);
        Ok(Dir { session: self.clone(), ino, attr, parent, place: Mutex::new(Place::new(view)) })
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        self.session.release(self.ino);
    }
}

impl Dir {
    /// Returns the directory's attributes when it was opened.
    pub fn attr(&self) -> Attr {
        self.attr
    }

    /// Returns the version of the world that is listed.
    pub fn version(&self) -> Version {
        self.place.lock().view.time
    }

    /// Returns the directory above; the root is its own.
    pub fn parent(&self) -> Ino {
        self.parent
    }

    /// Reads entries behind the position `after` (0: from the start, afresh), without `.` and `..`, until `each` returns
    /// false; that entry is then the next one. With `with_attr`, an entry that still is what the name stands for comes with
    /// its attributes of now.
    ///
    /// # Errors
    /// The store failed.
    pub fn read(
        &self,
        after: u64,
        each: &mut dyn FnMut(DirEntry, Option<Attr>) -> bool,
        with_attr: bool,
    ) -> Result<()> {
        let mut place = self.place.lock();
        let now = (after == 0 || with_attr).then(|| self.session.view());
        // Also when it is read for the first time: what is listed from the start may be kept for others that ask later.
        if after == 0
            && let Some(now) = now.as_ref().filter(|now| now.seq != place.view.seq)
        {
            *place = Place::new(now.clone());
        }
        place.seek(self.ino, after)?;
        let now = now.filter(|_| with_attr);
        // Where nothing has changed since, every entry still is what was listed.
        let same = now.as_ref().is_some_and(|now| now.seq == place.view.seq);
        loop {
            let Some(item) = place.peek(self.ino)? else { return Ok(()) };
            let (raw, entry) = item;
            let name = raw.strip_suffix(b"/").map_or_else(|| raw.clone(), |n| raw.slice(..n.len()));
            let attr = match &now {
                Some(view) if same => attr_of(view, entry.ino)?,
                Some(view) => current(view, self.ino, &raw, entry)?,
                None => None,
            };
            let cookie = place.next + 1;
            if !each(DirEntry { name, ino: entry.ino, kind: entry.kind, cookie }, attr) {
                return Ok(());
            }
            place.advance();
        }
    }

    /// Returns one name of the directory as it was opened.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn find(&self, name: &[u8]) -> Result<Ino> {
        let view = self.place.lock().view.clone();
        super::path::find(&view, self.ino, name)?.map(|(_, e)| e.ino).ok_or_else(|| missing(name))
    }
}

/// Returns the attributes of an entry that is still there and still the same inode.
fn current(view: &View, dir: Ino, raw: &[u8], entry: Entry) -> Result<Option<Attr>> {
    if view.entry(dir, raw)?.is_none_or(|now| now.ino != entry.ino) {
        return Ok(None);
    }
    attr_of(view, entry.ino)
}

fn attr_of(view: &View, ino: Ino) -> Result<Option<Attr>> {
    Ok(view.find_inode(ino)?.map(|inode| inode.attr(ino)))
}

impl Place {
    /// Returns the start of what a view shows.
    fn new(view: View) -> Self {
        Self { view, next: 0, names: None, marks: Vec::new() }
    }

    fn names(&mut self, dir: Ino, from: &[u8]) -> &mut Visible {
        let view = &self.view;
        self.names.get_or_insert_with(|| Visible::new(view, dir, from))
    }

    /// Moves to position `to`.
    fn seek(&mut self, dir: Ino, to: u64) -> Result<()> {
        if to == self.next && self.names.is_some() {
            return Ok(());
        }
        if to < self.next || self.names.is_none() {
            let mark = (to / STRIDE).min(self.marks.len().saturating_sub(1) as u64);
            let from = self.marks.get(mark as usize).cloned().unwrap_or_default();
            self.next = if self.marks.is_empty() { 0 } else { mark * STRIDE };
            self.names = None;
            self.names(dir, &from);
        }
        while self.next < to && self.peek(dir)?.is_some() {
            self.advance();
        }
        Ok(())
    }

    fn peek(&mut self, dir: Ino) -> Result<Option<(Bytes, Entry)>> {
        let next = self.next;
        let found = self.names(dir, &[]).peek()?;
        if let Some((raw, _)) = &found
            && next == self.marks.len() as u64 * STRIDE
        {
            self.marks.push(raw.clone());
        }
        Ok(found)
    }

    fn advance(&mut self) {
        if let Some(names) = &mut self.names {
            names.ready.pop_front();
            self.next += 1;
        }
    }
}

/// The entries that a mount shows, in raw order. A file waits until it is known that no directory of its name follows.
struct Visible {
    raw: Box<dyn Iterator<Item = Result<(Bytes, Entry)>> + Send>,
    waiting: VecDeque<(Bytes, Entry)>,
    ready: VecDeque<(Bytes, Entry)>,
}

impl Visible {
    fn new(view: &View, dir: Ino, from: &[u8]) -> Self {
        Self { raw: Box::new(view.entries(dir, from)), waiting: VecDeque::new(), ready: VecDeque::new() }
    }

    fn peek(&mut self) -> Result<Option<(Bytes, Entry)>> {
        while self.ready.is_empty() {
            match self.raw.next().transpose()? {
                None => {
                    self.ready.append(&mut self.waiting);
                    break;
                }
                Some((raw, entry)) => self.take(raw, entry),
            }
        }
        Ok(self.ready.front().cloned())
    }

    fn take(&mut self, raw: Bytes, entry: Entry) {
        if let Some(name) = raw.strip_suffix(b"/") {
            // The object of the same name stands behind this directory.
            self.waiting.retain(|(file, _)| file != name);
        }
        while let Some((file, _)) = self.waiting.front() {
            let directory = [file, &b"/"[..]].concat();
            if raw[..] <= directory[..] {
                break;
            }
            self.ready.extend(self.waiting.pop_front());
        }
        let name = raw.strip_suffix(b"/").unwrap_or(&raw);
        if !mountable(name) {
            return;
        }
        if entry.kind == FileType::Directory && self.waiting.is_empty() {
            self.ready.push_back((raw, entry));
        } else {
            self.waiting.push_back((raw, entry));
        }
    }
}
