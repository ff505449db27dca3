//! Every JSON document that goes in or out of the control plane. `GET /-/v1/schema` publishes all of them.
//!
//! Rules for all: ids, versions and sequence numbers are strings of decimal digits, as many readers of JSON lose digits of numbers over
//! 2^53; times are RFC 3339 in UTC with nine digits of a second; sizes are bytes; a missing value is `null` or left out.
//! Paths are text: see [`path_text`].

mod change;
mod event;
mod export;
mod file;
mod host;
mod key;
mod run;
mod world;

pub use change::*;
pub use event::*;
pub use export::*;
pub use file::*;
pub use host::*;
pub use key::*;
pub use run::*;
pub use world::*;

pub use mw_model::text::{path_bytes, path_text};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A refusal or failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReply {
    /// What went wrong.
    pub error: ErrorBody,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The kind, a stable lower-case name such as `not-found`, `denied` or `conflict`.
    pub kind: String,
    /// The thing, the reason and the remedy.
    pub message: String,
}

/// Nothing more to say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// A world, now or at an instant: `WORLD` or `WORLD@VERSION`, where the version may also be a time or a snapshot's label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The world's name.
    pub world: String,
    /// The instant; `None` is now.
    pub at: Option<String>,
}

impl Spot {
    /// Splits at the first `@`, which no world name can have.
    pub fn parse(text: &str) -> Self {
        match text.split_once('@') {
            Some((world, at)) => Self { world: world.to_owned(), at: Some(at.to_owned()) },
            None => Self { world: text.to_owned(), at: None },
        }
    }
}

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.world)?;
        self.at.as_ref().map_or(Ok(()), |at| write!(f, "@{at}"))
    }
}

#[cfg(test)]
mod tests;
