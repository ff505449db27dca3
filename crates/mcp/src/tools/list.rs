//! `list`: what is in a directory.

use crate::bound::Bound;
use crate::entry::Entry;
use crate::error::Result;
use crate::tool::{Effect, Tool};
use crate::{page, place};
use bytes::Bytes;
use mw_model::FileType;
use mw_world::{ListRequest, Listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The directory; left out: the root of the world.
    #[serde(default)]
    path: String,
    /// Whether to list everything below, and not only what is directly in it.
    #[serde(default)]
    recursive: bool,
    /// The most entries to return: 1 to 1000, usually 100.
    limit: Option<u32>,
    /// `next` of the last answer, to go on behind it.
    cursor: Option<String>,
    /// A past instant: a version, an RFC 3339 time or a snapshot's label. Left out: now.
    at: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// In byte order of their paths.
    entries: Vec<Entry>,
    /// The cursor for what comes behind; missing when this is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Tool for List {
    const NAME: &'static str = "list";
    const TITLE: &'static str = "List a directory";
    const ABOUT: &'static str = "Lists a directory: paths, kinds, sizes and times, in the order of names. To find files by name or content \
                                 anywhere, use `find` or `search`.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.at(ask.fork.as_deref(), ask.at.as_deref())?;
        let path = place::parse(&ask.path)?;
        let limit = page::limit(ask.limit, 100, 1000)?;
        let after = page::place(ask.cursor.as_deref())?.map(Bytes::from).unwrap_or_default();
        let attr = place::stat(&session, &path)?;
        if attr.kind != FileType::Directory {
            return Ok(Answer { entries: vec![Entry::of(&session, &path, &attr)], next: None });
        }
        let prefix = place::prefix(&path);
        let delimiter = (!ask.recursive).then(|| Bytes::from_static(b"/"));
        let listing = session.list(&ListRequest { prefix: prefix.clone(), delimiter, after, limit })?;
        let entries = listing.items.iter().filter_map(|item| match item {
            // The directory itself, where it has an object of its own.
            Listed::Object(info) if info.key == prefix => None,
            Listed::Object(info) => Some(Entry::object(&session, info)),
            Listed::Prefix(path) => Some(Entry::directory(path)),
        });
        Ok(Answer { entries: entries.collect(), next: listing.next.map(|next| page::cursor(&next)) })
    }
}
