//! Access control lists, as a bucket answers whose owner owns everything in it ("bucket owner enforced", which AWS makes of every
//! new bucket): they can be read, say that the owner may do all, and cannot be changed to say anything else. Who may do what is said
//! by keys and grants. So nothing is ever public, which is all that a public access block can say.

use crate::auth::Asked;
use crate::errors::{denied, error};
use crate::names::key_of;
use crate::owner::{not_supported, owner, owner_alone};
use crate::verbs::Verbs;
use crate::versions::{id_of, info};
use mw_world::{Role, Session};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

fn grants() -> Vec<Grant> {
    let Owner { display_name, id } = owner();
    let grantee =
        Grantee { display_name, id, email_address: None, type_: Type::from_static(Type::CANONICAL_USER), uri: None };
    vec![Grant { grantee: Some(grantee), permission: Some(Permission::from_static(Permission::FULL_CONTROL)) }]
}

/// Whether a list says no more than that the owner may do all.
fn says_so(policy: &AccessControlPolicy) -> bool {
    let owner = owner();
    let grants = policy.grants.as_deref().unwrap_or_default();
    !grants.is_empty()
        && grants.iter().all(|grant| {
            let whom = grant.grantee.as_ref().is_some_and(|grantee| grantee.id == owner.id);
            whom && grant.permission.as_ref().is_some_and(|p| p.as_str() == Permission::FULL_CONTROL)
        })
}

/// Checks a list that is to be put: by header, or by body, and not by neither.
fn checked(asked: &Asked, policy: Option<&AccessControlPolicy>) -> S3Result<()> {
    owner_alone(asked)?;
    match policy {
        Some(policy) if !says_so(policy) => Err(not_supported()),
        None if !asked.headers.contains_key("x-amz-acl") => Err(error(
            S3ErrorCode::MissingSecurityHeader,
            "Your request was missing a required header: x-amz-acl, or an access control policy in the body",
        )),
        _ => Ok(()),
    }
}

fn may_write(session: &Session) -> S3Result<()> {
    if session.allows(Role::Editor) { Ok(()) } else { Err(denied()) }
}

/// Says that the owner may do all with a bucket.
pub(crate) async fn get_bucket_acl(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetBucketAclInput,
) -> S3Result<S3Response<GetBucketAclOutput>> {
    verbs.within(&asked, &input.bucket, |_| Ok(())).await?;
    Ok(S3Response::new(GetBucketAclOutput { grants: Some(grants()), owner: Some(owner()) }))
}

/// Takes a list that says just that.
pub(crate) async fn put_bucket_acl(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutBucketAclInput,
) -> S3Result<S3Response<PutBucketAclOutput>> {
    verbs.within(&asked, &input.bucket, |session| may_write(&session)).await?;
    checked(&asked, input.access_control_policy.as_ref())?;
    Ok(S3Response::new(PutBucketAclOutput::default()))
}

/// Says that the owner may do all with an object.
pub(crate) async fn get_object_acl(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetObjectAclInput,
) -> S3Result<S3Response<GetObjectAclOutput>> {
    let key = key_of(&input.key)?;
    let (door, version) = (verbs.clone(), input.version_id);
    verbs
        .pool
        .run(move || {
            let (session, version) = door.versioned(&asked, &input.bucket, version.as_deref())?;
            info(&session, &key, version).map(|info| id_of(&session, &info))
        })
        .await?;
    Ok(S3Response::new(GetObjectAclOutput { grants: Some(grants()), owner: Some(owner()), request_charged: None }))
}

/// Takes a list that says just that of an object.
pub(crate) async fn put_object_acl(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutObjectAclInput,
) -> S3Result<S3Response<PutObjectAclOutput>> {
    let key = key_of(&input.key)?;
    let (door, version, caller) = (verbs.clone(), input.version_id, Arc::clone(&asked));
    verbs
        .pool
        .run(move || {
            let (session, version) = door.versioned(&caller, &input.bucket, version.as_deref())?;
            may_write(&session)?;
            info(&session, &key, version).map(drop)
        })
        .await?;
    checked(&asked, input.access_control_policy.as_ref())?;
    Ok(S3Response::new(PutObjectAclOutput::default()))
}

/// Says that the owner of a bucket owns what is in it.
pub(crate) async fn get_bucket_ownership_controls(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetBucketOwnershipControlsInput,
) -> S3Result<S3Response<GetBucketOwnershipControlsOutput>> {
    verbs.within(&asked, &input.bucket, |_| Ok(())).await?;
    let rule = OwnershipControlsRule {
        object_ownership: ObjectOwnership::from_static(ObjectOwnership::BUCKET_OWNER_ENFORCED),
    };
    let controls = OwnershipControls { rules: vec![rule] };
    Ok(S3Response::new(GetBucketOwnershipControlsOutput { ownership_controls: Some(controls) }))
}

/// Takes the one ownership that there is.
pub(crate) async fn put_bucket_ownership_controls(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutBucketOwnershipControlsInput,
) -> S3Result<S3Response<PutBucketOwnershipControlsOutput>> {
    verbs.within(&asked, &input.bucket, |session| may_write(&session)).await?;
    let enforced =
        |rule: &OwnershipControlsRule| rule.object_ownership.as_str() == ObjectOwnership::BUCKET_OWNER_ENFORCED;
    if !input.ownership_controls.rules.iter().all(enforced) {
        return Err(error(
            S3ErrorCode::NotImplemented,
            "Object ownership other than BucketOwnerEnforced is not implemented.",
        ));
    }
    Ok(S3Response::new(PutBucketOwnershipControlsOutput::default()))
}

/// Says that nothing in a bucket is public.
pub(crate) async fn get_public_access_block(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetPublicAccessBlockInput,
) -> S3Result<S3Response<GetPublicAccessBlockOutput>> {
    verbs.within(&asked, &input.bucket, |_| Ok(())).await?;
    let blocked = PublicAccessBlockConfiguration {
        block_public_acls: Some(true),
        block_public_policy: Some(true),
        ignore_public_acls: Some(true),
        restrict_public_buckets: Some(true),
    };
    Ok(S3Response::new(GetPublicAccessBlockOutput { public_access_block_configuration: Some(blocked) }))
}

/// Takes a setting that says just that.
pub(crate) async fn put_public_access_block(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutPublicAccessBlockInput,
) -> S3Result<S3Response<PutPublicAccessBlockOutput>> {
    verbs.within(&asked, &input.bucket, |session| may_write(&session)).await?;
    let wanted = input.public_access_block_configuration;
    let all = [
        wanted.block_public_acls,
        wanted.block_public_policy,
        wanted.ignore_public_acls,
        wanted.restrict_public_buckets,
    ];
    if all.iter().any(|setting| *setting != Some(true)) {
        return Err(error(
            S3ErrorCode::NotImplemented,
            "Public access is not implemented: all four settings of the public access block are true.",
        ));
    }
    Ok(S3Response::new(PutPublicAccessBlockOutput::default()))
}
