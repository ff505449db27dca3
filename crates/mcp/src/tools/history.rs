//! `history`: who changed what.

use crate::bound::Bound;
use crate::entry::time;
use crate::error::{Refusal, Result};
use crate::tool::{Effect, Tool};
use crate::{page, place};
use mw_model::Seq;
use mw_model::text::path_text;
use mw_world::LogQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) struct History;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// Only what changed this path, or something under it.
    #[serde(default)]
    path: String,
    /// The most entries to return: 1 to 500, usually 20.
    limit: Option<u32>,
    /// `next` of the last answer, to go on with older entries.
    cursor: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Newest first.
    entries: Vec<Change>,
    /// The cursor for older ones; missing when this is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Change {
    /// The version: the world after this change. Other tools take it as `at`, `since` or `version`.
    version: String,
    time: String,
    /// What was done.
    verb: String,
    /// The path that it touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The key that did it.
    key: String,
    /// The run that it belonged to.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// What was said with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

impl Tool for History {
    const NAME: &'static str = "history";
    const TITLE: &'static str = "See the history";
    const ABOUT: &'static str = "Shows who changed what and when, newest first, in the whole world or at one path. A fork's history begins with \
                                 the fork.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let path = place::parse(&ask.path)?;
        let limit = page::limit(ask.limit, 20, 500)?;
        let before = match page::place(ask.cursor.as_deref())? {
            None => None,
            Some(bytes) => Some(Seq(u64::from_be_bytes(
                bytes
                    .try_into()
                    .map_err(|_| Refusal::invalid("this is no cursor of `history`; leave it out to start over"))?,
            ))),
        };
        let query = LogQuery { path: (!path.is_empty()).then_some(path), limit: limit + 1, before };
        let mut found = session.log(&query)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|last| page::cursor(&last.seq.0.to_be_bytes()));
        let entries = found.into_iter().map(|entry| Change {
            version: entry.version.to_string(),
            time: time(entry.version.0),
            verb: entry.verb,
            path: entry.path.map(|path| path_text(&path)),
            key: entry.key,
            run: entry.run,
            note: entry.note,
        });
        Ok(Answer { entries: entries.collect(), next })
    }
}
