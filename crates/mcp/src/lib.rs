//! The MCP door: the tools of an agent, bound to one world by the caller's key.
//!
//! A tool decodes its arguments, calls verbs of a `Session`, and encodes a small answer; where there is more, the answer says where
//! to go on. Who calls was decided before a call comes here: the door gets a principal and a world, and knows no signature. It knows
//! neither the control plane nor S3; a presigned URL stands behind the trait [`Share`].
//!
//! - [`door`]: [`McpDoor`], MCP over streamable HTTP, without sessions: every request stands for itself;
//! - `server`: the handler that the SDK calls;
//! - [`bound`]: the world and the key that the tools act with, its forks and instants;
//! - `tool`: what a tool is, and the table of them; `tools`: one file for each;
//! - `place`: paths, and why one leads nowhere; `page`: limits and cursors; `entry`: one thing of a listing; `scan`: keys in bounded
//!   portions;
//! - `error`: the one place where kinds become advice for a model.

pub mod bound;
pub mod door;
mod entry;
mod error;
mod page;
mod place;
mod scan;
mod server;
mod table;
mod tool;
mod tools;

pub use bound::{Bound, Share};
pub use door::McpDoor;

#[cfg(test)]
mod tests;
