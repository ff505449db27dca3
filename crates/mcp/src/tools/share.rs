//! `share`: a URL that reads one file for a while.

use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::place;
use crate::tool::{Effect, Tool};
use mw_model::text::path_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest a URL may live, in seconds (a week, as S3 has it), and what it lives usually.
const LONGEST: u64 = 7 * 86_400;
const USUAL: u64 = 3_600;

pub(crate) struct ShareUrl;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The file.
    path: String,
    /// How long the URL works: 1 to 604800 seconds, usually 3600.
    expires_seconds: Option<u64>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    path: String,
    /// Whoever has this can read the file, and nothing else, without a key.
    url: String,
    /// How long it works.
    expires_seconds: u64,
}

impl Tool for ShareUrl {
    const NAME: &'static str = "share";
    const TITLE: &'static str = "Share a file";
    const ABOUT: &'static str = "Makes a URL with which anybody who reaches the server can download one file for a while. It stops working \
                                 when the time is over or this key is revoked.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let path = place::below_root(&ask.path, "shared")?;
        let seconds = ask.expires_seconds.unwrap_or(USUAL);
        if !(1..=LONGEST).contains(&seconds) {
            return Err(Refusal::invalid(format!("expires_seconds {seconds} is out of range; use 1 to {LONGEST}")));
        }
        place::file(&session, &path)?;
        let url = bound.url(session.name().as_str(), &path, seconds)?;
        Ok(Answer { path: path_text(&path), url, expires_seconds: seconds })
    }
}
