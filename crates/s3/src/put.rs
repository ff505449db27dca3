//! PUT of an object: check, take the content in, verify it, swap it in.

use crate::auth::Asked;
use crate::body::{Received, expected, receive};
use crate::conditions::read;
use crate::errors::{About, of};
use crate::meta::{etag, of_request, sums_typed};
use crate::names::key_of;
use crate::verbs::Verbs;
use crate::versions::id_of;
use mw_world::{ChecksumAlgorithm, PutOptions};
use s3s::dto::*;
use s3s::{S3Response, S3Result};
use std::sync::Arc;

/// Puts an object; when this answers, it is durable, and before, nobody sees a byte of it.
pub(crate) async fn put_object(
    verbs: &Verbs,
    asked: Arc<Asked>,
    input: PutObjectInput,
) -> S3Result<S3Response<PutObjectOutput>> {
    let key = key_of(&input.key)?;
    // The right to write is asked for first, so that a refusal costs no content.
    let place = key.clone();
    let (session, staged) = verbs
        .within(&asked, &input.bucket, move |session| {
            let staged = session.stage_over(&place).map_err(|e| of(&e, About::Key))?;
            Ok((session, staged))
        })
        .await?;
    let meta = of_request(&asked, input.metadata)?;
    expected(&asked)?;
    let conditions = read(&asked.headers, "");
    let Received { staged, digested } =
        receive(&verbs.pool, staged, input.body, &asked, None, &[ChecksumAlgorithm::Crc64Nvme]).await?;
    let options =
        PutOptions { meta, etag: digested.etag(), checksums: digested.checksums, conditions, ..PutOptions::default() };
    let (info, version_id) = verbs
        .pool
        .run(move || {
            let info = session.put(&key, staged, &options).map_err(|e| of(&e, About::Key))?;
            let id = id_of(&session, &info);
            Ok((info, id))
        })
        .await?;
    let mut output = PutObjectOutput { e_tag: Some(etag(&info.etag)), version_id, ..PutObjectOutput::default() };
    sums_typed!(output, &info.checksums);
    Ok(S3Response::new(output))
}
