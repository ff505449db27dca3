//! The door in memory: signed requests in, answers out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod durable;
mod matrix;
mod rig;
