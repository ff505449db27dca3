//! PUT of an object: check, take the content in, verify it, swap it in.

use crate::auth::Asked;
use crate::body::{Received, expected, hold, is_small, receive};
use crate::conditions::read;
use crate::errors::{About, of};
use crate::meta::{etag, of_request, sums_typed};
use crate::names::key_of;
use crate::verbs::Verbs;
use crate::versions::id_of;
use bytes::Bytes;
use mw_world::{ChecksumAlgorithm, ObjectInfo, ObjectMeta, PutOptions, Session, Staged};
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
    let (info, version_id) = match is_small(&asked) {
        true => small(verbs, &asked, key, input).await?,
        false => large(verbs, &asked, key, input).await?,
    };
    let mut output = PutObjectOutput { e_tag: Some(etag(&info.etag)), version_id, ..PutObjectOutput::default() };
    sums_typed!(output, &info.checksums);
    Ok(S3Response::new(output))
}

/// What is computed when the client names no checksum, as AWS does.
const USUAL: [ChecksumAlgorithm; 1] = [ChecksumAlgorithm::Crc64Nvme];

/// What was put, and the id of its version where there are versions.
type Placed = (ObjectInfo, Option<String>);

/// Puts content that may come first: then all is done in one go, on one thread.
async fn small(verbs: &Verbs, asked: &Arc<Asked>, key: Bytes, input: PutObjectInput) -> S3Result<Placed> {
    let held = hold(input.body, asked, &USUAL).await?;
    let caller = Arc::clone(asked);
    let work = move |session: Session| {
        let staged = stage(&session, &key)?;
        let meta = of_request(&caller, input.metadata)?;
        place(&session, &key, held.take_in(staged)?, &caller, meta)
    };
    verbs.within(asked, &input.bucket, work).await
}

/// Puts content as it comes. The right to write is asked for first, so that a refusal costs no content.
async fn large(verbs: &Verbs, asked: &Arc<Asked>, key: Bytes, input: PutObjectInput) -> S3Result<Placed> {
    let at = key.clone();
    let ready = move |session: Session| {
        let staged = stage(&session, &at)?;
        Ok((session, staged))
    };
    let (session, staged) = verbs.within(asked, &input.bucket, ready).await?;
    let meta = of_request(asked, input.metadata)?;
    expected(asked)?;
    let received = receive(verbs, staged, input.body, asked, None, &USUAL).await?;
    let caller = Arc::clone(asked);
    verbs.pool.run(move || place(&session, &key, received, &caller, meta)).await
}

fn stage(session: &Session, key: &[u8]) -> S3Result<Staged> {
    session.stage_over(key).map_err(|e| of(&e, About::Key))
}

/// Swaps content in. Blocks until it is durable.
fn place(session: &Session, key: &[u8], received: Received, asked: &Asked, meta: ObjectMeta) -> S3Result<Placed> {
    let Received { staged, digested } = received;
    let conditions = read(&asked.headers, "");
    let options =
        PutOptions { meta, etag: digested.etag(), checksums: digested.checksums, conditions, ..PutOptions::default() };
    let info = session.put(key, staged, &options).map_err(|e| of(&e, About::Key))?;
    let id = id_of(session, &info);
    Ok((info, id))
}
