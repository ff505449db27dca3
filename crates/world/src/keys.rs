//! Keys made, listed and revoked.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::once::Once;
use crate::principal::{KeyRecord, Principal, Role, Scope};
use crate::store::{Secret, Store};
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// A key to be made.
#[derive(Debug, Clone, Default)]
pub struct KeyRequest {
    /// What people call it, 1 to 128 bytes.
    pub name: String,
    /// What it may do: a world's name, or `*`, and a role. None: nothing.
    pub grants: Vec<(String, Role)>,
    /// How long it lives.
    pub ttl: Option<Duration>,
    /// The run it is made for.
    pub run: Option<String>,
    /// Makes a retried call give the same key.
    pub idempotency: Option<String>,
}

/// What a key is, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// The id that clients send.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may do, by the worlds' names of now (`?` for a deleted one).
    pub grants: Vec<(String, Role)>,
    /// When it was made, in UNIX nanoseconds.
    pub created: u64,
    /// When it dies by itself, in UNIX nanoseconds.
    pub expires: Option<u64>,
    /// The run it was made for.
    pub run: Option<String>,
}

impl Store {
    /// Makes a key. Its secret is shown this once.
    ///
    /// # Errors
    /// `Denied` unless the maker is admin on every world it grants; `NotFound` for a missing world (root only).
    pub fn create_key(self: &Arc<Self>, who: &Principal, request: &KeyRequest) -> Result<Secret> {
        if request.name.is_empty() || request.name.len() > 128 || request.name.chars().any(char::is_control) {
            return Err(Error::invalid("a key's name has 1 to 128 bytes and no control characters"));
        }
        if request.grants.len() > 100 {
            return Err(Error::invalid("a key has at most 100 grants"));
        }
        let text = format!("key {} {:?} {:?} {:?}", request.name, request.grants, request.ttl, request.run);
        let once = Once::new(who, request.idempotency.as_deref(), &text)?;
        if let Some(secret) = self.key_made_before(once.as_ref())? {
            return Ok(secret);
        }
        let mut batch = Batch::new();
        let mut grants = Vec::new();
        for (world, role) in &request.grants {
            if world == "*" {
                self.need_everything(who)?;
                grants.push((Scope::Everything, *role));
                continue;
            }
            let session = self.session(who, world)?;
            session.need(Role::Admin)?;
            batch.require(layout::of(Tag::Alive, session.world.id), Expect::Present);
            grants.push((Scope::World(session.world.id), *role));
        }
        if grants.is_empty() {
            self.need_everything(who)?;
        }
        let now = self.env.now();
        let secret = Secret { id: format!("mwk{}", self.env.token(17)), secret: self.env.token(40) };
        let record = KeyRecord {
            name: request.name.clone(),
            secret: secret.secret.clone(),
            root: false,
            grants,
            created: now,
            expires: request.ttl.map(|ttl| now.saturating_add(ttl.as_nanos() as u64).max(now + 1)),
            run: request.run.clone(),
            maker: who.key_id().to_owned(),
        };
        let place = layout::raw(Tag::Key, secret.id.as_bytes());
        batch.require(place.clone(), Expect::Absent);
        require_key(&mut batch, Some(who));
        batch.put(place, record.encode());
        if let Some(once) = &once {
            once.record(&mut batch, &secret.id);
        }
        match self.meta.commit(batch, Durability::Durable) {
            Ok(()) => Ok(secret),
            Err(e) if e.kind() == ErrorKind::Conflict => match self.key_made_before(once.as_ref())? {
                Some(secret) => Ok(secret),
                None => Err(Error::caused(
                    ErrorKind::Conflict,
                    "a world or the maker's key changed meanwhile; try again",
                    e,
                )),
            },
            Err(e) => Err(e.into()),
        }
    }

    fn key_made_before(&self, once: Option<&Once>) -> Result<Option<Secret>> {
        let Some(id) = once.map(|once| once.before(self)).transpose()?.flatten() else { return Ok(None) };
        let secret = self.secret(&id)?.ok_or_else(|| {
            Error::new(ErrorKind::Conflict, format!("the key {id} that this idempotency key made was revoked since"))
        })?;
        Ok(Some(Secret { id, secret }))
    }

    /// Returns the live keys: all of them for the root key, a scoped key's own and those it made.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn keys(&self, who: &Principal) -> Result<Vec<KeyInfo>> {
        let all = who.everything() == Some(Role::Admin);
        let (start, end) = layout::all(Tag::Key);
        let mut keys = Vec::new();
        for (place, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let id = String::from_utf8_lossy(layout::rest(&place)).into_owned();
            let record = KeyRecord::decode(&value)?;
            let own = id == who.key_id() || record.maker == who.key_id();
            if !(all || own) || record.expires.is_some_and(|at| self.env.now() >= at) {
                continue;
            }
            let mut grants = Vec::new();
            if record.root {
                grants.push(("*".to_owned(), Role::Admin));
            }
            for (scope, role) in &record.grants {
                let name = match scope {
                    Scope::Everything => "*".to_owned(),
                    Scope::World(id) => self.record_of(*id)?.map_or_else(|| "?".to_owned(), |w| w.name),
                };
                grants.push((name, *role));
            }
            let KeyRecord { name, created, expires, run, .. } = record;
            keys.push(KeyInfo { id, name, grants, created, expires, run });
        }
        Ok(keys)
    }

    /// Revokes a key: dead at once, through every door. What it did stays.
    ///
    /// # Errors
    /// `Denied` unless it is one's own, one made it, or one is root; `Invalid` for the root key.
    pub fn delete_key(&self, who: &Principal, id: &str) -> Result<()> {
        let place = layout::raw(Tag::Key, id.as_bytes());
        let found = if id.is_empty() || id.len() > 128 { None } else { self.meta.get(&place)? };
        let record = found.as_ref().map(|b| KeyRecord::decode(b)).transpose()?;
        let all = who.everything() == Some(Role::Admin);
        let own = record.as_ref().is_some_and(|r| id == who.key_id() || r.maker == who.key_id());
        if !(all || own) {
            return Err(Error::denied());
        }
        let (Some(bytes), Some(record)) = (found, record) else {
            return Err(Error::not_found(format!("key {id:?} does not exist; `mw key list` shows what does")));
        };
        if record.root {
            return Err(Error::invalid("the root key cannot be revoked: without it nobody could administer the store"));
        }
        let mut batch = Batch::new();
        batch.require(place.clone(), Expect::Value(bytes));
        require_key(&mut batch, Some(who));
        batch.delete(place);
        match self.meta.commit(batch, Durability::Durable) {
            Err(e) if e.kind() == ErrorKind::Conflict => {
                Err(Error::caused(ErrorKind::Conflict, "the key changed meanwhile; try again", e))
            }
            other => Ok(other?),
        }
    }
}
