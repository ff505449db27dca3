//! Keys made, listed and revoked.

use crate::error::{Error, Result};
use crate::key_record::KeyRecord;
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::once::Once;
use crate::policy;
use crate::power::{Held, Scope, Verbs};
use crate::principal::{Principal, Role};
use crate::root_file::RootFile;
use crate::sealing::Kept;
use crate::session::Session;
use crate::store::{Secret, Store};
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::ErrorKind;
use mw_model::name::MAX_KEY;
use std::sync::Arc;
use std::time::Duration;

/// The most grants of a key.
pub(crate) const MAX_GRANTS: usize = 100;

/// What a key may do in a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The world's name, or `*` for all.
    pub world: String,
    /// The role.
    pub role: Role,
    /// What it is narrowed to.
    pub verbs: Verbs,
    /// The start of every key that it reaches; empty: all of them.
    pub prefix: String,
}

impl Grant {
    /// Makes a grant of a role on all of a world.
    pub fn new(world: impl Into<String>, role: Role) -> Self {
        Self { world: world.into(), role, verbs: Verbs::ALL, prefix: String::new() }
    }
}

/// A key to be made.
#[derive(Debug, Clone, Default)]
pub struct KeyRequest {
    /// What people call it, 1 to 128 bytes.
    pub name: String,
    /// What it may do. None: nothing.
    pub grants: Vec<Grant>,
    /// A policy of its own, as JSON. It may allow anything and so needs a maker that is admin of everything.
    pub policy: Option<String>,
    /// How many worlds it may own that it forked from those it can read: the right to fork. 0: it has no such right.
    pub forks: u32,
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
    pub grants: Vec<Grant>,
    /// The policies attached to it, by name.
    pub policies: Vec<String>,
    /// A policy of its own, as JSON.
    pub policy: Option<String>,
    /// How many worlds it may own that it forked.
    pub forks: u32,
    /// Whether it is temporary.
    pub temporary: bool,
    /// When it was made, in UNIX nanoseconds.
    pub created: u64,
    /// When it dies by itself, in UNIX nanoseconds.
    pub expires: Option<u64>,
    /// The run it was made for.
    pub run: Option<String>,
    /// The key that made it; empty for the root key, and when the caller is neither that key nor admin of everything.
    pub maker: String,
    /// Whether it is the root key.
    pub root: bool,
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
        self.need_lasting(who)?;
        if let Some(json) = &request.policy {
            self.need_everything(who)?;
            policy::parse(json)?;
        }
        let text = once_text(request);
        let once = Once::new(who, request.idempotency.as_deref(), &text)?;
        if let Some(secret) = self.key_made_before(once.as_ref())? {
            return Ok(secret);
        }
        let mut batch = Batch::new();
        let grants = self.grants_of(who, &request.grants, &[], &mut batch)?;
        if grants.is_empty() {
            self.need_everything(who)?;
        }
        let now = self.env.now();
        let secret = Secret { id: format!("mwk{}", self.env.token(17)), secret: self.env.token(40) };
        let sealing = self.options.sealing.as_ref();
        let record = KeyRecord {
            name: request.name.clone(),
            secret: Kept::keep(sealing, &self.env, &secret.id, &secret.secret)?,
            root: false,
            grants,
            created: now,
            expires: request.ttl.map(|ttl| now.saturating_add(ttl.as_nanos() as u64).max(now + 1)),
            run: request.run.clone(),
            maker: who.key_id().to_owned(),
            generation: 0,
            forks: request.forks,
            policies: Vec::new(),
            policy: request.policy.clone(),
            acting: None,
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

    /// Turns grants by name into grants by identity. The giver must be admin on every world, save for what the key `had` already.
    fn grants_of(
        self: &Arc<Self>,
        who: &Principal,
        asked: &[Grant],
        had: &[Held],
        batch: &mut Batch,
    ) -> Result<Vec<Held>> {
        if asked.len() > MAX_GRANTS {
            return Err(Error::invalid(format!("a key has at most {MAX_GRANTS} grants")));
        }
        let mut grants = Vec::new();
        for grant in asked {
            let (held, session) = self.held(who, grant, batch)?;
            match session {
                _ if had.contains(&held) => {}
                Some(session) => session.need(Role::Admin)?,
                None => self.need_everything(who)?,
            }
            grants.push(held);
        }
        Ok(grants)
    }

    /// Turns a grant by name into one by identity, and requires that its world lives; none when it is of every world.
    pub(crate) fn held(
        self: &Arc<Self>,
        who: &Principal,
        grant: &Grant,
        batch: &mut Batch,
    ) -> Result<(Held, Option<Session>)> {
        if grant.prefix.len() > MAX_KEY {
            return Err(Error::invalid(format!("the prefix of a grant has at most {MAX_KEY} bytes")));
        }
        let made = |scope| Held {
            scope,
            role: grant.role,
            verbs: grant.verbs,
            prefix: Bytes::copy_from_slice(grant.prefix.as_bytes()),
        };
        if grant.world == "*" {
            return Ok((made(Scope::Everything), None));
        }
        let session = self.session(who, &grant.world)?;
        batch.require(layout::of(Tag::Alive, session.world.id), Expect::Present);
        Ok((made(Scope::World(session.world.id)), Some(session)))
    }

    /// Replaces what a key may do. Grants on worlds that were deleted since go.
    ///
    /// # Errors
    /// `Denied` unless one made it or is root, and unless one is admin on every world that is granted anew; `Invalid` for the
    /// root key and for one's own key, which could otherwise raise itself; `NotFound` for an unknown key (root only).
    pub fn set_grants(self: &Arc<Self>, who: &Principal, id: &str, grants: &[Grant]) -> Result<()> {
        self.need_lasting(who)?;
        let (bytes, mut record) = self.own_key(who, id)?;
        if record.root {
            return Err(Error::invalid("the root key may do everything, and that cannot be changed"));
        }
        if id == who.key_id() {
            return Err(Error::new(
                ErrorKind::Denied,
                "access denied: a key cannot change its own grants; ask its maker",
            ));
        }
        let mut batch = Batch::new();
        record.grants = self.grants_of(who, grants, &record.grants, &mut batch)?;
        self.replace_key(who, id, bytes, &record, batch)
    }

    /// Gives a key a new secret, shown this once; the old one is dead at once, and so is every temporary key that acts for it. That of the
    /// root key goes into its file as well (see [`RootFile`](crate::RootFile)), and what the server does under that key goes on.
    ///
    /// # Errors
    /// As for [`Store::delete_key`]; `Denied` for a key that may do what one may not, as the root key may to every other.
    pub fn rotate_key(&self, who: &Principal, id: &str) -> Result<Secret> {
        self.need_lasting(who)?;
        let (bytes, mut record) = self.own_key(who, id)?;
        if record.acting.is_some() {
            return Err(Error::invalid("a temporary key cannot be rotated; ask for another"));
        }
        if record.root && !who.is_root() {
            return Err(Error::denied());
        }
        if id != who.key_id() {
            // Whoever holds the new secret is that key: nobody may become more than they are.
            if record.policy.is_some() || !record.policies.is_empty() || !who.key.power.plain() {
                self.need_everything(who)?;
            }
            for held in &record.grants {
                let role = match held.scope {
                    Scope::Everything => who.everything(),
                    Scope::World(world) => {
                        self.record_of(world)?.map_or(Some(Role::Admin), |w| who.role(world, &w.owner))
                    }
                };
                if role != Some(Role::Admin) {
                    return Err(Error::denied());
                }
            }
        }
        let secret = Secret { id: id.to_owned(), secret: self.env.token(40) };
        record.secret = Kept::keep(self.options.sealing.as_ref(), &self.env, id, &secret.secret)?;
        record.generation += 1;
        if !record.root {
            self.replace_key(who, id, bytes, &record, Batch::new())?;
            return Ok(secret);
        }
        let _one = self.rotating.lock();
        let put = self.root_file.get().map(|file| file.prepare(id, &secret.secret)).transpose()?;
        self.replace_key(who, id, bytes, &record, Batch::new())?;
        if let Some(put) = put
            && let Err(error) = put()
        {
            // The new secret counts, and the caller must learn it; the file is written anew when the store is opened next.
            tracing::error!(%error, "the root key has a new secret, and its file still has the old one until the server starts again");
        }
        Ok(secret)
    }

    /// Keeps the root key in a file as well, from its next rotation on; the first call counts.
    pub fn keep_root_key(&self, file: Arc<dyn RootFile>) {
        let _ = self.root_file.set(file);
    }

    pub(crate) fn replace_key(
        &self,
        who: &Principal,
        id: &str,
        old: Bytes,
        new: &KeyRecord,
        mut batch: Batch,
    ) -> Result<()> {
        let place = layout::raw(Tag::Key, id.as_bytes());
        batch.require(place.clone(), Expect::Value(old));
        if id != who.key_id() {
            require_key(&mut batch, Some(who));
        }
        batch.put(place, new.encode());
        self.commit_key(batch)
    }

    pub(crate) fn commit_key(&self, batch: Batch) -> Result<()> {
        match self.meta.commit(batch, Durability::Durable) {
            Err(e) if e.kind() == ErrorKind::Conflict => {
                Err(Error::caused(ErrorKind::Conflict, "the key changed meanwhile; try again", e))
            }
            other => Ok(other?),
        }
    }

    /// Returns a key that the caller may change: its own, one it made, or any for the root key.
    pub(crate) fn own_key(&self, who: &Principal, id: &str) -> Result<(Bytes, KeyRecord)> {
        let place = layout::raw(Tag::Key, id.as_bytes());
        let found = if id.is_empty() || id.len() > 128 { None } else { self.meta.get(&place)? };
        let record = found.as_ref().map(|b| KeyRecord::decode(b)).transpose()?;
        let all = who.everything() == Some(Role::Admin);
        let own = record.as_ref().is_some_and(|r| id == who.key_id() || r.maker == who.key_id());
        if !(all || own) {
            return Err(Error::denied());
        }
        match (found, record) {
            (Some(bytes), Some(record)) => Ok((bytes, record)),
            _ => Err(Error::not_found(format!("key {id:?} does not exist; `mw key list` shows what does"))),
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
                grants.push(Grant::new("*", Role::Admin));
            }
            for held in &record.grants {
                let world = match held.scope {
                    Scope::Everything => "*".to_owned(),
                    Scope::World(id) => self.record_of(id)?.map_or_else(|| "?".to_owned(), |w| w.name),
                };
                let prefix = String::from_utf8_lossy(&held.prefix).into_owned();
                grants.push(Grant { world, role: held.role, verbs: held.verbs, prefix });
            }
            let temporary = record.acting.is_some();
            let KeyRecord { name, created, expires, run, maker, root, policies, policy, forks, .. } = record;
            // A key need not know who made it.
            let maker = if all || maker == who.key_id() { maker } else { String::new() };
            keys.push(KeyInfo {
                id,
                name,
                grants,
                policies,
                policy,
                forks,
                temporary,
                created,
                expires,
                run,
                maker,
                root,
            });
        }
        Ok(keys)
    }

    /// Revokes a key: dead at once, through every door. What it did stays.
    ///
    /// # Errors
    /// `Denied` unless it is one's own, one made it, or one is root; `Invalid` for the root key.
    pub fn delete_key(&self, who: &Principal, id: &str) -> Result<()> {
        self.need_lasting(who)?;
        let (bytes, record) = self.own_key(who, id)?;
        if record.root {
            return Err(Error::invalid("the root key cannot be revoked: without it nobody could administer the store"));
        }
        let place = layout::raw(Tag::Key, id.as_bytes());
        let mut batch = Batch::new();
        batch.require(place.clone(), Expect::Value(bytes));
        require_key(&mut batch, Some(who));
        batch.delete(place);
        self.commit_key(batch)
    }
}

/// Says all of a request that matters; one that an older program could make, in its words.
fn once_text(request: &KeyRequest) -> String {
    let plain = |g: &Grant| g.verbs == Verbs::ALL && g.prefix.is_empty();
    let old: Vec<_> = request.grants.iter().filter(|g| plain(g)).map(|g| (&g.world, g.role)).collect();
    let text = format!("key {} {old:?} {:?} {:?}", request.name, request.ttl, request.run);
    if request.policy.is_none() && request.forks == 0 && request.grants.iter().all(plain) {
        return text;
    }
    format!("{text} {:?} {:?} {}", request.grants, request.policy, request.forks)
}
