//! `mw://WORLD[@VERSION]/PATH`: how a file of a world is named on the command line.
//!
//! The path is raw bytes and stands as it is: nothing in it is decoded. What the world's name may be is the server's to say.

use crate::failure::{Failure, Result};
use bytes::Bytes;
use mw_http::types::{self, Spot, path_text};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const SCHEME: &[u8] = b"mw://";

/// A path in a world, or in an instant of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The world and the instant.
    pub spot: Spot,
    /// The path; empty is the root.
    pub path: Bytes,
}

impl Place {
    /// Parses a place.
    ///
    /// # Errors
    /// The text does not start with `mw://` and the name of a world.
    pub fn parse(text: &OsStr) -> Result<Self> {
        let shown = text.to_string_lossy();
        let rest = text.as_bytes().strip_prefix(SCHEME).ok_or_else(|| {
            Failure::usage(format!("{shown:?} names no file of a world; write mw://WORLD[@VERSION]/PATH"))
        })?;
        let (spot, path) = match rest.iter().position(|&b| b == b'/') {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &b""[..]),
        };
        let spot = std::str::from_utf8(spot).ok().filter(|spot| !spot.is_empty() && !spot.starts_with('@'));
        let spot =
            spot.ok_or_else(|| Failure::usage(format!("{shown:?} has no world; write mw://WORLD[@VERSION]/PATH")))?;
        Ok(Self { spot: Spot::parse(spot), path: Bytes::copy_from_slice(path) })
    }

    /// Returns whether `text` means a place in a world, and not a file of this machine.
    pub fn is(text: &OsStr) -> bool {
        text.as_bytes().starts_with(SCHEME)
    }

    /// Returns the document that names the place.
    pub fn document(&self) -> types::Place {
        types::Place { world: self.spot.world.clone(), at: self.spot.at.clone(), path: path_text(&self.path) }
    }

    /// Returns the last name of the path; the world's name for its root.
    pub fn name(&self) -> Bytes {
        let path = self.path.strip_suffix(b"/").unwrap_or(&self.path);
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        if name.is_empty() { Bytes::copy_from_slice(self.spot.world.as_bytes()) } else { Bytes::copy_from_slice(name) }
    }

    /// Returns the path of a verb on the place's world under `/-/v1/worlds/`.
    pub fn verb(&self, verb: &str) -> String {
        world_verb(&self.spot.world, verb)
    }

    /// Returns the query that names the place.
    pub fn query(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut query = vec![("path", self.path.to_vec())];
        query.extend(self.spot.at.as_ref().map(|at| ("at", at.clone().into_bytes())));
        query
    }
}

/// Returns the path of a verb on a world.
pub fn world_verb(world: &str, verb: &str) -> String {
    let name = mw_http::uri::encode(world.as_bytes(), false);
    if verb.is_empty() { format!("worlds/{name}") } else { format!("worlds/{name}/{verb}") }
}

#[cfg(test)]
mod tests;
