//! The real binary, with a directory of its own: every exit code, every document, every refusal.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod control;
mod files;
mod host;
mod keys;
mod serve;
mod verbs;
