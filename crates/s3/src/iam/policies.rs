//! Policies by name, and what they are attached to. A key is a user: its id stands where AWS has a user's name.

use super::answer::Document;
use super::form::Form;
use super::keys::time;
use super::{ACCOUNT, about_key, wrong};
use mw_world::{PolicyInfo, Principal, Store};
use s3s::S3Result;
use serde_json::{Value, json};
use std::sync::Arc;

fn arn(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:policy/{name}")
}

/// Returns the name of the policy that a call is about: its own parameter, or the end of an ARN.
fn named(form: &Form) -> S3Result<&str> {
    if let Some(name) = form.get("PolicyName") {
        return Ok(name);
    }
    let given = form.need("PolicyArn")?;
    let prefix = arn("");
    let foreign = || wrong("ValidationError", format!("The policies of this store have the ARN {prefix}NAME."));
    match given.strip_prefix("arn:") {
        None => Ok(given),
        Some(_) => given.strip_prefix(&prefix).ok_or_else(foreign),
    }
}

fn about(policy: &PolicyInfo) -> Value {
    json!({
        "PolicyName": policy.name,
        "PolicyId": policy.name,
        "Arn": arn(&policy.name),
        "Path": "/",
        "DefaultVersionId": "v1",
        "IsAttachable": true,
        "Description": policy.description,
        "CreateDate": time(policy.created),
        "UpdateDate": time(policy.updated),
    })
}

/// `CreatePolicy`.
pub(super) fn create(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let description = form.get("Description").unwrap_or_default();
    let made = store.create_policy(who, form.need("PolicyName")?, description, form.need("PolicyDocument")?);
    Ok(Document::Result(json!({"Policy": about(&made.map_err(|e| about_key(&e))?)})))
}

/// `UpdatePolicy`.
pub(super) fn update(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let changed = store.update_policy(who, named(form)?, form.need("PolicyDocument")?);
    Ok(Document::Result(json!({"Policy": about(&changed.map_err(|e| about_key(&e))?)})))
}

/// `GetPolicy`, and `GetPolicyDetailed` with the document.
pub(super) fn get(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let found = store.policy(who, named(form)?).map_err(|e| about_key(&e))?;
    let mut policy = about(&found);
    if form.get("Action") == Some("GetPolicyDetailed") {
        policy["PolicyDocument"] = found.document.into();
    }
    Ok(Document::Result(json!({"Policy": policy})))
}

/// `ListPolicies`.
pub(super) fn list(store: &Arc<Store>, who: &Principal) -> S3Result<Document> {
    let all = store.policies(who).map_err(|e| about_key(&e))?;
    Ok(Document::Result(json!({"IsTruncated": false, "Policies": all.iter().map(about).collect::<Vec<_>>()})))
}

/// `DeletePolicy`, and `ForceDeletePolicy`, which detaches it first.
pub(super) fn delete(store: &Arc<Store>, who: &Principal, form: &Form, force: bool) -> S3Result<Document> {
    store.delete_policy(who, named(form)?, force).map_err(|e| about_key(&e))?;
    Ok(Document::Result(json!({})))
}

/// `AttachUserPolicy` and `DetachUserPolicy`.
pub(super) fn attach(store: &Arc<Store>, who: &Principal, form: &Form, attached: bool) -> S3Result<Document> {
    store.attach_policy(who, form.need("UserName")?, named(form)?, attached).map_err(|e| about_key(&e))?;
    Ok(Document::Result(json!({})))
}

/// `ListUserPolicies`: the names.
pub(super) fn names(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let names = store.policies_of(who, form.need("UserName")?).map_err(|e| about_key(&e))?;
    Ok(Document::Result(json!({"IsTruncated": false, "Marker": "", "PolicyNames": names})))
}

/// `ListAttachedUserPolicies`: names and ARNs.
pub(super) fn attached(store: &Arc<Store>, who: &Principal, form: &Form) -> S3Result<Document> {
    let names = store.policies_of(who, form.need("UserName")?).map_err(|e| about_key(&e))?;
    let one = |name: &String| json!({"PolicyName": name, "PolicyArn": arn(name)});
    Ok(Document::Result(json!({
        "IsTruncated": false,
        "AttachedPolicies": names.iter().map(one).collect::<Vec<_>>(),
    })))
}
