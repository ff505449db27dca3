//! Versions of objects: whether a bucket has them, and all of them listed.

use crate::auth::Asked;
use crate::errors::{About, error, of};
use crate::verbs::Verbs;
use mw_world::Versioning;
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};
use std::sync::Arc;

/// Says whether a bucket has versions; of one that never had any, nothing.
pub(crate) async fn get_bucket_versioning(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: GetBucketVersioningInput,
) -> S3Result<S3Response<GetBucketVersioningOutput>> {
    let versioning = verbs.within(&asked, &input.bucket, |session| Ok(session.versioning())).await?;
    let status = match versioning {
        Versioning::Never => None,
        Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
        Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
    };
    let status = status.map(BucketVersioningStatus::from_static);
    Ok(S3Response::new(GetBucketVersioningOutput { status, ..GetBucketVersioningOutput::default() }))
}

/// Switches versions on or suspends them.
pub(crate) async fn put_bucket_versioning(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutBucketVersioningInput,
) -> S3Result<S3Response<PutBucketVersioningOutput>> {
    let wanted = input.versioning_configuration;
    if wanted.mfa_delete.as_ref().is_some_and(|mfa| mfa.as_str() != MFADelete::DISABLED) {
        return Err(error(S3ErrorCode::NotImplemented, "MFA delete is not implemented."));
    }
    let to = match wanted.status.as_ref().map(BucketVersioningStatus::as_str) {
        Some(BucketVersioningStatus::ENABLED) => Versioning::Enabled,
        Some(BucketVersioningStatus::SUSPENDED) => Versioning::Suspended,
        _ => {
            return Err(error(
                S3ErrorCode::IllegalVersioningConfigurationException,
                "The Versioning element must be specified, and its Status is Enabled or Suspended.",
            ));
        }
    };
    verbs
        .within(&asked, &input.bucket, move |session| session.set_versioning(to).map_err(|e| of(&e, About::World)))
        .await?;
    Ok(S3Response::new(PutBucketVersioningOutput::default()))
}
