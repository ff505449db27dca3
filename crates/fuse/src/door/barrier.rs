//! Closing the gate between two writes, never inside one.

use super::Door;
use mw_model::Ino;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a write that is under way is given to send its next piece before it is looked into.
const MOMENT: Duration = Duration::from_millis(1);
/// The longest that a fork waits for writes to come to their end; only one that waits for something else takes as long.
const BOUND: Duration = Duration::from_secs(2);
/// How many files one process is asked to wait for.
const FILES: usize = 256;

impl Door {
    /// Closes the gate. Not for threads that answer requests.
    pub(crate) fn hold(&self) {
        self.gate.begin_settle();
        let unfinished = self.gate.settle(MOMENT);
        if !unfinished.is_empty() && !self.is_ended() {
            self.settle(&unfinished);
        }
        self.gate.hold();
    }

    /// Waits until the writes of `inodes` have ended. Whether one has, only the kernel knows, and it says so to whoever asks for
    /// the inode's lock. fsync(2) does; it is asked for by a process of its own, because a thread of this one that
    /// waits for its own mount would keep the mount from ending when the server is killed.
    fn settle(&self, inodes: &[u64]) {
        let mut asking = Vec::new();
        for few in inodes.chunks(FILES) {
            match self.ask_for_locks(few) {
                Ok(child) => asking.extend(child),
                Err(e) => tracing::warn!("cannot run `sync`, so a fork may hold part of a write: {e}"),
            }
        }
        let left = self.gate.settle(BOUND);
        if !left.is_empty() {
            tracing::warn!(world = %self.world, files = left.len(), "a write does not come to its end; a fork may hold part of it");
        }
        if asking.is_empty() {
            return;
        }
        // One may wait for a lock that a parked request holds; it ends when the gate opens, and is reaped then.
        let reap = move || asking.into_iter().for_each(|mut child| drop(child.wait()));
        if let Err(e) = std::thread::Builder::new().name("mw-fuse-reap".into()).spawn(reap) {
            tracing::debug!("no thread to wait for a process: {e}");
        }
    }

    fn ask_for_locks(&self, inodes: &[u64]) -> std::io::Result<Option<Child>> {
        let path = |ino: &u64| -> Option<PathBuf> {
            let path = self.session.path_of(Ino(*ino)).ok().flatten()?;
            Some(self.dir.join(OsStr::from_bytes(&path)))
        };
        // A file without a name is in no fork.
        let (named, unnamed): (Vec<_>, Vec<_>) =
            inodes.iter().map(|ino| (*ino, path(ino))).partition(|(_, p)| p.is_some());
        unnamed.into_iter().for_each(|(ino, _)| self.gate.ended(ino));
        let paths: Vec<_> = named.into_iter().filter_map(|(_, path)| path).collect();
        if paths.is_empty() {
            return Ok(None);
        }
        let child = Command::new("sync")
            .arg("--")
            .args(paths)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.barrier.store(child.id(), Ordering::SeqCst);
        Ok(Some(child))
    }

    /// Returns whether the process `pid` asks for a lock only, and not for a sync.
    pub(crate) fn is_barrier(&self, pid: u32) -> bool {
        pid != 0 && self.barrier.load(Ordering::SeqCst) == pid
    }
}
