//! What lives in the server but not in a world: mounts and runs, as this door sees them.
//!
//! Doors never use each other, so that the mount and the run stand behind these traits, which the binary implements. All calls
//! block. Who may do what is decided before a call comes here.

use crate::Result;
use crate::types::{Export, Mount, NewExport, NewMount, NewRun, Restart, Run, RunEvent, Unmount};
use mw_world::{Principal, Session};
use std::sync::Arc;

/// The table of mounts.
pub trait MountHost: Send + Sync {
    /// Mounts and returns when the mount answers. Asking again for what is mounted there already changes nothing. With `switch`, it
    /// takes the place of what is mounted there.
    ///
    /// # Errors
    /// `Busy` when something else is mounted there; `NotFound` or `NotDirectory` about the directory; `Unsupported` where
    /// the machine cannot mount.
    fn mount(&self, session: Session, request: &NewMount) -> Result<Mount>;

    /// Unmounts.
    ///
    /// # Errors
    /// `NotFound` when nothing of this store is mounted there; `Busy` while files on it are open.
    fn unmount(&self, request: &Unmount) -> Result<()>;

    /// Returns all mounts, by directory.
    fn list(&self) -> Vec<Mount>;
}

/// The table of exports over NFS.
pub trait ExportHost: Send + Sync {
    /// Exports and returns when the port answers. Asking again for what is exported already changes nothing.
    ///
    /// # Errors
    /// `Busy` when the port is taken.
    fn export(&self, session: Session, request: &NewExport) -> Result<Export>;

    /// Ends an export and cuts its clients off.
    ///
    /// # Errors
    /// `NotFound` when nothing is exported on the port.
    fn unexport(&self, port: u16) -> Result<()>;

    /// Returns all exports, by port.
    fn list(&self) -> Vec<Export>;
}

/// What somebody does at the keyboard of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed<'a> {
    /// Types.
    Bytes(&'a [u8]),
    /// Ends standard input.
    End,
    /// Makes the terminal this large.
    Size {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

/// The runs.
pub trait RunHost: Send + Sync {
    /// Starts a run and returns at once. The same `idempotency` key with the same request gives the same run.
    ///
    /// # Errors
    /// `Unsupported` where the machine cannot isolate; those of the fork.
    fn start(&self, who: &Principal, request: &NewRun, idempotency: Option<&str>) -> Result<Run>;

    /// Returns the runs on worlds that `who` may read, newest first.
    ///
    /// # Errors
    /// Those of the store.
    fn list(&self, who: &Principal) -> Result<Vec<Run>>;

    /// Returns a run.
    ///
    /// # Errors
    /// `NotFound`, also for a run that `who` may not see.
    fn show(&self, who: &Principal, id: &str) -> Result<Run>;

    /// Hands the events of a run, from its first on, to `each` until the run ended or `each` returns false.
    ///
    /// # Errors
    /// `NotFound`, also for a run that `who` may not see.
    fn watch(&self, who: &Principal, id: &str, each: &mut dyn FnMut(RunEvent) -> bool) -> Result<()>;

    /// Cancels a run and returns when it has ended cleanly: sandbox down, key dead. Does nothing to a run that ended.
    ///
    /// # Errors
    /// `NotFound`, also for a run that `who` may not see.
    fn cancel(&self, who: &Principal, id: &str) -> Result<Run>;

    /// Types to the command of a run that listens, and returns when the command's side has taken it.
    ///
    /// # Errors
    /// `NotFound`, also for a run that `who` may not see; `Denied` unless `who` started it or is admin on its base;
    /// `Unsupported` for a run that does not listen; `Busy` when its command is over.
    fn type_to(&self, who: &Principal, id: &str, typed: Typed<'_>) -> Result<()>;

    /// Returns how many runs have not ended.
    fn active(&self) -> u64;

    /// Cancels every run and returns when all have ended: the server stops.
    fn stop(&self);
}

/// What puts another program in the server's place.
pub trait RestartHost: Send + Sync {
    /// Asks for a restart and returns at once; it begins when the requests under way are answered.
    ///
    /// # Errors
    /// `Busy` when runs are under way, or a restart is; `Unsupported` or those of the system when the program that is to take over cannot.
    fn restart(&self) -> Result<Restart>;

    /// Returns the last restart, if there was one.
    fn last(&self) -> Option<Restart>;
}

/// What lives in the server beside the store.
#[derive(Clone, Default)]
pub struct Hosts {
    /// The mounts; `None` where there are none.
    pub mounts: Option<Arc<dyn MountHost>>,
    /// The exports; `None` where there are none.
    pub exports: Option<Arc<dyn ExportHost>>,
    /// The runs; `None` where there are none.
    pub runs: Option<Arc<dyn RunHost>>,
    /// What restarts the server; `None` where nothing can.
    pub restarts: Option<Arc<dyn RestartHost>>,
}

impl std::fmt::Debug for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosts")
            .field("mounts", &self.mounts.is_some())
            .field("exports", &self.exports.is_some())
            .field("runs", &self.runs.is_some())
            .field("restarts", &self.restarts.is_some())
            .finish()
    }
}
