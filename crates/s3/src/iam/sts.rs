//! Temporary credentials (*STS API Reference*): who one is, and keys that may do a part of that for a while.
//!
//! A role is a role of this store on one world: `arn:aws:iam::000000000000:role/WORLD/ROLE`, with reader, editor or admin. Whoever assumes
//! it may do what that role may, what the policy of the call allows, and what they may do themselves, all three together.

use super::answer::Document;
use super::form::Form;
use super::keys::time;
use super::{ACCOUNT, about_key, shown, wrong};
use mw_world::{Bounds, Grant, Principal, Role, Store, Temporary};
use s3s::S3Result;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Parameters that would narrow what is asked for, and are not offered: they are refused, never ignored.
const NOT_OFFERED: [&str; 4] =
    ["PolicyArns.member.1.arn", "ExternalId", "SerialNumber", "ProvidedContexts.member.1.ContextAssertion"];

/// Reads how long the credentials are to live.
fn life(form: &Form, otherwise: u64, most: u64) -> S3Result<Duration> {
    match form.get("DurationSeconds").map(str::parse::<u64>) {
        None => Ok(Duration::from_secs(otherwise)),
        Some(Ok(n)) if (900..=most).contains(&n) => Ok(Duration::from_secs(n)),
        Some(_) => Err(wrong("ValidationError", format!("DurationSeconds must be between 900 and {most}."))),
    }
}

fn need_offered(form: &Form) -> S3Result<()> {
    match NOT_OFFERED.iter().find(|name| form.has(name)) {
        Some(name) => Err(wrong("ValidationError", format!("The parameter {name} is not offered here."))),
        None => Ok(()),
    }
}

fn credentials(made: &Temporary) -> Value {
    json!({
        "AccessKeyId": made.secret.id,
        "SecretAccessKey": made.secret.secret,
        "SessionToken": made.token,
        "Expiration": time(made.expires),
    })
}

/// `GetCallerIdentity`: whoever may sign may know who they are.
pub(super) fn caller(who: &Principal) -> S3Result<Document> {
    let id = who.key_id();
    let arn = match (who.is_root(), who.is_temporary()) {
        (true, _) => format!("arn:aws:iam::{ACCOUNT}:root"),
        (_, true) => format!("arn:aws:sts::{ACCOUNT}:federated-user/{id}"),
        _ => format!("arn:aws:iam::{ACCOUNT}:user/{id}"),
    };
    Ok(Document::Result(json!({"Arn": arn, "UserId": id, "Account": ACCOUNT})))
}

/// `GetFederationToken`: what the policy of the call and the caller's own rights both allow; without a policy, nothing.
pub(super) fn federation_token(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    need_offered(form)?;
    let bounds = Bounds {
        name: form.need("Name")?.to_owned(),
        grants: Vec::new(),
        policy: form.get("Policy").map(str::to_owned),
        ttl: life(form, 43_200, 129_600)?,
    };
    let made = store.create_temporary(who, &bounds).map_err(|e| about_key(&e))?;
    Ok(Document::Result(json!({
        "Credentials": credentials(&made),
        "FederatedUser": {
            "FederatedUserId": format!("{ACCOUNT}:{}", bounds.name),
            "Arn": format!("arn:aws:sts::{ACCOUNT}:federated-user/{}", bounds.name),
        },
        "PackedPolicySize": 0,
    })))
}

/// `AssumeRole`.
pub(super) fn assume_role(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    need_offered(form)?;
    let arn = form.need("RoleArn")?;
    let unknown = || {
        wrong(
            "ValidationError",
            format!("The role {} is none of this store; use arn:aws:iam::{ACCOUNT}:role/WORLD/ROLE.", shown(arn)),
        )
    };
    let (world, role) = arn
        .strip_prefix("arn:aws:iam::")
        .and_then(|rest| rest.split_once(":role/"))
        .and_then(|(account, place)| if account == ACCOUNT { place.split_once('/') } else { None })
        .ok_or_else(unknown)?;
    let role: Role = role.parse().map_err(|_| unknown())?;
    let bounds = Bounds {
        name: form.need("RoleSessionName")?.to_owned(),
        grants: vec![Grant::new(world, role)],
        policy: form.get("Policy").map(str::to_owned),
        ttl: life(form, 3_600, 43_200)?,
    };
    let made = store.create_temporary(who, &bounds).map_err(|e| about_key(&e))?;
    Ok(Document::Result(json!({
        "Credentials": credentials(&made),
        "AssumedRoleUser": {
            "AssumedRoleId": format!("{}:{}", made.secret.id, bounds.name),
            "Arn": format!("arn:aws:sts::{ACCOUNT}:assumed-role/{world}/{role}/{}", bounds.name),
        },
        "PackedPolicySize": 0,
    })))
}
