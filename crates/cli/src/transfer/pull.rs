//! Writes a stream of frames into a directory of this machine, and nowhere else.
//!
//! What arrives was made by agents and is not trusted. Every name is opened relative to the destination with `RESOLVE_BENEATH` and
//! `RESOLVE_NO_SYMLINKS` (openat2), so that no link, old or new, leads out. A file is written beside under a name that cannot be
//! guessed and then renamed, so that what stands there is replaced, never written through. Devices and sockets are not made; owners and
//! the set-id bits are kept only on request, as together they would make a program of an agent run as its owner.

use crate::failure::{Failure, Result};
use bytes::Bytes;
use mw_http::frames::{Node, Record, Records};
use mw_http::types::{Moved, path_text};
use mw_model::{ErrorKind, FileType};
use rustix::fs::{AtFlags, FileType as HostType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where the thing goes.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The path that was given.
    pub path: PathBuf,
    /// Whether it means the inside of `path` when that is a directory.
    pub inside: bool,
    /// The thing's own name.
    pub name: Bytes,
    /// Keep owners and the set-id bits.
    pub owner: bool,
}

/// A file that is being written, under a name of its own.
struct Writing {
    node: Node,
    file: File,
    parent: OwnedFd,
    beside: String,
    kept: bool,
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.kept {
            // Half a file is of no use to anybody.
            let _ = rustix::fs::unlinkat(&self.parent, self.beside.as_str(), AtFlags::empty());
        }
    }
}

struct Pull {
    root: OwnedFd,
    /// What stands before every path of the stream: the name of a single file.
    name: Option<Bytes>,
    owner: bool,
    token: String,
    /// The directory that was used last, as files come in the order of their directories.
    last: Option<(Bytes, OwnedFd)>,
    shown: PathBuf,
    moved: Moved,
}

/// Writes the stream to `destination`.
///
/// # Errors
/// Those of the stream and of the operating system; what was written before stays.
pub fn receive(
    input: impl Read,
    destination: &Destination,
    token: String,
    tick: &mut dyn FnMut(&Moved),
) -> Result<Moved> {
    let mut records = Records::new(input);
    let Some(first) = records.next()? else {
        return Err(Failure::new(ErrorKind::Io, "the stream of files was empty; try again"));
    };
    let Record::Node(root) = &first else {
        return Err(Failure::new(ErrorKind::Invalid, "the stream of files does not start with its root"));
    };
    let mut pull = Pull::new(destination, root.kind == FileType::Directory, token)?;
    let mut writing = None;
    pull.record(first, &mut writing)?;
    while let Some(record) = records.next()? {
        pull.record(record, &mut writing)?;
        tick(&pull.moved);
    }
    if writing.is_some() {
        return Err(Failure::new(ErrorKind::Invalid, "the stream of files ended within a file"));
    }
    Ok(pull.moved)
}

fn os(path: &[u8]) -> &OsStr {
    if path.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(path) }
}

fn split(path: &Bytes) -> (Bytes, Bytes) {
    match path.iter().rposition(|&b| b == b'/') {
        None => (Bytes::new(), path.clone()),
        Some(at) => (path.slice(..at), path.slice(at + 1..)),
    }
}

impl Pull {
    fn new(destination: &Destination, directory: bool, token: String) -> Result<Self> {
        let path = &destination.path;
        let (dir, name) = if directory {
            std::fs::create_dir_all(path).map_err(|e| Failure::io(path.display(), e))?;
            (path.clone(), None)
        } else if path.is_dir() || destination.inside {
            (path.clone(), Some(destination.name.clone()))
        } else {
            let name =
                path.file_name().ok_or_else(|| Failure::usage(format!("{} names no file to write", path.display())))?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            (parent.to_owned(), Some(Bytes::copy_from_slice(name.as_bytes())))
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&dir, flags, Mode::empty()).map_err(|e| Failure::io(dir.display(), e))?;
        Ok(Self { root, name, owner: destination.owner, token, last: None, shown: dir, moved: Moved::default() })
    }

    /// Returns the path under the destination of a path of the stream.
    fn place(&self, path: &Bytes) -> Bytes {
        match &self.name {
            None => path.clone(),
            // A single file: its path in the stream is empty.
            Some(name) => name.clone(),
        }
    }

    fn failed(&self, path: &[u8], error: impl Into<std::io::Error>) -> Failure {
        Failure::io(self.shown.join(os(path)).display(), error)
    }

    /// Opens a directory beneath the destination; no link on the way is followed.
    fn directory(&self, path: &Bytes) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.root, os(path), flags, Mode::empty(), resolve).map_err(|error| match error {
            Errno::LOOP | Errno::XDEV => Failure::new(
                ErrorKind::Denied,
                format!(
                    "{} leads out of the destination by a symbolic link, which is not followed; remove the link",
                    self.shown.join(os(path)).display()
                ),
            ),
            other => self.failed(path, other),
        })
    }

    /// Opens the directory in which `path` stands, and returns it with the name.
    fn parent(&mut self, path: &Bytes) -> Result<(OwnedFd, Bytes)> {
        let (dir, name) = split(path);
        let known = self.last.as_ref().filter(|(last, _)| *last == dir).and_then(|(_, fd)| fd.try_clone().ok());
        if let Some(fd) = known {
            return Ok((fd, name));
        }
        let fd = self.directory(&dir)?;
        let kept = fd.try_clone().map_err(|e| self.failed(path, e))?;
        self.last = Some((dir, kept));
        Ok((fd, name))
    }

    fn beside(&self) -> String {
        format!(".mw-get-{}", self.token)
    }

    fn record(&mut self, record: Record, writing: &mut Option<Writing>) -> Result<()> {
        match record {
            Record::Node(node) => match node.kind {
                FileType::Directory => self.make_dir(&node),
                FileType::File => {
                    *writing = Some(self.begin(node)?);
                    Ok(())
                }
                FileType::Symlink => self.symlink(&node),
                FileType::Fifo => self.fifo(&node),
                FileType::Socket | FileType::CharDevice | FileType::BlockDevice => {
                    self.skip(&node.path, "devices and sockets are not made here");
                    Ok(())
                }
            },
            Record::Data { offset, bytes } => {
                let file = writing
                    .as_ref()
                    .ok_or_else(|| Failure::new(ErrorKind::Invalid, "the stream has content outside a file"))?;
                file.file.write_all_at(&bytes, offset).map_err(|e| self.failed(&file.node.path, e))?;
                self.moved.bytes += bytes.len() as u64;
                Ok(())
            }
            Record::Done => {
                let file = writing
                    .take()
                    .ok_or_else(|| Failure::new(ErrorKind::Invalid, "the stream ends a file that it did not begin"))?;
                self.end(file)
            }
            Record::HardLink { path, to } => self.hard_link(&path, &to),
            Record::Settle(node) => {
                let place = self.place(&node.path);
                let fd = self.directory(&place)?;
                self.dress(fd.as_fd(), &node)
            }
            Record::Skipped { path, why } => {
                self.skip(&path, &why);
                Ok(())
            }
            // These end the stream before they come here.
            Record::Failed { kind, message } => Err(Failure::new(kind, message)),
            Record::End => Ok(()),
        }
    }

    fn skip(&mut self, path: &[u8], why: &str) {
        self.moved.skipped.push(format!("{}: {why}", path_text(path)));
    }

    fn make_dir(&mut self, node: &Node) -> Result<()> {
        self.moved.directories += 1;
        let place = self.place(&node.path);
        if place.is_empty() {
            // The destination itself, which is there.
            return Ok(());
        }
        let (parent, name) = self.parent(&place)?;
        match rustix::fs::mkdirat(&parent, os(&name), Mode::RWXU) {
            Ok(()) => Ok(()),
            // It must be a directory, and not a link to one.
            Err(Errno::EXIST) => self.directory(&place).map(drop),
            Err(error) => Err(self.failed(&place, error)),
        }
    }

    fn begin(&mut self, node: Node) -> Result<Writing> {
        let place = self.place(&node.path);
        let (parent, _) = self.parent(&place)?;
        let beside = self.beside();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&parent, beside.as_str(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| self.failed(&place, e))?;
        Ok(Writing { node, file: file.into(), parent, beside, kept: false })
    }

    fn end(&mut self, mut writing: Writing) -> Result<()> {
        let node = &writing.node;
        let place = self.place(&node.path);
        writing.file.set_len(node.size).map_err(|e| self.failed(&place, e))?;
        self.dress(writing.file.as_fd(), node)?;
        let (_, name) = split(&place);
        self.put(&writing.parent, &writing.beside, &name, &place)?;
        writing.kept = true;
        self.moved.files += 1;
        Ok(())
    }

    /// Gives the thing beside its name; what stood there is replaced.
    fn put(&self, parent: &OwnedFd, beside: &str, name: &[u8], place: &[u8]) -> Result<()> {
        rustix::fs::renameat(parent, beside, parent, os(name)).map_err(|e| {
            let _ = rustix::fs::unlinkat(parent, beside, AtFlags::empty());
            self.failed(place, e)
        })
    }

    fn symlink(&mut self, node: &Node) -> Result<()> {
        let place = self.place(&node.path);
        let (parent, name) = self.parent(&place)?;
        let beside = self.beside();
        rustix::fs::symlinkat(OsStr::from_bytes(&node.target), &parent, beside.as_str())
            .map_err(|e| self.failed(&place, e))?;
        self.own(&parent, &beside, node, &place)?;
        rustix::fs::utimensat(&parent, beside.as_str(), &times(node), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| self.failed(&place, e))?;
        self.put(&parent, &beside, &name, &place)?;
        self.moved.links += 1;
        Ok(())
    }

    fn fifo(&mut self, node: &Node) -> Result<()> {
        let place = self.place(&node.path);
        let (parent, name) = self.parent(&place)?;
        let beside = self.beside();
        let mode = Mode::from_raw_mode(node.mode & 0o777);
        rustix::fs::mknodat(&parent, beside.as_str(), HostType::Fifo, mode, 0).map_err(|e| self.failed(&place, e))?;
        self.own(&parent, &beside, node, &place)?;
        // Its name is ours alone and its type known, so that following a link is no question.
        rustix::fs::chmodat(&parent, beside.as_str(), mode, AtFlags::empty()).map_err(|e| self.failed(&place, e))?;
        rustix::fs::utimensat(&parent, beside.as_str(), &times(node), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| self.failed(&place, e))?;
        self.put(&parent, &beside, &name, &place)
    }

    fn own(&self, parent: &OwnedFd, name: &str, node: &Node, place: &[u8]) -> Result<()> {
        if !self.owner {
            return Ok(());
        }
        let (uid, gid) = (Some(Uid::from_raw(node.uid)), Some(Gid::from_raw(node.gid)));
        rustix::fs::chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| self.failed(place, e))
    }

    fn hard_link(&mut self, path: &Bytes, to: &Bytes) -> Result<()> {
        let (place, to) = (self.place(path), self.place(to));
        let (old_dir, old_name) = split(&to);
        let old = self.directory(&old_dir)?;
        let (parent, name) = self.parent(&place)?;
        let beside = self.beside();
        match rustix::fs::linkat(&old, os(&old_name), &parent, beside.as_str(), AtFlags::empty()) {
            Ok(()) => {}
            // Its first name was left out, and was named then.
            Err(Errno::NOENT) => {
                self.skip(path, "its first name could not travel");
                return Ok(());
            }
            Err(error) => return Err(self.failed(&place, error)),
        }
        self.put(&parent, &beside, &name, &place)?;
        // A rename between two names of one file does nothing (POSIX), and leaves both.
        let _ = rustix::fs::unlinkat(&parent, beside.as_str(), AtFlags::empty());
        self.moved.links += 1;
        Ok(())
    }

    /// Gives a file or directory its attributes.
    fn dress(&mut self, fd: std::os::fd::BorrowedFd<'_>, node: &Node) -> Result<()> {
        let place = self.place(&node.path);
        for (name, value) in node.xattrs.iter().filter(|(name, _)| name.starts_with(b"user.")) {
            let set = rustix::fs::fsetxattr(fd, os(name), value, rustix::fs::XattrFlags::empty());
            match set {
                Ok(()) => {}
                Err(Errno::OPNOTSUPP) => {
                    let why = format!("the destination keeps no attribute {}", String::from_utf8_lossy(name));
                    self.skip(&node.path, &why);
                }
                Err(error) => return Err(self.failed(&place, error)),
            }
        }
        let mut mode = node.mode & 0o7777;
        if self.owner {
            // Before the mode: a change of owner clears the set-id bits.
            rustix::fs::fchown(fd, Some(Uid::from_raw(node.uid)), Some(Gid::from_raw(node.gid)))
                .map_err(|e| self.failed(&place, e))?;
        } else if node.kind == FileType::File && mode & 0o6000 != 0 {
            mode &= 0o1777;
            self.skip(&node.path, "its set-user-id and set-group-id bits were left out; --owner keeps them");
        }
        rustix::fs::fchmod(fd, Mode::from_raw_mode(mode)).map_err(|e| self.failed(&place, e))?;
        rustix::fs::futimens(fd, &times(node)).map_err(|e| self.failed(&place, e))
    }
}

fn times(node: &Node) -> Timestamps {
    let time = |at: i64| Timespec { tv_sec: at.div_euclid(1_000_000_000), tv_nsec: at.rem_euclid(1_000_000_000) as _ };
    Timestamps { last_access: time(node.atime), last_modification: time(node.mtime) }
}

#[cfg(test)]
mod tests;
