//! `stat`: what a path leads to, or what the world is.

use crate::bound::Bound;
use crate::entry::{Kind, time};
use crate::error::Result;
use crate::place;
use crate::tool::{Effect, Tool};
use mw_model::FileType;
use mw_model::text::path_text;
use mw_world::{Role, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(crate) struct Stat;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The path; left out: the root, which also tells about the world itself.
    #[serde(default)]
    path: String,
    /// A past instant: a version, an RFC 3339 time or a snapshot's label. Left out: now.
    at: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    path: String,
    kind: Kind,
    /// The size in bytes, of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// When the content last changed.
    modified: String,
    /// The version of that change.
    version: String,
    /// Permission bits, octal.
    mode: String,
    /// Names the content, of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// What clients of S3 noted with the file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    /// Where a symbolic link points. Links are never followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The world, when the path is its root.
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<World>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct World {
    name: String,
    /// The version of its last change.
    version: String,
    /// The world that it is a fork of, where this key may know that.
    #[serde(skip_serializing_if = "Option::is_none")]
    fork_of: Option<String>,
    /// When it will be discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// What this key may do in it: reader, editor or admin; or `limited`, when it may do that in a part of it alone.
    role: String,
}

impl Tool for Stat {
    const NAME: &'static str = "stat";
    const TITLE: &'static str = "Look at a path";
    const ABOUT: &'static str = "Tells what a path is: kind, size, times, etag, metadata. Without a path it tells about the world: its name, \
                                 version, what it is a fork of, and what this key may do.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.at(ask.fork.as_deref(), ask.at.as_deref())?;
        let path = place::parse(&ask.path)?;
        let attr = place::stat(&session, &path)?;
        let file = (attr.kind == FileType::File).then(|| session.head(&path)).transpose()?;
        let target = (attr.kind == FileType::Symlink).then(|| session.read_link(attr.ino)).transpose()?;
        let world = if path.is_empty() {
            let info = session.info()?;
            Some(World {
                name: info.name,
                version: info.version.to_string(),
                fork_of: info.parent.map(|parent| parent.name),
                expires: info.expires.map(time),
                role: role(&session),
            })
        } else {
            None
        };
        let meta = file.as_ref().map(|file| file.meta.clone()).unwrap_or_default();
        Ok(Answer {
            path: path_text(&path),
            kind: attr.kind.into(),
            size: file.as_ref().map(|file| file.size),
            modified: time(attr.content.0),
            version: attr.content.to_string(),
            mode: format!("{:04o}", attr.mode & 0o7777),
            etag: file.map(|file| file.etag),
            content_type: meta.content_type,
            metadata: meta.user.into_iter().collect(),
            target: target.map(|target| path_text(&target)),
            world,
        })
    }
}

fn role(session: &Session) -> String {
    let held = [Role::Admin, Role::Editor, Role::Reader].into_iter().find(|role| session.allows(*role));
    held.map_or_else(|| "limited".to_owned(), |role| role.to_string())
}
