//! Behaviour of the crate, through its public verbs.
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "tests say what they expect")]

mod core;
mod objects;
mod rig;
