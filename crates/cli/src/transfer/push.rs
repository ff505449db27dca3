//! Reads a file or tree of this machine and sends it: modes, links, times, holes and `user.*` attributes.
//!
//! Symbolic links are sent as links. What cannot be read ends the transfer; what cannot travel (sockets) is named and left out.

use bytes::Bytes;
use mw_http::body::{Gone, Sink};
use mw_http::frames::{self, Node, Record};
use mw_model::{ErrorKind, FileType};
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags, SeekFrom};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many bytes of records are sent at a time.
const FLUSH: usize = 256 << 10;
/// The most bytes of attributes that one inode may bring.
const MAX_XATTRS: usize = 128 << 10;

/// How far a transfer is.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<(u64, u64)>>);

impl Tally {
    /// Returns the files and bytes so far.
    pub fn get(&self) -> (u64, u64) {
        *self.0.lock()
    }

    /// Adds to them.
    pub fn add(&self, files: u64, bytes: u64) {
        let mut tally = self.0.lock();
        tally.0 += files;
        tally.1 += bytes;
    }
}

/// What stopped a transfer.
enum Stop {
    /// The server does not read any more; it says why.
    Gone,
    /// A file of this machine.
    Failed(PathBuf, io::Error),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

struct Push<'a> {
    sink: &'a Sink,
    buffer: Vec<u8>,
    tally: Tally,
    first: HashMap<(u64, u64), Bytes>,
}

/// Sends the file or tree at `path`.
pub fn send(sink: &Sink, path: &Path, tally: &Tally) {
    let mut push = Push::new(sink, tally);
    let outcome = push.root(path);
    push.end(outcome);
}

/// Sends what `input` gives as one file.
pub fn send_stream(sink: &Sink, mut input: impl Read, now: u64, tally: &Tally) {
    let mut push = Push::new(sink, tally);
    let outcome = push.stream(&mut input, now);
    push.end(outcome);
}

impl<'a> Push<'a> {
    fn new(sink: &'a Sink, tally: &Tally) -> Self {
        Self { sink, buffer: frames::MAGIC.to_vec(), tally: tally.clone(), first: HashMap::new() }
    }

    fn emit(&mut self, record: &Record) -> Result<(), Gone> {
        frames::encode(record, &mut self.buffer);
        if self.buffer.len() < FLUSH {
            return Ok(());
        }
        self.sink.send(std::mem::replace(&mut self.buffer, Vec::with_capacity(FLUSH + (FLUSH >> 2))))
    }

    fn end(mut self, outcome: Result<(), Stop>) {
        let last = match outcome {
            Ok(()) => Record::End,
            Err(Stop::Gone) => return,
            Err(Stop::Failed(path, error)) => {
                Record::Failed { kind: ErrorKind::of_io(&error), message: format!("{}: {error}", path.display()) }
            }
        };
        frames::encode(&last, &mut self.buffer);
        // The server's answer says what became of it.
        let _ = self.sink.send(std::mem::take(&mut self.buffer));
    }

    fn stream(&mut self, input: &mut impl Read, now: u64) -> Result<(), Stop> {
        let failed = |error| Stop::Failed(PathBuf::from("standard input"), error);
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let node = Node {
            path: Bytes::new(),
            kind: FileType::File,
            mode: 0o644,
            uid,
            gid,
            rdev: 0,
            size: frames::UNKNOWN_SIZE,
            atime: now,
            mtime: now,
            target: Bytes::new(),
            xattrs: Vec::new(),
        };
        self.emit(&Record::Node(node))?;
        let mut offset = 0;
        loop {
            let mut bytes = Vec::new();
            input.by_ref().take(FLUSH as u64).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.is_empty() {
                break;
            }
            let len = bytes.len() as u64;
            self.emit(&Record::Data { offset, bytes: bytes.into() })?;
            self.tally.add(0, len);
            offset += len;
        }
        self.tally.add(1, 0);
        Ok(self.emit(&Record::Done)?)
    }

    fn root(&mut self, path: &Path) -> Result<(), Stop> {
        // What is named outright may be a link; what is found beneath it stays one.
        let followed =
            if path.as_os_str().as_bytes().ends_with(b"/") { path.canonicalize() } else { Ok(path.to_owned()) };
        let root = followed.map_err(|error| Stop::Failed(path.to_owned(), error))?;
        self.walk(&root, Bytes::new())
    }

    /// Sends everything at and beneath `host`, without recursion: paths may be deep.
    fn walk(&mut self, host: &Path, path: Bytes) -> Result<(), Stop> {
        let mut levels: Vec<(PathBuf, Node, std::vec::IntoIter<PathBuf>)> = Vec::new();
        levels.extend(self.inode(host.to_owned(), path)?);
        while let Some((_, node, rest)) = levels.last_mut() {
            let Some(next) = rest.next() else {
                if let Some((_, node, _)) = levels.pop() {
                    self.emit(&Record::Settle(node))?;
                }
                continue;
            };
            let name = next.file_name().unwrap_or_default().as_bytes();
            let path = if node.path.is_empty() {
                Bytes::copy_from_slice(name)
            } else {
                [&node.path[..], b"/", name].concat().into()
            };
            levels.extend(self.inode(next, path)?);
        }
        Ok(())
    }

    /// Sends one inode. Returns a directory with its entries.
    fn inode(
        &mut self,
        host: PathBuf,
        path: Bytes,
    ) -> Result<Option<(PathBuf, Node, std::vec::IntoIter<PathBuf>)>, Stop> {
        let failed = |error: io::Error| Stop::Failed(host.clone(), error);
        let meta = match std::fs::symlink_metadata(&host) {
            Ok(meta) => meta,
            // Removed since its directory was read; only what was named outright must be there.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_empty() => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let Some(kind) = kind(&meta) else {
            self.emit(&Record::Skipped { path, why: "a socket cannot travel".to_owned() })?;
            return Ok(None);
        };
        if kind != FileType::Directory && meta.nlink() > 1 {
            if let Some(to) = self.first.get(&(meta.dev(), meta.ino())) {
                let to = to.clone();
                self.emit(&Record::HardLink { path, to })?;
                return Ok(None);
            }
            self.first.insert((meta.dev(), meta.ino()), path.clone());
        }
        let mut node = node(&host, path, kind, &meta).map_err(failed)?;
        match kind {
            FileType::Directory => {
                let mut names: Vec<PathBuf> = Vec::new();
                for entry in std::fs::read_dir(&host).map_err(failed)? {
                    names.push(entry.map_err(failed)?.path());
                }
                names.sort();
                self.emit(&Record::Node(node.clone()))?;
                Ok(Some((host, node, names.into_iter())))
            }
            FileType::File => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file =
                    rustix::fs::open(&host, flags, Mode::empty()).map(File::from).map_err(|e| failed(e.into()))?;
                // The size of what was opened, should the name have changed hands since.
                node.size = file.metadata().map_err(failed)?.len();
                let sparse = meta.blocks() * 512 < node.size;
                let size = node.size;
                self.emit(&Record::Node(node))?;
                self.content(&host, &file, size, sparse)?;
                self.tally.add(1, 0);
                self.emit(&Record::Done)?;
                Ok(None)
            }
            FileType::Symlink | FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice => {
                self.emit(&Record::Node(node))?;
                Ok(None)
            }
        }
    }

    fn content(&mut self, host: &Path, file: &File, size: u64, sparse: bool) -> Result<(), Stop> {
        let failed = |error: io::Error| Stop::Failed(host.to_owned(), error);
        let mut at = 0;
        while at < size {
            let end = if sparse {
                at = match rustix::fs::seek(file, SeekFrom::Data(at)) {
                    Ok(data) => data,
                    // Nothing but a hole up to the end.
                    Err(rustix::io::Errno::NXIO) => return Ok(()),
                    Err(error) => return Err(failed(error.into())),
                };
                rustix::fs::seek(file, SeekFrom::Hole(at)).map_err(|e| failed(e.into()))?.min(size)
            } else {
                size
            };
            while at < end {
                let mut bytes = vec![0; usize::try_from(end - at).unwrap_or(usize::MAX).min(frames::MAX_DATA)];
                let n = file.read_at(&mut bytes, at).map_err(failed)?;
                if n == 0 {
                    // Cut since its size was looked up; the rest arrives as a hole.
                    return Ok(());
                }
                bytes.truncate(n);
                self.emit(&Record::Data { offset: at, bytes: bytes.into() })?;
                self.tally.add(0, n as u64);
                at += n as u64;
            }
        }
        Ok(())
    }
}

fn kind(meta: &Metadata) -> Option<FileType> {
    let kind = meta.file_type();
    Some(match () {
        () if kind.is_file() => FileType::File,
        () if kind.is_dir() => FileType::Directory,
        () if kind.is_symlink() => FileType::Symlink,
        () if kind.is_fifo() => FileType::Fifo,
        () if kind.is_char_device() => FileType::CharDevice,
        () if kind.is_block_device() => FileType::BlockDevice,
        () => return None,
    })
}

fn node(host: &Path, path: Bytes, kind: FileType, meta: &Metadata) -> io::Result<Node> {
    let target = if kind == FileType::Symlink {
        std::fs::read_link(host)?.into_os_string().into_vec().into()
    } else {
        Bytes::new()
    };
    let time = |seconds: i64, nanoseconds: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
    Ok(Node {
        path,
        kind,
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
        rdev: u32::try_from(meta.rdev()).unwrap_or(0),
        size: if kind == FileType::File { meta.len() } else { 0 },
        atime: time(meta.atime(), meta.atime_nsec()),
        mtime: time(meta.mtime(), meta.mtime_nsec()),
        target,
        xattrs: xattrs(host),
    })
}

/// Returns the `user.*` attributes. A file system without them has none.
fn xattrs(host: &Path) -> Vec<(Bytes, Bytes)> {
    let mut names = vec![0; 64 << 10];
    let Ok(len) = rustix::fs::llistxattr(host, &mut names) else { return Vec::new() };
    let mut room = MAX_XATTRS;
    names[..len]
        .split(|&b| b == 0)
        .filter(|name| name.starts_with(b"user."))
        .filter_map(|name| {
            let mut value = vec![0; 64 << 10];
            let len = rustix::fs::lgetxattr(host, std::ffi::OsStr::from_bytes(name), &mut value).ok()?;
            value.truncate(len);
            room = room.checked_sub(name.len() + len)?;
            Some((Bytes::copy_from_slice(name), value.into()))
        })
        .collect()
}
