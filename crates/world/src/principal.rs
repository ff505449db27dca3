//! Keys, grants and roles: who may do what in which world. Keys live outside the worlds, so no restore brings a dead one back.

use crate::error::{Error, Result};
use crate::record;
use bytes::Bytes;
use mw_model::WorldId;
use mw_model::codec::{Reader, Writer};
use std::fmt;
use std::sync::Arc;

/// What a grant allows. Each role allows what the smaller ones do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read, list, diff, log.
    Reader,
    /// Also write, delete, snapshot.
    Editor,
    /// Also fork, promote, discard, keys.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reader => "reader",
            Self::Editor => "editor",
            Self::Admin => "admin",
        })
    }
}

impl std::str::FromStr for Role {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "reader" => Ok(Self::Reader),
            "editor" => Ok(Self::Editor),
            "admin" => Ok(Self::Admin),
            _ => Err(Error::invalid(format!("role {text:?} is unknown; use reader, editor or admin"))),
        }
    }
}

/// What a grant reaches. A world is named by identity, so that a later world of the same name is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// Every world, and making new ones.
    Everything,
    World(WorldId),
}

/// A key as it is stored.
#[derive(Clone, PartialEq)]
pub(crate) struct KeyRecord {
    pub name: String,
    pub secret: String,
    pub root: bool,
    pub grants: Vec<(Scope, Role)>,
    pub created: u64,
    pub expires: Option<u64>,
    pub run: Option<String>,
    /// The key that made it.
    pub maker: String,
}

impl KeyRecord {
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).str(&self.name).str(&self.secret).u8(u8::from(self.root)).var(self.created);
        w.var(self.expires.unwrap_or(0)).str(self.run.as_deref().unwrap_or("")).str(&self.maker);
        w.var(self.grants.len() as u64);
        for (scope, role) in &self.grants {
            match scope {
                Scope::Everything => w.u8(0),
                Scope::World(id) => w.u8(1).u64(id.0),
            };
            w.u8(*role as u8);
        }
        w.0.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        record::version(&mut r)?;
        let (name, secret) = (r.str()?.to_owned(), r.str()?.to_owned());
        let (root, created) = (r.u8()? == 1, r.var()?);
        let expires = Some(r.var()?).filter(|t| *t != 0);
        let run = Some(r.str()?.to_owned()).filter(|t| !t.is_empty());
        let maker = r.str()?.to_owned();
        let mut grants = Vec::new();
        for _ in 0..r.var()? {
            let scope = if r.u8()? == 0 { Scope::Everything } else { Scope::World(WorldId(r.u64()?)) };
            let role = match r.u8()? {
                0 => Role::Reader,
                1 => Role::Editor,
                2 => Role::Admin,
                n => return Err(Error::corrupt(format!("role {n} is unknown"))),
            };
            grants.push((scope, role));
        }
        r.end()?;
        Ok(Self { name, secret, root, grants, created, expires, run, maker })
    }
}

/// Someone who presented a live key. Every change requires, in its own commit, that the key is still as it was here.
#[derive(Clone)]
pub struct Principal(pub(crate) Arc<Presented>);

pub(crate) struct Presented {
    pub id: String,
    pub record: KeyRecord,
    /// The record's bytes: a commit requires them unchanged.
    pub bytes: Bytes,
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({})", self.0.id)
    }
}

impl Principal {
    /// Returns the key's id.
    pub fn key_id(&self) -> &str {
        &self.0.id
    }

    /// Returns whether this is the store's own root key.
    pub fn is_root(&self) -> bool {
        self.0.record.root
    }

    /// Returns the run that the key was made for.
    pub fn run(&self) -> Option<&str> {
        self.0.record.run.as_deref()
    }

    /// Returns whether the key may make worlds and keys of any scope.
    pub(crate) fn everything(&self) -> Option<Role> {
        if self.is_root() {
            return Some(Role::Admin);
        }
        self.0.record.grants.iter().filter(|(s, _)| *s == Scope::Everything).map(|(_, role)| *role).max()
    }

    /// Returns the key's role in a world; `owner` is the key that made it.
    pub(crate) fn role(&self, world: WorldId, owner: &str) -> Option<Role> {
        if self.is_root() || (!owner.is_empty() && owner == self.0.id) {
            return Some(Role::Admin);
        }
        let reaches = |scope: &Scope| *scope == Scope::Everything || *scope == Scope::World(world);
        self.0.record.grants.iter().filter(|(scope, _)| reaches(scope)).map(|(_, role)| *role).max()
    }
}
