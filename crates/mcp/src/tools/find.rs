//! `find`: paths by a glob.

use crate::bound::Bound;
use crate::entry::Entry;
use crate::error::{Refusal, Result};
use crate::scan::Keys;
use crate::tool::{Effect, Tool};
use crate::{page, place};
use bytes::Bytes;
use globset::{GlobBuilder, GlobMatcher};
use mw_model::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many keys one call looks at.
const BUDGET: usize = 100_000;
/// The longest pattern, in bytes.
const LONGEST: usize = 1024;

pub(crate) struct Find;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// What to look for: `*` and `?` within a name, `**` across directories, `[abc]`, `{a,b}`. Without a slash it is compared with names
    /// (`*.md`), with one with paths from `path` on (`docs/**/*.md`).
    glob: String,
    /// The directory under which to look; left out: the whole world.
    #[serde(default)]
    path: String,
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
    /// Files, links and directories, in byte order of their paths.
    entries: Vec<Entry>,
    /// The cursor for what comes behind; missing when everything was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A glob over names or paths.
pub(crate) struct Names {
    matcher: GlobMatcher,
    whole: bool,
}

impl Names {
    pub(crate) fn new(glob: &str) -> Result<Self> {
        let glob = glob.strip_prefix('/').unwrap_or(glob);
        if glob.is_empty() || glob.len() > LONGEST {
            return Err(Refusal::invalid(format!("a glob has 1 to {LONGEST} bytes, such as *.md or src/**/*.rs")));
        }
        let built = GlobBuilder::new(glob).literal_separator(true).build();
        let matcher = built.map_err(|e| Refusal::invalid(format!("{glob:?} is no glob: {e}")))?.compile_matcher();
        Ok(Self { matcher, whole: glob.contains('/') })
    }

    /// Returns whether a path, as it is called from the directory of the search, is meant.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        let compared = if self.whole { path } else { place::split(path).1 };
        self.matcher.is_match(Path::new(OsStr::from_bytes(compared)))
    }
}

impl Tool for Find {
    const NAME: &'static str = "find";
    const TITLE: &'static str = "Find files by name";
    const ABOUT: &'static str =
        "Finds files, links and directories by a glob over their names or paths. To look into files, use `search`.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.at(ask.fork.as_deref(), ask.at.as_deref())?;
        let path = place::parse(&ask.path)?;
        let names = Names::new(&ask.glob)?;
        let limit = page::limit(ask.limit, 100, 1000)?;
        let mut last = page::place(ask.cursor.as_deref())?.map(Bytes::from).unwrap_or_default();
        if place::stat(&session, &path)?.kind != FileType::Directory {
            return Err(Refusal::invalid(format!(
                "{:?} is no directory; leave `path` out to look everywhere",
                ask.path
            )));
        }
        let from = place::prefix(&path).len();
        let mut keys = Keys::new(&session, &path, last.clone(), BUDGET);
        let mut entries = Vec::new();
        while let Some(info) = keys.next()? {
            // Directories show only in the keys under them: those that the key before did not lie in are new.
            for (at, _) in info.key.iter().enumerate().skip(from).filter(|(_, b)| **b == b'/') {
                let dir = &info.key[..=at];
                if !last.starts_with(dir) && at > from && names.has(&dir[from..at]) {
                    entries.push(Entry::directory(dir));
                }
            }
            if !info.key.ends_with(b"/") && names.has(info.key.get(from..).unwrap_or_default()) {
                entries.push(Entry::object(&session, &info));
            }
            last = info.key;
            if entries.len() >= limit {
                return Ok(Answer { entries, next: Some(page::cursor(&last)) });
            }
        }
        Ok(Answer { entries, next: keys.spent().then(|| page::cursor(&last)) })
    }
}
