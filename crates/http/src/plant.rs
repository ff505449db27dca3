//! A stream of frames into a world.
//!
//! A file is filled without a name and linked when it is whole, so that nobody sees half of one; what stood there is replaced in one
//! rename. Symbolic links on the way are never followed. Verbs are acknowledged `soon`, and one sync at the end makes them all
//! durable, so that a tree of many small files costs one sync.

use crate::frames::{Node, Record, Records, UNKNOWN_SIZE};
use crate::harvest::join;
use crate::types::{Moved, path_text};
use crate::{Error, Result};
use bytes::Bytes;
use mw_model::{Attr, ErrorKind, FileType, Ino};
use mw_world::{Make, RenameFlag, Session, SetAttr, SetTime, WriteAt, XattrFlag};
use std::collections::HashMap;
use std::io::Read;

/// The mode of directories that are made on the way.
const DIR_MODE: u32 = 0o755;

/// A file that is being filled; it has no name yet.
struct Open {
    node: Node,
    ino: Ino,
}

pub(crate) struct Planter {
    session: Session,
    root: Bytes,
    /// Directories that are known to be there, by full path.
    dirs: HashMap<Bytes, Ino>,
    /// Names under which things stand for a moment before they replace others.
    token: String,
    moved: Moved,
}

/// Removes what was made without a name when it gets none.
struct Orphan<'a>(&'a Session, Ino);

impl Drop for Orphan<'_> {
    fn drop(&mut self) {
        self.0.release(self.1);
    }
}

impl Planter {
    /// Plants under the path `root` of `session`'s world. `token` makes temporary names unique.
    pub(crate) fn new(session: Session, root: Bytes, token: String) -> Self {
        let dirs = HashMap::from([(Bytes::new(), Ino::ROOT)]);
        Self { session, root, dirs, token, moved: Moved::default() }
    }

    /// Reads a whole stream and makes everything durable.
    pub(crate) fn plant(mut self, input: impl Read) -> Result<Moved> {
        let mut records = Records::new(input);
        let mut open: Option<Open> = None;
        let outcome = loop {
            match records.next() {
                Ok(Some(record)) => {
                    if let Err(error) = self.record(record, &mut open) {
                        break Err(error);
                    }
                }
                Ok(None) if open.is_some() => break Err(Error::invalid("the stream ended within a file")),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Some(open) = open {
            self.session.release(open.ino);
        }
        outcome?;
        self.finish()
    }

    /// Makes everything durable and tells what was done.
    pub(crate) fn finish(self) -> Result<Moved> {
        self.session.sync()?;
        Ok(self.moved)
    }

    fn record(&mut self, record: Record, open: &mut Option<Open>) -> Result<()> {
        let outside = |open: &Option<Open>| match open {
            None => Ok(()),
            Some(_) => Err(Error::invalid("the stream has a record in the middle of a file")),
        };
        match record {
            Record::Node(node) => {
                outside(open)?;
                if node.kind == FileType::File {
                    let ino = self.begin(&node)?;
                    *open = Some(Open { node, ino });
                    return Ok(());
                }
                self.node(&node)
            }
            Record::Data { offset, bytes } => {
                let file = open.as_ref().ok_or_else(|| Error::invalid("the stream has content outside a file"))?;
                self.fill(file.ino, offset, &bytes)
            }
            Record::Done => {
                let file = open.take().ok_or_else(|| Error::invalid("the stream ends a file that it did not begin"))?;
                self.end(&file.node, file.ino)
            }
            Record::HardLink { path, to } => {
                outside(open)?;
                self.hard_link(&path, &to)
            }
            Record::Settle(node) => {
                outside(open)?;
                let ino = self.dir(&self.full(&node.path))?;
                self.settle(ino, &node)
            }
            Record::Skipped { path, why } => {
                self.moved.skipped.push(format!("{}: {why}", path_text(&path)));
                Ok(())
            }
            // These end the stream before they come here.
            Record::Failed { kind, message } => Err(Error::new(kind, message)),
            Record::End => Ok(()),
        }
    }

    fn full(&self, path: &[u8]) -> Bytes {
        if path.is_empty() { self.root.clone() } else { join(&self.root, path) }
    }

    /// Starts a file without a name, which is open until it is released.
    pub(crate) fn begin(&self, node: &Node) -> Result<Ino> {
        let make = make(node);
        Ok(self.session.make_unnamed(&make)?.ino)
    }

    /// Writes content into it.
    pub(crate) fn fill(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<()> {
        self.session.write(ino, WriteAt::Offset(offset), bytes)?;
        self.moved.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Counts content that came without being written, as shared extents do.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.moved.bytes += bytes;
    }

    /// Counts a file that came as a whole, its content shared.
    pub(crate) fn count_file(&mut self, bytes: u64) {
        self.moved.files += 1;
        self.moved.bytes += bytes;
    }

    /// Gives a whole file its attributes and its name.
    pub(crate) fn end(&mut self, node: &Node, ino: Ino) -> Result<()> {
        let _orphan = Orphan(&self.session, ino);
        let size = (node.size != UNKNOWN_SIZE).then_some(node.size);
        let change = SetAttr { size, ..attributes(node) };
        self.session.set_attr(ino, &change)?;
        for (name, value) in &node.xattrs {
            self.session.set_xattr(ino, name, value, XattrFlag::Any)?;
        }
        let full = if node.path.is_empty() { self.root.clone() } else { join(&self.root, &node.path) };
        if full.is_empty() {
            return Err(Error::new(ErrorKind::IsDirectory, "the root of a world is a directory; give a path in it"));
        }
        let (parent, name) = parent_of(&self.session, &mut self.dirs, &full)?;
        place(&self.session, parent, &name, &self.token, &full, &mut |name| {
            self.session.link(ino, parent, name).map(|_| ())
        })?;
        self.moved.files += 1;
        Ok(())
    }

    /// Makes anything but a regular file.
    pub(crate) fn node(&mut self, node: &Node) -> Result<()> {
        let full = self.full(&node.path);
        if node.kind == FileType::Directory {
            // Its attributes come when it is settled, but what is not to be seen by others is not to be seen in between either.
            let ino = self.make_dir(&full, node.mode & 0o700)?;
            if let Some(ino) = ino {
                self.session
                    .set_attr(ino, &SetAttr { uid: Some(node.uid), gid: Some(node.gid), ..SetAttr::default() })?;
            }
            self.moved.directories += 1;
            return Ok(());
        }
        if full.is_empty() {
            return Err(Error::new(ErrorKind::IsDirectory, "the root of a world is a directory; give a path in it"));
        }
        let (parent, name) = parent_of(&self.session, &mut self.dirs, &full)?;
        let mut made = None;
        place(&self.session, parent, &name, &self.token, &full, &mut |name| {
            made = Some(self.session.make(parent, name, &make(node))?);
            Ok(())
        })?;
        if let Some(attr) = made {
            self.settle(attr.ino, node)?;
        }
        self.moved.links += u64::from(node.kind == FileType::Symlink);
        Ok(())
    }

    /// Gives `ino` the attributes that travel.
    pub(crate) fn settle(&self, ino: Ino, node: &Node) -> Result<()> {
        let mut change = attributes(node);
        if node.kind == FileType::Symlink {
            change.mode = None;
        }
        self.session.set_attr(ino, &change)?;
        for (name, value) in &node.xattrs {
            self.session.set_xattr(ino, name, value, XattrFlag::Any)?;
        }
        Ok(())
    }

    fn hard_link(&mut self, path: &[u8], to: &[u8]) -> Result<()> {
        let target = self.session.resolve(&self.full(to))?;
        if target.kind == FileType::Directory {
            return Err(Error::invalid(format!("{:?} is a directory and takes no hard link", path_text(to))));
        }
        let full = self.full(path);
        let (parent, name) = parent_of(&self.session, &mut self.dirs, &full)?;
        if self.session.lookup(parent, &name).is_ok_and(|there| there.ino == target.ino) {
            // A rename between two names of one inode does nothing (POSIX), and would leave the temporary name.
            self.moved.links += 1;
            return Ok(());
        }
        place(&self.session, parent, &name, &self.token, &full, &mut |name| {
            self.session.link(target.ino, parent, name).map(|_| ())
        })?;
        self.moved.links += 1;
        Ok(())
    }

    /// Returns the directory at `path`, making what is missing.
    pub(crate) fn dir(&mut self, path: &Bytes) -> Result<Ino> {
        directory(&self.session, &mut self.dirs, path, DIR_MODE)
    }

    /// Makes a directory; `None` when it was there.
    fn make_dir(&mut self, path: &Bytes, mode: u32) -> Result<Option<Ino>> {
        if self.dirs.contains_key(path) {
            return Ok(None);
        }
        let (parent, name) = parent_of(&self.session, &mut self.dirs, path)?;
        let (ino, fresh) = child(&self.session, parent, &name, path, mode)?;
        self.dirs.insert(path.clone(), ino);
        Ok(fresh.then_some(ino))
    }
}

fn attributes(node: &Node) -> SetAttr {
    SetAttr {
        mode: Some(node.mode & 0o7777),
        uid: Some(node.uid),
        gid: Some(node.gid),
        size: None,
        atime: Some(SetTime::At(node.atime)),
        mtime: Some(SetTime::At(node.mtime)),
        ctime: None,
    }
}

fn make(node: &Node) -> Make {
    Make {
        kind: node.kind,
        // Until it is whole, only its owner may look into it.
        mode: if node.kind == FileType::Symlink { 0o777 } else { node.mode & 0o600 },
        uid: node.uid,
        gid: node.gid,
        rdev: node.rdev,
        target: node.target.clone(),
    }
}

/// Lets `put` make `name`; when something stands there, it is made beside and then takes the name in one rename.
fn place(
    session: &Session,
    parent: Ino,
    name: &[u8],
    token: &str,
    full: &[u8],
    put: &mut dyn FnMut(&[u8]) -> mw_world::Result<()>,
) -> Result<()> {
    match put(name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return Ok(other?),
    }
    if session.lookup(parent, name)?.kind == FileType::Directory {
        let message = format!("{:?} is a directory; remove it first, or give another path", path_text(full));
        return Err(Error::new(ErrorKind::IsDirectory, message));
    }
    let beside = format!(".mw-put-{token}").into_bytes();
    put(&beside)?;
    if let Err(error) = session.rename(parent, &beside, parent, name, RenameFlag::Replace) {
        // The refusal is what counts; a name that stays behind is ugly, not wrong.
        let _ = session.unlink(parent, &beside);
        return Err(error.into());
    }
    Ok(())
}

/// Returns the directory of `path` and the name in it.
fn parent_of(session: &Session, dirs: &mut HashMap<Bytes, Ino>, path: &Bytes) -> Result<(Ino, Bytes)> {
    match path.iter().rposition(|&b| b == b'/') {
        None => Ok((Ino::ROOT, path.clone())),
        Some(at) => {
            let parent = directory(session, dirs, &path.slice(..at), DIR_MODE)?;
            Ok((parent, path.slice(at + 1..)))
        }
    }
}

fn directory(session: &Session, dirs: &mut HashMap<Bytes, Ino>, path: &Bytes, mode: u32) -> Result<Ino> {
    if let Some(ino) = dirs.get(path) {
        return Ok(*ino);
    }
    let (parent, name) = parent_of(session, dirs, path)?;
    let (ino, _) = child(session, parent, &name, path, mode)?;
    dirs.insert(path.clone(), ino);
    Ok(ino)
}

/// Returns the directory `name` of `parent`, and whether it had to be made.
fn child(session: &Session, parent: Ino, name: &[u8], full: &[u8], mode: u32) -> Result<(Ino, bool)> {
    let there = |attr: Attr| {
        if attr.kind == FileType::Directory {
            return Ok((attr.ino, false));
        }
        let message = format!("{:?} is no directory; links are not followed; remove it first", path_text(full));
        Err(Error::new(ErrorKind::NotDirectory, message))
    };
    match session.lookup(parent, name) {
        Ok(attr) => return there(attr),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let make = Make { kind: FileType::Directory, mode, uid: 0, gid: 0, rdev: 0, target: Bytes::new() };
    match session.make(parent, name, &make) {
        Ok(attr) => Ok((attr.ino, true)),
        // Somebody else was quicker.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => there(session.lookup(parent, name)?),
        Err(error) => Err(error.into()),
    }
}
