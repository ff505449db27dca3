//! What the kernel of a mount with write-back keeps to itself (design/0022): bytes that programs wrote, and size and times of files.
//!
//! Before anything takes the world whole, the kernel is made to give the bytes up ([`Door::write_back`]). When another door
//! changes a file that the kernel knows, the file is renewed: who has it open gets errors from then on, whoever opens it anew sees what is there.

use super::{Door, Result};
use crate::renewed::{Nodes, Renewed};
use crate::times::{Said, Times};
use fuser::{Errno, FileAttr, INodeNo};
use mw_model::{Attr, ErrorKind, FileType, Ino};
use mw_world::{SetAttr, SetTime};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::mpsc;
use std::time::Duration;

/// How long the kernel may take to give up what it holds. It does so page by page; what it may hold is a part of the memory.
const GIVE_UP: Duration = Duration::from_secs(60);

/// What a mount with write-back knows beside what every mount knows.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) renewed: Renewed,
    pub(crate) times: Times,
}

/// The same, for who takes the mount over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct KeptState {
    nodes: Nodes,
    times: HashMap<u64, Said>,
}

impl Kept {
    pub(crate) fn written(&self) -> KeptState {
        KeptState { nodes: self.renewed.written(), times: self.times.written() }
    }

    pub(crate) fn restore(&self, state: KeptState) {
        self.renewed.restore(state.nodes);
        self.times.restore(state.times);
    }
}

impl Door {
    /// Returns whether the kernel collects what programs write.
    pub(crate) fn writes_back(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns whether pages may be dirty that belong to a descriptor: through a shared mapping, which must be open for reading and writing
    /// (POSIX mmap), or, with write-back, through any that writes.
    pub(crate) fn is_writing(&self, flags: i32) -> bool {
        let mode = OFlags::from_bits_retain(flags as u32).intersection(OFlags::RWMODE);
        mode == OFlags::RDWR || (self.writes_back() && mode == OFlags::WRONLY)
    }

    /// Has the kernel write back what it holds dirty: mapped pages, or with write-back all that programs wrote. Not for threads that
    /// answer requests. What the store refuses is gone from the kernel too; whoever wrote it hears so when it closes or syncs.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`], with write-back alone: it takes too long.
    pub(crate) fn write_back(&self) -> mw_world::Result<()> {
        let door = match self.me.upgrade() {
            Some(door) if self.writes_back() => door,
            _ => {
                self.give_up();
                return Ok(());
            }
        };
        if within(GIVE_UP, move || door.give_up()) || self.is_ended() {
            return Ok(());
        }
        Err(mw_world::Error::new(
            ErrorKind::Busy,
            format!(
                "the kernel does not give up what programs wrote to the mount at {} within {} s; nothing was done: try again, or mount without --writeback",
                self.dir.display(),
                GIVE_UP.as_secs()
            ),
        ))
    }

    fn give_up(&self) {
        let Some(kernel) = self.kernel() else { return };
        let files: Vec<_> = self.opens.writing().into_iter().flat_map(|ino| self.nodes(ino)).collect();
        if files.is_empty() {
            return;
        }
        self.gate.begin_write_back();
        // Invalidating pages is the one way to have the kernel write them, and wait for it, without opening a path on our own mount.
        self.notices.write_back(|| files.into_iter().for_each(|node| kernel.forget_inode(node)));
        self.gate.end_write_back();
    }

    /// Another door changed a file: `content` says that its bytes, size or `mtime` are others.
    pub(crate) fn heard_of_change(&self, ino: Ino, content: bool) {
        let Some(kept) = &self.kept else { return };
        if !self.nodes(ino.0).into_iter().any(|node| self.known.has(node)) {
            return;
        }
        // What is not there any more is refused by itself, and what has no name is not looked up: who has it open goes on with it.
        if self.session.attr(ino).is_ok_and(|attr| attr.kind == FileType::File && attr.nlink > 0) {
            kept.times.forget(ino.0);
            kept.renewed.renew(ino.0, || !content && self.opens.has(ino.0));
        }
    }

    /// Counts that the kernel is about to be told of `attr` in `parent`, asked for at `since`; returns under which number, and what.
    pub(crate) fn introduce(&self, parent: u64, since: u64, attr: &Attr) -> (INodeNo, FileAttr) {
        // In this order: the node before what is said of the file (see `renewed`), and known before it is asked whether it changed, as who
        // hears of a change asks the other way round.
        let node = self.node(attr.ino.0);
        self.known.add(node, parent);
        let old = self.writes_back() && self.epochs.touched(attr.ino.0, since);
        let attr = if old { self.session.attr(attr.ino).unwrap_or(*attr) } else { *attr };
        (INodeNo(node), self.told(&attr))
    }

    /// Returns the number under which the kernel is to ask for a file.
    pub(crate) fn node(&self, ino: u64) -> u64 {
        self.kept.as_ref().map_or(ino, |kept| kept.renewed.node(ino))
    }

    /// Returns every number under which the kernel may know a file.
    pub(crate) fn nodes(&self, ino: u64) -> Vec<u64> {
        self.kept.as_ref().map_or_else(|| vec![ino], |kept| kept.renewed.nodes(ino))
    }

    /// Returns the file that the kernel asks for, whether or not another door has changed it since.
    pub(crate) fn ino(&self, node: INodeNo) -> u64 {
        self.kept.as_ref().map_or(node.0, |kept| kept.renewed.ino(node.0))
    }

    /// Returns the file that the kernel asks for.
    ///
    /// # Errors
    /// Another door has changed it, so that what is known of it is old. With ESTALE the kernel looks the name up, and asks again.
    pub(crate) fn current(&self, node: INodeNo) -> Result<u64> {
        match &self.kept {
            Some(kept) if !kept.renewed.is_current(node.0) => Err(Errno::ESTALE),
            _ => Ok(self.ino(node)),
        }
    }

    /// The same for what comes through a descriptor: whoever has it can only be told.
    ///
    /// # Errors
    /// Another door has changed the file since it was opened.
    pub(crate) fn opened_now(&self, node: INodeNo) -> Result<u64> {
        self.current(node).map_err(|_| Errno::EIO)
    }

    /// The kernel has forgotten a node.
    pub(crate) fn forget_node(&self, node: u64) {
        if let Some(kept) = &self.kept {
            kept.times.forget(kept.renewed.ino(node));
            kept.renewed.forget(node, |other| self.known.has(other));
        }
    }

    /// Returns the times that a file is to get now that the kernel has sent all that it had of it, if they are not what it has.
    pub(crate) fn settled_times(&self, ino: u64) -> Option<SetAttr> {
        let said = self.kept.as_ref()?.times.settle(ino)?;
        let (mtime, ctime) = (Some(SetTime::At(said.mtime)), Some(SetTime::At(said.ctime)));
        Some(SetAttr { mtime, ctime, ..SetAttr::default() })
    }
}

/// Does `work` on a thread of its own, and returns whether it was done within `limit`.
fn within(limit: Duration, work: impl FnOnce() + Send + 'static) -> bool {
    let (done, end) = mpsc::channel();
    let run = move || {
        work();
        // Nobody may wait any more.
        let _ = done.send(());
    };
    match std::thread::Builder::new().name("mw-fuse-back".into()).spawn(run) {
        Ok(_) => end.recv_timeout(limit).is_ok(),
        Err(e) => {
            tracing::error!("no thread to have the kernel write back: {e}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_too_long_is_not_waited_for() {
        assert!(within(GIVE_UP, || {}));
        let (open, gate) = mpsc::channel::<()>();
        assert!(!within(Duration::from_millis(5), move || assert!(gate.recv().is_err())));
        drop(open);
    }
}
