//! What a mount must hear of a world that others change too.

use crate::error::{Error, Result};
use crate::record::Inode;
use crate::view::View;
use bytes::Bytes;
use mw_model::{ErrorKind, FileType, Ino};
use parking_lot::RwLock;
use std::sync::{Arc, Weak};

/// A change that a cache above the store must not outlive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// Attributes or content of an inode. Where a [`Listener::is_sole`] hears it, nothing of what [`Changed::Content`] is for has changed.
    Inode(Ino),
    /// Bytes, size or `mtime` of a file. Told in place of [`Changed::Inode`], and to a [`Listener::is_sole`] only.
    Content(Ino),
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
    /// Has the kernel write back what it holds of files that are open for writing.
    ///
    /// # Errors
    /// `Busy`: it does not in time. What was to come after is not done.
    fn write_back(&self) -> Result<()>;
    /// Starts no new changing verb until [`Listener::release`].
    fn hold(&self);
    /// Ends a hold.
    fn release(&self);
    /// Returns whether the mount uses the inode (open, working directory, known to the kernel).
    fn uses(&self, _ino: Ino) -> bool {
        true
    }
    /// Returns whether no other mount of the world may be beside it, because its kernel does not see what another one changes.
    fn is_sole(&self) -> bool {
        false
    }
}

/// The listeners of one world.
#[derive(Default)]
pub(crate) struct Listeners(RwLock<Vec<Place>>);

struct Place {
    origin: u64,
    listener: Arc<dyn Listener>,
    /// It shows the world as it is, and not an instant, which nobody changes.
    live: bool,
}

impl Listeners {
    /// Adds a listener, unless it may not be beside those that are there. `world` is for the error.
    pub(crate) fn add(
        self: &Arc<Self>,
        origin: u64,
        listener: Arc<dyn Listener>,
        live: bool,
        world: &str,
    ) -> Result<Subscription> {
        let mut all = self.0.write();
        if live {
            room(&all, listener.is_sole(), world)?;
        }
        all.push(Place { origin, listener, live });
        Ok(Subscription { listeners: Arc::downgrade(self), origin })
    }

    /// Refuses a mount of the world as it is that may not be beside those that are there.
    pub(crate) fn need_room(&self, sole: bool, world: &str) -> Result<()> {
        room(&self.0.read(), sole, world)
    }

    /// Returns whether a change by `origin` must be told with [`Changed::Content`].
    pub(crate) fn minds_content(&self, origin: u64) -> bool {
        let all = self.0.read();
        all.iter().any(|place| (place.origin != origin || origin == 0) && place.listener.is_sole())
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
        all.iter().filter(|place| place.origin != origin || origin == 0).map(|place| place.listener.clone()).collect()
    }

    /// Returns whether a mount uses the inode.
    pub(crate) fn uses(&self, ino: Ino) -> bool {
        self.0.read().iter().any(|place| place.listener.uses(ino))
    }

    /// Has the kernels that keep what programs wrote give it up.
    ///
    /// # Errors
    /// `Busy`: one does not in time.
    pub(crate) fn write_back(&self) -> Result<()> {
        self.others(0).iter().filter(|listener| listener.is_sole()).try_for_each(|listener| listener.write_back())
    }

    /// Holds and flushes every mount until the guard is dropped.
    ///
    /// # Errors
    /// `Busy`: a kernel does not give up in time what it holds. Nothing is held then.
    pub(crate) fn quiesce(&self) -> Result<Quiet> {
        let mut quiet = Quiet(Vec::new());
        for listener in self.others(0) {
            listener.write_back()?;
            listener.hold();
            quiet.0.push(listener);
        }
        Ok(quiet)
    }
}

fn room(all: &[Place], sole: bool, world: &str) -> Result<()> {
    let mut live = all.iter().filter(|place| place.live).peekable();
    if sole && live.peek().is_some() {
        let message = format!(
            "world {world} is mounted already, and a mount with write-back must be its only one, because its kernel would not see what another one changes; unmount the others first (`mw mounts` lists them; one that was unmounted lazily stays while programs use it), or mount without --writeback"
        );
        return Err(Error::new(ErrorKind::Busy, message));
    }
    if live.any(|place| place.listener.is_sole()) {
        let message = format!(
            "world {world} is mounted with write-back, and can be mounted nowhere else meanwhile, because that kernel would not see what is changed here; unmount it first (`mw mounts` lists it), or mount it there without --writeback"
        );
        return Err(Error::new(ErrorKind::Busy, message));
    }
    Ok(())
}

/// Tells apart, of the files that `notices` name, those whose bytes, size or `mtime` changed.
pub(crate) fn tell_content(before: &View, after: &View, notices: &mut [Changed]) -> Result<()> {
    for notice in notices {
        if let Changed::Inode(ino) = *notice
            && is_content(before, after, ino)?
        {
            *notice = Changed::Content(ino);
        }
    }
    Ok(())
}

/// Returns whether bytes, size or `mtime` of a file differ that is in both views.
pub(crate) fn is_content(before: &View, after: &View, ino: Ino) -> Result<bool> {
    let (Some(before), Some(after)) = (before.find_inode(ino)?, after.find_inode(ino)?) else { return Ok(false) };
    let stamp = |inode: &Inode| (inode.size, inode.mtime, inode.content);
    Ok(after.kind == FileType::File && stamp(&before) != stamp(&after))
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
            listeners.0.write().retain(|place| place.origin != self.origin);
        }
    }
}
