//! `restore`: a path as it was.

use crate::bound::Bound;
use crate::error::Result;
use crate::place;
use crate::tool::{Effect, Tool};
use mw_model::text::path_text;
use mw_world::At;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) struct Restore;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The file, or the directory with all that was in it.
    path: String,
    /// The instant: a version from `history`, an RFC 3339 time or a snapshot's label.
    version: String,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    path: String,
    /// How many paths became different; 0: it was as wanted already.
    changed: u64,
    /// The version of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The snapshot that was taken of the world before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

impl Tool for Restore {
    const NAME: &'static str = "restore";
    const TITLE: &'static str = "Restore a path";
    const ABOUT: &'static str = "Makes a file, or a directory with all that is in it, what it was at an instant. That is a change like any \
                                 other, and a snapshot is taken first.";
    const EFFECT: Effect = Effect::Changes;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let path = place::below_root(&ask.path, "restored")?;
        let done = session.restore(At::parse(&ask.version)?, &path)?;
        Ok(Answer {
            path: path_text(&path),
            changed: done.changes.len() as u64,
            version: done.version.map(|version| version.to_string()),
            before: done.snapshot.map(|version| version.to_string()),
        })
    }
}
