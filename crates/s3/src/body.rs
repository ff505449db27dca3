//! Content in and out, with bounded memory and back-pressure.
//!
//! Coming in, at most two pieces are in memory, each as long as the content's share allows (see `share`): one on its way into the store
//! while the next arrives. Going out, two of [`AHEAD`] are: one on its way to the client while the next is read. Nothing that ends early becomes an object: content is handed
//! to a verb only after the last byte was seen, the length agreed and every digest matched.

use crate::auth::Asked;
use crate::chunks::{Fault, Faults};
use crate::digest::{Claims, Digested, Digests};
use crate::errors::{About, custom, error, internal, of};
use crate::pool::Pool;
use crate::verbs::Verbs;
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use hyper::header::EXPECT;
use mw_world::{ChecksumAlgorithm, Object, Staged, Stretch};
use s3s::dto::StreamingBlob;
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError, TrailingHeaders};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// How much of an object is read at once by those who hand it on themselves.
pub(crate) const PIECE: usize = 1 << 20;

/// What arrives in shorter runs than this is gathered, in bytes: each run holds the whole buffer that it was received into.
const RUN: usize = 64 << 10;

/// How much content is read for a client at once, if no piece of it is longer.
const AHEAD: u64 = 512 << 10;

/// Content up to this length is received before anything is done with it, and then all is done in one go.
const SMALL: u64 = 64 << 10;

/// The largest content of one PUT or part (AWS: 5 GiB).
pub(crate) const CONTENT_MAX: u64 = 5 << 30;

/// Something that content runs through, in order: here, or with a thread that works on a piece of it.
enum Lane<T> {
    Here(Box<T>),
    Away(JoinHandle<S3Result<Box<T>>>),
}

impl<T: Send + 'static> Lane<T> {
    fn new(it: T) -> Self {
        Self::Here(Box::new(it))
    }

    async fn here(self) -> S3Result<Box<T>> {
        match self {
            Self::Here(it) => Ok(it),
            Self::Away(work) => work.await.map_err(|e| internal(&e))?,
        }
    }

    /// Sends pieces on their way; whoever asks for the lane waits for them.
    fn away(mut it: Box<T>, pool: &Pool, pieces: Arc<[Bytes]>, each: fn(&mut T, &[u8]) -> S3Result<()>) -> Self {
        let pool = pool.clone();
        let work = move || {
            pieces.iter().try_for_each(|piece| each(&mut it, piece))?;
            Ok(it)
        };
        Self::Away(tokio::spawn(async move { pool.run(work).await }))
    }
}

/// Content on its way into the store. Its digests are computed on a thread beside the one that stores it: MD5 alone takes longer than
/// all that the store does, and cannot be divided.
struct Arriving {
    digests: Lane<Digests>,
    staged: Lane<Staged>,
}

impl Arriving {
    /// Waits for the pieces before, then sends the next ones on their way.
    async fn push(self, pool: &Pool, pieces: Vec<Bytes>) -> S3Result<Self> {
        let (digests, staged) = tokio::join!(self.digests.here(), self.staged.here());
        let (digests, staged, pieces) = (digests?, staged?, Arc::<[Bytes]>::from(pieces));
        Ok(Self {
            digests: Lane::away(digests, pool, Arc::clone(&pieces), digest),
            staged: Lane::away(staged, pool, pieces, store),
        })
    }

    /// Takes in the last pieces.
    async fn finish(self, pool: &Pool, pieces: Vec<Bytes>) -> S3Result<(Staged, Digested)> {
        let (digests, staged) = tokio::join!(self.digests.here(), self.staged.here());
        let (mut digests, mut staged) = (digests?, staged?);
        pool.run(move || {
            for piece in &pieces {
                digest(&mut digests, piece)?;
                store(&mut staged, piece)?;
            }
            Ok((*staged, digests.finish()))
        })
        .await
    }
}

fn digest(digests: &mut Digests, piece: &[u8]) -> S3Result<()> {
    digests.update(piece);
    Ok(())
}

fn store(staged: &mut Staged, piece: &[u8]) -> S3Result<()> {
    staged.push(piece).map_err(|e| of(&e, About::Key))
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
    verbs: &Verbs,
    staged: Staged,
    content: Option<StreamingBlob>,
    asked: &Asked,
    always: Option<ChecksumAlgorithm>,
    otherwise: &[ChecksumAlgorithm],
) -> S3Result<Received> {
    let length = Length::Exactly(length(asked)?);
    take(verbs, staged, content_of(content), length, asked, always, otherwise).await
}

fn content_of(content: Option<StreamingBlob>) -> StreamingBlob {
    content.unwrap_or_else(|| StreamingBlob::from(Body::empty()))
}

/// Small content that has arrived whole and waits for a place in the store.
pub(crate) struct Held {
    pieces: Vec<Bytes>,
    digests: Digests,
    claims: Claims,
}

/// Returns whether content is so small that it may come before its right to be there was asked for. A client that waits to be asked
/// for it wants to hear of a refusal first.
pub(crate) fn is_small(asked: &Asked) -> bool {
    length(asked).is_ok_and(|length| length <= SMALL) && !asked.headers.contains_key(EXPECT)
}

/// Receives small content.
///
/// # Errors
/// Those of [`receive`] that concern how it came.
pub(crate) async fn hold(
    content: Option<StreamingBlob>,
    asked: &Asked,
    otherwise: &[ChecksumAlgorithm],
) -> S3Result<Held> {
    let mut incoming = Incoming::new(content_of(content), Length::Exactly(length(asked)?), asked);
    let (claims, algorithms) = claims(asked, None, otherwise)?;
    let pieces = incoming.all().await?;
    Ok(Held { pieces, digests: Digests::new(&algorithms), claims: trailed(claims, asked)? })
}

impl Held {
    /// Takes the content into the store. Blocks.
    ///
    /// # Errors
    /// Those of [`receive`] that concern what it is.
    pub(crate) fn take_in(mut self, mut staged: Staged) -> S3Result<Received> {
        for piece in &self.pieces {
            digest(&mut self.digests, piece)?;
            store(&mut staged, piece)?;
        }
        let digested = self.digests.finish();
        self.claims.verify(&digested)?;
        Ok(Received { staged, digested })
    }
}

/// Returns what the client claims, and what must be computed.
fn claims(
    asked: &Asked,
    always: Option<ChecksumAlgorithm>,
    otherwise: &[ChecksumAlgorithm],
) -> S3Result<(Claims, Vec<ChecksumAlgorithm>)> {
    let claims = Claims::of(&asked.headers)?;
    let mut algorithms = claims.algorithms(otherwise);
    algorithms.extend(always.filter(|a| !algorithms.contains(a)));
    Ok((claims, algorithms))
}

/// Adds what the trailer claims, once the content has arrived.
fn trailed(claims: Claims, asked: &Asked) -> S3Result<Claims> {
    claims.with_trailer(asked.trailer.as_ref().and_then(TrailingHeaders::take))
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

/// Content as it arrives, piece by piece.
struct Incoming<'a, S> {
    content: S,
    length: Length,
    size: u64,
    faults: &'a Faults,
}

impl<'a, S: Stream<Item = Result<Bytes, StdError>> + Unpin> Incoming<'a, S> {
    fn new(content: S, length: Length, asked: &'a Asked) -> Self {
        Self { content, length, size: 0, faults: &asked.faults }
    }

    /// Returns what has arrived: about `most` bytes, or the last of it and `true`.
    async fn next(&mut self, most: usize) -> S3Result<(Vec<Bytes>, bool)> {
        let (mut pieces, mut gathered, mut waiting) = (Vec::new(), BytesMut::new(), 0);
        while waiting < most {
            let Some(piece) = self.content.next().await else {
                self.length.check(self.size)?;
                pieces.extend((!gathered.is_empty()).then(|| gathered.freeze()));
                return Ok((pieces, true));
            };
            let piece = piece.map_err(|e| faulty(&e, self.faults))?;
            self.size += piece.len() as u64;
            waiting += piece.len();
            if self.size > self.length.most() {
                return Err(self.length.over());
            }
            if piece.len() < RUN {
                gathered.extend_from_slice(&piece);
                continue;
            }
            pieces.extend((!gathered.is_empty()).then(|| gathered.split().freeze()));
            pieces.push(piece);
        }
        pieces.extend((!gathered.is_empty()).then(|| gathered.freeze()));
        Ok((pieces, false))
    }

    /// Returns all of it, which the length says is little.
    async fn all(&mut self) -> S3Result<Vec<Bytes>> {
        let mut all = Vec::new();
        loop {
            let (pieces, last) = self.next(SMALL as usize).await?;
            all.extend(pieces);
            if last {
                return Ok(all);
            }
        }
    }
}

/// Takes content whose length the request does not say otherwise into the store, as [`receive`] does.
///
/// # Errors
/// Those of [`receive`]; `EntityTooLarge`, `EntityTooSmall`.
pub(crate) async fn take(
    verbs: &Verbs,
    staged: Staged,
    content: impl Stream<Item = Result<Bytes, StdError>> + Unpin,
    length: Length,
    asked: &Asked,
    always: Option<ChecksumAlgorithm>,
    otherwise: &[ChecksumAlgorithm],
) -> S3Result<Received> {
    let (claims, algorithms) = claims(asked, always, otherwise)?;
    let mut arriving = Arriving { digests: Lane::new(Digests::new(&algorithms)), staged: Lane::new(staged) };
    let mut incoming = Incoming::new(content, length, asked);
    let (pool, share) = (&verbs.pool, verbs.shares.join());
    let pieces = loop {
        match incoming.next(share.piece()).await? {
            (pieces, false) => arriving = arriving.push(pool, pieces).await?,
            (pieces, true) => break pieces,
        }
    };
    let (staged, digested) = arriving.finish(pool, pieces).await?;
    trailed(claims, asked)?.verify(&digested)?;
    Ok(Received { staged, digested })
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

/// An object on its way to a client.
pub(crate) struct Outgoing {
    /// The object.
    pub(crate) object: Arc<Object>,
    length: u64,
    first: First,
}

/// What is at hand when an answer begins.
enum First {
    /// All of it, when it is little.
    All(Vec<Bytes>),
    /// Where to read, as far as that was looked up, and where the content that is asked for ends.
    Planned(Vec<Stretch>, u64),
}

impl Outgoing {
    /// Makes ready to send `length` bytes of an object at `offset`. Blocks.
    ///
    /// # Errors
    /// Those of the engine, when the content is small and read at once.
    pub(crate) fn new(object: Object, offset: u64, length: u64) -> S3Result<Self> {
        let first = if length <= AHEAD {
            let runs = object.read_runs(offset, length as usize).map_err(|e| of(&e, About::Key))?;
            First::All(complete(runs, length)?)
        } else {
            let end = offset + length;
            First::Planned(planned(&object, offset, end)?, end)
        };
        Ok(Self { object: Arc::new(object), length, first })
    }

    /// Makes the body of an answer. An error on the way breaks the connection, so that no client takes a part for the whole.
    pub(crate) fn send(self, pool: &Pool) -> StreamingBlob {
        let Self { object, length, first } = self;
        let (first, end) = match first {
            First::Planned(first, end) => (first, end),
            First::All(mut runs) => {
                let whole = if runs.len() < 2 { runs.pop().unwrap_or_default() } else { runs.concat().into() };
                return StreamingBlob::from(Body::from(whole));
            }
        };
        let (plan_pool, plan_object) = (pool.clone(), Arc::clone(&object));
        let more = move |at: Option<u64>| {
            let (pool, object) = (plan_pool.clone(), Arc::clone(&plan_object));
            async move {
                let Some(at) = at.filter(|at| *at < end) else { return Ok(None) };
                let stretches = pool.run(move || planned(&object, at, end)).await?;
                let next = stretches.last().map(|last| last.range.end);
                Ok::<_, S3Error>(Some((stretches, next)))
            }
        };
        let next = first.last().map(|last| last.range.end);
        let pool = pool.clone();
        let pieces = stream::once(async { Ok(first) })
            .chain(stream::try_unfold(next, more))
            .map_ok(|stretches| stream::iter(stretches.into_iter().map(Ok)))
            .try_flatten()
            .map(move |stretch: S3Result<Stretch>| {
                let (pool, object) = (pool.clone(), Arc::clone(&object));
                // A task of its own, so that the next is read while this one is sent.
                tokio::spawn(async move {
                    let stretch = stretch?;
                    let read = move || {
                        let runs = object.read_stretch(&stretch, length).map_err(|e| of(&e, About::Key))?;
                        complete(runs, stretch.range.end - stretch.range.start)
                    };
                    pool.run(read).await
                })
            })
            .buffered(2)
            .map(|read| read.map_err(std::io::Error::other)?.map_err(std::io::Error::other))
            .map_ok(|runs| stream::iter(runs.into_iter().map(Ok::<_, std::io::Error>)))
            .try_flatten();
        StreamingBlob::wrap(pieces)
    }
}

/// Says where to read an object from `at`, up to `end` or some way there.
fn planned(object: &Object, at: u64, end: u64) -> S3Result<Vec<Stretch>> {
    let stretches = object.stretches(at..end, AHEAD).map_err(|e| of(&e, About::Key))?;
    if stretches.is_empty() { Err(short()) } else { Ok(stretches) }
}

/// Returns runs of bytes that are together as long as was said.
fn complete(runs: Vec<Bytes>, length: u64) -> S3Result<Vec<Bytes>> {
    let read = runs.iter().map(|run| run.len() as u64).sum::<u64>();
    if read == length { Ok(runs) } else { Err(short()) }
}

fn short() -> S3Error {
    internal(&"an object is shorter than it says")
}

/// Reads a piece of an object.
///
/// # Errors
/// Those of the engine; `InternalError` when the object is shorter than it says.
pub(crate) async fn read(pool: &Pool, object: Arc<Object>, offset: u64, length: u64) -> S3Result<Bytes> {
    pool.run(move || {
        let data = object.read(offset, length as usize).map_err(|e| of(&e, About::Key))?;
        if data.len() as u64 == length { Ok(data) } else { Err(short()) }
    })
    .await
}
