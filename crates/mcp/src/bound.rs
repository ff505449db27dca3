//! What the tools of one caller act on: one world through one key, that world's forks, and its instants.
//!
//! Invariant: nothing but the bound world and forks that descend from it is ever reached, whatever else the key may do, and for every
//! other name the answer is one and the same.

use crate::error::{Refusal, Result};
use mw_model::ErrorKind;
use mw_world::{At, Principal, Session, Store};
use std::sync::Arc;

/// How far up a fork's ancestors are followed.
const DEPTH: usize = 64;

/// Makes URLs with which anybody can read one object for a while.
pub trait Share: Send + Sync {
    /// Returns a URL under `base` that reads `key` of `world` as `who`, for `seconds` from now.
    ///
    /// # Errors
    /// Those of the store.
    fn url(&self, who: &Principal, base: &str, world: &str, key: &[u8], seconds: u64) -> mw_world::Result<String>;
}

/// One world and one key.
pub struct Bound {
    store: Arc<Store>,
    who: Principal,
    world: String,
    /// The address under which the caller reached the server, without a trailing slash.
    base: String,
    share: Arc<dyn Share>,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bound({} as {:?})", self.world, self.who)
    }
}

impl Bound {
    /// Binds tools to a world; with none named, to the only one that the key reaches.
    ///
    /// # Errors
    /// Those of [`Store::session`]; `Invalid` when none is named and the key reaches none or several.
    pub fn new(
        store: Arc<Store>,
        who: Principal,
        world: Option<&str>,
        base: String,
        share: Arc<dyn Share>,
    ) -> mw_world::Result<Self> {
        let world = match world {
            Some(world) => world.to_owned(),
            None => only(&store, &who)?,
        };
        let world = store.session(&who, &world)?.name().as_str().to_owned();
        Ok(Self { store, who, world, base, share })
    }

    /// Returns the name of the world.
    pub fn world(&self) -> &str {
        &self.world
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn who(&self) -> &Principal {
        &self.who
    }

    /// Returns the world, or one of its forks.
    pub(crate) fn now(&self, fork: Option<&str>) -> Result<Session> {
        let bound = self.store.session(&self.who, &self.world)?;
        match fork.filter(|fork| *fork != self.world) {
            None => Ok(bound),
            Some(fork) => self.fork(&bound, fork),
        }
    }

    /// Returns the world or a fork at an instant, read-only, or as it is now.
    pub(crate) fn at(&self, fork: Option<&str>, at: Option<&str>) -> Result<Session> {
        let session = self.now(fork)?;
        match at {
            None => Ok(session),
            Some(at) => Ok(session.at(&At::parse(at)?)?),
        }
    }

    fn fork(&self, bound: &Session, name: &str) -> Result<Session> {
        let refused = || {
            Refusal::plain(
                ErrorKind::Denied,
                format!(
                    "no fork of {} by that name is open to this key; leave `fork` out for the world itself, or make a fork with the \
                     tool `fork`",
                    self.world
                ),
            )
        };
        let refuses =
            |e: &mw_world::Error| matches!(e.kind(), ErrorKind::Denied | ErrorKind::NotFound | ErrorKind::Invalid);
        let session = match self.store.session(&self.who, name) {
            Err(e) if refuses(&e) => return Err(refused()),
            other => other?,
        };
        let mut parent = session.info()?.parent;
        for _ in 0..DEPTH {
            let Some(above) = parent else { break };
            if above.name == self.world {
                return Ok(session);
            }
            parent = match self.store.session(&self.who, &above.name) {
                Ok(above) if above.world_id() != bound.world_id() => above.info()?.parent,
                Err(e) if !refuses(&e) => return Err(e.into()),
                Ok(_) | Err(_) => None,
            };
        }
        Err(refused())
    }

    /// Returns a URL that reads an object for a while.
    pub(crate) fn url(&self, world: &str, key: &[u8], seconds: u64) -> Result<String> {
        Ok(self.share.url(&self.who, &self.base, world, key, seconds)?)
    }
}

/// Returns the name of the only world that a key reaches.
fn only(store: &Arc<Store>, who: &Principal) -> mw_world::Result<String> {
    let mut worlds = store.worlds(who)?;
    match (worlds.len(), worlds.pop()) {
        (1, Some(world)) => Ok(world.name),
        (0, _) => Err(mw_world::Error::new(
            ErrorKind::Denied,
            "this key reaches no world; give it a grant, such as WORLD:editor",
        )),
        _ => Err(mw_world::Error::new(
            ErrorKind::Invalid,
            "this key reaches several worlds; name one: /-/mcp/WORLD, or `mw mcp --world WORLD`",
        )),
    }
}
