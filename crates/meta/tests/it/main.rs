//! The behaviour of the crate, seen from outside.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

mod conformance;
mod crash;
mod damage;
mod faults;
