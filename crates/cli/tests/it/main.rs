//! The real binary, with a directory of its own: every exit code, every document, every refusal.

#![allow(clippy::type_complexity, reason = "a table says itself what is in it")]
#![allow(clippy::disallowed_methods, reason = "the server is another process: real time passes")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod control;
mod files;
mod host;
mod keys;
mod restart;
mod serve;
mod temporary;
mod verbs;
