//! `move`: a file or directory gets another path.

use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::place;
use crate::tool::{Effect, Tool};
use bytes::Bytes;
use mw_model::text::path_text;
use mw_model::{Attr, ErrorKind, FileType, Ino};
use mw_world::{Make, RenameFlag, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The permission bits of directories that are made on the way.
const MODE: u32 = 0o755;

pub(crate) struct Move;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The file, link or directory.
    from: String,
    /// Its whole new path. Directories that are missing are made.
    to: String,
    /// Whether to replace a file, or an empty directory, that stands there.
    #[serde(default)]
    replace: bool,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Where it is now.
    path: String,
}

impl Tool for Move {
    const NAME: &'static str = "move";
    const TITLE: &'static str = "Move or rename";
    const ABOUT: &'static str = "Moves or renames a file, a link, or a directory with all that is in it, in one step. A link itself is moved, \
                                 not what it points to.";
    const EFFECT: Effect = Effect::Changes;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.now(ask.fork.as_deref())?;
        let from = place::below_root(&ask.from, "moved")?;
        let to = place::below_root(&ask.to, "replaced")?;
        let moved = place::stat(&session, &from)?;
        let there = place::target(&session, &to)?;
        refuse(&ask, &moved, there.as_ref())?;
        let (from_dir, from_name) = place::split(&from);
        let (to_dir, to_name) = place::split(&to);
        let parent = session.resolve(from_dir)?.ino;
        let new_parent = directory(&session, to_dir)?;
        let flag = if ask.replace { RenameFlag::Replace } else { RenameFlag::NoReplace };
        session.rename(parent, from_name, new_parent, to_name, flag)?;
        session.sync()?;
        Ok(Answer { path: path_text(&to) })
    }
}

/// Says what stands in the way, better than the verb itself can.
fn refuse(ask: &Ask, moved: &Attr, there: Option<&Attr>) -> Result<()> {
    let Some(there) = there else { return Ok(()) };
    if there.kind == FileType::Directory && (!ask.replace || moved.kind != FileType::Directory) {
        let name = ask.from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        return Err(Refusal::plain(
            ErrorKind::AlreadyExists,
            format!(
                "{:?} is a directory; to move into it, give the whole new path: {:?}",
                ask.to,
                format!("{}/{name}", ask.to.trim_end_matches('/'))
            ),
        ));
    }
    if !ask.replace && there.ino != moved.ino {
        return Err(Refusal::plain(
            ErrorKind::AlreadyExists,
            format!("{:?} exists already; choose another path, or set `replace`", ask.to),
        ));
    }
    Ok(())
}

/// Returns the directory at a path, and makes what is missing of it. It belongs to whom the directory above belongs.
fn directory(session: &Session, path: &[u8]) -> Result<Ino> {
    let mut above = session.attr(Ino::ROOT)?;
    for name in path.split(|&b| b == b'/').filter(|name| !name.is_empty()) {
        above = match session.lookup(above.ino, name) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let (uid, gid) = (above.uid, above.gid);
                let make = Make { kind: FileType::Directory, mode: MODE, uid, gid, rdev: 0, target: Bytes::new() };
                match session.make(above.ino, name, &make) {
                    // Somebody else was quicker.
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => session.lookup(above.ino, name)?,
                    made => made?,
                }
            }
            found => found?,
        };
    }
    Ok(above.ino)
}
