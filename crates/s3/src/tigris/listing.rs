//! The listing of buckets in JSON, with what S3 has no words for: forks and where they come from.

use super::{Call, date, json};
use crate::auth::Asked;
use crate::errors::{About, of};
use crate::vendor::{self, argument};
use crate::verbs::Verbs;
use hyper::StatusCode;
use mw_model::ErrorKind;
use mw_world::{Session, WorldInfo};
use s3s::{Body, S3Response, S3Result};
use serde_json::{Map, Value, json};

/// The one owner.
const OWNER: &str = "manyworlds";

/// What is asked of a listing.
struct Query {
    /// The bucket whose forks are listed.
    forks_of: Option<String>,
    /// Where to go on: the last name of the page before.
    after: String,
    limit: usize,
    /// Only forks.
    forks: bool,
    /// Deleted buckets, or those of somebody else: there are none.
    none: bool,
    fork_info: bool,
    owner_info: bool,
    stats: bool,
}

impl Query {
    fn of(call: &Call) -> S3Result<Self> {
        let param = |name: &str| call.target.param(name).filter(|v| !v.is_empty());
        let flag = |name: &str| param(name) == Some("true");
        let limit = match param("max-buckets").map(str::parse) {
            None => usize::MAX,
            Some(Ok(n @ 1..=10_000)) => n,
            Some(_) => return Err(argument("max-buckets must be between 1 and 10000")),
        };
        let forks_of = vendor::text(&call.asked.headers, vendor::FORKS_OF)?.map(str::to_owned);
        Ok(Self {
            fork_info: forks_of.is_some() || flag("IncludeForkInfo"),
            forks_of,
            after: param("continuation-token").unwrap_or_default().to_owned(),
            limit,
            forks: flag("OnlyForked"),
            none: flag("OnlyDeleted") || param("OwnedBy").is_some_and(|owner| owner != OWNER),
            owner_info: flag("IncludeOwnerInfo"),
            stats: flag("IncludeStats"),
        })
    }
}

/// Lists the buckets that the key may read, or the forks of one.
pub(super) async fn buckets(verbs: &Verbs, call: Call) -> S3Result<S3Response<Body>> {
    let query = Query::of(&call)?;
    let (door, asked) = (verbs.clone(), call.asked.clone());
    let document = verbs.pool.run(move || page(&door, &asked, &query)).await?;
    Ok(json(StatusCode::OK, &document))
}

fn page(verbs: &Verbs, asked: &Asked, query: &Query) -> S3Result<Value> {
    let names = names(verbs, asked, query)?;
    let mut names = names.into_iter().filter(|name| *name > query.after).peekable();
    let (mut entries, mut last) = (Vec::new(), String::new());
    let (mut objects, mut bytes) = (0, 0);
    while entries.len() < query.limit
        && let Some(name) = names.next()
    {
        let session = match verbs.store.session(&asked.principal, &name) {
            Ok(session) => session,
            // Deleted since the names were read.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Denied) => continue,
            Err(e) => return Err(of(&e, About::World)),
        };
        let info = session.info().map_err(|e| of(&e, About::World))?;
        if query.stats {
            let held = session.estimate().map_err(|e| of(&e, About::World))?;
            objects += held.objects;
            bytes += held.bytes;
        }
        entries.push(entry(&session, &info, query)?);
        last = name;
    }
    let mut document = json!({
        "ContinuationToken": if names.peek().is_some() { last } else { String::new() },
        "Owner": { "DisplayName": OWNER, "ID": OWNER },
        "Buckets": { "Bucket": entries },
    });
    if query.stats {
        document["Stats"] = json!({
            "ActiveBuckets": document["Buckets"]["Bucket"].as_array().map_or(0, Vec::len),
            "TotalObjects": objects,
            "TotalStorageBytes": bytes,
            "TotalUniqueObjects": objects,
        });
    }
    Ok(document)
}

/// Returns the names to list, in order.
fn names(verbs: &Verbs, asked: &Asked, query: &Query) -> S3Result<Vec<String>> {
    if let Some(base) = &query.forks_of {
        return verbs.session(asked, base, None)?.forks().map_err(|e| of(&e, About::World));
    }
    if query.none {
        return Ok(Vec::new());
    }
    let worlds = verbs.store.worlds(&asked.principal).map_err(|e| of(&e, About::World))?;
    Ok(worlds.into_iter().filter(|w| !query.forks || w.parent.is_some()).map(|w| w.name).collect())
}

fn entry(session: &Session, info: &WorldInfo, query: &Query) -> S3Result<Value> {
    let mut entry = json!({
        "Name": info.name,
        "CreationDate": date(info.created),
        "InitialCreatedDate": date(info.created),
        "Regions": "",
        "Type": if info.versioned { "Snapshot" } else { "Regular" },
        "Visibility": { "IsPublic": false },
        "SoftDeleteInfo": { "Enabled": false, "RetentionDays": 0 },
    });
    let mut add =
        |name: &str, value: Value| entry.as_object_mut().map(|e: &mut Map<_, _>| e.insert(name.to_owned(), value));
    if query.owner_info {
        add("OwnerInfo", json!({ "OwnerUserId": OWNER, "OwnerHumanUserId": OWNER }));
    }
    if query.fork_info {
        add("ForkInfo", fork_info(session, info)?);
    }
    Ok(entry)
}

/// Says where a bucket comes from and whether it has forks, as far as the key may know.
pub(super) fn fork_info(session: &Session, info: &WorldInfo) -> S3Result<Value> {
    let parents = info.parent.as_ref().map(|parent| {
        json!([{
            "BucketName": parent.name,
            "ForkCreatedAt": date(info.created),
            "Snapshot": parent.version.to_string(),
            "SnapshotCreatedAt": date(parent.version.0),
        }])
    });
    Ok(json!({ "HasChildren": crate::bucket::has_forks(session, info)?, "Parents": parents }))
}
