//! Verbs of a bucket that headers ask for: fork, snapshot, merge, rebase, delete.

use super::{Call, empty, json, with_version};
use crate::dialect;
use crate::errors::{About, of};
use crate::names::{text_of, xml_of};
use crate::vendor::argument;
use crate::verbs::Verbs;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use mw_model::Version;
use mw_world::{At, ForkOptions, PromoteOptions, Promoted, Session};
use s3s::{Body, S3Response, S3Result};
use serde_json::{Value, json};

/// Makes a bucket from another one.
pub(super) async fn fork(
    verbs: &Verbs,
    call: Call,
    source: String,
    at: Option<Version>,
    versioned: bool,
) -> S3Result<S3Response<Body>> {
    let (door, name) = (verbs.clone(), call.target.bucket.clone());
    verbs
        .pool
        .run(move || {
            let who = &call.asked.principal;
            let settings = call.asked.settings.clone();
            let options = ForkOptions { at: at.map(At::Version), settings, ..ForkOptions::default() };
            // The key is asked about the base before anything else is looked at.
            door.session(&call.asked, &source, None)?;
            let about = if at.is_some() { About::Version } else { About::World };
            door.store.fork(who, &source, &call.target.bucket, &options).map_err(|e| of(&e, about))?;
            if versioned {
                super::settings::set_versioned(&door.session(&call.asked, &call.target.bucket, None)?, true)?;
            }
            Ok(())
        })
        .await?;
    let mut answer = empty(StatusCode::OK);
    if let Ok(value) = HeaderValue::from_str(&format!("/{name}")) {
        answer.headers.insert(LOCATION, value);
    }
    Ok(answer)
}

/// Takes a snapshot.
pub(super) async fn snapshot(verbs: &Verbs, call: Call, label: Option<String>) -> S3Result<S3Response<Body>> {
    let take = move |s: Session| s.snapshot(label.as_deref(), None).map_err(|e| of(&e, About::Version));
    let taken = verbs.within(&call.asked, &call.target.bucket, take).await?;
    Ok(with_version(empty(StatusCode::OK), taken.version))
}

/// Deletes a snapshot.
pub(super) async fn drop_snapshot(verbs: &Verbs, call: Call, version: Version) -> S3Result<S3Response<Body>> {
    let work = move |s: Session| s.delete_snapshot(version).map_err(|e| of(&e, About::Version));
    verbs.within(&call.asked, &call.target.bucket, work).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Deletes a bucket.
pub(super) async fn delete(verbs: &Verbs, call: Call, force: bool) -> S3Result<S3Response<Body>> {
    let door = verbs.clone();
    verbs
        .pool
        .run(move || {
            let who = &call.asked.principal;
            door.store.delete_world(who, &call.target.bucket, force).map_err(|e| of(&e, About::World))
        })
        .await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Brings a fork's changes to the bucket that it was made from.
pub(super) async fn merge(verbs: &Verbs, call: Call, fork: String) -> S3Result<S3Response<Body>> {
    let (door, asked, base) = (verbs.clone(), call.asked.clone(), call.target.bucket.clone());
    let (promoted, version) = verbs
        .pool
        .run(move || {
            let target = door.session(&asked, &base, None)?;
            let source = door.session(&asked, &fork, None)?;
            let info = source.info().map_err(|e| of(&e, About::World))?;
            if info.parent.is_none_or(|parent| parent.name != base) {
                return Err(argument(format!(
                    "{fork} is not a fork of {base}; a fork merges into the bucket it was made from."
                )));
            }
            let promoted = source.promote(&PromoteOptions::default()).map_err(|e| of(&e, About::Version))?;
            changed(&target, promoted)
        })
        .await?;
    Ok(told(&call, &promoted, version))
}

/// Brings the base's changes to a fork.
pub(super) async fn rebase(verbs: &Verbs, call: Call) -> S3Result<S3Response<Body>> {
    let work = |s: Session| {
        let promoted = s.rebase(&PromoteOptions::default()).map_err(|e| of(&e, About::Version))?;
        changed(&s, promoted)
    };
    let (promoted, version) = verbs.within(&call.asked, &call.target.bucket, work).await?;
    Ok(told(&call, &promoted, version))
}

/// Adds the version under which the changed bucket can be read as it was then.
fn changed(target: &Session, promoted: Promoted) -> S3Result<(Promoted, Version)> {
    let version = match promoted.version {
        Some(version) => version,
        None => target.info().map_err(|e| of(&e, About::World))?.version,
    };
    Ok((promoted, version))
}

/// Conflicts are a refusal with the list beside it, so that nobody who looks at the status alone takes them for success.
fn told(call: &Call, promoted: &Promoted, version: Version) -> S3Response<Body> {
    if promoted.conflicts.is_empty() {
        let document = json!({
            "status": "success",
            "snapshot_version": version.to_string(),
            "changes": promoted.changes.len(),
            "merged": promoted.merged.iter().map(|path| text_of(path)).collect::<Vec<_>>(),
        });
        return with_version(json(StatusCode::OK, &document), version);
    }
    let message = format!(
        "{} conflict(s) between the fork and its base; nothing was changed. Rebase or change the fork, or decide each with \
         `mw promote --resolve`. First: {} ({})",
        promoted.conflicts.len(),
        text_of(&promoted.conflicts[0].path),
        promoted.conflicts[0].kind
    );
    if call.manner.json {
        let mut document = dialect::error(CONFLICT, &message, &call.manner.id);
        let conflict =
            |c: &mw_world::Conflict| json!({ "Path": text_of(&c.path), "Kind": c.kind.as_str(), "Detail": c.detail });
        document["Conflicts"] = Value::Array(promoted.conflicts.iter().map(conflict).collect());
        return json(StatusCode::CONFLICT, &document);
    }
    xml(promoted, &message)
}

/// The error code of a merge that contradicts itself.
const CONFLICT: &str = "MergeConflict";

fn xml(promoted: &Promoted, message: &str) -> S3Response<Body> {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{CONFLICT}</Code><Message>{}</Message>",
        escaped(message)
    );
    text.push_str("<Conflicts>");
    for conflict in &promoted.conflicts {
        let (path, detail) = (escaped(&xml_of(&conflict.path)), escaped(&conflict.detail));
        text.push_str(&format!(
            "<Conflict><Path>{path}</Path><Kind>{}</Kind><Detail>{detail}</Detail></Conflict>",
            conflict.kind
        ));
    }
    text.push_str("</Conflicts></Error>");
    let mut answer = S3Response { status: Some(StatusCode::CONFLICT), ..S3Response::new(Body::from(text)) };
    answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
