//! The run: fork, key scoped to the fork, isolated sandbox, verdict, promote or discard, key dead. One crash-safe object.
//!
//! Each state is durable before the next step begins, so that a restart finishes or cleans up any run. Knows worlds and
//! sandboxes; not protocols, and not how a fork's files come to stand in a directory (that is the caller's [`Workspace`]).
//!
//! - [`Runs`]: all runs of a store: start, watch, cancel, list;
//! - [`RunSpec`]: what is to be run; [`Run`], [`Attempt`], [`State`]: where it stands (`record`);
//! - `journal`: the records in `meta`; `events`: what watchers see;
//! - `attempt`: one attempt, from its fork to its verdict; `judge`: the validator;
//! - `console`, `typing`: what is typed to a command that listens;
//! - `settle`: the winner promoted, the others discarded; `recover`: after a restart.

mod attempt;
mod console;
mod error;
mod events;
mod journal;
mod judge;
mod record;
mod recover;
mod runs;
mod settle;
mod spec;
mod typing;
mod workspace;

pub use console::Input;
pub use error::{Error, Result};
pub use events::Event;
pub use record::{Attempt, Run, State};
pub use runs::{Place, Runs};
pub use spec::RunSpec;
pub use workspace::{Files, Workspace};
