//! Content in and out, with bounded memory and back-pressure.
//!
//! Coming in, at most two pieces of [`PIECE`] are in memory: one on its way into the store while the next arrives. Going out, a
//! piece is read when the client has taken the one before. Nothing that ends early becomes an object: content is handed to a verb
//! only after the last byte was seen, the length agreed and every digest matched.

use crate::auth::Asked;
use crate::chunks::{Fault, Faults};
use crate::digest::{Claims, Digested, Digests};
use crate::errors::{About, custom, error, internal, of};
use crate::pool::Pool;
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use mw_world::{ChecksumAlgorithm, Object, Staged};
use s3s::dto::StreamingBlob;
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError, TrailingHeaders};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// How much content is handed to the store, or to a client, at once.
pub(crate) const PIECE: usize = 1 << 20;

/// The largest content of one PUT or part (AWS: 5 GiB).
pub(crate) const CONTENT_MAX: u64 = 5 << 30;

/// Content on its way into the store.
struct Arriving {
    staged: Staged,
    digests: Digests,
}

/// Where the content is: here, or with a thread that takes a piece of it into the store.
enum Place {
    Here(Box<Arriving>),
    Away(JoinHandle<S3Result<Box<Arriving>>>),
}

impl Place {
    async fn here(self) -> S3Result<Box<Arriving>> {
        match self {
            Self::Here(arriving) => Ok(arriving),
            Self::Away(work) => work.await.map_err(|e| internal(&e))?,
        }
    }

    /// Waits for the piece before, then sends the next one on its way.
    async fn push(self, pool: &Pool, pieces: Vec<Bytes>) -> S3Result<Self> {
        let mut arriving = self.here().await?;
        let pool = pool.clone();
        let work = move || {
            for piece in &pieces {
                arriving.digests.update(piece);
                arriving.staged.push(piece).map_err(|e| of(&e, About::Key))?;
            }
            Ok(arriving)
        };
        Ok(Self::Away(tokio::spawn(async move { pool.run(work).await })))
    }
}

/// Content that has arrived whole, as long and with the digests that the client said.
pub(crate) struct Received {
    /// The content.
    pub(crate) staged: Staged,
    /// Its digests.
    pub(crate) digested: Digested,
}

/// Takes the content of a request into the store.
///
/// `otherwise` are the checksums to compute when the client names none, `always` those to compute in any case.
///
/// # Errors
/// `IncompleteBody`, `BadDigest` and the like; the content is then forgotten.
pub(crate) async fn receive(
    pool: &Pool,
    staged: Staged,
    content: Option<StreamingBlob>,
    asked: &Asked,
    always: Option<ChecksumAlgorithm>,
    otherwise: &[ChecksumAlgorithm],
) -> S3Result<Received> {
    let length = Length::Exactly(length(asked)?);
    let content = content.unwrap_or_else(|| StreamingBlob::from(Body::empty()));
    take(pool, staged, content, length, asked, always, otherwise).await
}

/// How long content may be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Length {
    /// As the client said.
    Exactly(u64),
    /// From so many bytes to so many.
    Within(u64, u64),
}

impl Length {
    fn most(self) -> u64 {
        match self {
            Self::Exactly(length) => length,
            Self::Within(_, most) => most.min(CONTENT_MAX),
        }
    }

    fn over(self) -> S3Error {
        match self {
            Self::Exactly(_) => incomplete(),
            Self::Within(..) => {
                error(S3ErrorCode::EntityTooLarge, "Your proposed upload exceeds the maximum allowed object size.")
            }
        }
    }

    fn check(self, size: u64) -> S3Result<()> {
        match self {
            Self::Exactly(length) if size != length => Err(incomplete()),
            Self::Within(least, _) if size < least => Err(error(
                S3ErrorCode::EntityTooSmall,
                "Your proposed upload is smaller than the minimum allowed object size.",
            )),
            _ => Ok(()),
        }
    }
}

/// Takes content whose length the request does not say otherwise into the store, as [`receive`] does.
///
/// # Errors
/// Those of [`receive`]; `EntityTooLarge`, `EntityTooSmall`.
pub(crate) async fn take(
    pool: &Pool,
    staged: Staged,
    mut content: impl Stream<Item = Result<Bytes, StdError>> + Unpin,
    length: Length,
    asked: &Asked,
    always: Option<ChecksumAlgorithm>,
    otherwise: &[ChecksumAlgorithm],
) -> S3Result<Received> {
    let claims = Claims::of(&asked.headers)?;
    let mut algorithms = claims.algorithms(otherwise);
    algorithms.extend(always.filter(|a| !algorithms.contains(a)));
    let mut place = Place::Here(Box::new(Arriving { staged, digests: Digests::new(&algorithms) }));
    let (mut pieces, mut waiting, mut size) = (Vec::new(), 0, 0u64);
    while let Some(piece) = content.next().await {
        let piece = piece.map_err(|e| faulty(&e, &asked.faults))?;
        size += piece.len() as u64;
        waiting += piece.len();
        if size > length.most() {
            return Err(length.over());
        }
        pieces.push(piece);
        if waiting >= PIECE {
            place = place.push(pool, std::mem::take(&mut pieces)).await?;
            waiting = 0;
        }
    }
    length.check(size)?;
    let arriving = *place.push(pool, pieces).await?.here().await?;
    let digested = arriving.digests.finish();
    claims.with_trailer(asked.trailer.as_ref().and_then(TrailingHeaders::take))?.verify(&digested)?;
    Ok(Received { staged: arriving.staged, digested })
}

/// Checks what can be refused before the first byte of content is read.
///
/// # Errors
/// A length that is missing or too large; a digest or tag that cannot be one.
pub(crate) fn expected(asked: &Asked) -> S3Result<()> {
    length(asked)?;
    Claims::of(&asked.headers).map(drop)
}

fn length(asked: &Asked) -> S3Result<u64> {
    let streaming = asked.header("x-amz-content-sha256").is_some_and(|v| v.starts_with("STREAMING-"));
    let name = if streaming { "x-amz-decoded-content-length" } else { "content-length" };
    let length = asked
        .header(name)
        .and_then(|v| v.parse().ok())
        .ok_or_else(|| error(S3ErrorCode::MissingContentLength, "You must provide the Content-Length HTTP header."))?;
    if length > CONTENT_MAX {
        return Err(error(
            S3ErrorCode::EntityTooLarge,
            "Your proposed upload exceeds the maximum allowed size of 5 GiB; use a multipart upload.",
        ));
    }
    Ok(length)
}

/// Reads a body of at most `max` bytes; `None` when it is longer.
///
/// # Errors
/// Those of the stream, see [`faulty`].
pub(crate) async fn whole(mut body: Body, max: u64) -> Result<Option<Bytes>, StdError> {
    let mut all = BytesMut::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        if (all.len() + piece.len()) as u64 > max {
            return Ok(None);
        }
        all.extend_from_slice(&piece);
    }
    Ok(Some(all.freeze()))
}

fn incomplete() -> S3Error {
    error(
        S3ErrorCode::IncompleteBody,
        "You did not provide the number of bytes specified by the Content-Length HTTP header.",
    )
}

/// Says what is wrong with a body that could not be read to its end.
///
/// The errors of `s3s`'s streams have no public types; their texts are stable under the pinned version, and tests hold them.
pub(crate) fn faulty(cause: &StdError, faults: &Faults) -> S3Error {
    match faults.found() {
        Some(Fault::Cut | Fault::Length) => return incomplete(),
        Some(fault @ (Fault::Malformed | Fault::TooLong)) => {
            return error(S3ErrorCode::InvalidRequest, format!("The body could not be read: {fault}."));
        }
        None => {}
    }
    let text = cause.to_string();
    if text.ends_with("SignatureMismatch") {
        return error(
            S3ErrorCode::SignatureDoesNotMatch,
            "The signature of a chunk does not match the signature you provided. Check your key and signing method.",
        );
    }
    if text.ends_with("Sha256Mismatch") {
        return custom(
            "XAmzContentSHA256Mismatch",
            400,
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        );
    }
    if text.starts_with("AwsChunkedStreamError: ") && !text.contains("Underlying") && !text.ends_with("Incomplete") {
        return custom("MalformedTrailerError", 400, "The request contained trailing data that was not well-formed.");
    }
    incomplete()
}

/// Makes the body of an answer from `length` bytes of an object at `offset`.
///
/// # Errors
/// Those of the engine, when the content is small and read at once; later ones break the connection, so that no client takes a part
/// for the whole.
pub(crate) async fn send(pool: &Pool, object: Arc<Object>, offset: u64, length: u64) -> S3Result<StreamingBlob> {
    if length <= PIECE as u64 {
        let data = read(pool, object, offset, length).await?;
        return Ok(StreamingBlob::from(Body::from(data)));
    }
    let pool = pool.clone();
    let pieces = stream::iter((0..length).step_by(PIECE))
        .then(move |at| {
            let (pool, object) = (pool.clone(), Arc::clone(&object));
            let size = (length - at).min(PIECE as u64);
            // A task of its own, so that the stream can be shared as the body of an answer must be.
            tokio::spawn(async move { read(&pool, object, offset + at, size).await })
        })
        .map(|read| read.map_err(std::io::Error::other)?.map_err(std::io::Error::other));
    Ok(StreamingBlob::wrap(pieces.into_stream()))
}

/// Reads a piece of an object.
///
/// # Errors
/// Those of the engine; `InternalError` when the object is shorter than it says.
pub(crate) async fn read(pool: &Pool, object: Arc<Object>, offset: u64, length: u64) -> S3Result<Bytes> {
    pool.run(move || {
        let data = object.read(offset, length as usize).map_err(|e| of(&e, About::Key))?;
        if data.len() as u64 == length { Ok(data) } else { Err(internal(&"an object is shorter than it says")) }
    })
    .await
}
