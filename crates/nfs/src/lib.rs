//! The NFS door: a world over NFS version 3 on loopback, for machines and containers without FUSE.
//!
//! It is a door of its own because the libraries at hand keep no bound on what a client makes them hold, know no hard links, and answer
//! every write as if it were on disk. Its promises are weaker than the mount's: clients cache attributes for seconds, there are no locks
//! and no extended attributes, and whoever reaches the port is who he says he is.
//!
//! - [`export`], [`Export`]: a world behind a port, which another server can take over ([`export_on`]); `serve`: connections, bounded in number and in what each may hold;
//! - `xdr`, `rpc`: the coding (RFC 4506) and the calls (RFC 5531); `shared`, `openings`: what its threads share; `replay`: repeated calls get the answer of the first;
//! - `mount`: the way to the root's handle; `procedures` and its modules: NFS version 3 (RFC 1813);
//! - `attributes`, `access`, `handle`: what travels; `status`: the one table of errors.

mod access;
mod attributes;
mod handle;
mod mount;
mod openings;
mod procedures;
mod replay;
mod rpc;
mod serve;
mod shared;
mod status;
mod xdr;

pub use serve::{Export, Options, export, export_on};
