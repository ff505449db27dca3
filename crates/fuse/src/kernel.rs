//! Decoding the kernel's requests and encoding the answers: nothing else.
//!
//! One method a request, in the order of fuser's trait. `access` is never asked, because the kernel checks permissions itself.

use crate::attr::{absent, kind, kind_of_mode, nanoseconds, set_time};
use crate::door::{Asks, Door, Negotiated, New, Refuse, Resize, Write, Wrote};
use crate::gate::Passage;
use crate::lookout;
use crate::opening::{goes_around_pages, listing_flags, opened};
use crate::pieces::{MAX_WRITE, Piece};
use crate::place;
use bytes::Bytes;
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, Generation, INodeNo, InitFlags, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLock, ReplyLseek,
    ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, Request, RequestId, TimeOrNow, WriteFlags,
};
use mw_model::{Attr, FileType};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Inode numbers are never used again, so one generation is enough.
const GENERATION: Generation = Generation(0);
/// What `statfs` counts in.
const BLOCK: u32 = 4096;
/// Requests that the kernel may send ahead (read-ahead, page writing).
const BACKGROUND: u16 = 64;

/// The kernel's view of a door.
pub(crate) struct Requests(pub(crate) Arc<Door>);

macro_rules! refuse {
    ($($reply:ty),*) => {$(
        impl Refuse for $reply {
            fn refuse(self, errno: Errno) {
                self.error(errno);
            }
        }
    )*};
}

refuse!(
    ReplyAttr,
    ReplyCreate,
    ReplyData,
    ReplyDirectory,
    ReplyDirectoryPlus,
    ReplyEmpty,
    ReplyEntry,
    ReplyLock,
    ReplyLseek,
    ReplyOpen,
    ReplyStatfs,
    ReplyWrite,
    ReplyXattr
);

impl Requests {
    /// Answers that all is well with a file of which the kernel has sent all that it had.
    fn settled(&self, ino: u64, reply: ReplyEmpty) {
        match self.0.settled_times(ino) {
            Some(times) => self.0.change(Passage::Name, reply, move |door| door.set_times(ino, &times), empty),
            None => reply.ok(),
        }
    }

    /// Makes something with a name and answers with it.
    fn make(&self, new: New, reply: ReplyEntry) {
        let (parent, since) = (new.parent, self.0.epochs.now());
        let make = move |door: &Door| door.make(new);
        self.0.change(Passage::Name, reply, make, move |door, reply, attr| entry(door, reply, parent, since, &attr));
    }
}

fn entry(door: &Door, reply: ReplyEntry, parent: u64, since: u64, attr: &Attr) {
    // The order matters: counted, then judged, then sent (see `known` and `epochs`).
    let (node, told) = door.introduce(parent, since, attr);
    let (attr_ttl, name_ttl) = (door.keep_attr(attr.ino.0, since), door.keep_name(parent, since));
    reply.entry_with_ttls(node, &attr_ttl, &name_ttl, &told, GENERATION);
}

/// Answers with what was made and is open.
fn created(door: &Door, reply: ReplyCreate, parent: u64, since: u64, flags: i32, attr: &Attr) {
    let ino = attr.ino.0;
    // It is new, and has its number for a node.
    let (_, told) = door.introduce(parent, since, attr);
    let keep = door.keep_attr(ino, since).min(door.keep_name(parent, since));
    let (handle, told_flags) = opened(door, ino, since, flags);
    reply.created(&keep, &told, GENERATION, handle, told_flags);
}

fn empty(_: &Door, reply: ReplyEmpty, (): ()) {
    reply.ok();
}

fn owned(name: &OsStr) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

/// Answers a question for an attribute value: its size when `size` is 0 (getxattr(2)).
fn sized(reply: ReplyXattr, size: u32, value: &[u8]) {
    match u32::try_from(value.len()) {
        Ok(len) if size == 0 => reply.size(len),
        Ok(len) if len <= size => reply.data(value),
        _ => reply.error(Errno::ERANGE),
    }
}

impl Filesystem for Requests {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut capabilities = InitFlags::empty();
        // One by one: each is worth having alone, and an old kernel lacks some. Not FUSE_ATOMIC_O_TRUNC: with it, opening a running
        // program with O_RDONLY | O_TRUNC empties it before the kernel says ETXTBSY. Not FUSE_ASYNC_DIO: the pieces of a direct
        // write would come in any order.
        for wanted in [
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_CACHE_SYMLINKS,
            // A directory's default access control list stands in for the umask, so we apply either.
            InitFlags::FUSE_POSIX_ACL,
            InitFlags::FUSE_DONT_MASK,
            // What is opened to append can be mapped all the same.
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
            // Locks of one mount alone would not keep another's programs away.
            InitFlags::FUSE_POSIX_LOCKS,
            InitFlags::FUSE_FLOCK_LOCKS,
            // We take setuid and setgid away ourselves; otherwise the kernel asks for an attribute before every write.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_SPLICE_READ,
            InitFlags::FUSE_SPLICE_WRITE,
            InitFlags::FUSE_SPLICE_MOVE,
        ] {
            if config.add_capabilities(wanted).is_ok() {
                capabilities |= wanted;
            }
        }
        if self.0.writes_back() {
            let wanted = InitFlags::FUSE_WRITEBACK_CACHE;
            config.add_capabilities(wanted).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
            capabilities |= wanted;
        }
        let protocol = config.kernel_abi();
        self.0.agreed(Negotiated { protocol: (protocol.0, protocol.1), capabilities: capabilities.bits() });
        // Refusals name the nearest value, and the default is one.
        let _ = config.set_max_write(MAX_WRITE);
        let _ = config.set_max_readahead(MAX_WRITE).or_else(|most| config.set_max_readahead(most));
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn waits(&self, device: BorrowedFd<'_>, last: u32) {
        let env = self.0.session.store().env();
        place::answered(last, env);
        lookout::look(device, last, env);
    }

    fn destroy(&mut self) {
        self.0.finish();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let since = self.0.epochs.now();
        // Another name for something: the kernel would not be told when that changes.
        let keep = !name.as_bytes().starts_with(mw_world::ESCAPE);
        let lookup = |door: &Door| door.lookup(parent.0, name.as_bytes());
        self.0.ask(reply, lookup, |door, reply, found| match found {
            Some(attr) if keep => entry(door, reply, parent.0, since, &attr),
            Some(attr) => {
                let (node, told) = door.introduce(parent.0, since, &attr);
                reply.entry_with_ttls(node, &door.keep_attr(attr.ino.0, since), &Duration::ZERO, &told, GENERATION);
            }
            None if keep => reply.entry(&door.keep_name(parent.0, since), &absent(), GENERATION),
            None => reply.entry(&Duration::ZERO, &absent(), GENERATION),
        });
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.0.forget(ino, lookups);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let since = self.0.epochs.now();
        self.0.ask(
            reply,
            |door| door.attr(door.current(ino)?),
            |door, reply, attr| {
                reply.attr(&door.keep_attr(attr.ino.0, since), &door.told(&attr));
            },
        );
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        owner: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let since = self.0.epochs.now();
        self.0.gate.ended(self.0.ino(ino));
        let (atime, mtime) = (atime.map(set_time), mtime.map(set_time));
        let owner = owner.map(|user| self.0.owners.user(user));
        let group = group.map(|group| self.0.owners.group(group));
        let ctime = ctime.map(nanoseconds);
        let change = Resize { mode, owner, group, size, atime, mtime, ctime, uid: req.uid() };
        // The kernel holds page writing up while a file is cut; attributes alone it does not.
        let passage = if size.is_some() { Passage::Content } else { Passage::Name };
        self.0.change(
            passage,
            reply,
            move |door| door.set_attr(ino, &change),
            move |door, reply, attr| {
                reply.attr(&door.keep_attr(attr.ino.0, since), &door.told(&attr));
            },
        );
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.0.ask(reply, |door| door.read_link(ino.0), |_, reply, target| reply.data(&target));
    }

    fn mknod(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, rdev: u32, reply: ReplyEntry) {
        let Some(kind) = kind_of_mode(mode) else { return reply.error(Errno::EINVAL) };
        let new = New { rdev, umask, ..new(req, parent, name, kind, mode) };
        self.make(new, reply);
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        self.make(New { umask, ..new(req, parent, name, FileType::Directory, mode) }, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = owned(name);
        self.0.change(Passage::Name, reply, move |door| door.unlink(parent.0, &name), empty);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = owned(name);
        self.0.change(Passage::Name, reply, move |door| door.rmdir(parent.0, &name), empty);
    }

    fn symlink(&self, req: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = owned(target.as_os_str());
        let new = New { target, ..new(req, parent, name, FileType::Symlink, 0o777) };
        self.make(new, reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (owned(name), owned(new_name));
        let rename = move |door: &Door| door.rename((parent.0, &from), (new_parent.0, &to), flags);
        self.0.change(Passage::Name, reply, rename, empty);
    }

    fn link(&self, _: &Request, ino: INodeNo, new_parent: INodeNo, new_name: &OsStr, reply: ReplyEntry) {
        let since = self.0.epochs.now();
        let name = owned(new_name);
        self.0.change(
            Passage::Name,
            reply,
            move |door| door.link(door.current(ino)?, new_parent.0, &name),
            move |door, reply, attr| entry(door, reply, new_parent.0, since, &attr),
        );
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let since = self.0.epochs.now();
        self.0.ask(
            reply,
            |door| {
                let file = door.current(ino)?;
                door.open(file, flags.0)?;
                // Once more: whoever hears of a change spares what is open.
                door.current(ino).inspect_err(|_| door.close(file, flags.0))
            },
            |door, reply, file| {
                let (handle, told) = opened(door, file, since, flags.0);
                reply.opened(handle, told);
            },
        );
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
        self.0.ask(reply, |door| door.read(door.opened_now(ino)?, offset, size), |_, reply, data| reply.data(&data));
    }

    fn write(
        &self,
        req: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let ino = self.0.ino(node);
        // The flags of mapped pages are those of any descriptor that the kernel found, so they say nothing.
        let mapped = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let flags = OFlags::from_bits_retain(flags.0 as u32);
        let piece = (!mapped).then(|| Piece {
            ino,
            task: req.pid(),
            offset,
            len: data.len() as u64,
            direct: goes_around_pages(&self.0, flags) || flags.contains(OFlags::DIRECT),
        });
        let write = Write {
            node,
            offset,
            append: !mapped && !self.0.writes_back() && flags.contains(OFlags::APPEND),
            kill: write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
            piece,
        };
        let sync = !mapped && flags.intersects(OFlags::SYNC | OFlags::DSYNC);
        let written = move |door: &Door, reply: ReplyWrite, wrote: Wrote| {
            reply.written(wrote.len);
            if wrote.moved {
                door.correct(ino);
            }
        };
        let answer = move |door: &Door, reply: ReplyWrite, wrote: Wrote| match sync {
            true => door.sync_then(reply, move |door, reply| written(door, reply, wrote)),
            false => written(door, reply, wrote),
        };
        let passage = if mapped { Passage::Page } else { Passage::Content };
        let pass = match &piece {
            Some(piece) => self.0.gate.enter_write(piece),
            None => self.0.gate.enter(passage),
        };
        match pass {
            Some(pass) => self.0.perform(pass, reply, |door| door.write(&write, data), answer),
            None => {
                // Only what waits for a fork is copied.
                let (door, data) = (self.0.clone(), data.to_vec());
                self.0.gate.park_write(passage, piece, move |pass| {
                    door.perform(pass, reply, |door| door.write(&write, &data), answer);
                });
            }
        }
    }

    fn flush(&self, _: &Request, ino: INodeNo, handle: FileHandle, owner: LockOwner, reply: ReplyEmpty) {
        // Nothing waits here: the kernel has sent every write, and each has reached the store.
        let ino = self.0.ino(ino);
        self.0.closes(ino, owner.0, handle.0);
        self.settled(ino, reply);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        flags: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        // Whether fcntl(2) or flock(2) locked it, it did so through this handle.
        let ino = self.0.ino(ino);
        self.0.closed(ino, handle.0);
        let close = |door: &Door| {
            door.close(ino, flags.0);
            Ok(())
        };
        self.0.ask(reply, close, empty);
    }

    fn fsync(&self, req: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let ino = self.0.ino(ino);
        self.0.gate.ended(ino);
        if self.0.is_barrier(req.pid()) {
            return reply.ok();
        }
        if let Some(times) = self.0.settled_times(ino) {
            let set = move |door: &Door| door.set_times(ino, &times);
            let sync = |door: &Door, reply, ()| door.sync_then(reply, |_, reply: ReplyEmpty| reply.ok());
            return self.0.change(Passage::Name, reply, set, sync);
        }
        self.0.sync_then(reply, |_, reply| reply.ok());
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let since = self.0.epochs.now();
        self.0.ask(
            reply,
            |door| door.open_dir(ino.0),
            |door, reply, handle| reply.opened(FileHandle(handle), listing_flags(door, ino.0, since)),
        );
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listed = {
            let reply = &mut reply;
            self.0.guard(|door| {
                door.list(handle.0, offset, &mut |line| {
                    !reply.add(INodeNo(line.ino), line.offset, kind(line.kind), OsStr::from_bytes(&line.name))
                })
            })
        };
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdirplus(&self, _: &Request, ino: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let since = self.0.epochs.now();
        let listed = {
            let reply = &mut reply;
            self.0.guard(|door| {
                door.list_plus(handle.0, offset, &mut |line, attr| {
                    let name = OsStr::from_bytes(&line.name);
                    if line.is_dot() {
                        // The kernel learns nothing from these two, and counts no look-up.
                        let told = door.told(attr);
                        return !reply.add(INodeNo(line.ino), line.offset, name, &Duration::ZERO, &told, GENERATION);
                    }
                    let (node, told) = door.introduce(ino.0, since, attr);
                    let keep = door.keep_attr(line.ino, since).min(door.keep_name(ino.0, since));
                    let full = reply.add(node, line.offset, name, &keep, &told, GENERATION);
                    if full {
                        door.forget(node, 1);
                    }
                    !full
                })
            })
        };
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        let close = |door: &Door| {
            door.close_dir(handle.0);
            Ok(())
        };
        self.0.ask(reply, close, empty);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.sync_then(reply, |_, reply| reply.ok());
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.0.ask(reply, Door::stat_fs, |_, reply, space| {
            let block = u64::from(BLOCK);
            let free = space.bytes_free / block;
            let name_max = mw_model::name::MAX_NAME as u32;
            reply.statfs(space.bytes / block, free, free, space.files, space.files_free, BLOCK, name_max, BLOCK);
        });
    }

    fn setxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, value: &[u8], flags: i32, _: u32, reply: ReplyEmpty) {
        let ino = self.0.ino(ino);
        self.0.gate.ended(ino);
        let (name, value) = (owned(name), Bytes::copy_from_slice(value));
        self.0.change(Passage::Name, reply, move |door| door.set_xattr(ino, &name, &value, flags), empty);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let get = |door: &Door| door.get_xattr(door.ino(ino), name.as_bytes());
        self.0.ask(reply, get, |_, reply, value| sized(reply, size, &value));
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.0.ask(reply, |door| door.list_xattr(door.ino(ino)), |_, reply, names| sized(reply, size, &names));
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = owned(name);
        self.0.change(Passage::Name, reply, move |door| door.remove_xattr(door.ino(ino), &name), empty);
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let since = self.0.epochs.now();
        let new = New { umask, ..new(req, parent, name, FileType::File, mode) };
        let create = move |door: &Door| door.create(new, flags);
        self.0.change(Passage::Name, reply, create, move |door, reply, attr| {
            created(door, reply, parent.0, since, flags, &attr)
        });
    }

    fn tmpfile(&self, req: &Request, parent: INodeNo, mode: u32, umask: u32, flags: i32, reply: ReplyCreate) {
        let since = self.0.epochs.now();
        let new = New { umask, ..new(req, parent, OsStr::new(""), FileType::File, mode) };
        let make = move |door: &Door| door.make_unnamed(new, flags);
        self.0.change(Passage::Name, reply, make, move |door, reply, attr| {
            created(door, reply, parent.0, since, flags, &attr)
        });
    }

    fn getlk(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let asks = Asks { ino: self.0.ino(ino), handle: handle.0, owner: owner.0, process: pid, kind: typ };
        self.0.ask(
            reply,
            |door| door.find_lock(asks, start, end),
            |_, reply, (start, end, kind, process)| reply.locked(start, end, kind, process),
        );
    }

    fn setlk(
        &self,
        req: &Request,
        ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let asks = Asks { ino: self.0.ino(ino), handle: handle.0, owner: owner.0, process: pid, kind: typ };
        self.0.lock(asks, Some((start, end)), req.unique().0, sleep, reply);
    }

    fn flock(
        &self,
        req: &Request,
        ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        typ: i32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let asks = Asks { ino: self.0.ino(ino), handle: handle.0, owner: owner.0, process: req.pid(), kind: typ };
        self.0.lock(asks, None, req.unique().0, sleep, reply);
    }

    fn interrupt(&self, request: RequestId) -> bool {
        self.0.interrupt(request.0);
        true
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    fn poll(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: PollNotifier,
        _: PollEvents,
        _: PollFlags,
        reply: ReplyPoll,
    ) {
        // Files are always ready, and with ENOSYS the kernel stops asking.
        reply.error(Errno::ENOSYS);
    }

    fn fallocate(
        &self,
        req: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.0.gate.ended(self.0.ino(ino));
        let uid = req.uid();
        let allocate = move |door: &Door| door.allocate(ino, offset, length, mode, uid);
        self.0.change(Passage::Content, reply, allocate, empty);
    }

    fn lseek(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        if self.0.writes_back() {
            // The kernel asks without sending what it holds, which is then a hole. With ENOSYS it knows of no holes.
            return reply.error(Errno::ENOSYS);
        }
        self.0.ask(reply, |door| door.seek(door.ino(ino), offset, whence), |_, reply, found| reply.offset(found));
    }

    fn copy_file_range(
        &self,
        req: &Request,
        from: INodeNo,
        _: FileHandle,
        from_offset: u64,
        to: INodeNo,
        _: FileHandle,
        to_offset: u64,
        len: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        self.0.gate.ended(self.0.ino(to));
        let uid = req.uid();
        let copy = move |door: &Door| door.copy((from, from_offset), (to, to_offset), len, uid);
        self.0.change(Passage::Content, reply, copy, |_, reply, done| reply.written(done));
    }
}

/// Something new, made by the program that asks.
fn new(req: &Request, parent: INodeNo, name: &OsStr, kind: FileType, mode: u32) -> New {
    New {
        parent: parent.0,
        name: owned(name),
        kind,
        mode,
        umask: 0,
        uid: req.uid(),
        gid: req.gid(),
        rdev: 0,
        target: Bytes::new(),
    }
}
