//! Closing the gate between two writes, never inside one.

use super::Door;
use mw_model::Ino;
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a write that is under way is given to send its next piece before it is looked into.
const MOMENT: Duration = Duration::from_millis(1);
/// How long each asking is given, in ms, two seconds in all; only a write that waits for something else takes as long. Who asks takes one
/// lock after the other, and may come to stand before one that a parked request holds: the others are asked for anew.
const ROUNDS: [u64; 4] = [20, 100, 400, 1480];
/// How many files one process is asked to wait for.
const FILES: usize = 256;

/// The processes that ask for locks only, and not for a sync.
#[derive(Debug, Default)]
pub(crate) struct Askers(Mutex<Vec<u32>>);

impl Askers {
    /// Waits for the end of a process. Until then its number is nobody else's, so it is taken off the list first.
    fn reap(&self, mut child: Child) {
        if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), ended), Err(Errno::INTR)) {}
        }
        self.0.lock().retain(|pid| *pid != child.id());
        drop(child.wait());
    }
}

impl Door {
    /// Closes the gate. Not for threads that answer requests.
    pub(crate) fn hold(&self) {
        self.gate.begin_settle();
        let unfinished = self.gate.settle(MOMENT);
        if !unfinished.is_empty() && !self.is_ended() {
            self.settle(unfinished);
        }
        self.gate.hold();
    }

    /// Waits until the writes of `left` have ended. Whether one has, only the kernel knows, and it says so to whoever asks for the
    /// inode's lock. fsync(2) does; it is asked for by a process of its own, because a thread of this one that waits for its own
    /// mount would keep the mount from ending when the server is killed.
    fn settle(&self, mut left: Vec<u64>) {
        for round in ROUNDS {
            for few in left.chunks(FILES) {
                if let Err(e) = self.ask_for_locks(few) {
                    tracing::warn!("cannot run `sync`, so a fork may hold part of a write: {e}");
                }
            }
            left = self.gate.settle(Duration::from_millis(round));
            if left.is_empty() {
                return;
            }
        }
        tracing::warn!(world = %self.world, files = left.len(), "a write does not come to its end; a fork may hold part of it");
    }

    fn ask_for_locks(&self, inodes: &[u64]) -> std::io::Result<()> {
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
            return Ok(());
        }
        let child = Command::new("sync")
            .arg("--")
            .args(paths)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.askers.0.lock().push(child.id());
        // It may wait for a lock that a parked request holds, until the gate opens.
        let askers = self.askers.clone();
        if let Err(e) = std::thread::Builder::new().name("mw-fuse-reap".into()).spawn(move || askers.reap(child)) {
            tracing::debug!("no thread to wait for a process: {e}");
        }
        Ok(())
    }

    /// Returns whether the process `pid` asks for a lock only, and not for a sync.
    pub(crate) fn is_barrier(&self, pid: u32) -> bool {
        self.askers.0.lock().contains(&pid)
    }
}
