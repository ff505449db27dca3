//! A walk over the keys of a world in byte order, directory by directory.
//!
//! Invariant: names stand raw in a directory (a directory's with its slash, the marker's empty), so that entries in their own order,
//! each directory entered where it stands, are whole keys in byte order. A walk may start at any key, at the cost of one look-up for
//! each of its parts.

use super::find::find_dir;
use crate::error::Result;
use crate::files::split_key;
use crate::record::Entry;
use crate::view::View;
use bytes::{Bytes, BytesMut};
use mw_model::{FileType, Ino};

/// What a walk comes to.
#[derive(Debug)]
pub(crate) enum Step {
    /// An object; a directory's inode where the object is an empty explicit directory.
    Object { key: Bytes, ino: Ino },
    /// A directory, not entered. Its path ends in `/`.
    Dir { path: Bytes, ino: Ino },
}

/// A walk over the keys with one prefix.
pub(crate) struct Walk<'a> {
    view: &'a View,
    prefix: Bytes,
    /// The directory of the prefix, with its path; none when it does not exist.
    base: Option<(Bytes, Ino)>,
    /// Directories from the base down, each with the names still to come.
    frames: Vec<Frame>,
    /// Where keys are joined, many in one piece of memory.
    keys: BytesMut,
}

/// How much memory keys are joined in at once, in bytes.
const JOINED: usize = 16 << 10;

struct Frame {
    path: Bytes,
    dir: Ino,
    names: Box<dyn Iterator<Item = Result<(Bytes, Entry)>> + Send>,
    /// Names that do not start like this end the directory.
    like: Bytes,
    /// Walked from the very start, and nothing was there yet.
    empty: bool,
}

impl<'a> Walk<'a> {
    /// Starts before the first key with `prefix`.
    pub(crate) fn new(view: &'a View, prefix: &[u8]) -> Result<Self> {
        let (dirs, _) = split_key(prefix);
        let path = dirs.concat();
        let base = find_dir(view, &dirs)?.map(|dir| (Bytes::from(path), dir));
        let mut walk =
            Self { view, prefix: Bytes::copy_from_slice(prefix), base, frames: Vec::new(), keys: BytesMut::new() };
        walk.seek(&[])?;
        Ok(walk)
    }

    /// Moves to the first key at or after `start`.
    pub(crate) fn seek(&mut self, start: &[u8]) -> Result<()> {
        self.frames.clear();
        let Some((mut path, mut dir)) = self.base.clone() else { return Ok(()) };
        let start = if start <= &self.prefix[..] { self.prefix.clone() } else { Bytes::copy_from_slice(start) };
        if !start.starts_with(&self.prefix) {
            return Ok(());
        }
        let mut like = self.prefix.slice(path.len()..);
        let mut tail = start.slice(path.len()..);
        while let Some(slash) = tail.iter().position(|b| *b == b'/') {
            let raw = tail.slice(..=slash);
            match self.view.entry(dir, &raw)? {
                Some(entry) if entry.kind == FileType::Directory => {
                    // Above, the walk goes on behind this directory.
                    let behind = [&raw[..], b"\0"].concat();
                    self.push(path.clone(), dir, &behind, std::mem::take(&mut like));
                    path = [path, raw].concat().into();
                    dir = entry.ino;
                    tail = tail.slice(slash + 1..);
                }
                _ => {
                    tail = raw;
                    break;
                }
            }
        }
        self.push(path, dir, &tail, like);
        Ok(())
    }

    /// Enters a directory that the walk came to: its keys are next.
    pub(crate) fn enter(&mut self, path: Bytes, dir: Ino) {
        self.push(path, dir, &[], Bytes::new());
    }

    fn push(&mut self, path: Bytes, dir: Ino, from: &[u8], like: Bytes) {
        let names = Box::new(self.view.entries(dir, from));
        self.frames.push(Frame { path, dir, names, like, empty: from.is_empty() });
    }

    /// Returns the next object or directory.
    pub(crate) fn next(&mut self) -> Result<Option<Step>> {
        while let Some(frame) = self.frames.last_mut() {
            let Some((raw, entry)) = frame.names.next().transpose()?.filter(|(raw, _)| raw.starts_with(&frame.like))
            else {
                let (path, dir, empty) = (frame.path.clone(), frame.dir, frame.empty);
                self.frames.pop();
                if empty && !path.is_empty() && !self.view.inode(dir)?.implicit {
                    return Ok(Some(Step::Object { key: path, ino: dir }));
                }
                continue;
            };
            frame.empty = false;
            let key = join(&mut self.keys, &frame.path, raw);
            match entry.kind {
                FileType::Directory => return Ok(Some(Step::Dir { path: key, ino: entry.ino })),
                FileType::File | FileType::Symlink => return Ok(Some(Step::Object { key, ino: entry.ino })),
                FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice => {}
            }
        }
        Ok(None)
    }
}

/// Returns a directory's path and a name in it as one key.
fn join(keys: &mut BytesMut, path: &[u8], name: Bytes) -> Bytes {
    if path.is_empty() {
        return name;
    }
    let len = path.len() + name.len();
    if keys.capacity() < len {
        *keys = BytesMut::with_capacity(JOINED.max(len));
    }
    keys.extend_from_slice(path);
    keys.extend_from_slice(&name);
    keys.split().freeze()
}

/// Returns whether there is any key in a directory: one that only a mount keeps alive, or that holds nothing but pipes, has none.
pub(crate) fn holds_key(view: &View, dir: Ino) -> Result<bool> {
    // Any path but the empty one will do; the root is never asked for.
    let mut walk = Walk { view, prefix: Bytes::new(), base: None, frames: Vec::new(), keys: BytesMut::new() };
    walk.enter(Bytes::from_static(b"/"), dir);
    while let Some(step) = walk.next()? {
        match step {
            Step::Object { .. } => return Ok(true),
            Step::Dir { path, ino } => walk.enter(path, ino),
        }
    }
    Ok(false)
}

/// Returns the least string after all that start with `prefix`; none when there is none.
pub(crate) fn past(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|b| *b != u8::MAX)?;
    let mut past = prefix[..=last].to_vec();
    past[last] += 1;
    Some(past)
}
