//! Verbs about keys.

use super::{convert, root_only, worlds};
use crate::call::{Inner, Reply};
use crate::types;
use crate::{Error, Result};
use hyper::StatusCode;
use mw_model::ErrorKind;
use mw_world::{KeyRequest, Principal, Role};
use std::sync::Arc;

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

pub(super) fn list(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    let keys = inner
        .store
        .keys(who)?
        .into_iter()
        .map(|key| types::Key {
            id: key.id,
            name: key.name,
            grants: key.grants.into_iter().map(|(world, role)| types::Grant { world, role: shown(role) }).collect(),
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
    let grants = new.grants.iter().map(|grant| (grant.world.clone(), role(grant.role))).collect();
    let request =
        KeyRequest { name: new.name.clone(), grants, ttl: worlds::ttl(new.ttl_seconds)?, run: None, idempotency };
    let secret = inner.store.create_key(who, &request)?;
    Reply::with_status(StatusCode::CREATED, &types::Secret { id: secret.id, secret: secret.secret })
}

pub(super) fn delete(inner: &Arc<Inner>, who: &Principal, id: &str) -> Result<Reply> {
    inner.store.delete_key(who, id)?;
    Reply::json(&types::Done {})
}

/// Shows a secret again. Only to the root key, which can make any key anyway.
pub(super) fn secret(inner: &Arc<Inner>, who: &Principal, id: &str) -> Result<Reply> {
    if who.key_id() != id {
        root_only(who, "see the secret of another key")?;
    }
    let secret = inner.store.secret(id)?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no live key {id:?}; `mw key list` names those there are"))
    })?;
    Reply::json(&types::Secret { id: id.to_owned(), secret })
}
