//! The crate's behaviour: the contract on every engine, and what only the local engine promises: crash safety, full disks,
//! shared syncs, refused formats.

#![allow(clippy::unwrap_used, reason = "a test says by panicking what it did not expect")]

mod conformance;
mod crash;
mod format;
mod full;
mod rig;
mod space;
mod sync;
