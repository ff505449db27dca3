//! Compression of a stream as it is sent. In memory are one piece, what comes of it, and the window of the compressor.

use crate::errors::internal;
use crate::pool::Pool;
use bytes::Bytes;
use flate2::write::GzEncoder;
use futures::{Stream, TryStreamExt, stream};
use s3s::S3Result;
use std::io::{self, Write};
use zstd::stream::write::Encoder as ZstdEncoder;

/// How hard zstd tries (1 to 22): its own default.
const ZSTD: i32 = 3;

/// How a stream is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// Returns the media type of what comes out.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Gzip => "application/gzip",
            Self::Zstd => "application/zstd",
        }
    }
}

/// A compressor, with what it has made and nobody has taken yet.
enum Packer {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(ZstdEncoder<'static, Vec<u8>>),
}

impl Packer {
    fn new(how: Compression) -> io::Result<Self> {
        Ok(match how {
            Compression::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::default())),
            Compression::Zstd => {
                let mut encoder = ZstdEncoder::new(Vec::new(), ZSTD)?;
                // A file of its own, which may be damaged where nobody sees it.
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
        })
    }

    fn push(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        Ok(std::mem::take(match self {
            Self::Gzip(encoder) => {
                encoder.write_all(piece)?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                encoder.write_all(piece)?;
                encoder.get_mut()
            }
        }))
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// Compresses a stream. When the stream fails, so does what comes out, which then has no end.
///
/// # Errors
/// There is no memory for the compressor.
pub(super) fn packed(
    pool: Pool,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + Sync + 'static,
    how: Compression,
) -> S3Result<impl Stream<Item = io::Result<Bytes>> + Send + Sync + 'static> {
    let packer = Packer::new(how).map_err(|e| internal(&e))?;
    Ok(stream::try_unfold((Box::pin(pieces), Some(packer)), move |(mut pieces, packer)| {
        let pool = pool.clone();
        async move {
            let Some(mut packer) = packer else { return Ok(None) };
            loop {
                let piece = pieces.try_next().await?;
                let pool = pool.clone();
                // A task of its own, so that the stream can be shared as the body of an answer must be.
                let work = tokio::spawn(async move { pool.run(move || step(packer, piece)).await });
                let (rest, made) = work.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
                match rest {
                    Some(rest) if made.is_empty() => packer = rest,
                    rest => return Ok(Some((made, (pieces, rest)))),
                }
            }
        }
    }))
}

/// Takes in a piece, or the end; returns what came of it, and the compressor unless it has ended.
fn step(mut packer: Packer, piece: Option<Bytes>) -> S3Result<(Option<Packer>, Bytes)> {
    let made = match piece {
        Some(piece) => packer.push(&piece).map(|made| (Some(packer), made)),
        None => packer.finish().map(|made| (None, made)),
    };
    made.map(|(packer, made)| (packer, made.into())).map_err(|e| internal(&e))
}
