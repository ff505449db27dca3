//! `snapshot` and `snapshots`: instants with a name.

use crate::bound::Bound;
use crate::entry::time;
use crate::error::{Refusal, Result};
use crate::page;
use crate::tool::{Effect, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) struct TakeSnapshot;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Take {
    /// What to call it: up to 255 bytes. Other tools take it as `at`, `since` or `version`.
    label: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Snapshot {
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    time: String,
}

impl From<mw_world::Snapshot> for Snapshot {
    fn from(snapshot: mw_world::Snapshot) -> Self {
        Self { version: snapshot.version.to_string(), label: snapshot.label, time: time(snapshot.created) }
    }
}

impl Tool for TakeSnapshot {
    const NAME: &'static str = "snapshot";
    const TITLE: &'static str = "Take a snapshot";
    const ABOUT: &'static str = "Keeps the world as it is now under a name, at no cost, whatever its size. It stays readable when older history is gone.";
    const EFFECT: Effect = Effect::Adds;
    type Ask = Take;
    type Answer = Snapshot;

    fn run(bound: &Bound, ask: Take) -> Result<Snapshot> {
        Ok(bound.now(ask.fork.as_deref())?.snapshot(ask.label.as_deref(), None)?.into())
    }
}

pub(crate) struct Snapshots;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The most snapshots to return: 1 to 500, usually 50.
    limit: Option<u32>,
    /// `next` of the last answer, to go on with older ones.
    cursor: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Newest first.
    snapshots: Vec<Snapshot>,
    /// The cursor for older ones; missing when this is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Tool for Snapshots {
    const NAME: &'static str = "snapshots";
    const TITLE: &'static str = "List snapshots";
    const ABOUT: &'static str = "Lists the snapshots of the world, newest first.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let limit = page::limit(ask.limit, 50, 500)?;
        let before = match page::place(ask.cursor.as_deref())? {
            None => u64::MAX,
            Some(bytes) => u64::from_be_bytes(
                bytes
                    .try_into()
                    .map_err(|_| Refusal::invalid("this is no cursor of `snapshots`; leave it out to start over"))?,
            ),
        };
        let mut found = session.snapshots()?;
        found.reverse();
        found.retain(|snapshot| snapshot.version.0 < before);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|last| page::cursor(&last.version.0.to_be_bytes()));
        Ok(Answer { snapshots: found.into_iter().map(Into::into).collect(), next })
    }
}
