//! `fork`: a world of its own that begins as this one is.

use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::tool::{Effect, Tool};
use mw_world::{At, ForkOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest time to live, in seconds (ten years).
const LONGEST: u64 = 10 * 366 * 86_400;
/// How much of the world's name a made-up name has, so that it stays within 63 bytes.
const STEM: usize = 50;

pub(crate) struct Fork;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// Its name: 3 to 63 of a-z, 0-9, `-` and `.`. Left out: one is made up.
    name: Option<String>,
    /// The instant to fork: a version, an RFC 3339 time or a snapshot's label. Left out: now.
    at: Option<String>,
    /// Discard it after this many seconds.
    ttl_seconds: Option<u64>,
    /// The fork to fork. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Its name: give it to the other tools as `fork`.
    fork: String,
    /// The version with which it begins.
    version: String,
}

impl Tool for Fork {
    const NAME: &'static str = "fork";
    const TITLE: &'static str = "Fork the world";
    const ABOUT: &'static str = "Makes a fork of the world, in constant time and without copying: a place to try something that the world \
                                 itself does not see. Give its name as `fork` to the other tools.";
    const EFFECT: Effect = Effect::Adds;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let ttl = match ask.ttl_seconds {
            Some(n) if !(1..=LONGEST).contains(&n) => {
                return Err(Refusal::invalid(format!("ttl_seconds {n} is out of range; use 1 to {LONGEST}")));
            }
            n => n.map(Duration::from_secs),
        };
        let base = session.name().as_str();
        let name = ask.name.unwrap_or_else(|| {
            let stem = base[..base.len().min(STEM)].trim_end_matches(['-', '.']);
            format!("{stem}-{}", bound.store().env().token(8))
        });
        let at = ask.at.as_deref().map(At::parse).transpose()?;
        let options = ForkOptions { at, ttl, ..ForkOptions::default() };
        let info = bound.store().fork(bound.who(), base, &name, &options)?;
        Ok(Answer { fork: info.name, version: info.version.to_string() })
    }
}
