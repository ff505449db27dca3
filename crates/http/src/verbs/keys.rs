//! Verbs about keys.

use super::{convert, worlds};
use crate::call::{Inner, Reply};
use crate::types;
use crate::{Error, Result};
use hyper::StatusCode;
use mw_world::{Bounds, Grant, KeyRequest, Principal, Role, Verbs};
use std::sync::Arc;
use std::time::Duration;

/// How long a temporary key lives, in seconds: when nothing is asked for, and at most (AWS: 36 hours).
const TTL: (u64, u64) = (3_600, 129_600);

fn role(role: types::Role) -> Role {
    match role {
        types::Role::Reader => Role::Reader,
        types::Role::Editor => Role::Editor,
        types::Role::Admin => Role::Admin,
    }
}

fn shown(role: Role) -> types::Role {
    match role {
        Role::Reader => types::Role::Reader,
        Role::Editor => types::Role::Editor,
        Role::Admin => types::Role::Admin,
    }
}

fn grant(grant: Grant) -> types::Grant {
    let verbs = (grant.verbs != Verbs::ALL).then(|| grant.verbs.to_string());
    let prefix = Some(grant.prefix).filter(|prefix| !prefix.is_empty());
    types::Grant { world: grant.world, role: shown(grant.role), verbs, prefix }
}

fn granted(grant: &types::Grant) -> Result<Grant> {
    let verbs = match &grant.verbs {
        None => Verbs::ALL,
        Some(text) => Verbs::parse(text).ok_or_else(|| {
            Error::invalid(format!("verbs {text:?} are unknown; join get, list, put, delete and world by +"))
        })?,
    };
    let prefix = grant.prefix.clone().unwrap_or_default();
    Ok(Grant { world: grant.world.clone(), role: role(grant.role), verbs, prefix })
}

pub(super) fn list(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    let keys = inner
        .store
        .keys(who)?
        .into_iter()
        .map(|key| types::Key {
            id: key.id,
            name: key.name,
            grants: key.grants.into_iter().map(grant).collect(),
            policy: key.policy,
            policies: key.policies,
            forks: key.forks,
            created: convert::time(key.created),
            expires: key.expires.map(convert::time),
            run: key.run,
        })
        .collect();
    Reply::json(&types::Keys { keys })
}

pub(super) fn create(
    inner: &Arc<Inner>,
    who: &Principal,
    new: &types::NewKey,
    idempotency: Option<String>,
) -> Result<Reply> {
    let request = KeyRequest {
        name: new.name.clone(),
        grants: new.grants.iter().map(granted).collect::<Result<_>>()?,
        policy: new.policy.clone(),
        forks: new.forks,
        ttl: worlds::ttl(new.ttl_seconds)?,
        run: None,
        idempotency,
    };
    let secret = inner.store.create_key(who, &request)?;
    Reply::with_status(StatusCode::CREATED, &types::Secret { id: secret.id, secret: secret.secret })
}

pub(super) fn delete(inner: &Arc<Inner>, who: &Principal, id: &str) -> Result<Reply> {
    inner.store.delete_key(who, id)?;
    Reply::json(&types::Done {})
}

/// Makes a temporary key that acts for the caller's.
pub(super) fn create_temporary(inner: &Arc<Inner>, who: &Principal, new: &types::NewTemporaryKey) -> Result<Reply> {
    let ttl = new.ttl_seconds.unwrap_or(TTL.0);
    if !(1..=TTL.1).contains(&ttl) {
        return Err(Error::invalid(format!("a temporary key lives 1 to {} seconds, not {ttl}", TTL.1)));
    }
    let bounds = Bounds {
        name: new.name.clone(),
        grants: new.grants.iter().map(granted).collect::<Result<_>>()?,
        policy: new.policy.clone(),
        ttl: Duration::from_secs(ttl),
    };
    let made = inner.store.create_temporary(who, &bounds)?;
    let key = types::TemporaryKey {
        id: made.secret.id,
        secret: made.secret.secret,
        token: made.token,
        expires: convert::time(made.expires),
    };
    Reply::with_status(StatusCode::CREATED, &key)
}

/// Gives a key a new secret, shown this once.
pub(super) fn rotate(inner: &Arc<Inner>, who: &Principal, id: &str) -> Result<Reply> {
    let secret = inner.store.rotate_key(who, id)?;
    Reply::json(&types::Secret { id: secret.id, secret: secret.secret })
}
