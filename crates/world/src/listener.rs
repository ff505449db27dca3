//! What a mount must hear of a world that others change too.

use bytes::Bytes;
use mw_model::Ino;
use parking_lot::RwLock;
use std::sync::{Arc, Weak};

/// A change that a cache above the store must not outlive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// Attributes or content of an inode.
    Inode(Ino),
    /// A name in a directory (without the trailing slash of a directory).
    Entry {
        /// The directory.
        parent: Ino,
        /// The name.
        name: Bytes,
    },
    /// Everything may have changed (promote, rebase, revert).
    Everything,
    /// The world was deleted.
    Gone,
}

/// A mount, as a world sees it. Called after the commit, outside the world's locks, before the writer's call returns.
pub trait Listener: Send + Sync {
    /// Forgets what these changes made stale.
    fn changed(&self, changes: &[Changed]);
    /// Has the kernel write back mapped pages of files that are open for writing.
    fn write_back(&self);
    /// Starts no new changing verb until [`Listener::release`].
    fn hold(&self);
    /// Ends a hold.
    fn release(&self);
    /// Returns whether the mount uses the inode (open, working directory, known to the kernel).
    fn uses(&self, _ino: Ino) -> bool {
        true
    }
}

/// The listeners of one world.
#[derive(Default)]
pub(crate) struct Listeners(RwLock<Vec<(u64, Arc<dyn Listener>)>>);

impl Listeners {
    pub(crate) fn add(self: &Arc<Self>, origin: u64, listener: Arc<dyn Listener>) -> Subscription {
        self.0.write().push((origin, listener));
        Subscription { listeners: Arc::downgrade(self), origin }
    }

    /// Returns whether there is any.
    pub(crate) fn any(&self) -> bool {
        !self.0.read().is_empty()
    }

    /// Tells everyone but `origin`.
    pub(crate) fn tell(&self, origin: u64, changes: &[Changed]) {
        if changes.is_empty() {
            return;
        }
        for listener in self.others(origin) {
            listener.changed(changes);
        }
    }

    fn others(&self, origin: u64) -> Vec<Arc<dyn Listener>> {
        let all = self.0.read();
        all.iter().filter(|(o, _)| *o != origin || origin == 0).map(|(_, l)| l.clone()).collect()
    }

    /// Returns whether a mount uses the inode.
    pub(crate) fn uses(&self, ino: Ino) -> bool {
        self.0.read().iter().any(|(_, listener)| listener.uses(ino))
    }

    /// Holds and flushes every mount until the guard is dropped.
    pub(crate) fn quiesce(&self) -> Quiet {
        let held = self.others(0);
        for listener in &held {
            listener.write_back();
            listener.hold();
        }
        Quiet(held)
    }
}

/// Mounts on hold; dropping it lets them go on.
pub(crate) struct Quiet(Vec<Arc<dyn Listener>>);

impl Drop for Quiet {
    fn drop(&mut self) {
        for listener in &self.0 {
            listener.release();
        }
    }
}

/// A listener's place; dropping it unsubscribes.
pub struct Subscription {
    listeners: Weak<Listeners>,
    origin: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(listeners) = self.listeners.upgrade() {
            listeners.0.write().retain(|(origin, _)| *origin != self.origin);
        }
    }
}
