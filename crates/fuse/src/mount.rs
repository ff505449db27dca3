//! Making a mount, taking one over, and ending it.

use crate::device::{self, Plan, Tree};
use crate::door::{Door, Handed};
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::kernel::Requests;
use crate::listener::Ear;
use crate::notify::Kernel;
use crate::owners::Owners;
use crate::serving::Serving;
use crate::stale::{clear_stale, find, place};
use fuser::{Config, Reins, SessionACL};
use mw_model::{ErrorKind, Version};
use mw_world::{Role, Session, Subscription};
use parking_lot::Mutex;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How many threads answer requests, at least and at most; in between as many as there are processors (see `aside`).
const THREADS: (usize, usize) = (2, 8);
/// How long an unmount waits for the kernel to let go of the device.
const LET_GO: Duration = Duration::from_secs(2);

/// How a world is mounted.
#[derive(Debug, Clone, Default)]
pub struct MountOptions {
    /// Nothing can be changed through it. A version of a world and a reader's key are always mounted so.
    pub read_only: bool,
    /// Other users than the server's may use it; permission bits then decide. Root's mounts are always open to others;
    /// for an ordinary user `/etc/fuse.conf` must say `user_allow_other`.
    pub allow_other: bool,
    /// The number of threads that answer requests; 0 means as many as there are processors, two to eight.
    pub threads: usize,
    /// The user and group as whose things that of the store's owner are shown (and theirs as the owner's).
    pub owner: Option<(u32, u32)>,
    /// The name in the list of mounts, after `manyworlds:`; empty means the world's.
    pub name: String,
    /// The kernel collects what programs write and sends it when it likes, at the latest at close or fsync (design/0022). Such a mount of a
    /// world is its only one. It needs to be writable.
    pub writeback: bool,
    /// What ends the mount should this process be killed and not be able to go; without it such a mount may hang.
    pub guard: Option<Guard>,
}

/// A world that is mounted. Dropping it unmounts lazily.
pub struct Mount {
    pub(crate) door: Arc<Door>,
    dir: PathBuf,
    pub(crate) serving: Mutex<Option<Serving>>,
    /// What tells of the requests that were read before the mount halted.
    pub(crate) left: Mutex<Option<Reins>>,
    /// How it is served, also by those who come after.
    pub(crate) how: How,
}

/// What the threads of a mount need to know.
#[derive(Clone)]
pub(crate) struct How {
    pub(crate) acl: SessionACL,
    pub(crate) threads: usize,
    pub(crate) guard: Option<Guard>,
}

impl How {
    fn new(ready: &Ready, options: &MountOptions) -> Self {
        Self {
            acl: if ready.allow_other { SessionACL::All } else { SessionACL::Owner },
            threads: if options.threads == 0 { threads() } else { options.threads },
            guard: options.guard.clone(),
        }
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::default();
        config.n_threads = Some(self.threads);
        config.clone_fd = device::can_clone();
        config
    }
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mount({} at {})", self.door.world, self.dir.display())
    }
}

/// Mounts `session` at the directory `dir`; a mount whose server died is cleared from there first. On return the mount answers.
///
/// # Errors
/// [`ErrorKind::Busy`] when a world is mounted there, [`ErrorKind::NotFound`] or [`ErrorKind::NotDirectory`] when `dir` is no
/// directory; otherwise what the system refused, with its remedy.
pub fn mount(session: Session, dir: &Path, options: &MountOptions) -> Result<Mount> {
    let dir = place(dir)?;
    clear_stale(&dir)?;
    if find(&dir)?.is_some() {
        return Err(Error::new(
            ErrorKind::Busy,
            format!("a world is mounted at {} already; unmount it first or choose another directory", dir.display()),
        ));
    }
    check(&dir)?;
    let ready = Ready::new(session, &dir, options);
    ready.need_room(options)?;
    let plan = ready.plan();
    let fd = device::mount(&plan)?;
    let stat = || rustix::fs::stat(&dir);
    let how = How::new(&ready, options);
    match serve(&ready, fd, &stat, &how) {
        Ok(serving) => Ok(ready.served(serving, how)),
        Err(e) => {
            // Nobody answers there: a program that looked would hang.
            if let Err(e) = device::unmount(&dir, true) {
                tracing::warn!("a mount that could not be served stays: {e}");
            }
            Err(e)
        }
    }
}

/// Mounts `session` where `old` is, and takes `old` away lazily: who has files of it open, or works in it, keeps it. Whoever
/// looks finds the one or the other and never the bare directory, as root on Linux 6.5 and later; elsewhere there is a gap.
///
/// # Errors
/// Those of [`mount`]; `old` then stays.
pub fn switch(session: Session, old: &Mount, options: &MountOptions) -> Result<Mount> {
    let dir = old.dir.clone();
    let ready = Ready::new(session, &dir, options);
    ready.need_room(options)?;
    let plan = ready.plan();
    let Some(Tree { device, root }) = device::detached(&plan)? else {
        old.unmount(true)?;
        return mount(ready.door.session.clone(), &dir, options);
    };
    let stat = || rustix::fs::statat(&root, "", rustix::fs::AtFlags::EMPTY_PATH);
    // When this or what follows fails, the mount that is nowhere goes with its last descriptor.
    let how = How::new(&ready, options);
    let serving = serve(&ready, device, &stat, &how)?;
    if device::beneath(&root, &dir)? {
        old.unmount(true)?;
    } else {
        old.unmount(true)?;
        device::attach(&root, &dir)?;
    }
    Ok(ready.served(serving, how))
}

/// A mount of another server that has been taken over and is not served yet. Dropped, it ends.
pub struct Adopted {
    ready: Ready,
    how: How,
    session: fuser::Session<Requests>,
    number: u32,
}

/// Takes over a mount that another server handed over: `session` is on the same world and instant, `dir` where it is mounted, `device` and
/// `handed` what [`Mount::hand_over`] gave. No program notices, when all mounts of a server are taken over before the first one
/// begins: what programs have open and locked in one counts for those of the others.
///
/// # Errors
/// There are too many descriptors; the mount then ends, as `device` is closed.
pub fn adopt(session: Session, dir: &Path, device: OwnedFd, handed: Handed, options: &MountOptions) -> Result<Adopted> {
    let ready = Ready::new(session, dir, options);
    let how = How::new(&ready, options);
    let door = &ready.door;
    let copy = File::from(device.try_clone().map_err(|e| unserved(dir, e))?);
    let session = fuser::Session::resume(Requests(door.clone()), device, how.acl, how.config());
    let number = handed.number();
    door.meet(Kernel::new(session.notifier(), copy), ready.subscribe()?);
    door.take_over(handed);
    Ok(Adopted { ready, how, session, number })
}

impl Adopted {
    /// Answers from now on.
    ///
    /// # Errors
    /// No thread can be started; the mount then ends.
    pub fn begin(self) -> Result<Mount> {
        let Self { ready, how, session, number } = self;
        let door = &ready.door;
        let failed = |e| unserved(&ready.dir, e);
        door.numbered(number, how.guard.as_ref());
        let serving = Serving::begin(session).map_err(failed)?;
        tell_the_kernel(door).map_err(failed)?;
        Ok(ready.served(serving, how))
    }
}

/// A door before anybody can knock.
struct Ready {
    door: Arc<Door>,
    dir: PathBuf,
    source: String,
    read_only: bool,
    allow_other: bool,
    origin: u64,
}

impl Ready {
    fn new(session: Session, dir: &Path, options: &MountOptions) -> Self {
        let origin = session.store().env().random() | 1;
        let session = session.with_origin(origin);
        let name = if options.name.is_empty() { session.name().as_str() } else { &options.name };
        let owners = options.owner.map(|shown| Owners::new(session.store().owner(), shown)).unwrap_or_default();
        Self {
            source: format!("manyworlds:{name}"),
            read_only: options.read_only || session.version().is_some() || !session.allows(Role::Editor),
            allow_other: options.allow_other || rustix::process::geteuid().is_root(),
            door: Door::new(session, dir.to_owned(), owners, options.writeback),
            dir: dir.to_owned(),
            origin,
        }
    }

    fn plan(&self) -> Plan<'_> {
        let (read_only, allow_other) = (self.read_only, self.allow_other);
        Plan { dir: &self.dir, source: &self.source, read_only, allow_other }
    }

    /// Hears of changes from now on.
    fn subscribe(&self) -> Result<Subscription> {
        let ear = Arc::new(Ear(Arc::downgrade(&self.door)));
        Ok(self.door.session.subscribe(self.origin, ear)?)
    }

    /// Refuses what cannot be mounted so, before anything is mounted.
    fn need_room(&self, options: &MountOptions) -> Result<()> {
        if options.writeback && self.read_only {
            let message = "nothing can be written through this mount (a version, a reader's key, or asked for so), so there is nothing for the kernel to collect; leave out --writeback";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(self.door.session.need_room_for_mount(options.writeback)?)
    }

    fn served(self, serving: Serving, how: How) -> Mount {
        Mount { door: self.door, dir: self.dir, serving: Mutex::new(Some(serving)), left: Mutex::default(), how }
    }
}

fn check(dir: &Path) -> Result<()> {
    let unusable = |e| Error::mount_point(dir, e);
    if !std::fs::metadata(dir).map_err(unusable)?.is_dir() {
        let message = format!("{} is not a directory; a world can only be mounted at one", dir.display());
        return Err(Error::new(ErrorKind::NotDirectory, message));
    }
    Ok(())
}

fn threads() -> usize {
    let (least, most) = THREADS;
    std::thread::available_parallelism().map_or(least, |n| n.get().clamp(least, most))
}

fn unserved(dir: &Path, error: std::io::Error) -> Error {
    Error::io(format!("the kernel does not talk to the mount at {}", dir.display()), error)
}

/// Starts the thread that tells the kernel what it must forget.
fn tell_the_kernel(door: &Arc<Door>) -> std::io::Result<()> {
    let teller = door.clone();
    let tell = move || teller.notices.run(|notice| teller.tell(notice));
    std::thread::Builder::new().name("mw-fuse-notify".into()).spawn(tell).map(drop)
}

/// Shakes hands with the kernel and starts the threads.
fn serve(
    ready: &Ready,
    fd: OwnedFd,
    stat: &dyn Fn() -> rustix::io::Result<rustix::fs::Stat>,
    how: &How,
) -> Result<Serving> {
    let door = &ready.door;
    let failed = |e| unserved(&ready.dir, e);
    let device = File::from(fd.try_clone().map_err(failed)?);
    let session = fuser::Session::from_fd(Requests(door.clone()), fd, how.acl, how.config()).map_err(failed)?;
    // Before the first request is read, so that nothing is cached that we would not hear of.
    door.connect(Kernel::new(session.notifier(), device), ready.subscribe()?);
    let serving = Serving::begin(session).map_err(failed)?;
    // The kernel begins with a root without permissions, and would keep it so if a notification crossed the first answer: the
    // first program, when it is not root's, would be refused. So the first question is ours, before any notification.
    let root = stat().map_err(|e| failed(e.into()))?;
    let (major, minor) = (rustix::fs::major(root.st_dev), rustix::fs::minor(root.st_dev));
    // Before the first notification, which may be what a killed server hangs in.
    door.numbered(minor, how.guard.as_ref());
    tell_the_kernel(door).map_err(failed)?;
    device::widen_read_ahead(&format!("{major}:{minor}"));
    Ok(serving)
}

impl Mount {
    /// Unmounts. Lazily: out of sight at once, while programs that have files open go on until they close them.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] when programs use it and `lazy` is false; it then stays mounted.
    pub fn unmount(&self, lazy: bool) -> Result<()> {
        if lazy {
            return self.door.detach();
        }
        self.door.unmount()?;
        // A copy of the mount in another namespace (a sandbox) may keep it alive; that is not waited for.
        self.door.wait_end(Some(LET_GO));
        Ok(())
    }

    /// Has the kernel send what it holds of what programs wrote.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]: it takes too long.
    pub fn write_back(&self) -> Result<()> {
        Ok(self.door.write_back()?)
    }

    /// Returns whether the kernel collects what programs write.
    pub fn writes_back(&self) -> bool {
        self.door.writes_back()
    }

    /// Returns where it is mounted.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the version that it shows: of the world's last change, or the instant.
    pub fn version(&self) -> Version {
        self.door.session.shown()
    }

    /// Returns at most how many bytes a power cut could still take of what was written through this mount: those of the last two
    /// seconds that no fsync covers.
    pub fn unsynced(&self) -> u64 {
        self.door.unsynced.bytes()
    }

    /// Returns the name of the world.
    pub fn world(&self) -> &str {
        &self.door.world
    }

    /// Returns whether the kernel still asks: false after an unmount, by whomever, once the last program let go.
    pub fn is_alive(&self) -> bool {
        !self.door.is_ended()
    }

    /// Waits until the mount has ended.
    ///
    /// # Errors
    /// The threads ended with an error and not because of an unmount.
    pub fn join(&self) -> Result<()> {
        let serving = self.serving.lock().take();
        match serving {
            Some(serving) => match serving.join() {
                // A request that was being read when the kernel let go.
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionAborted => Ok(()),
                ended => ended.map_err(|e| Error::io(format!("the mount at {} failed", self.dir.display()), e)),
            },
            None => {
                self.door.wait_end(None);
                Ok(())
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(e) = self.door.detach() {
            tracing::warn!("{e}");
        }
    }
}
