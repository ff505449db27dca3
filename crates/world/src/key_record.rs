//! A key as it is stored. FORMAT.md, *Key*.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::power::{Held, Scope, Verbs};
use crate::principal::Role;
use crate::sealing::{Kept, SealingKey};
use bytes::Bytes;
use mw_env::Env;
use mw_meta::{Batch, Durability, Expect, Meta, Order};
use mw_model::codec::{Reader, Writer};
use mw_model::{Hash, WorldId};

/// A key as it is stored.
#[derive(Clone, PartialEq)]
pub(crate) struct KeyRecord {
    pub name: String,
    pub secret: Kept,
    pub root: bool,
    pub grants: Vec<Held>,
    pub created: u64,
    pub expires: Option<u64>,
    pub run: Option<String>,
    /// The key that made it.
    pub maker: String,
    /// Counts the secrets that it had.
    pub generation: u64,
    /// How many worlds it may own that it forked from others; 0: it may not fork where it is not admin.
    pub forks: u32,
    /// The policies attached to it, by name.
    pub policies: Vec<String>,
    /// Its own policy, as JSON. Of a temporary key: what it is bounded by, beside its grants.
    pub policy: Option<String>,
    /// Of a temporary key: what it acts for.
    pub acting: Option<Acting>,
}

/// What makes a key temporary.
#[derive(Clone, PartialEq)]
pub(crate) struct Acting {
    /// The key that it acts for.
    pub parent: String,
    /// The generation of that key's secret: with a new one the temporary key is dead.
    pub generation: u64,
    /// The hash of the session token that must come with it.
    pub token: Hash,
}

fn role(n: u8) -> Result<Role> {
    match n {
        0 => Ok(Role::Reader),
        1 => Ok(Role::Editor),
        2 => Ok(Role::Admin),
        n => Err(Error::corrupt(format!("role {n} is unknown"))),
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|t| !t.is_empty())
}

impl KeyRecord {
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(2).str(&self.name);
        match &self.secret {
            Kept::Plain(secret) => w.u8(0).str(secret),
            Kept::Sealed(sealed) => w.u8(1).bytes(sealed),
        };
        w.u8(u8::from(self.root)).var(self.created).var(self.expires.unwrap_or(0));
        w.str(self.run.as_deref().unwrap_or("")).str(&self.maker).var(self.generation).var(u64::from(self.forks));
        w.var(self.grants.len() as u64);
        for held in &self.grants {
            match held.scope {
                Scope::Everything => w.u8(0),
                Scope::World(id) => w.u8(1).u64(id.0),
            };
            w.u8(held.role as u8).u8(held.verbs.0).bytes(&held.prefix);
        }
        w.var(self.policies.len() as u64);
        for name in &self.policies {
            w.str(name);
        }
        w.str(self.policy.as_deref().unwrap_or(""));
        match &self.acting {
            None => w.u8(0),
            Some(acting) => w.u8(1).str(&acting.parent).var(acting.generation).hash(&acting.token),
        };
        w.0.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let form = match r.u8()? {
            form @ 1..=2 => form,
            n => return Err(Error::corrupt(format!("a key's record has version {n}; a newer mw wrote it"))),
        };
        // The form of the first release had the secret readable, and grants on whole worlds alone.
        let second = form == 2;
        let name = r.str()?.to_owned();
        let secret = match second && r.u8()? != 0 {
            true => Kept::Sealed(Bytes::copy_from_slice(r.bytes()?)),
            false => Kept::Plain(r.str()?.to_owned()),
        };
        let (root, created) = (r.u8()? == 1, r.var()?);
        let expires = Some(r.var()?).filter(|t| *t != 0);
        let run = some(r.str()?);
        let maker = r.str()?.to_owned();
        let (generation, forks) = if second { (r.var()?, r.var32()?) } else { (0, 0) };
        let mut grants = Vec::new();
        for _ in 0..r.var()? {
            let scope = if r.u8()? == 0 { Scope::Everything } else { Scope::World(WorldId(r.u64()?)) };
            let role = role(r.u8()?)?;
            let (verbs, prefix) = match second {
                true => (Verbs(r.u8()?), Bytes::copy_from_slice(r.bytes()?)),
                false => (Verbs::ALL, Bytes::new()),
            };
            grants.push(Held { scope, role, verbs, prefix });
        }
        let (policies, policy, acting) = if second { rules(&mut r)? } else { (Vec::new(), None, None) };
        r.end()?;
        Ok(Self {
            name,
            secret,
            root,
            grants,
            created,
            expires,
            run,
            maker,
            generation,
            forks,
            policies,
            policy,
            acting,
        })
    }
}

/// Reads what only the second form has: the policies attached, the key's own, and for whom it acts.
fn rules(r: &mut Reader<'_>) -> Result<(Vec<String>, Option<String>, Option<Acting>)> {
    let policies = (0..r.var()?).map(|_| Ok(r.str()?.to_owned())).collect::<Result<_>>()?;
    let policy = some(r.str()?);
    if r.u8()? == 0 {
        return Ok((policies, policy, None));
    }
    let (parent, generation) = (r.str()?.to_owned(), r.var()?);
    let mut token = Hash::default();
    token.0.copy_from_slice(r.take(32)?);
    Ok((policies, policy, Some(Acting { parent, generation, token })))
}

/// Seals the secrets that an older program, or a store without a sealing key, left readable in `meta`. Their old bytes may lie in its
/// files until those are written over.
///
/// # Errors
/// The metadata store failed, or a record does not decode.
pub fn seal_secrets(meta: &dyn Meta, env: &Env, key: &SealingKey) -> Result<()> {
    let (start, end) = layout::all(Tag::Key);
    for (place, bytes) in meta.scan(&start, &end, usize::MAX, Order::Up)? {
        let mut record = KeyRecord::decode(&bytes)?;
        let Kept::Plain(secret) = &record.secret else { continue };
        let id = String::from_utf8_lossy(layout::rest(&place)).into_owned();
        record.secret = Kept::keep(Some(key), env, &id, secret)?;
        let mut batch = Batch::new();
        batch.require(place.clone(), Expect::Value(bytes));
        batch.put(place, record.encode());
        meta.commit(batch, Durability::Durable)?;
    }
    Ok(())
}
