//! Buckets, that is worlds: list, create, delete, head, and what S3 asks about a bucket.

use crate::auth::Asked;
use crate::errors::{About, error, of};
use crate::meta::stamp;
use crate::owner::{owner, owner_alone};
use crate::vendor;
use crate::verbs::Verbs;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use mw_model::ErrorKind;
use mw_world::{CreateOptions, Session, WorldInfo};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// The region that S3 had first, which is also that of who names none.
const OLDEST: &str = "us-east-1";
/// The regions that are left unsaid: the one that S3 never says, and the one that is no region.
const UNSAID: [&str; 2] = [OLDEST, "auto"];

/// Lists the worlds that the key may read, and no others; or, where a header names one, its snapshots.
pub(crate) async fn list_buckets(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: ListBucketsInput,
) -> S3Result<S3Response<ListBucketsOutput>> {
    let limit = match input.max_buckets {
        None => usize::MAX,
        Some(n @ 1..=10_000) => n as usize,
        Some(_) => return Err(error(S3ErrorCode::InvalidArgument, "max-buckets must be between 1 and 10000")),
    };
    if let Some(bucket) = vendor::text(&asked.headers, vendor::SNAPSHOT)?.map(str::to_owned) {
        return snapshots(verbs, &asked, &bucket, &input.continuation_token.unwrap_or_default(), limit).await;
    }
    let (store, caller) = (Arc::clone(&verbs.store), Arc::clone(&asked));
    let worlds = verbs.pool.run(move || store.worlds(&caller.principal).map_err(|e| of(&e, About::World))).await?;
    let prefix = input.prefix.clone().unwrap_or_default();
    let after = input.continuation_token.unwrap_or_default();
    let mut names = worlds.into_iter().filter(|w| w.name.starts_with(&prefix) && w.name > after);
    let buckets: Vec<Bucket> = names
        .by_ref()
        .take(limit)
        .map(|w| Bucket { creation_date: Some(stamp(w.created)), name: Some(w.name), ..Bucket::default() })
        .collect();
    let more = names.next().and_then(|_| buckets.last()?.name.clone());
    Ok(S3Response::new(ListBucketsOutput {
        buckets: Some(buckets),
        continuation_token: more,
        owner: Some(owner()),
        prefix: input.prefix,
    }))
}

/// Lists the snapshots of a world, newest first, each as a bucket that is called by its version and its label.
async fn snapshots(
    verbs: &Verbs,
    asked: &Arc<Asked>,
    bucket: &str,
    after: &str,
    limit: usize,
) -> S3Result<S3Response<ListBucketsOutput>> {
    let before = match after {
        "" => u64::MAX,
        token => token.parse().map_err(|_| vendor::argument("The continuation token provided is incorrect"))?,
    };
    let found = verbs.within(asked, bucket, |s| s.snapshots().map_err(|e| of(&e, About::World))).await?;
    let mut older = found.into_iter().rev().filter(|snapshot| snapshot.version.0 < before);
    let mut last = None;
    let shown = |snapshot: mw_world::Snapshot| {
        last = Some(snapshot.version.to_string());
        let name = match snapshot.label {
            Some(label) => format!("{}; name={label}", snapshot.version),
            None => snapshot.version.to_string(),
        };
        Bucket { creation_date: Some(stamp(snapshot.created)), name: Some(name), ..Bucket::default() }
    };
    let buckets: Vec<Bucket> = older.by_ref().take(limit).map(shown).collect();
    Ok(S3Response::new(ListBucketsOutput {
        buckets: Some(buckets),
        continuation_token: older.next().and(last),
        owner: Some(owner()),
        prefix: None,
    }))
}

/// Makes a world. Wherever it is asked to be, it is here.
pub(crate) async fn create_bucket(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: CreateBucketInput,
) -> S3Result<S3Response<CreateBucketOutput>> {
    let (store, name) = (Arc::clone(&verbs.store), input.bucket.clone());
    if input.object_lock_enabled_for_bucket == Some(true) {
        return Err(error(S3ErrorCode::NotImplemented, "Object lock is not implemented."));
    }
    let special =
        input.create_bucket_configuration.as_ref().is_some_and(|c| c.bucket.is_some() || c.location.is_some());
    if special {
        return Err(error(S3ErrorCode::NotImplemented, "Directory buckets are not implemented."));
    }
    if owner_alone(&asked).is_err() {
        return Err(error(
            S3ErrorCode::InvalidBucketAclWithObjectOwnership,
            "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
        ));
    }
    let ownership = input.object_ownership.as_ref().map(ObjectOwnership::as_str);
    if ownership.is_some_and(|ownership| ownership != ObjectOwnership::BUCKET_OWNER_ENFORCED) {
        return Err(error(
            S3ErrorCode::NotImplemented,
            "Object ownership other than BucketOwnerEnforced is not implemented.",
        ));
    }
    let options = CreateOptions {
        versioned: vendor::flag(&asked.headers, vendor::ENABLE)?,
        settings: asked.settings.clone(),
        ..CreateOptions::default()
    };
    let again = may_exist(&asked, &input, &options);
    let make = move || match store.create_world(&asked.principal, &name, &options) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists && again => {
            // It may be seen before whoever made it has heard that it lasts.
            let there = store.session(&asked.principal, &name).and_then(|session| session.sync());
            there.map_err(|e| of(&e, About::World))
        }
        Err(e) => Err(of(&e, About::World)),
    };
    verbs.pool.run(make).await?;
    Ok(S3Response::new(CreateBucketOutput { location: Some(format!("/{}", input.bucket)) }))
}

/// Whether a bucket that is there already will do. AWS refuses to make one's own bucket again in every region but the oldest, where it
/// answers as if it had; clients that sign for that region are written for it. What is asked of a new bucket is not done to an old one.
fn may_exist(asked: &Asked, input: &CreateBucketInput, options: &CreateOptions) -> bool {
    let place = input.create_bucket_configuration.as_ref().and_then(|c| c.location_constraint.as_ref());
    let elsewhere = place.is_some_and(|place| !["", OLDEST].contains(&place.as_str()));
    asked.region == OLDEST && !elsewhere && !options.versioned && options.settings.is_empty()
}

/// Deletes an empty world.
pub(crate) async fn delete_bucket(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: DeleteBucketInput,
) -> S3Result<S3Response<DeleteBucketOutput>> {
    let store = Arc::clone(&verbs.store);
    verbs
        .pool
        .run(move || store.delete_world(&asked.principal, &input.bucket, false).map_err(|e| of(&e, About::World)))
        .await?;
    Ok(S3Response::new(DeleteBucketOutput::default()))
}

/// Whether a world has forks that the caller may know of.
pub(crate) fn has_forks(session: &Session, info: &WorldInfo) -> S3Result<bool> {
    if !info.has_forks || session.principal().is_root() {
        return Ok(info.has_forks);
    }
    Ok(!session.forks().map_err(|e| of(&e, About::World))?.is_empty())
}

/// What HEAD says of a world beside that it is there.
fn told(session: &Session) -> S3Result<HeaderMap> {
    let info = session.info().map_err(|e| of(&e, About::World))?;
    let mut headers = HeaderMap::new();
    let mut tell = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    tell(vendor::ENABLE, if info.versioned { "true" } else { "false" });
    if let Some(parent) = &info.parent {
        tell(vendor::FORK_SOURCE, &parent.name);
        tell(vendor::FORK_AT, &parent.version.to_string());
    }
    if has_forks(session, &info)? {
        tell(vendor::IS_PARENT, "true");
    }
    Ok(headers)
}

/// Says that a world is there, and where it comes from.
pub(crate) async fn head_bucket(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: HeadBucketInput,
) -> S3Result<S3Response<HeadBucketOutput>> {
    let headers = verbs.within(&asked, &input.bucket, |session| told(&session)).await?;
    let output = HeadBucketOutput { bucket_region: Some(asked.region.clone()), ..HeadBucketOutput::default() };
    Ok(S3Response::with_headers(output, headers))
}

/// Names the region that the caller signed for: every region is this one.
pub(crate) async fn get_bucket_location(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetBucketLocationInput,
) -> S3Result<S3Response<GetBucketLocationOutput>> {
    verbs.within(&asked, &input.bucket, |_| Ok(())).await?;
    let said = (!UNSAID.contains(&asked.region.as_str())).then(|| BucketLocationConstraint::from(asked.region.clone()));
    Ok(S3Response::new(GetBucketLocationOutput { location_constraint: said }))
}

/// Says that nobody pays for requests but the owner.
pub(crate) async fn get_bucket_request_payment(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetBucketRequestPaymentInput,
) -> S3Result<S3Response<GetBucketRequestPaymentOutput>> {
    verbs.within(&asked, &input.bucket, |_| Ok(())).await?;
    Ok(S3Response::new(GetBucketRequestPaymentOutput { payer: Some(Payer::from_static(Payer::BUCKET_OWNER)) }))
}
