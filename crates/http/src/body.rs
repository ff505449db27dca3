//! Bodies: read whole within a bound, or stream out of a blocking producer with back-pressure.
//!
//! A reader that stops reading stops the producer; a client that stops sending is cut off. Nothing here knows what is sent.

use crate::{Error, Result};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use mw_model::ErrorKind;
use std::time::Duration;
use tokio::sync::mpsc;

/// What a stream can break with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// Any body, in or out.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The largest JSON body, in bytes.
pub const MAX_JSON: usize = 16 << 20;
/// How long a client may take for the next piece of a body.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How many pieces wait between a producer and the connection.
const QUEUE: usize = 8;

/// Returns a body that is there already.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Waits for the next piece of `body`; `None` at its end.
///
/// # Errors
/// `Deadline` when none comes in [`PATIENCE`]; `Io` when the connection breaks.
pub async fn next(body: &mut Body) -> Result<Option<Bytes>> {
    loop {
        let frame = tokio::time::timeout(PATIENCE, body.frame())
            .await
            .map_err(|_| Error::new(ErrorKind::Deadline, "the body stopped coming; send it without pauses"))?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(Error::new(ErrorKind::Io, "the body broke off; send it again").with_source(error));
            }
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// `TooLarge` beyond the limit; those of [`next`].
pub async fn collect(body: &mut Body, limit: usize) -> Result<Bytes> {
    let mut whole = BytesMut::new();
    while let Some(piece) = next(body).await? {
        if whole.len() + piece.len() > limit {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("the body is over {limit} bytes; send less at a time"),
            ));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// The reader went away.
#[derive(Debug)]
pub struct Gone;

/// The end of a stream into which a blocking producer puts pieces.
#[derive(Debug)]
pub struct Sink(mpsc::Sender<std::result::Result<Bytes, BoxError>>);

impl Sink {
    /// Hands a piece over, waiting while the queue is full.
    ///
    /// # Errors
    /// [`Gone`] when nobody reads any more.
    pub fn send(&self, piece: impl Into<Bytes>) -> std::result::Result<(), Gone> {
        self.0.blocking_send(Ok(piece.into())).map_err(|_| Gone)
    }

    /// Sends `document` as one line of JSON.
    ///
    /// # Errors
    /// [`Gone`] when nobody reads any more.
    pub fn line(&self, document: &impl serde::Serialize) -> std::result::Result<(), Gone> {
        let mut line = serde_json::to_vec(document).map_err(|_| Gone)?;
        line.push(b'\n');
        self.send(line)
    }

    /// Breaks the stream off, so that the reader does not take it for whole.
    pub fn fail(&self, error: impl Into<BoxError>) {
        // A reader that is gone needs no telling.
        let _ = self.0.blocking_send(Err(error.into()));
    }

    /// Returns whether nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Runs `producer` on a blocking thread and returns what it sends as a body.
pub fn produce(producer: impl FnOnce(Sink) + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel(QUEUE);
    tokio::task::spawn_blocking(move || producer(Sink(sender)));
    let pieces = futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// A body as a blocking reader, filled by [`pump`].
#[derive(Debug)]
pub struct Source {
    pieces: mpsc::Receiver<Result<Bytes>>,
    current: Bytes,
}

impl std::io::Read for Source {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.current.is_empty() {
            match self.pieces.blocking_recv() {
                None => return Ok(0),
                Some(Ok(piece)) => self.current = piece,
                Some(Err(error)) => return Err(std::io::Error::other(error)),
            }
        }
        let n = out.len().min(self.current.len());
        out[..n].copy_from_slice(&self.current.split_to(n));
        Ok(n)
    }
}

/// The other end of a [`Source`].
#[derive(Debug)]
pub struct Feed(mpsc::Sender<Result<Bytes>>);

/// Returns a blocking reader and the end that feeds it.
pub fn source() -> (Feed, Source) {
    let (sender, pieces) = mpsc::channel(QUEUE);
    (Feed(sender), Source { pieces, current: Bytes::new() })
}

/// Feeds `body` to its reader until the body ends. When the reader stops early the rest is read and thrown away: a server that
/// answers and closes while the client still sends would have its answer lost in a reset.
pub async fn pump(mut body: Body, feed: Feed) {
    let mut heard = true;
    loop {
        match next(&mut body).await {
            Ok(None) => return,
            Ok(Some(piece)) => {
                if heard {
                    heard = feed.0.send(Ok(piece)).await.is_ok();
                }
            }
            Err(error) => {
                let _ = feed.0.send(Err(error)).await;
                return;
            }
        }
    }
}
