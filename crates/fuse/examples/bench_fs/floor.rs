//! The floor: a bare file system in memory over the same FUSE crate, with the same threads, flags and time-outs as the mount.
//!
//! Nothing that answers the same requests can be much faster, so what a figure has above this one is the mount's own doing. It is
//! made for measuring alone: no permissions, no holes, and an inode goes with its last name.

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, SessionACL, TimeOrNow, WriteFlags,
};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const KEEP: Duration = Duration::from_secs(24 * 3600);
const GENERATION: Generation = Generation(0);
const MAX_WRITE: u32 = 1 << 20;

enum Content {
    File(Vec<u8>),
    Directory(BTreeMap<OsString, u64>),
    Link(Vec<u8>),
}

struct Node {
    attr: FileAttr,
    content: Content,
}

impl Node {
    fn told(&self) -> FileAttr {
        let size = match &self.content {
            Content::File(bytes) | Content::Link(bytes) => bytes.len() as u64,
            Content::Directory(_) => 4096,
        };
        FileAttr { size, blocks: size.div_ceil(512), ..self.attr }
    }

    fn names(&mut self) -> Result<&mut BTreeMap<OsString, u64>, Errno> {
        match &mut self.content {
            Content::Directory(names) => Ok(names),
            _ => Err(Errno::ENOTDIR),
        }
    }
}

/// The file system. Inode `n` stands at place `n`.
pub struct Floor {
    nodes: RwLock<Vec<Option<Node>>>,
    requests: &'static AtomicU64,
}

/// Mounts a fresh one at `dir`; unmounted when dropped. `requests` counts what the kernel asks.
pub fn mount(dir: &Path, threads: usize, requests: &'static AtomicU64) -> std::io::Result<fuser::BackgroundSession> {
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("floor".to_owned()), MountOption::DefaultPermissions, MountOption::NoSuid];
    config.acl = if rustix::process::geteuid().is_root() { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(threads);
    config.clone_fd = true;
    let root = Node { attr: attr(1, FileType::Directory, 0o755, 0, 0), content: Content::Directory(BTreeMap::new()) };
    let floor = Floor { nodes: RwLock::new(vec![None, Some(root)]), requests };
    fuser::spawn_mount(floor, dir, &config)
}

fn attr(ino: u64, kind: FileType, mode: u32, uid: u32, gid: u32) -> FileAttr {
    let now = SystemTime::now();
    FileAttr {
        ino: INodeNo(ino),
        size: 0,
        blocks: 0,
        atime: now,
        mtime: now,
        ctime: now,
        crtime: now,
        kind,
        perm: (mode & 0o7777) as u16,
        nlink: if kind == FileType::Directory { 2 } else { 1 },
        uid,
        gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn time(set: TimeOrNow) -> SystemTime {
    match set {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

fn at(nodes: &[Option<Node>], ino: u64) -> Result<&Node, Errno> {
    nodes.get(ino as usize).and_then(Option::as_ref).ok_or(Errno::ENOENT)
}

fn at_mut(nodes: &mut [Option<Node>], ino: u64) -> Result<&mut Node, Errno> {
    nodes.get_mut(ino as usize).and_then(Option::as_mut).ok_or(Errno::ENOENT)
}

/// Takes one name from an inode.
fn unlink(nodes: &mut [Option<Node>], ino: u64) -> Result<(), Errno> {
    let node = at_mut(nodes, ino)?;
    node.attr.nlink = node.attr.nlink.saturating_sub(1);
    if node.attr.nlink == 0 || node.attr.kind == FileType::Directory {
        nodes[ino as usize] = None;
    }
    Ok(())
}

impl Floor {
    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    fn make(&self, req: &Request, parent: u64, name: &OsStr, mode: u32, content: Content) -> Result<FileAttr, Errno> {
        self.count();
        let kind = match &content {
            Content::File(_) => FileType::RegularFile,
            Content::Directory(_) => FileType::Directory,
            Content::Link(_) => FileType::Symlink,
        };
        let mut nodes = self.nodes.write();
        let ino = nodes.len() as u64;
        let above = at_mut(&mut nodes, parent)?;
        above.attr.mtime = SystemTime::now();
        if above.names()?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        above.names()?.insert(name.to_owned(), ino);
        let node = Node { attr: attr(ino, kind, mode, req.uid(), req.gid()), content };
        let told = node.told();
        nodes.push(Some(node));
        Ok(told)
    }

    fn remove(&self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        self.count();
        let mut nodes = self.nodes.write();
        let ino = at_mut(&mut nodes, parent)?.names()?.get(name).copied().ok_or(Errno::ENOENT)?;
        if let Content::Directory(names) = &at(&nodes, ino)?.content
            && !names.is_empty()
        {
            return Err(Errno::ENOTEMPTY);
        }
        at_mut(&mut nodes, parent)?.names()?.remove(name);
        unlink(&mut nodes, ino)
    }

    fn find(&self, parent: u64, name: &OsStr) -> Result<FileAttr, Errno> {
        self.count();
        let nodes = self.nodes.read();
        match &at(&nodes, parent)?.content {
            Content::Directory(names) => Ok(at(&nodes, *names.get(name).ok_or(Errno::ENOENT)?)?.told()),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The names of a directory behind a position.
    fn list(&self, ino: u64, offset: u64) -> Result<Vec<(u64, OsString, FileAttr)>, Errno> {
        self.count();
        let nodes = self.nodes.read();
        let Content::Directory(names) = &at(&nodes, ino)?.content else { return Err(Errno::ENOTDIR) };
        let own = at(&nodes, ino)?.told();
        let dots = [(1, OsString::from("."), own), (2, OsString::from(".."), own)];
        let rest = (3..).zip(names).filter(|(place, _)| *place > offset).take(1024);
        let rest = rest.map(|(place, (name, ino))| Ok((place, name.clone(), at(&nodes, *ino)?.told())));
        dots.into_iter().filter(|(place, ..)| *place > offset).map(Ok).chain(rest).collect()
    }
}

fn entry(made: Result<FileAttr, Errno>, reply: ReplyEntry) {
    match made {
        Ok(attr) => reply.entry(&KEEP, &attr, GENERATION),
        Err(errno) => reply.error(errno),
    }
}

fn empty(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Floor {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        for wanted in [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        ] {
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_write(MAX_WRITE);
        let _ = config.set_max_readahead(MAX_WRITE).or_else(|most| config.set_max_readahead(most));
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.find(parent.0, name) {
            // A name that is not there is remembered, as the mount does.
            Err(errno) if i32::from(errno) == i32::from(Errno::ENOENT) => {
                reply.entry(&KEEP, &attr(0, FileType::RegularFile, 0, 0, 0), GENERATION);
            }
            found => entry(found, reply),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.count();
        match at(&self.nodes.read(), ino.0) {
            Ok(node) => reply.attr(&KEEP, &node.told()),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.count();
        let mut nodes = self.nodes.write();
        let node = match at_mut(&mut nodes, ino.0) {
            Ok(node) => node,
            Err(errno) => return reply.error(errno),
        };
        let old = &mut node.attr;
        old.perm = mode.map_or(old.perm, |mode| (mode & 0o7777) as u16);
        old.uid = uid.unwrap_or(old.uid);
        old.gid = gid.unwrap_or(old.gid);
        old.atime = atime.map_or(old.atime, time);
        old.mtime = mtime.map_or(old.mtime, time);
        old.ctime = SystemTime::now();
        if let (Some(size), Content::File(bytes)) = (size, &mut node.content) {
            bytes.resize(size as usize, 0);
        }
        reply.attr(&KEEP, &node.told());
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.count();
        match at(&self.nodes.read(), ino.0).map(|node| &node.content) {
            Ok(Content::Link(target)) => reply.data(target),
            _ => reply.error(Errno::EINVAL),
        }
    }

    fn mknod(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, _: u32, reply: ReplyEntry) {
        entry(self.make(req, parent.0, name, mode, Content::File(Vec::new())), reply);
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        entry(self.make(req, parent.0, name, mode, Content::Directory(BTreeMap::new())), reply);
    }

    fn symlink(&self, req: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_encoded_bytes().to_vec();
        entry(self.make(req, parent.0, name, 0o777, Content::Link(target)), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.remove(parent.0, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.remove(parent.0, name), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        self.count();
        let rename = || {
            let mut nodes = self.nodes.write();
            let ino = at_mut(&mut nodes, parent.0)?.names()?.remove(name).ok_or(Errno::ENOENT)?;
            match at_mut(&mut nodes, new_parent.0)?.names()?.insert(new_name.to_owned(), ino) {
                Some(replaced) => unlink(&mut nodes, replaced),
                None => Ok(()),
            }
        };
        empty(rename(), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, new_parent: INodeNo, new_name: &OsStr, reply: ReplyEntry) {
        self.count();
        let link = || {
            let mut nodes = self.nodes.write();
            if at_mut(&mut nodes, new_parent.0)?.names()?.insert(new_name.to_owned(), ino.0).is_some() {
                return Err(Errno::EEXIST);
            }
            let node = at_mut(&mut nodes, ino.0)?;
            node.attr.nlink += 1;
            Ok(node.told())
        };
        entry(link(), reply);
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.count();
        if flags.0 & rustix::fs::OFlags::TRUNC.bits() as i32 != 0
            && let Ok(Node { content: Content::File(bytes), .. }) = at_mut(&mut self.nodes.write(), ino.0)
        {
            bytes.clear();
        }
        reply.opened(FileHandle(0), FopenFlags::FOPEN_NOFLUSH | FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.count();
        match at(&self.nodes.read(), ino.0).map(|node| &node.content) {
            Ok(Content::File(bytes)) => {
                let start = (offset as usize).min(bytes.len());
                reply.data(&bytes[start..(start + size as usize).min(bytes.len())]);
            }
            _ => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.count();
        let mut nodes = self.nodes.write();
        let Ok(Node { content: Content::File(bytes), attr }) = at_mut(&mut nodes, ino.0) else {
            return reply.error(Errno::EIO);
        };
        let (start, end) = (offset as usize, offset as usize + data.len());
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(data);
        attr.mtime = SystemTime::now();
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        match self.list(ino.0, offset) {
            Ok(lines) => {
                for (place, name, attr) in lines {
                    if reply.add(attr.ino, place, attr.kind, name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn readdirplus(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        match self.list(ino.0, offset) {
            Ok(lines) => {
                for (place, name, attr) in lines {
                    if reply.add(attr.ino, place, name, &KEEP, &attr, GENERATION) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn create(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, _: i32, reply: ReplyCreate) {
        match self.make(req, parent.0, name, mode, Content::File(Vec::new())) {
            Ok(attr) => {
                let flags = FopenFlags::FOPEN_NOFLUSH | FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&KEEP, &attr, GENERATION, FileHandle(0), flags);
            }
            Err(errno) => reply.error(errno),
        }
    }
}
