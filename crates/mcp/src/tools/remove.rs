//! `remove`: a file, or a directory with all that is in it.

use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::place;
use crate::tool::{Effect, Tool};
use bytes::Bytes;
use mw_model::{ErrorKind, FileType};
use mw_world::{Conditions, ListRequest, Listed, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many keys go in one commit.
const PAGE: usize = 1000;

pub(crate) struct Remove;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The file, link or directory.
    path: String,
    /// Whether to remove a directory with all that is in it.
    #[serde(default)]
    recursive: bool,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// How many files and links were removed.
    files: u64,
}

impl Tool for Remove {
    const NAME: &'static str = "remove";
    const TITLE: &'static str = "Remove files";
    const ABOUT: &'static str = "Removes a file or a link, or, with `recursive`, a directory with all that is in it. History keeps what was \
                                 there, so that `restore` can bring it back.";
    const EFFECT: Effect = Effect::Changes;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let path = place::below_root(&ask.path, "removed")?;
        let attr = place::stat(&session, &path)?;
        let (dir, name) = place::split(&path);
        let parent = session.resolve(dir)?.ino;
        if attr.kind != FileType::Directory {
            match attr.kind {
                FileType::File | FileType::Symlink => {
                    session.delete(&path, &Conditions::default())?;
                }
                _ => {
                    session.unlink(parent, name)?;
                    session.sync()?;
                }
            }
            return Ok(Answer { files: 1 });
        }
        let mut answer = Answer::default();
        if ask.recursive {
            empty(&session, &path, &mut answer)?;
        }
        match session.rmdir(parent, name) {
            Ok(()) => {}
            // It was there for its files alone, and went with the last of them.
            Err(e) if e.kind() == ErrorKind::NotFound && ask.recursive => {}
            Err(e) if e.kind() == ErrorKind::NotEmpty && ask.recursive => {
                return Err(Refusal::plain(
                    ErrorKind::NotEmpty,
                    format!(
                        "{:?} still holds something: somebody is writing there, or it holds pipes or sockets, which only a mount can \
                             remove",
                        ask.path
                    ),
                ));
            }
            Err(e) => return Err(e.into()),
        }
        session.sync()?;
        Ok(answer)
    }
}

/// Removes every key under a directory, a portion at a time. What is left of explicit directories are keys too, as soon as they are empty.
fn empty(session: &Session, path: &[u8], answer: &mut Answer) -> Result<()> {
    let prefix = place::prefix(path);
    loop {
        let request = ListRequest { prefix: prefix.clone(), delimiter: None, after: Bytes::new(), limit: PAGE };
        let listing = session.list(&request)?;
        let keys: Vec<Bytes> = listing
            .items
            .into_iter()
            .filter_map(|item| match item {
                Listed::Object(info) if info.key != prefix => Some(info.key),
                Listed::Object(_) | Listed::Prefix(_) => None,
            })
            .collect();
        let mut gone = 0u64;
        for (key, deleted) in keys.iter().zip(session.delete_many(&keys)?) {
            let deleted = u64::from(deleted?.existed);
            gone += deleted;
            answer.files += if key.ends_with(b"/") { 0 } else { deleted };
        }
        if gone == 0 {
            return Ok(());
        }
    }
}
