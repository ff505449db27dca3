//! `diff`: what changed since the fork point, or since an instant.

use crate::bound::Bound;
use crate::entry::Kind;
use crate::error::{Refusal, Result};
use crate::tool::{Effect, Tool};
use crate::{page, place};
use mw_model::text::path_text;
use mw_model::{ErrorKind, FileType};
use mw_world::{At, Change, DiffEntry, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

/// The largest file of which lines are compared, and the longest patch, in bytes.
const LARGEST: u64 = 1 << 20;
const LONGEST: usize = 64 << 10;

pub(crate) struct Diff;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// What to compare with: a version, an RFC 3339 time or a snapshot's label. Left out: the point where the world was forked.
    since: Option<String>,
    /// Only what lies at or under this path.
    #[serde(default)]
    path: String,
    /// Whether to show the changed lines; `path` must name one file.
    #[serde(default)]
    patch: bool,
    /// The most changes to return: 1 to 1000, usually 100.
    limit: Option<u32>,
    /// `next` of the last answer, to go on behind it.
    cursor: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// In byte order of their paths.
    changes: Vec<Changed>,
    /// How many there are in all.
    total: u64,
    /// The changed lines, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    /// The cursor for what comes behind; missing when this is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// How something differs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum How {
    Added,
    Deleted,
    Modified,
    Renamed,
    TypeChanged,
    Attributes,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Changed {
    path: String,
    change: How,
    kind: Kind,
    /// Its path before, when it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The sizes before and now, in bytes.
    old_size: u64,
    new_size: u64,
}

impl Tool for Diff {
    const NAME: &'static str = "diff";
    const TITLE: &'static str = "See what changed";
    const ABOUT: &'static str = "Compares the world with the point where it was forked, or with an earlier instant: which paths were added, \
                                 deleted, modified, renamed. With `patch` it shows the changed lines of one file.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let now = bound.now(ask.fork.as_deref())?;
        let path = place::parse(&ask.path)?;
        let limit = page::limit(ask.limit, 100, 1000)?;
        let after = page::place(ask.cursor.as_deref())?;
        let then = match &ask.since {
            Some(since) => now.at(&At::parse(since)?)?,
            None => match now.fork_point() {
                Err(e) if e.kind() == ErrorKind::Invalid => {
                    return Err(Refusal::invalid(
                        "this world is no fork; give `since`: a version from `history`, a time, or a label from `snapshots`",
                    ));
                }
                other => other?,
            },
        };
        let mut changes = mw_world::diff(&then, &now)?;
        changes.retain(|change| under(&path, change));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        let total = changes.len() as u64;
        let patch = if ask.patch { Some(patch(&then, &now, &path, &changes)?) } else { None };
        let mut rest =
            changes.into_iter().filter(|change| after.as_ref().is_none_or(|after| change.path[..] > after[..]));
        let page: Vec<DiffEntry> = rest.by_ref().take(limit).collect();
        let next = rest.next().and(page.last()).map(|last| page::cursor(&last.path));
        Ok(Answer { changes: page.into_iter().map(changed).collect(), total, patch, next })
    }
}

/// Returns whether a change is at or under a path, on either side.
fn under(path: &[u8], change: &DiffEntry) -> bool {
    let is = |changed: &[u8]| {
        path.is_empty() || changed.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    is(&change.path) || matches!(&change.change, Change::Renamed { from } if is(from))
}

fn changed(entry: DiffEntry) -> Changed {
    let (change, from) = match entry.change {
        Change::Added => (How::Added, None),
        Change::Deleted => (How::Deleted, None),
        Change::Modified => (How::Modified, None),
        Change::Renamed { from } => (How::Renamed, Some(path_text(&from))),
        Change::TypeChanged => (How::TypeChanged, None),
        Change::Attributes => (How::Attributes, None),
    };
    Changed {
        path: path_text(&entry.path),
        change,
        kind: entry.kind.into(),
        from,
        old_size: entry.old_size,
        new_size: entry.new_size,
    }
}

fn patch(then: &Session, now: &Session, path: &[u8], changes: &[DiffEntry]) -> Result<String> {
    let [change] = changes else {
        if changes.is_empty() {
            return Ok(String::new());
        }
        return Err(Refusal::invalid("`patch` shows one file; name it with `path`"));
    };
    if change.kind != FileType::File {
        return Err(Refusal::invalid("`patch` shows the lines of a file; name one with `path`"));
    }
    let old_path = match &change.change {
        Change::Renamed { from } => &from[..],
        _ => path,
    };
    let old = if matches!(change.change, Change::Added) { String::new() } else { lines(then, old_path)? };
    let new = if matches!(change.change, Change::Deleted) { String::new() } else { lines(now, &change.path)? };
    let (a, b) = (format!("a/{}", path_text(old_path)), format!("b/{}", path_text(&change.path)));
    let mut text = TextDiff::from_lines(&old, &new).unified_diff().header(&a, &b).to_string();
    if text.len() > LONGEST {
        let cut = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
        text.truncate(cut);
        text.push_str("\n… the rest is left out; read the file for it\n");
    }
    Ok(text)
}

fn lines(session: &Session, path: &[u8]) -> Result<String> {
    let shown = path_text(path);
    place::file(session, path)?;
    let object = session.get(path)?;
    if object.info.size > LARGEST {
        return Err(Refusal::invalid(format!(
            "{shown:?} is too large for `patch`; leave `patch` out and read parts of the file"
        )));
    }
    let bytes = object.read(0, object.info.size as usize)?;
    let text = String::from_utf8(bytes.into()).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| Refusal::invalid(format!("{shown:?} is not text; leave `patch` out")))
}
