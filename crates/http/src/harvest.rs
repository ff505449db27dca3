//! A tree of a world as a stream of frames.
//!
//! Links are sent as links, never followed. Memory does not grow with the tree, but for the names of files with several hard
//! links. A file that changes while it is read arrives as some mixture of old and new, as with `cp`; whoever wants one instant asks for it.

use crate::body::{Gone, Sink};
use crate::frames::{self, Node, Record};
use crate::{Error, Result};
use bytes::Bytes;
use mw_model::{Attr, ErrorKind, FileType, Ino};
use mw_world::{Dir, DirEntry, SeekFor, Session};
use std::collections::HashMap;

/// How many bytes of records are sent at a time.
const FLUSH: usize = 256 << 10;
/// How many entries of a directory are held at a time.
const PAGE: usize = 512;

pub(crate) struct Harvest<'a> {
    session: &'a Session,
    sink: &'a Sink,
    buffer: Vec<u8>,
    /// The first name of each file with several.
    first: HashMap<Ino, Bytes>,
}

/// A directory that is being walked.
struct Level {
    node: Node,
    dir: Dir,
    page: std::vec::IntoIter<(DirEntry, Attr)>,
    cookie: u64,
    last: bool,
}

impl Level {
    /// Returns the next entry.
    fn next(&mut self) -> Result<Option<(DirEntry, Attr)>> {
        loop {
            if let Some(entry) = self.page.next() {
                self.cookie = entry.0.cookie;
                return Ok(Some(entry));
            }
            if self.last {
                return Ok(None);
            }
            let mut page = Vec::new();
            self.dir.read(
                self.cookie,
                &mut |entry, attr| {
                    if let Some(attr) = attr {
                        page.push((entry, attr));
                    }
                    page.len() < PAGE
                },
                true,
            )?;
            self.last = page.len() < PAGE;
            self.page = page.into_iter();
        }
    }
}

impl<'a> Harvest<'a> {
    pub(crate) fn new(session: &'a Session, sink: &'a Sink) -> Self {
        Self { session, sink, buffer: frames::MAGIC.to_vec(), first: HashMap::new() }
    }

    /// Sends what `attr` describes, and all beneath it. A failure is sent too.
    pub(crate) fn send(mut self, attr: &Attr) {
        let last = match self.tree(attr) {
            Ok(()) => Record::End,
            Err(error) => {
                if error.kind() != ErrorKind::Cancelled {
                    tracing::error!(%error, world = %self.session.name(), "sending files failed");
                }
                Record::Failed { kind: error.kind(), message: error.message().to_owned() }
            }
        };
        frames::encode(&last, &mut self.buffer);
        // A reader that is gone needs no end.
        let _ = self.sink.send(std::mem::take(&mut self.buffer));
    }

    fn emit(&mut self, record: &Record) -> Result<()> {
        frames::encode(record, &mut self.buffer);
        if self.buffer.len() < FLUSH {
            return Ok(());
        }
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(FLUSH + (FLUSH >> 2)));
        self.sink.send(bytes).map_err(|Gone| Error::new(ErrorKind::Cancelled, "the reader went away"))
    }

    fn tree(&mut self, root: &Attr) -> Result<()> {
        let mut levels = Vec::new();
        if let Some(level) = self.inode(Bytes::new(), root)? {
            levels.push(level);
        }
        while let Some(level) = levels.last_mut() {
            let Some((entry, attr)) = level.next()? else {
                let settled = levels.pop().map(|level| level.node);
                if let Some(node) = settled {
                    self.emit(&Record::Settle(node))?;
                }
                continue;
            };
            let path = join(&level.node.path, &entry.name);
            match self.inode(path, &attr) {
                Ok(Some(level)) => levels.push(level),
                Ok(None) => {}
                // Removed since its directory was read, which is no failure of a copy of a live tree.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends one inode; returns a directory for its entries to be walked.
    fn inode(&mut self, path: Bytes, attr: &Attr) -> Result<Option<Level>> {
        if let Err(error) = frames::check_path(&path) {
            self.emit(&Record::Skipped { path, why: error.message().to_owned() })?;
            return Ok(None);
        }
        if attr.kind != FileType::Directory && attr.nlink > 1 {
            if let Some(to) = self.first.get(&attr.ino) {
                let to = to.clone();
                self.emit(&Record::HardLink { path, to })?;
                return Ok(None);
            }
            self.first.insert(attr.ino, path.clone());
        }
        let node = self.node(path, attr)?;
        match attr.kind {
            FileType::Directory => {
                let dir = self.session.open_dir(attr.ino)?;
                self.emit(&Record::Node(node.clone()))?;
                Ok(Some(Level { node, dir, page: Vec::new().into_iter(), cookie: 0, last: false }))
            }
            FileType::File => {
                self.emit(&Record::Node(node))?;
                self.content(attr)?;
                self.emit(&Record::Done)?;
                Ok(None)
            }
            FileType::Symlink | FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice => {
                self.emit(&Record::Node(node))?;
                Ok(None)
            }
        }
    }

    fn node(&self, path: Bytes, attr: &Attr) -> Result<Node> {
        let target = if attr.kind == FileType::Symlink { self.session.read_link(attr.ino)? } else { Bytes::new() };
        let xattrs = self
            .session
            .list_xattr(attr.ino)?
            .into_iter()
            .map(|name| {
                let value = self.session.get_xattr(attr.ino, &name)?;
                Ok((name, value))
            })
            .collect::<Result<_>>()?;
        Ok(Node {
            path,
            kind: attr.kind,
            mode: attr.mode & 0o7777,
            uid: attr.uid,
            gid: attr.gid,
            rdev: attr.rdev,
            size: if attr.kind == FileType::File { attr.size } else { 0 },
            atime: attr.atime,
            mtime: attr.mtime,
            target,
            xattrs,
        })
    }

    /// Sends the bytes of a file; holes are left out.
    fn content(&mut self, attr: &Attr) -> Result<()> {
        let sparse = attr.allocated < attr.size;
        let mut at = 0;
        while at < attr.size {
            let end = if sparse {
                at = match self.session.seek(attr.ino, at, SeekFor::Data) {
                    Ok(data) => data,
                    // No data up to the end: a hole.
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                    Err(error) => return Err(error.into()),
                };
                self.session.seek(attr.ino, at, SeekFor::Hole)?.min(attr.size)
            } else {
                attr.size
            };
            while at < end {
                let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(frames::MAX_DATA);
                let bytes = self.session.read(attr.ino, at, wanted)?;
                if bytes.is_empty() {
                    // Cut since its size was looked up.
                    return Ok(());
                }
                let offset = at;
                at += bytes.len() as u64;
                self.emit(&Record::Data { offset, bytes })?;
            }
        }
        Ok(())
    }
}

pub(crate) fn join(dir: &[u8], name: &[u8]) -> Bytes {
    let mut path = Vec::with_capacity(dir.len() + name.len() + 1);
    path.extend_from_slice(dir);
    if !dir.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path.into()
}
