//! The operations that may be called, each of which lives in the file of its family.
//!
//! What is not named here answers `NotImplemented`, to everybody alike.

use crate::auth::Asked;
use crate::verbs::Verbs;
use crate::{acl, bucket, bucket_tags, copy, copy_part, cors, delete, get, list, multipart, put, tags, versions};
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result};

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
    get_bucket_versioning in versions: GetBucketVersioningInput => GetBucketVersioningOutput;
    put_bucket_versioning in versions: PutBucketVersioningInput => PutBucketVersioningOutput;
    get_bucket_acl in acl: GetBucketAclInput => GetBucketAclOutput;
    put_bucket_acl in acl: PutBucketAclInput => PutBucketAclOutput;
    get_object_acl in acl: GetObjectAclInput => GetObjectAclOutput;
    put_object_acl in acl: PutObjectAclInput => PutObjectAclOutput;
    get_bucket_ownership_controls in acl: GetBucketOwnershipControlsInput => GetBucketOwnershipControlsOutput;
    put_bucket_ownership_controls in acl: PutBucketOwnershipControlsInput => PutBucketOwnershipControlsOutput;
    get_public_access_block in acl: GetPublicAccessBlockInput => GetPublicAccessBlockOutput;
    put_public_access_block in acl: PutPublicAccessBlockInput => PutPublicAccessBlockOutput;
    get_bucket_tagging in bucket_tags: GetBucketTaggingInput => GetBucketTaggingOutput;
    put_bucket_tagging in bucket_tags: PutBucketTaggingInput => PutBucketTaggingOutput;
    delete_bucket_tagging in bucket_tags: DeleteBucketTaggingInput => DeleteBucketTaggingOutput;
    get_bucket_request_payment in bucket: GetBucketRequestPaymentInput => GetBucketRequestPaymentOutput;
    get_bucket_cors in cors: GetBucketCorsInput => GetBucketCorsOutput;
    put_bucket_cors in cors: PutBucketCorsInput => PutBucketCorsOutput;
    delete_bucket_cors in cors: DeleteBucketCorsInput => DeleteBucketCorsOutput;
    list_object_versions in versions: ListObjectVersionsInput => ListObjectVersionsOutput;
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
    upload_part_copy in copy_part: UploadPartCopyInput => UploadPartCopyOutput;
    complete_multipart_upload in multipart: CompleteMultipartUploadInput => CompleteMultipartUploadOutput;
    abort_multipart_upload in multipart: AbortMultipartUploadInput => AbortMultipartUploadOutput;
    list_parts in multipart: ListPartsInput => ListPartsOutput;
    list_multipart_uploads in list: ListMultipartUploadsInput => ListMultipartUploadsOutput;
    get_object_tagging in tags: GetObjectTaggingInput => GetObjectTaggingOutput;
    put_object_tagging in tags: PutObjectTaggingInput => PutObjectTaggingOutput;
    delete_object_tagging in tags: DeleteObjectTaggingInput => DeleteObjectTaggingOutput;
}
