//! Roles: what a grant allows.

use crate::error::{Error, Result};
use std::fmt;

/// What a grant allows. Each role allows what the smaller ones do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read, list, diff, log.
    Reader,
    /// Also write, delete, snapshot.
    Editor,
    /// Also fork, promote, discard, keys.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reader => "reader",
            Self::Editor => "editor",
            Self::Admin => "admin",
        })
    }
}

impl std::str::FromStr for Role {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "reader" => Ok(Self::Reader),
            "editor" => Ok(Self::Editor),
            "admin" => Ok(Self::Admin),
            _ => Err(Error::invalid(format!("role {text:?} is unknown; use reader, editor or admin"))),
        }
    }
}
