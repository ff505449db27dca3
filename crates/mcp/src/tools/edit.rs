//! `edit`: a text in a file replaced by another.

use super::write::put;
use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::place;
use crate::tool::{Effect, Tool};
use mw_model::ErrorKind;
use mw_model::text::path_text;
use mw_world::{Conditions, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest file that is edited, in bytes.
const LARGEST: u64 = 16 << 20;
/// How often an edit is tried while others change the file.
const TRIES: usize = 5;
/// How many lines with the text are named.
const NAMED: usize = 10;

pub(crate) struct Edit;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The file.
    path: String,
    /// The text to replace, exactly as it stands in the file, with enough around it to occur once.
    old: String,
    /// What takes its place.
    new: String,
    /// Whether to replace it wherever it occurs.
    #[serde(default)]
    all: bool,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    path: String,
    /// The line where the first replacement begins, from 1.
    line: u64,
    /// How often the text was replaced.
    replaced: u64,
    /// The size of the file now, in bytes.
    size: u64,
    /// Names the content.
    etag: String,
    /// The version of the change.
    version: String,
}

impl Tool for Edit {
    const NAME: &'static str = "edit";
    const TITLE: &'static str = "Edit a file";
    const ABOUT: &'static str = "Replaces a text in a file by another, in one step that loses nobody else's change. The text must occur exactly \
                                 once, unless `all` is set.";
    const EFFECT: Effect = Effect::Changes;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let path = place::below_root(&ask.path, "edited")?;
        if ask.old.is_empty() || ask.old == ask.new {
            return Err(Refusal::invalid("`old` must be some text, and another one than `new`"));
        }
        for _ in 0..TRIES {
            place::file(&session, &path)?;
            let object = session.get(&path)?;
            let text = whole(&object, &ask.path)?;
            let (found, first) = occurrences(&text, &ask.old);
            let line = |at: usize| text[..at].matches('\n').count() as u64 + 1;
            let Some(first) = first else {
                return Err(Refusal::plain(
                    ErrorKind::NotFound,
                    format!(
                        "the text does not occur in {:?}; read the file again: it may have changed, or spaces, tabs and line ends differ",
                        ask.path
                    ),
                ));
            };
            if found > 1 && !ask.all {
                let lines: Vec<String> =
                    text.match_indices(&ask.old).take(NAMED).map(|(at, _)| line(at).to_string()).collect();
                return Err(Refusal::invalid(format!(
                    "the text occurs {} times in {:?} (lines {}{}); give more of what is around the right one, or set `all`",
                    found,
                    ask.path,
                    lines.join(", "),
                    if found > NAMED as u64 { ", …" } else { "" }
                )));
            }
            let size = text.len() as u64 - found * ask.old.len() as u64 + found.saturating_mul(ask.new.len() as u64);
            if size > LARGEST {
                return Err(Refusal::plain(
                    ErrorKind::TooLarge,
                    format!("{:?} would have {size} bytes, and files of up to {LARGEST} are edited here", ask.path),
                ));
            }
            let edited = text.replace(&ask.old, &ask.new);
            let conditions = Conditions { if_match: Some(vec![object.info.etag.clone()]), ..Conditions::default() };
            let info = match put(&session, &path, edited.as_bytes(), object.info.meta.clone(), conditions) {
                // Somebody was quicker; what they made of the file may still hold the text.
                Err(e) if matches!(e.kind, ErrorKind::Precondition | ErrorKind::NotFound) => continue,
                other => other?,
            };
            return Ok(Answer {
                path: path_text(&path),
                line: line(first),
                replaced: found,
                size: info.size,
                etag: info.etag,
                version: info.version.to_string(),
            });
        }
        Err(Refusal::new(ErrorKind::Busy, format!("{:?} kept changing", ask.path)))
    }
}

/// Returns how often a text occurs, and where first.
fn occurrences(text: &str, wanted: &str) -> (u64, Option<usize>) {
    let mut all = text.match_indices(wanted).map(|(at, _)| at);
    let first = all.next();
    (u64::from(first.is_some()) + all.count() as u64, first)
}

fn whole(object: &Object, shown: &str) -> Result<String> {
    let size = object.info.size;
    if size > LARGEST {
        return Err(Refusal::plain(
            ErrorKind::TooLarge,
            format!(
                "{shown:?} has {size} bytes, and files of up to {LARGEST} are edited here; mount the world to edit it"
            ),
        ));
    }
    let bytes = object.read(0, size as usize)?;
    String::from_utf8(bytes.into())
        .map_err(|_| Refusal::invalid(format!("{shown:?} is not text; write it whole, in base64, with `write`")))
}
