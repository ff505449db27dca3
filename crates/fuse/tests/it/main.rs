//! The mount as programs see it: real system calls on real mounts of worlds in memory.
//!
//! Each test names the case of the case book that it stands for. Needs `/dev/fuse` and root, or `fusermount3`: where that
//! is missing a test says `skipped: needs ...`, and fails under `CI=true`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bed;
mod content;
mod directories;
mod filling;
mod forks;
mod handover;
mod lifecycle;
mod locks;
mod names;
mod others;
mod writeback;
