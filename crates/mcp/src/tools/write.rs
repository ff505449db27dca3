//! `write`: a file, whole or at its end.

use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::place;
use crate::tool::{Effect, Tool};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mw_model::ErrorKind;
use mw_model::text::path_text;
use mw_world::{Conditions, ObjectInfo, ObjectMeta, PutOptions, Session, WriteAt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) struct Write;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The file. Directories that are missing are made.
    path: String,
    /// The content as text; or else give `base64`.
    text: Option<String>,
    /// The content in base64, for what is not text.
    base64: Option<String>,
    /// Whether to add to the end of the file instead of replacing it.
    #[serde(default)]
    append: bool,
    /// Whether to refuse when the file exists.
    #[serde(default)]
    create: bool,
    /// Refuse unless the file still has this etag (from `read`, `stat` or `write`).
    if_etag: Option<String>,
    /// The MIME type that clients of S3 are told.
    content_type: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    path: String,
    /// The size of the file now, in bytes.
    size: u64,
    /// Names the content.
    etag: String,
    /// The version of the change: with it as `at`, the file reads like this for as long as history is kept.
    version: String,
}

impl Tool for Write {
    const NAME: &'static str = "write";
    const TITLE: &'static str = "Write a file";
    const ABOUT: &'static str = "Writes a file, whole: readers see the old content or the new, never a mixture, and it is durable when this \
                                 returns. Or it adds to the end of one, which never loses what somebody else adds. To change a part of a file, \
                                 use `edit`. History keeps what was there.";
    const EFFECT: Effect = Effect::Changes;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let path = place::below_root(&ask.path, "written")?;
        let content = content(&ask)?;
        let there = place::target(&session, &path)?;
        if let Some(attr) = &there {
            place::need_file(&session, &path, attr)?;
        }
        if ask.append {
            if ask.if_etag.is_some() || ask.content_type.is_some() {
                return Err(Refusal::invalid(
                    "`append` goes with neither `if_etag` nor `content_type`; leave them out",
                ));
            }
            if let Some(attr) = there.filter(|_| !ask.create) {
                session.write(attr.ino, WriteAt::End, &content)?;
                session.sync()?;
                return Ok(answer(&session.head(&path)?));
            }
        }
        let conditions = Conditions {
            if_match: ask.if_etag.map(|etag| vec![etag.trim_matches('"').to_owned()]),
            // What is added to the end of a file must not replace one that somebody made just now.
            if_none_match: (ask.create || ask.append).then(|| vec!["*".to_owned()]),
            ..Conditions::default()
        };
        let meta = ObjectMeta { content_type: ask.content_type, ..ObjectMeta::default() };
        match put(&session, &path, &content, meta, conditions) {
            Err(e) if e.kind == ErrorKind::Precondition && ask.create => {
                Err(Refusal::new(ErrorKind::AlreadyExists, format!("{:?} exists already", ask.path)))
            }
            other => Ok(answer(&other?)),
        }
    }
}

fn content(ask: &Ask) -> Result<Vec<u8>> {
    match (&ask.text, &ask.base64) {
        (Some(text), None) => Ok(text.clone().into_bytes()),
        (None, Some(base64)) => {
            STANDARD.decode(base64).map_err(|e| Refusal::invalid(format!("`base64` is malformed: {e}")))
        }
        _ => Err(Refusal::invalid("give either `text` or `base64`; an empty file has the text \"\"")),
    }
}

fn answer(info: &ObjectInfo) -> Answer {
    Answer { path: path_text(&info.key), size: info.size, etag: info.etag.clone(), version: info.version.to_string() }
}

/// Puts a file.
pub(crate) fn put(
    session: &Session,
    path: &[u8],
    content: &[u8],
    meta: ObjectMeta,
    conditions: Conditions,
) -> Result<ObjectInfo> {
    let mut staged = session.stage()?;
    staged.push(content)?;
    Ok(session.put(path, staged, &PutOptions { meta, conditions, ..PutOptions::default() })?)
}
