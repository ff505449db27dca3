//! The control plane: every verb of the command line under `/-/v1`, JSON in and out, authenticated with the store's own keys.
//!
//! It decodes a request, calls one verb of a `Session` or of the `Store`, and encodes the answer. It knows neither the mount
//! nor the sandbox: those stand behind the traits of [`host`], which the binary wires.
//!
//! - [`door`]: [`ControlDoor`], the hyper service; `call`: a verified request and its answer;
//! - [`route`]: from a method and a path to a verb, without I/O;
//! - [`types`]: every JSON document that goes in or out, with its schema;
//! - [`frames`]: the stream in which whole file trees travel, with modes, links, times and holes;
//! - [`sigv4`]: AWS Signature Version 4, both ways (a crate of its own); [`bearer`]: for clients that cannot sign;
//! - [`host`]: mounts and runs as this door sees them;
//! - [`error`]: the one place where kinds become HTTP statuses;
//! - `verbs`: one file for each family of verbs;
//! - `plant`, `harvest`: a stream of frames into a world, and out of it.

pub mod bearer;
pub mod body;
mod call;
pub mod door;
pub mod error;
pub mod frames;
mod harvest;
pub mod host;
mod plant;
pub mod route;
pub mod schema;
pub mod types;
mod verbs;
pub use mw_sigv4::{self as sigv4, uri};

pub use body::Body;
pub use door::ControlDoor;
pub use error::{Error, Result};
pub use host::Hosts;
pub use mw_model::when;
