//! Every JSON document that goes in or out of the control plane. `GET /-/v1/schema` publishes all of them.
//!
//! Rules for all: ids, versions and sequence numbers are strings of decimal digits, as many readers of JSON lose digits of numbers over
//! 2^53; times are RFC 3339 in UTC with nine digits of a second; sizes are bytes; a missing value is `null` or left out.
//! Paths are text: see [`path_text`].

mod change;
mod event;
mod file;
mod host;
mod key;
mod run;
mod world;

pub use change::*;
pub use event::*;
pub use file::*;
pub use host::*;
pub use key::*;
pub use run::*;
pub use world::*;

use bytes::Bytes;
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

/// The first character of the private range in which bytes that are not UTF-8 are written: byte `b` is U+F700 + `b`.
const ESCAPE: u32 = 0xF700;

/// Writes a path as text, without loss: UTF-8 stands for itself, and each byte `b` that is not part of valid UTF-8 becomes the
/// character U+F700 + `b`. Characters of that range that really stand in a path are written byte by byte in the same way, so
/// that [`path_bytes`] always gives back the same bytes.
pub fn path_text(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    let escape = |bytes: &[u8], text: &mut String| {
        text.extend(bytes.iter().filter_map(|&b| char::from_u32(ESCAPE + u32::from(b))));
    };
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if (ESCAPE..ESCAPE + 0x100).contains(&u32::from(c)) {
                escape(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
            } else {
                text.push(c);
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

/// Reads a path that [`path_text`] wrote.
pub fn path_bytes(text: &str) -> Bytes {
    let mut path = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u32::from(c).checked_sub(ESCAPE).and_then(|b| u8::try_from(b).ok()) {
            Some(b) => path.push(b),
            None => path.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    path.into()
}

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
