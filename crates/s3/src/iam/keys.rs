//! Access keys: made, listed, given roles, rotated, deleted.
//!
//! The roles of the Tigris dialect are those of the store under other names: `ReadOnly` is reader, `Editor` editor, and
//! `NamespaceAdmin` on `*` admin of everything. `Admin` on one bucket is a word of this store.

use super::answer::Document;
use super::form::Form;
use super::{about_key, shown, wrong};
use crate::meta::stamp;
use mw_world::{Grant, KeyInfo, KeyRequest, Principal, Role, Secret, Store, Verbs};
use s3s::S3Result;
use s3s::dto::TimestampFormat;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// How many keys one answer lists at most (AWS: MaxItems).
const PAGE: usize = 1000;

/// A role in a bucket.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct BucketRole {
    bucket: String,
    role: String,
}

#[derive(Debug, Deserialize)]
struct Create {
    name: String,
    #[serde(default)]
    req_uuid: Option<String>,
    #[serde(default)]
    buckets_role: Vec<BucketRole>,
}

#[derive(Debug, Deserialize)]
struct Update {
    id: String,
    buckets_role: Vec<BucketRole>,
}

fn grants(roles: &[BucketRole]) -> S3Result<Vec<Grant>> {
    let one = |grant: &BucketRole| {
        let role = match grant.role.to_ascii_lowercase().as_str() {
            "readonly" | "reader" => Role::Reader,
            "editor" => Role::Editor,
            "admin" => Role::Admin,
            "namespaceadmin" if grant.bucket == "*" => Role::Admin,
            _ => {
                return Err(wrong(
                    "ValidationError",
                    format!(
                        "The role {} is not offered; use ReadOnly, Editor or Admin on a bucket, or NamespaceAdmin on *.",
                        shown(&grant.role)
                    ),
                ));
            }
        };
        Ok(Grant::new(grant.bucket.clone(), role))
    };
    roles.iter().map(one).collect()
}

fn roles(info: &KeyInfo) -> Vec<BucketRole> {
    let one = |grant: &Grant| BucketRole {
        bucket: grant.world.clone(),
        role: match (grant.world.as_str(), grant.role) {
            ("*", Role::Admin) => "NamespaceAdmin",
            (_, Role::Admin) => "Admin",
            (_, Role::Editor) => "Editor",
            (_, Role::Reader) => "ReadOnly",
        }
        .to_owned(),
    };
    // A world that was deleted has no name to be granted under again, and this dialect has no words for a narrowed grant.
    let said = |grant: &&Grant| grant.world != "?" && grant.verbs == Verbs::ALL && grant.prefix.is_empty();
    info.grants.iter().filter(said).map(one).collect()
}

/// Returns a time as AWS writes it.
pub(super) fn time(nanoseconds: u64) -> String {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = stamp(nanoseconds).format(TimestampFormat::DateTime, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

fn made(secret: &Secret, name: &str, created: u64) -> Document {
    Document::Result(json!({"AccessKey": {
        "AccessKeyId": secret.id,
        "SecretAccessKey": secret.secret,
        "UserName": name,
        "Status": "Active",
        "CreateDate": time(created),
    }}))
}

fn make(store: &Arc<Store>, who: &Principal, request: &KeyRequest) -> S3Result<Secret> {
    store.create_key(who, request).map_err(|e| about_key(&e))
}

/// `CreateAccessKeyWithBucketsRole`: a key and its roles in one commit.
pub(super) fn create_with_roles(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let asked: Create = form.request()?;
    let request = KeyRequest {
        name: asked.name,
        grants: grants(&asked.buckets_role)?,
        idempotency: asked.req_uuid.filter(|id| !id.is_empty()),
        ..KeyRequest::default()
    };
    let Document::Result(result) = made(&make(store, who, &request)?, &request.name, store.env().now()) else {
        return Err(crate::errors::denied());
    };
    Ok(Document::Plain(json!({"CreateAccessKeyResult": result})))
}

/// `CreateAccessKey`: a key without any right, until it is given some.
pub(super) fn create(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let name = form.get("UserName").unwrap_or("access-key").to_owned();
    let request = KeyRequest { name, ..KeyRequest::default() };
    Ok(made(&make(store, who, &request)?, &request.name, store.env().now()))
}

/// `UpdateAccessKeyWithBucketsRole`: replaces the roles.
pub(super) fn update_roles(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let asked: Update = form.request()?;
    store.set_grants(who, &asked.id, &grants(&asked.buckets_role)?).map_err(|e| about_key(&e))?;
    Ok(Document::Plain(json!({
        "status": "success",
        "message": "the roles of the access key were replaced",
        "operation": "UpdateAccessKeyWithBucketsRole",
    })))
}

/// `ListAccessKeys`: a scoped key sees itself and those it made.
pub(super) fn list(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let limit = match form.get("MaxItems").map(str::parse::<usize>) {
        None => PAGE,
        Some(Ok(n @ 1..=PAGE)) => n,
        Some(_) => return Err(wrong("ValidationError", format!("MaxItems must be between 1 and {PAGE}."))),
    };
    let (only, user, after) = (form.get("KeyId"), form.get("UserName"), form.get("Marker"));
    let mut keys = store.keys(who).map_err(|e| about_key(&e))?;
    keys.retain(|key| {
        !key.temporary
            && only.is_none_or(|id| key.id == id)
            && user.is_none_or(|name| key.name == name)
            && after.is_none_or(|marker| key.id.as_str() > marker)
    });
    let more = keys.len() > limit;
    keys.truncate(limit);
    let marker = if more { keys.last().map(|key| key.id.clone()) } else { None }.unwrap_or_default();
    if form.has("Detailed") {
        let keys: Vec<Value> = keys.iter().map(detailed).collect();
        return Ok(Document::Plain(json!({"IsTruncated": more, "Marker": marker, "Keys": keys})));
    }
    let one = |key: &KeyInfo| {
        json!({
            "UserName": key.name,
            "AccessKeyId": key.id,
            "Status": "Active",
            "CreateDate": time(key.created),
        })
    };
    let mut result = json!({
        "IsTruncated": more,
        "AccessKeyMetadata": keys.iter().map(one).collect::<Vec<_>>(),
    });
    if more {
        result["Marker"] = marker.into();
    }
    Ok(Document::Result(result))
}

fn detailed(key: &KeyInfo) -> Value {
    json!({
        "access_key_id": key.id,
        "username": key.name,
        "created_at": time(key.created),
        "status": "active",
        "namespace_id": "default",
        "creator": key.maker,
        "human_creator": "",
        "buckets_role": roles(key),
    })
}

/// `DeleteAccessKey`: dead at once.
pub(super) fn delete(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    store.delete_key(who, form.need("AccessKeyId")?).map_err(|e| about_key(&e))?;
    Ok(Document::Plain(json!({})))
}

/// `RotateAccessKey`: a new secret under the same id.
pub(super) fn rotate(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let secret = store.rotate_key(who, form.need("AccessKeyId")?).map_err(|e| about_key(&e))?;
    Ok(Document::Plain(json!({
        "status": "success",
        "rotate_access_key_result": {"id": secret.id, "new_secret": secret.secret},
    })))
}
