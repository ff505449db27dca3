//! The state of one mount, and how a request runs: through the gate, one verb of the session, the answer.
//!
//! The verbs are in `door/`, a file for each family. A verb knows no request and no reply; it takes values and gives values
//! or an errno. Nothing here may block on a notification (see the crate's header).

mod barrier;
mod content;
mod dirs;
mod handed;
mod kept;
mod locks;
mod names;
mod retries;
mod xattrs;

pub(crate) use content::{Resize, Write, Wrote};
pub(crate) use dirs::OpenDir;
pub use handed::Handed;
pub(crate) use handed::Negotiated;
pub(crate) use kept::{Kept, KeptState};
pub(crate) use locks::Asks;
pub(crate) use names::New;

use self::barrier::Askers;
use self::retries::Retries;
use crate::aside::Aside;
use crate::epochs::Epochs;
use crate::errors::held;
use crate::filling::Filling;
use crate::gate::{Gate, Pass, Passage};
use crate::guard::{Guard, Watched};
use crate::interrupts::Interrupts;
use crate::known::{Known, Opens};
use crate::notify::{Kernel, Notice, Notices};
use crate::owners::Owners;
use crate::ticket::{Ticket, collect};
use crate::unsynced::Unsynced;
use crate::{attr, device, warm};
use fuser::{Errno, FileAttr, INodeNo};
use mw_model::{Attr, ErrorKind, Ino};
use mw_world::{Locker, Session, Subscription};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How long the kernel may keep what it was told. Long, because it is told of every change.
pub(crate) const KEEP: Duration = Duration::from_secs(24 * 3600);
/// The same for names, on a kernel that cannot expire all names at once (before Linux 6.16): promote, rebase and
/// revert then take this long to be seen.
const KEEP_OLD_KERNEL: Duration = Duration::from_secs(1);

/// How often and how long is waited for the last program to let go, or for a change to have been told.
const PATIENCE: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// An errno, or what was asked for.
pub(crate) type Result<T> = std::result::Result<T, Errno>;

/// A reply that can say no.
pub(crate) trait Refuse: Send + 'static {
    /// Answers with `errno`.
    fn refuse(self, errno: Errno);
}

/// One mount.
pub(crate) struct Door {
    pub(crate) session: Session,
    /// The world's name, for log lines.
    pub(crate) world: String,
    dir: PathBuf,
    pub(crate) known: Known,
    pub(crate) opens: Opens,
    filling: Filling,
    pub(crate) epochs: Epochs,
    retries: Retries,
    me: Weak<Self>,
    aside: Arc<Aside>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) notices: Arc<Notices>,
    /// Notifications posted while the gate was closed; whoever opens it waits for them.
    pub(crate) owed: Mutex<Vec<Arc<Ticket>>>,
    kernel: OnceLock<Kernel>,
    negotiated: OnceLock<Negotiated>,
    /// The kernel's number of the mount, once it is known.
    number: OnceLock<u32>,
    names_expire: AtomicBool,
    pub(crate) unsynced: Unsynced,
    pub(crate) owners: Owners,
    /// What the kernel keeps to itself; none: it does not (no write-back).
    pub(crate) kept: Option<Kept>,
    /// The processes that wait for writes to end.
    pub(crate) askers: Arc<Askers>,
    /// The mount's place among those who lock files of the world.
    pub(crate) locks: Locker,
    pub(crate) interrupts: Interrupts,
    /// How many files have been opened.
    opened: AtomicU64,
    dirs: Mutex<HashMap<u64, Arc<OpenDir>>>,
    last_dir: AtomicU64,
    gone: AtomicBool,
    detached: AtomicBool,
    subscription: Mutex<Option<Subscription>>,
    watched: Mutex<Option<Watched>>,
    ended: Mutex<bool>,
    end: Condvar,
}

impl Door {
    /// Makes the state of a mount of `session` at `dir`, of which the kernel collects writes if `writes_back`.
    pub(crate) fn new(session: Session, dir: PathBuf, owners: Owners, writes_back: bool) -> Arc<Self> {
        let env = session.store().env().clone();
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            aside: Arc::new(Aside::new(env.clone())),
            world: session.name().as_str().to_owned(),
            dir,
            known: Known::default(),
            opens: Opens::default(),
            filling: Filling::default(),
            epochs: Epochs::default(),
            retries: Retries::default(),
            gate: Arc::default(),
            notices: Arc::new(Notices::new(env.clone())),
            owed: Mutex::default(),
            kernel: OnceLock::new(),
            negotiated: OnceLock::new(),
            number: OnceLock::new(),
            names_expire: AtomicBool::new(false),
            unsynced: Unsynced::new(env),
            owners,
            kept: writes_back.then(Kept::default),
            askers: Arc::default(),
            locks: session.locker(),
            interrupts: Interrupts::default(),
            opened: AtomicU64::new(0),
            dirs: Mutex::default(),
            last_dir: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            subscription: Mutex::default(),
            watched: Mutex::default(),
            ended: Mutex::new(false),
            end: Condvar::new(),
            session,
        })
    }

    /// Takes the kernel's end, before the first request is read.
    pub(crate) fn connect(&self, kernel: Kernel, subscription: Subscription) {
        // Also the probe whether the kernel can do it at all.
        self.names_expire.store(kernel.forget_names().is_ok(), Ordering::SeqCst);
        self.meet(kernel, subscription);
    }

    /// [`Door::connect`] with a kernel that is known already.
    pub(crate) fn meet(&self, kernel: Kernel, subscription: Subscription) {
        *self.subscription.lock() = Some(subscription);
        // Cannot be set twice: a mount connects once.
        let _ = self.kernel.set(kernel);
    }

    /// Notes what the kernel and we agreed on.
    pub(crate) fn agreed(&self, negotiated: Negotiated) {
        // A mount shakes hands once.
        let _ = self.negotiated.set(negotiated);
    }

    /// Returns the kernel's end.
    pub(crate) fn kernel(&self) -> Option<&Kernel> {
        self.kernel.get()
    }

    /// Takes the kernel's number of the mount, and has `guard` watch over it until the end.
    pub(crate) fn numbered(&self, number: u32, guard: Option<&Guard>) {
        let _ = self.number.set(number);
        *self.watched.lock() = guard.map(|guard| guard.watch(number));
    }

    /// Is watched over no more.
    pub(crate) fn unguarded(&self) {
        drop(self.watched.lock().take());
    }

    /// Answers a request that changes nothing.
    pub(crate) fn ask<R: Refuse, T>(
        &self,
        reply: R,
        verb: impl FnOnce(&Self) -> Result<T>,
        answer: impl FnOnce(&Self, R, T),
    ) {
        match self.run(verb) {
            // Tickets come from what a mere question changed elsewhere (a last name dropped): nobody waits for those.
            (Ok(value), _) => answer(self, reply, value),
            (Err(errno), _) => reply.refuse(errno),
        }
    }

    /// Makes everything done so far durable and then answers with `answer`.
    pub(crate) fn sync_then<R: Refuse>(&self, reply: R, answer: impl FnOnce(&Self, R) + Send + 'static) {
        match self.me.upgrade() {
            Some(door) if !self.session.is_synced() => {
                warm::syncs();
                self.aside.wait(move || door.ask(reply, Self::sync, |door, reply, ()| answer(door, reply)));
            }
            // Nothing to wait for. (Nobody has a door but through an `Arc`.)
            _ => self.ask(reply, Self::sync, |door, reply, ()| answer(door, reply)),
        }
    }

    /// Runs a verb that fills its reply as it goes.
    pub(crate) fn guard(&self, verb: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        self.run(verb).0
    }

    /// Answers a request that changes something: passes the gate or is parked at it; the answer is sent when the other mounts know.
    pub(crate) fn change<R: Refuse, T: Send + 'static>(
        self: &Arc<Self>,
        passage: Passage,
        reply: R,
        verb: impl FnOnce(&Self) -> Result<T> + Send + 'static,
        answer: impl FnOnce(&Self, R, T) + Send + 'static,
    ) {
        if let Some(pass) = self.gate.enter(passage) {
            return self.perform(pass, reply, verb, answer);
        }
        let door = self.clone();
        self.gate.park(passage, move |pass| door.perform(pass, reply, verb, answer));
    }

    /// Runs a changing verb inside the gate.
    pub(crate) fn perform<R: Refuse, T: Send + 'static>(
        self: &Arc<Self>,
        pass: Pass,
        reply: R,
        verb: impl FnOnce(&Self) -> Result<T>,
        answer: impl FnOnce(&Self, R, T) + Send + 'static,
    ) {
        let (result, tickets) = self.run(verb);
        drop(pass);
        match result {
            Err(errno) => reply.refuse(errno),
            Ok(value) if tickets.is_empty() => answer(self, reply, value),
            Ok(value) => {
                let door = self.clone();
                self.notices.hold_back(&tickets, Box::new(move || answer(&door, reply, value)));
            }
        }
    }

    /// Runs a verb. A panic is an I/O error for one program, not the end of the mount.
    fn run<T>(&self, verb: impl FnOnce(&Self) -> Result<T>) -> (Result<T>, Vec<Arc<Ticket>>) {
        if self.gone.load(Ordering::SeqCst) {
            return (Err(Errno::ENODEV), Vec::new());
        }
        let (result, tickets) = collect(|| {
            catch_unwind(AssertUnwindSafe(|| verb(self))).unwrap_or_else(|panic| {
                let what = panic.downcast_ref::<&str>().copied().map(str::to_owned);
                let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                tracing::error!(world = %self.world, "a request panicked and was answered with EIO: {what}");
                Err(Errno::EIO)
            })
        });
        if matches!(result, Err(Errno::ESTALE)) {
            self.retries.expect();
        }
        (result, tickets)
    }

    /// Returns how long the kernel may keep the attributes of `ino` that were asked for at `since`.
    pub(crate) fn keep_attr(&self, ino: u64, since: u64) -> Duration {
        if self.epochs.touched(ino, since) { Duration::ZERO } else { KEEP }
    }

    /// Returns how long the kernel may keep a name in `parent` that was asked for at `since`.
    pub(crate) fn keep_name(&self, parent: u64, since: u64) -> Duration {
        if self.epochs.touched(parent, since) {
            Duration::ZERO
        } else if self.names_expire.load(Ordering::Relaxed) {
            KEEP
        } else {
            KEEP_OLD_KERNEL
        }
    }

    /// Returns what the kernel is told of `attr`.
    pub(crate) fn told(&self, attr: &Attr) -> FileAttr {
        attr::file_attr(&self.owners.shown(attr))
    }

    /// The kernel gives `lookups` of a node back.
    pub(crate) fn forget(&self, node: INodeNo, lookups: u64) {
        let ino = self.ino(node);
        let forgotten = self.known.forget(node.0, lookups);
        if let Some(claimed) = forgotten {
            self.forget_node(node.0);
            // Nobody waits for an answer.
            let _ = self.guard(|door| {
                door.end_retry(Some(ino));
                if claimed {
                    door.unused(ino);
                }
                Ok(())
            });
        }
    }

    /// Has the world look again at an inode that it kept because the kernel knew it: a directory that exists only for its keys
    /// goes with its last user, and opening and closing it is how the world hears of users.
    fn unused(&self, ino: u64) {
        if self.session.open(Ino(ino)).is_ok() {
            self.session.release(Ino(ino));
        }
    }

    /// Returns the attributes of an inode that the kernel knows.
    pub(crate) fn attr(&self, ino: u64) -> Result<Attr> {
        self.session.attr(Ino(ino)).map_err(|e| held(&e))
    }

    /// Sends one notice: the work of the notifying thread.
    pub(crate) fn tell(&self, notice: &Notice) {
        let Some(kernel) = self.kernel.get() else { return };
        match notice {
            Notice::Inode(ino) => {
                let nodes = self.nodes(*ino);
                for node in nodes.iter().filter(|node| self.known.has(**node)) {
                    if let Some(parent) = self.known.take_fresh(*node) {
                        kernel.barrier(parent);
                    }
                    kernel.forget_inode(*node);
                }
                if nodes.len() > 1 {
                    // Its names lead to an old node, which is refused; the kernel looks up again then, but only once.
                    let _ = kernel.forget_names();
                }
            }
            Notice::Entry(parent, name) => {
                if self.known.has(*parent) {
                    // Waits until no listing is under way, so that none keeps its entries after they are dropped.
                    kernel.forget_entry(*parent, name);
                    kernel.forget_inode(*parent);
                }
            }
            Notice::Everything => {
                // On an old kernel names are kept for a second only.
                let _ = kernel.forget_names();
                for (ino, listed) in self.known.all() {
                    if listed {
                        kernel.barrier(ino);
                    }
                    kernel.forget_inode(ino);
                }
            }
            Notice::Turn(_) => {}
            Notice::Mount => {
                if let Err(e) = self.detach() {
                    tracing::warn!(world = %self.world, "the mount of a deleted world stays: {e}");
                }
            }
        }
    }

    /// Answers everything with ENODEV from now on, and what waits for a lock too.
    pub(crate) fn set_gone(&self) {
        self.gone.store(true, Ordering::SeqCst);
        self.locks.end();
    }

    /// Takes the mount out of the file tree; programs that have it open keep it.
    pub(crate) fn detach(&self) -> crate::Result<()> {
        if !self.is_ended() && !self.detached.swap(true, Ordering::SeqCst) {
            return device::unmount(&self.dir, true).inspect_err(|_| self.detached.store(false, Ordering::SeqCst));
        }
        Ok(())
    }

    /// Unmounts; refuses while programs use it.
    pub(crate) fn unmount(&self) -> crate::Result<()> {
        if self.is_ended() || self.detached.load(Ordering::SeqCst) {
            return Ok(());
        }
        // A program that has just ended may not have let go yet, and somebody may be looking by.
        for _ in 0..PATIENCE {
            match device::unmount(&self.dir, false) {
                Err(e) if e.kind() == ErrorKind::Busy => self.wait_end(Some(PAUSE)),
                done => {
                    self.detached.store(true, Ordering::SeqCst);
                    return done.inspect_err(|_| self.detached.store(false, Ordering::SeqCst));
                }
            };
        }
        device::unmount(&self.dir, false)?;
        self.detached.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// The kernel is gone: gives everything back that it held.
    pub(crate) fn finish(&self) {
        drop(self.watched.lock().take());
        drop(self.subscription.lock().take());
        self.gate.shut();
        self.locks.leave();
        self.notices.stop();
        self.dirs.lock().clear();
        self.known.clear();
        self.end_retry(None);
        for (ino, count) in self.opens.drain() {
            (0..count).for_each(|_| self.session.release(Ino(ino)));
        }
        *self.ended.lock() = true;
        self.end.notify_all();
    }

    /// Returns whether the kernel is gone.
    pub(crate) fn is_ended(&self) -> bool {
        *self.ended.lock()
    }

    /// Waits for the end, at most `limit` when there is one. Returns whether it came.
    pub(crate) fn wait_end(&self, limit: Option<Duration>) -> bool {
        let mut ended = self.ended.lock();
        match limit {
            None => self.end.wait_while(&mut ended, |ended| !*ended),
            Some(limit) => {
                self.end.wait_while_for(&mut ended, |ended| !*ended, limit);
            }
        }
        *ended
    }
}

#[cfg(test)]
mod tests;
