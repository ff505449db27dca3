//! Whoever presents a key. Keys live outside the worlds, so no restore brings a dead one back.

use crate::power::{Place, Power};
pub use crate::role::Role;
use bytes::Bytes;
use mw_model::WorldId;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Someone who presented a live key. Every change requires, in its own commit, that the key is still as it was here, and with it the
/// policies attached to it and the key above it.
#[derive(Clone)]
pub struct Principal {
    pub(crate) key: Arc<Presented>,
    /// The address of the client's socket.
    source: Option<IpAddr>,
}

pub(crate) struct Presented {
    pub id: String,
    pub run: Option<String>,
    /// Of a temporary key: the key that it acts for.
    pub parent: Option<String>,
    /// How many worlds it may own that it forked from others.
    pub forks: u32,
    pub power: Power,
    /// The records that say all this, and their bytes: a commit requires them unchanged.
    pub stands_on: Vec<(Bytes, Bytes)>,
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({})", self.key.id)
    }
}

impl Principal {
    pub(crate) fn new(presented: Presented) -> Self {
        Self { key: Arc::new(presented), source: None }
    }

    /// Returns the same principal, known to speak from an address: that of the socket, never one that a header claims.
    pub fn speaking_from(mut self, source: Option<IpAddr>) -> Self {
        self.source = source;
        self
    }

    /// Returns the address that it speaks from.
    pub(crate) fn source(&self) -> Option<IpAddr> {
        self.source
    }

    /// Returns the same principal for what the server goes on doing in the name of the root key: mounts, exports, runs. That key cannot be
    /// revoked, so that nothing is required of its record, and a new secret of it ends none of them. Other keys are returned as they are.
    pub fn lasting(&self) -> Self {
        if !self.is_root() {
            return self.clone();
        }
        let power = Power { root: true, ..Power::default() };
        let Presented { id, forks, .. } = &*self.key;
        let key = Presented { id: id.clone(), run: None, parent: None, forks: *forks, power, stands_on: Vec::new() };
        Self { key: Arc::new(key), source: self.source }
    }

    /// Returns the key's id.
    pub fn key_id(&self) -> &str {
        &self.key.id
    }

    /// Returns whether this is the store's own root key.
    pub fn is_root(&self) -> bool {
        self.key.power.root
    }

    /// Returns whether this is a temporary key, which acts for another.
    pub fn is_temporary(&self) -> bool {
        self.key.parent.is_some()
    }

    /// Returns the run that the key was made for.
    pub fn run(&self) -> Option<&str> {
        self.key.run.as_deref()
    }

    /// Returns the role of a key that may make worlds and keys of any scope. What policies narrow is not everything.
    pub(crate) fn everything(&self) -> Option<Role> {
        self.key.power.everything().filter(|_| self.key.power.plain())
    }

    /// Returns the key's role on all of a world; `owner` is the key that made it. With policies, it may do less.
    pub(crate) fn role(&self, world: WorldId, owner: &str) -> Option<Role> {
        self.key.power.role(world, owner)
    }

    /// Returns whether something in a world may be allowed.
    pub(crate) fn touches(&self, place: &Place<'_>) -> bool {
        match self.key.power.plain() {
            true => self.role(place.world, place.owner).is_some(),
            false => self.key.power.touches(place, b""),
        }
    }
}
