//! Runs a command isolated from the machine: it sees a read-only system, the directories it is given and, of the network,
//! the store alone. Knows directories, an environment and an address; it does not know worlds, runs or protocols.
//!
//! - [`Spec`]: what to run, what it may see, and its [`Limits`];
//! - [`Backend`] starts a [`Spec`] and gives a [`Running`]; its end is an [`Outcome`];
//! - [`Bubblewrap`]: the backend over Linux namespaces; [`init_main`] is its other half, which runs inside as process 1;
//! - [`Output`]: where the command's output goes while it runs;
//! - [`Destination`] and [`Resolve`]: the one way out of the sandbox that is not the store.
//!
//! Inside the crate, a sandbox is planned by `bubblewrap`, built through `stage`,
//! started by `launch`, watched to its end by `watch`, fed and drained by `pump`, connected by `relay` and
//! `proxy`, bounded by `cgroup` and `seccomp`; `wire` is the talk between the two halves.

mod bubblewrap;
mod cgroup;
mod error;
mod handle;
mod init;
mod launch;
mod outcome;
mod proxy;
mod pump;
mod relay;
mod seccomp;
mod shared;
mod spec;
mod stage;
mod watch;
mod wire;

pub use bubblewrap::Bubblewrap;
pub use error::Error;
pub use init::init_main;
pub use outcome::{Exit, Kept, Outcome};
pub use proxy::address::is_public;
pub use proxy::{Resolve, SystemResolver};
pub use pump::{Discard, Output, Stream};
pub use spec::{Bind, Destination, Enforcer, Enforcers, Limits, Spec};

use std::fmt::Debug;
use std::sync::Arc;

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// A way to run commands isolated.
pub trait Backend: Send + Sync + Debug {
    /// Starts `spec`. On return the command itself runs, and its output goes to `output` from threads of the backend.
    ///
    /// # Errors
    /// The sandbox could not be built, or the command cannot be executed ([`Error::Command`]). Nothing is left running.
    fn start(&self, spec: &Spec, output: Arc<dyn Output>) -> Result<Box<dyn Running>>;

    /// Proves by a trial that sandboxes work here.
    ///
    /// # Errors
    /// What is missing, and the remedy.
    fn probe(&self) -> Result<()>;
}

/// A command that runs in a sandbox. Dropping it kills whatever still lives in the sandbox, and waits for that.
pub trait Running: Send + Sync + Debug {
    /// Waits until the command has ended and nothing of the sandbox is alive. May be called more than once, by any thread.
    fn wait(&self) -> Outcome;

    /// Returns the outcome if the sandbox is over, without waiting.
    fn outcome(&self) -> Option<Outcome>;

    /// Asks the command to end (SIGTERM), and kills everything after the grace time.
    fn stop(&self);

    /// Kills every process of the sandbox at once. Returns before they are gone; [`Running::wait`] tells when.
    fn kill(&self);

    /// Returns the sandbox's first process, as the host numbers it.
    fn pid(&self) -> i32;

    /// Returns who holds the command to its limits.
    fn limits_enforced_by(&self) -> Enforcers;

    /// Types `bytes` on the command's terminal, or writes them to its standard input.
    ///
    /// # Errors
    /// The command has neither, or has closed it.
    fn input(&self, bytes: &[u8]) -> Result<()>;

    /// Ends the command's standard input. On a terminal this is the user's own to do, with ^D.
    fn close_input(&self);

    /// Tells the command's terminal its size. Without a terminal nothing happens.
    ///
    /// # Errors
    /// The terminal is gone.
    fn resize(&self, rows: u16, columns: u16) -> Result<()>;
}
