//! The domain: worlds. A namespace with a log, forked in constant time, read at any past instant, compared, promoted.
//!
//! A door holds a [`Session`] (world and principal) and calls one verb of it. Protocols are not known here.
//!
//! - [`Store`]: all worlds of a process; [`Options`]; `fork` (worlds made), `snapshot`, `time`;
//! - `world`: an open world, and the one way to change it (`mutate`); `txn`: one mutation being planned;
//!   `view`: a world at one instant; `state`: what a root and log ranges stand for;
//! - `entry`: one entry of the log; `recover`: opening a world after a crash; `fold`: the overlay goes into the tree;
//! - `record`: the records of the tree; `content`: pieces of bytes; `layout`: the keys of `meta`;
//! - `files`: the POSIX verbs;
//! - `principal`: keys, grants, roles; `once`: idempotency keys; `listener`: what mounts must hear; `orphan`.

mod content;
mod entry;
mod error;
mod files;
mod fold;
mod fork;
mod layout;
mod listener;
mod once;
mod orphan;
mod principal;
mod record;
mod recover;
mod session;
mod snapshot;
mod state;
mod store;
mod time;
mod txn;
mod view;
mod world;

pub use error::{Error, Result};
pub use files::{
    Allocate, Dir, DirEntry, Make, RenameFlag, SeekFor, SetAttr, SetTime, StatFs, WriteAt, Written, XattrFlag,
};
pub use fork::{CreateOptions, ForkOptions, Parent, WorldInfo};
pub use listener::{Changed, Listener, Subscription};
pub use principal::{Principal, Role};
pub use session::Session;
pub use snapshot::Snapshot;
pub use store::{Options, Secret, Store};
pub use time::At;
