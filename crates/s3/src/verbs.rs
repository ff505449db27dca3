//! The operations that the router may call, each of which lives in the file of its family.
//!
//! What is not named here answers `NotImplemented`, to everybody alike.

use crate::auth::Asked;
use crate::errors::{About, error, of};
use crate::pool::Pool;
use crate::{bucket, copy, delete, get, list, multipart, put, tags};
use mw_model::Version;
use mw_world::{At, Session, Store};
use s3s::dto::*;
use s3s::{S3, S3ErrorCode, S3Request, S3Response, S3Result};
use std::sync::Arc;

/// The verbs over a store.
#[derive(Clone)]
pub(crate) struct Verbs {
    pub(crate) store: Arc<Store>,
    pub(crate) pool: Pool,
    pub(crate) public_url: Option<String>,
}

impl Verbs {
    /// Opens a world for the caller and works on it, on a blocking thread.
    ///
    /// # Errors
    /// The one refusal when the key is not for this world, existing or not; else those of `work`.
    pub(crate) async fn within<R: Send + 'static>(
        &self,
        asked: &Arc<Asked>,
        bucket: &str,
        work: impl FnOnce(Session) -> S3Result<R> + Send + 'static,
    ) -> S3Result<R> {
        let (verbs, asked, bucket) = (self.clone(), Arc::clone(asked), bucket.to_owned());
        self.pool.run(move || work(verbs.session(&asked, &bucket, None)?)).await
    }

    /// Opens a world, now or as it was at `version`. Blocks.
    ///
    /// # Errors
    /// The one refusal; `NoSuchBucket`; `InvalidArgument` for a version that cannot be one.
    pub(crate) fn session(&self, asked: &Asked, bucket: &str, version: Option<&str>) -> S3Result<Session> {
        let who = &asked.principal;
        let session = match version {
            None | Some("null") => self.store.session(who, bucket),
            Some(version) => {
                // The key is asked about the world before the version is looked at.
                self.store.session(who, bucket).map_err(|e| of(&e, About::World))?;
                let version =
                    version.parse().map_err(|_| error(S3ErrorCode::InvalidArgument, "Invalid version id specified"))?;
                self.store.session_at(who, bucket, At::Version(Version(version)))
            }
        };
        session.map_err(|e| of(&e, About::World))
    }
}

/// Forwards an operation to the function of the same name in its family's file.
macro_rules! verbs {
    ($($verb:ident in $family:ident: $input:ident => $output:ident;)*) => {
        #[async_trait::async_trait]
        impl S3 for Verbs {
            $(async fn $verb(&self, request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                let asked = Asked::of(&request)?;
                $family::$verb(self, asked, request.input).await
            })*
        }
    };
}

verbs! {
    list_buckets in bucket: ListBucketsInput => ListBucketsOutput;
    create_bucket in bucket: CreateBucketInput => CreateBucketOutput;
    delete_bucket in bucket: DeleteBucketInput => DeleteBucketOutput;
    head_bucket in bucket: HeadBucketInput => HeadBucketOutput;
    get_bucket_location in bucket: GetBucketLocationInput => GetBucketLocationOutput;
    get_bucket_versioning in bucket: GetBucketVersioningInput => GetBucketVersioningOutput;
    list_objects in list: ListObjectsInput => ListObjectsOutput;
    list_objects_v2 in list: ListObjectsV2Input => ListObjectsV2Output;
    get_object in get: GetObjectInput => GetObjectOutput;
    head_object in get: HeadObjectInput => HeadObjectOutput;
    get_object_attributes in get: GetObjectAttributesInput => GetObjectAttributesOutput;
    put_object in put: PutObjectInput => PutObjectOutput;
    copy_object in copy: CopyObjectInput => CopyObjectOutput;
    delete_object in delete: DeleteObjectInput => DeleteObjectOutput;
    delete_objects in delete: DeleteObjectsInput => DeleteObjectsOutput;
    create_multipart_upload in multipart: CreateMultipartUploadInput => CreateMultipartUploadOutput;
    upload_part in multipart: UploadPartInput => UploadPartOutput;
    upload_part_copy in copy: UploadPartCopyInput => UploadPartCopyOutput;
    complete_multipart_upload in multipart: CompleteMultipartUploadInput => CompleteMultipartUploadOutput;
    abort_multipart_upload in multipart: AbortMultipartUploadInput => AbortMultipartUploadOutput;
    list_parts in multipart: ListPartsInput => ListPartsOutput;
    list_multipart_uploads in list: ListMultipartUploadsInput => ListMultipartUploadsOutput;
    get_object_tagging in tags: GetObjectTaggingInput => GetObjectTaggingOutput;
    put_object_tagging in tags: PutObjectTaggingInput => PutObjectTaggingOutput;
    delete_object_tagging in tags: DeleteObjectTaggingInput => DeleteObjectTaggingOutput;
}
