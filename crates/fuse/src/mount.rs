//! Making a mount, and ending it.

use crate::device::{self, Plan, Tree};
use crate::door::Door;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::kernel::Requests;
use crate::listener::Ear;
use crate::notify::Kernel;
use crate::owners::Owners;
use crate::stale::{clear_stale, find, place};
use fuser::{BackgroundSession, Config, SessionACL};
use mw_model::{ErrorKind, Version};
use mw_world::{Role, Session};
use parking_lot::Mutex;
use std::fs::File;
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
    /// What ends the mount should this process be killed and not be able to go; without it such a mount may hang.
    pub guard: Option<Guard>,
}

/// A world that is mounted. Dropping it unmounts lazily.
pub struct Mount {
    door: Arc<Door>,
    dir: PathBuf,
    server: Mutex<Option<BackgroundSession>>,
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
    let plan = ready.plan();
    let fd = device::mount(&plan)?;
    let stat = || rustix::fs::stat(&dir);
    match serve(&ready, fd, &plan, &stat, options) {
        Ok(server) => Ok(ready.served(server)),
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
    let plan = ready.plan();
    let Some(Tree { device, root }) = device::detached(&plan)? else {
        old.unmount(true)?;
        return mount(ready.door.session.clone(), &dir, options);
    };
    let stat = || rustix::fs::statat(&root, "", rustix::fs::AtFlags::EMPTY_PATH);
    // When this or what follows fails, the mount that is nowhere goes with its last descriptor.
    let server = serve(&ready, device, &plan, &stat, options)?;
    if device::beneath(&root, &dir)? {
        old.unmount(true)?;
    } else {
        old.unmount(true)?;
        device::attach(&root, &dir)?;
    }
    Ok(ready.served(server))
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
            door: Door::new(session, dir.to_owned(), owners),
            dir: dir.to_owned(),
            origin,
        }
    }

    fn plan(&self) -> Plan<'_> {
        let (read_only, allow_other) = (self.read_only, self.allow_other);
        Plan { dir: &self.dir, source: &self.source, read_only, allow_other }
    }

    fn served(self, server: BackgroundSession) -> Mount {
        Mount { door: self.door, dir: self.dir, server: Mutex::new(Some(server)) }
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

/// Shakes hands with the kernel and starts the threads.
fn serve(
    ready: &Ready,
    fd: std::os::fd::OwnedFd,
    plan: &Plan<'_>,
    stat: &dyn Fn() -> rustix::io::Result<rustix::fs::Stat>,
    options: &MountOptions,
) -> Result<BackgroundSession> {
    let door = &ready.door;
    let failed = |e| Error::io(format!("the kernel does not talk to the mount at {}", plan.dir.display()), e);
    let device = File::from(fd.try_clone().map_err(failed)?);
    let mut config = Config::default();
    config.n_threads = Some(if options.threads == 0 { threads() } else { options.threads });
    config.clone_fd = device::can_clone();
    let acl = if plan.allow_other { SessionACL::All } else { SessionACL::Owner };
    let session = fuser::Session::from_fd(Requests(door.clone()), fd, acl, config).map_err(failed)?;
    // Before the first request is read, so that nothing is cached that we would not hear of.
    let subscription = door.session.subscribe(ready.origin, Arc::new(Ear(Arc::downgrade(door))));
    door.connect(Kernel::new(session.notifier(), device), subscription);
    let server = session.spawn().map_err(failed)?;
    // The kernel begins with a root without permissions, and would keep it so if a notification crossed the first answer: the
    // first program, when it is not root's, would be refused. So the first question is ours, before any notification.
    let root = stat().map_err(|e| failed(e.into()))?;
    let (major, minor) = (rustix::fs::major(root.st_dev), rustix::fs::minor(root.st_dev));
    // Before the first notification, which may be what a killed server hangs in.
    if let Some(guard) = &options.guard {
        door.guarded(guard.watch(minor));
    }
    let teller = door.clone();
    std::thread::Builder::new()
        .name("mw-fuse-notify".into())
        .spawn(move || teller.notices.run(|notice| teller.tell(notice)))
        .map_err(failed)?;
    device::widen_read_ahead(&format!("{major}:{minor}"));
    Ok(server)
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
        let server = self.server.lock().take();
        match server {
            Some(server) => match server.join() {
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
