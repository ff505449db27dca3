//! The real binary, with a directory of its own: every exit code, every document, every refusal.

mod bench;
mod control;
mod files;
mod keys;
mod serve;
mod verbs;
