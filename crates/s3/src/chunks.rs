//! The framing of `aws-chunked` bodies, watched before `s3s` decodes it.
//!
//! `s3s` verifies chunk signatures and trailers, but it takes a body that ends between two chunks for a whole one, does not
//! compare the decoded length with the one declared, and holds a whole chunk in memory. So this stream refuses a body without its
//! final chunk or with another length, refuses signed chunks over [`CHUNK_MAX`], and cuts unsigned chunks (whose borders mean
//! nothing, and which some SDKs make as long as the object) into pieces of [`PIECE`].

use bytes::{Bytes, BytesMut};
use futures::Stream;
use parking_lot::Mutex;
use s3s::stream::{ByteStream, RemainingLength};
use s3s::{Body, StdError};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The longest signed chunk that is taken; it must be in memory whole before its signature can be checked.
const CHUNK_MAX: u64 = 16 << 20;
/// The size into which unsigned chunks are cut.
const PIECE: usize = 1 << 20;
/// The longest line that says a chunk's size.
const LINE_MAX: usize = 256;

/// What is wrong with the framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes are no frames.
    Malformed,
    /// A signed chunk is longer than [`CHUNK_MAX`].
    TooLong,
    /// The body ends before its final chunk.
    Cut,
    /// The chunks hold more or fewer bytes than `x-amz-decoded-content-length` says.
    Length,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the aws-chunked framing is malformed",
            Self::TooLong => "a signed chunk is longer than 16 MiB",
            Self::Cut => "the body ends before its final chunk",
            Self::Length => "the body is not as long as x-amz-decoded-content-length says",
        })
    }
}

impl std::error::Error for Fault {}

/// Where a fault is left for the verb that reads the body: `s3s` wraps the error of a stream into one that cannot be named.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<Option<Fault>>>);

impl Faults {
    /// Returns the fault that was found.
    pub(crate) fn found(&self) -> Option<Fault> {
        *self.0.lock()
    }
}

/// The place in the framing.
#[derive(Debug, Clone, Copy)]
enum At {
    Size,
    Data(u64),
    /// So many bytes of the line end after a chunk are still to come.
    End(u8),
    /// After the final chunk.
    Trailer,
}

/// A body whose framing is watched.
pub(crate) struct Framing {
    body: Body,
    at: At,
    line: BytesMut,
    out: VecDeque<Bytes>,
    unsigned: bool,
    declared: u64,
    seen: u64,
    faults: Faults,
    ended: bool,
}

impl Framing {
    /// Watches `body`, whose chunks must hold `declared` bytes.
    pub(crate) fn new(body: Body, unsigned: bool, declared: u64, faults: Faults) -> Self {
        let (line, out) = (BytesMut::new(), VecDeque::new());
        Self { body, at: At::Size, line, out, unsigned, declared, seen: 0, faults, ended: false }
    }

    fn feed(&mut self, mut input: Bytes) -> Result<(), Fault> {
        while !input.is_empty() {
            self.at = match self.at {
                At::Size => match input.iter().position(|b| *b == b'\n') {
                    _ if self.line.len() > LINE_MAX => return Err(Fault::Malformed),
                    None => {
                        self.line.extend_from_slice(&input);
                        return Ok(());
                    }
                    Some(end) => {
                        self.line.extend_from_slice(&input.split_to(end + 1));
                        self.size()?
                    }
                },
                At::Data(left) => self.data(left, &mut input)?,
                At::End(left) => {
                    if input[0] != if left == 2 { b'\r' } else { b'\n' } {
                        return Err(Fault::Malformed);
                    }
                    self.pass(input.split_to(1));
                    if left == 2 { At::End(1) } else { At::Size }
                }
                At::Trailer => {
                    self.out.push_back(std::mem::take(&mut input));
                    At::Trailer
                }
            };
        }
        Ok(())
    }

    /// Hands on a piece of framing, unless the framing is made anew.
    fn pass(&mut self, framing: Bytes) {
        if !self.unsigned {
            self.out.push_back(framing);
        }
    }

    fn size(&mut self) -> Result<At, Fault> {
        let line = self.line.split().freeze();
        let text = line.strip_suffix(b"\r\n").and_then(|l| std::str::from_utf8(l).ok()).ok_or(Fault::Malformed)?;
        let (size, signature) = text.split_once(';').map_or((text, None), |(size, rest)| (size, Some(rest)));
        if self.unsigned && signature.is_some() {
            return Err(Fault::Malformed);
        }
        // Digits alone: the parser of numbers would take a sign too.
        let digits = Some(size).filter(|size| size.bytes().all(|b| b.is_ascii_hexdigit()));
        let size = digits.and_then(|size| u64::from_str_radix(size, 16).ok()).ok_or(Fault::Malformed)?;
        if size == 0 {
            self.out.push_back(line);
            return Ok(At::Trailer);
        }
        if !self.unsigned && size > CHUNK_MAX {
            return Err(Fault::TooLong);
        }
        self.pass(line);
        Ok(At::Data(size))
    }

    fn data(&mut self, left: u64, input: &mut Bytes) -> Result<At, Fault> {
        let take = input.len().min(PIECE).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.seen += take as u64;
        if self.seen > self.declared {
            return Err(Fault::Length);
        }
        let piece = input.split_to(take);
        if self.unsigned {
            self.out.push_back(format!("{take:x}\r\n").into());
            self.out.push_back(piece);
            self.out.push_back(Bytes::from_static(b"\r\n"));
        } else {
            self.out.push_back(piece);
        }
        Ok(if left == take as u64 { At::End(2) } else { At::Data(left - take as u64) })
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.ended = true;
        match self.at {
            At::Trailer if self.seen == self.declared => Ok(()),
            At::Trailer => Err(Fault::Length),
            At::Size | At::Data(_) | At::End(_) => Err(Fault::Cut),
        }
    }
}

impl Stream for Framing {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(piece) = this.out.pop_front() {
                return Poll::Ready(Some(Ok(piece)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            let step = match ready!(Pin::new(&mut this.body).poll_next(cx)) {
                Some(Ok(input)) => this.feed(input),
                Some(Err(e)) => return Poll::Ready(Some(Err(e))),
                None => this.end(),
            };
            if let Err(fault) = step {
                this.ended = true;
                this.out.clear();
                *this.faults.0.lock() = Some(fault);
                return Poll::Ready(Some(Err(Box::new(fault))));
            }
        }
    }
}

impl ByteStream for Framing {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::unknown()
    }
}

#[cfg(test)]
pub(crate) mod tests;
