//! What a bucket is, in JSON, and the settings that can be changed.
//!
//! A setting that is not offered is refused by name, all of a document or nothing; the value that holds anyway is accepted.

use super::listing::fork_info;
use super::{Call, date, document, json};
use crate::errors::{About, denied, error, of};
use crate::vendor::argument;
use crate::verbs::Verbs;
use hyper::StatusCode;
use mw_world::{Role, Session, Versioning};
use s3s::{Body, S3Error, S3ErrorCode, S3Response, S3Result};
use serde_json::{Value, json};

/// Answers what a bucket is.
pub(super) async fn metadata(verbs: &Verbs, call: Call) -> S3Result<S3Response<Body>> {
    let sized = call.target.param("with-size") == Some("true");
    let document = verbs.within(&call.asked, &call.target.bucket, move |s| describe(&s, sized)).await?;
    Ok(json(StatusCode::OK, &document))
}

fn describe(session: &Session, sized: bool) -> S3Result<Value> {
    let info = session.info().map_err(|e| of(&e, About::World))?;
    let mut document = json!({
        "name": info.name,
        "type": i32::from(info.versioned),
        "created_at": date(info.created),
        "storage_class": "STANDARD",
        "object_regions": "",
        "acl_settings": { "allow_object_acl": false },
        "cache_control": "",
        "protection": { "protected": false },
        "soft_delete": { "enabled": false },
        "lifecycle_rules": [],
        "ForkInfo": fork_info(session, &info)?,
    });
    if sized {
        let held = session.estimate().map_err(|e| of(&e, About::World))?;
        document["estimated_size"] = held.bytes.into();
        document["estimated_rows"] = held.objects.into();
        document["estimated_unique_rows"] = held.objects.into();
        document["tier_sizes"] = json!({ "STANDARD": held.bytes });
    }
    Ok(document)
}

/// Changes settings of a bucket.
pub(super) async fn patch(verbs: &Verbs, call: Call) -> S3Result<S3Response<Body>> {
    let changes = document(&call.body)?;
    let wanted = wanted(&changes, &call)?;
    let name = call.target.bucket.clone();
    let work = move |session: Session| {
        if !session.allows(Role::Editor) {
            return Err(denied());
        }
        match wanted {
            Some(versioned) => set_versioned(&session, versioned),
            None => Ok(()),
        }
    };
    verbs.within(&call.asked, &call.target.bucket, work).await?;
    Ok(json(StatusCode::OK, &json!({ "Bucket": name, "Update": "success" })))
}

/// Checks a whole document of settings; returns what the bucket's type is to be, when it is named.
fn wanted(changes: &Value, call: &Call) -> S3Result<Option<bool>> {
    let acl = call.asked.header("x-amz-acl").is_none_or(|acl| acl == "private");
    let listed = call.asked.header("x-amz-acl-public-list-objects-enabled").is_some_and(|v| v != "false");
    if !acl || listed {
        return Err(not_offered("public access (x-amz-acl)"));
    }
    let settings = changes.as_object().ok_or_else(|| argument("The settings are a JSON object."))?;
    let mut versioned = None;
    for (name, value) in settings {
        match (name.as_str(), value.as_i64()) {
            ("type", Some(n @ (0 | 1))) => versioned = Some(n == 1),
            ("type", _) => return Err(argument("The type of a bucket is 0 (regular) or 1 (with snapshots).")),
            _ if holds_anyway(name, value) => {}
            _ => return Err(not_offered(name)),
        }
    }
    Ok(versioned)
}

/// Whether a setting asks for what is so in every bucket.
fn holds_anyway(name: &str, value: &Value) -> bool {
    let off = |value: Option<&Value>| value.is_none_or(|v| matches!(v, Value::Null | Value::Bool(false)) || v == "");
    let none = |value: Option<&Value>| value.is_none_or(|v| v.is_null() || v.as_array().is_some_and(Vec::is_empty));
    match name {
        "acl_settings" => off(value.get("allow_object_acl")),
        "protection" => off(value.get("protected")),
        "soft_delete" => off(value.get("enabled")),
        "object_notifications" => off(value.get("enabled")) && off(value.get("web_hook")),
        "website" => off(value.get("domain_name")),
        "cors" => none(value.get("rules")),
        "lifecycle_rules" => none(Some(value)),
        "cache_control" | "additional_http_headers" | "shadow_bucket" => off(Some(value)),
        // There is one place, whatever it is called.
        "object_regions" => value.is_string(),
        "storage_class" => value == "STANDARD",
        _ => false,
    }
}

fn not_offered(what: &str) -> S3Error {
    error(S3ErrorCode::NotImplemented, format!("The setting {what} is not implemented; nothing was changed."))
}

/// Switches version ids on or off. The versions that there are stay.
pub(super) fn set_versioned(session: &Session, on: bool) -> S3Result<()> {
    let to = match (on, session.versioning()) {
        (false, Versioning::Never) => return Ok(()),
        (false, _) => Versioning::Suspended,
        (true, _) => Versioning::Enabled,
    };
    session.set_versioning(to).map_err(|e| of(&e, About::World))
}

#[cfg(test)]
mod tests {
    //! Which settings hold anyway.

    use super::*;

    #[test]
    fn what_is_so_anyway_is_accepted_and_the_rest_refused() {
        for (name, value) in [
            ("acl_settings", json!({ "allow_object_acl": false })),
            ("protection", json!({ "protected": false })),
            ("soft_delete", json!({ "enabled": false })),
            ("object_notifications", json!({})),
            ("website", json!({ "domain_name": "" })),
            ("cors", json!({ "rules": [] })),
            ("lifecycle_rules", json!([])),
            ("cache_control", json!("")),
            ("additional_http_headers", Value::Null),
            ("object_regions", json!("fra")),
            ("storage_class", json!("STANDARD")),
        ] {
            assert!(holds_anyway(name, &value), "{name}");
        }
        for (name, value) in [
            ("acl_settings", json!({ "allow_object_acl": true })),
            ("protection", json!({ "protected": true })),
            ("soft_delete", json!({ "enabled": true, "retention_days": 7 })),
            ("object_notifications", json!({ "enabled": true, "web_hook": "http://h" })),
            ("website", json!({ "domain_name": "d" })),
            ("cors", json!({ "rules": [{}] })),
            ("lifecycle_rules", json!([{ "id": "x" }])),
            ("cache_control", json!("no-store")),
            ("additional_http_headers", json!({ "X-Content-Type-Options": "nosniff" })),
            ("storage_class", json!("GLACIER")),
            ("made_up", Value::Null),
        ] {
            assert!(!holds_anyway(name, &value), "{name}");
        }
    }
}
