//! The mount: a world as a POSIX file system, served to the kernel over FUSE by threads of this process.
//!
//! A request is decoded, one verb of a [`mw_world::Session`] is called, the answer is encoded. Nothing is kept here that
//! the world does not know, except what the kernel holds: which inodes it knows, what is open, which answers are on the way.
//!
//! # What is guaranteed
//!
//! - **Within one mount** the kernel's caches are exact: every `write` has reached the store
//!   when it returns, and an append goes to the end that the store knows, not the one that the kernel remembers.
//!   A mount with write-back ([`MountOptions::writeback`]) promises less: SEMANTICS, 7.3.
//! - **A fork has all of a `write` or nothing.** The kernel sends large and unaligned writes in pieces, cut at a page or at a
//!   MiB; the gate closes between two writes, never between two pieces ([`pieces`]). An append of up to a MiB is one change
//!   also for other mounts and for history.
//! - **A change through another door** (S3, the command line) has been made known to the kernel of every mount before that
//!   door's call returns: a later `open`, `stat`, `read` or listing sees it. A door waits at most ten seconds for a mount.
//! - **A change through another mount** likewise: the answer to the program that made it is held back until the other
//!   mounts' kernels know. There is one exception, so that no two mounts can wait for each other: a mount that is itself
//!   being told of changes does not hold answers back. Then the other mount knows one notification later. Nothing is
//!   held back for more than a second.
//! - **Promote, rebase, revert, delete** drop every cached name and inode.
//! - **Locks** (fcntl, flock) are the world's, so that all its mounts see them. Who is given one has a kernel that has heard of every change
//!   made before that: what the last holder wrote, through whatever mount, is what the next one reads.
//! - Descriptors keep the inode that they opened, whatever replaces its name, and outlive a server that hands its mounts over ([`handover`]).
//!
//! # How two mounts cannot wait for each other
//!
//! The kernel holds a directory's lock while a name is made or removed in it, and a page's lock while it is written, until
//! the request is answered; a notification about the same directory or page waits for that lock. So notifications are sent by
//! one thread a mount ([`notify`]), never by a thread that answers requests, and an answer that waits for another mount's
//! notifications occupies no thread. When a mount gets something to tell its own kernel, it first sends every
//! answer that it holds back and holds no more until done; hence the lock that a notification waits for always belongs to
//! a request whose answer waits for no notification.
//!
//! # How a late answer cannot bring back the past
//!
//! An answer may be computed before a change and arrive after its notification. Every request remembers the count of
//! changes heard before it asked the world ([`epochs`]); when its inode or directory changed since, the kernel is
//! told to cache nothing. The kernel itself orders the rest: notifications about names wait for look-ups under way in that
//! directory, notifications about pages wait for reads under way.
//!
//! # Map
//!
//! - [`mount`]: making, taking over and ending a mount; [`serving`]: its threads; [`handover`]: standing still and handing over to the next server; [`device`]: the system calls for it; [`stale`], [`guard`]: mounts whose server died;
//! - [`kernel`]: decoding requests; [`opening`]: what the kernel may do with what is open; [`filling`]: giving it a small file with its opening; [`door`]: the state of one mount and its verbs, a file for each family;
//! - [`interrupts`]: signals that came before what they interrupt;
//! - [`gate`]: holding changes while a fork is taken; [`pieces`]: which write is not whole yet; [`listener`]: what the world tells a mount;
//! - [`aside`]: threads for what waits for a disk; [`lookout`], [`place`], [`warm`]: how a thread waits for requests, on which processor, and what keeps processors awake meanwhile; [`proc`]: what the system tells of a task; [`notify`], [`ticket`]: telling the kernel; [`known`], [`epochs`]: what the kernel knows,
//!   and since when;
//! - [`renewed`], [`times`]: with write-back, under which number the kernel asks for a file, and which times it gave it; `door/kept.rs`
//!   has it give up what it holds;
//! - [`errors`]: the one table from error kinds to errno; [`attr`]: attributes and times.

mod aside;
mod attr;
mod device;
mod door;
mod epochs;
mod error;
mod errors;
mod filling;
mod gate;
mod guard;
mod handover;
mod interrupts;
mod kernel;
mod known;
mod listener;
mod lookout;
mod mount;
mod notify;
mod opening;
mod owners;
mod pieces;
mod place;
mod proc;
mod renewed;
mod serving;
mod stale;
mod ticket;
mod times;
mod unsynced;
mod warm;

pub use door::Handed;
pub use error::{Error, Result};
pub use guard::{Guard, guard_main, is_gone};
pub use mount::{Adopted, Mount, MountOptions, adopt, mount, switch};
pub use stale::{clear_stale, end_stuck};
