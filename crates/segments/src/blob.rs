//! One blob as it is stored: a header of 64 bytes and the content, raw or compressed.
//!
//! Invariant: nothing that [`open`] returns differs by a bit from what [`seal`] was given. Decoding is bounded by the input and
//! by [`crate::MAX_BLOB`]. This file does not know where a blob lies.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | magic, 0xb7 |
//! | 1 | version of this header, 1 |
//! | 2 | codec: 0 raw, 1 LZ4 block, 255 a range that was given back |
//! | 3 | 0 |
//! | 4..8 | key id, 0 (no encryption yet) |
//! | 8..16 | world that wrote it |
//! | 16..20 | stored length, without this header |
//! | 20..24 | content length |
//! | 24..56 | BLAKE3 of the content |
//! | 56..64 | first eight bytes of the BLAKE3 of bytes 0..56 |
//!
//! Numbers are big-endian. A blob begins at a multiple of [`ALIGN`].

use crate::{BlobRef, MAX_BLOB};
use bytes::Bytes;
use mw_model::codec::{DecodeError, Reader, Writer};
use mw_model::{Hash, WorldId};
use std::cell::RefCell;

/// The length of a header, in bytes.
pub const HEADER: usize = 64;

/// Blobs begin at multiples of this.
pub const ALIGN: u32 = 8;

const MAGIC: u8 = 0xb7;
const VERSION: u8 = 1;

/// Contents shorter than this are stored raw: what compression saves is less than the header costs.
const COMPRESS_FROM: usize = 256;

/// Contents of at least this length are judged by their first [`PROBE`] bytes before all of it is compressed.
const PROBE_FROM: usize = 16 << 10;
const PROBE: usize = 4 << 10;

/// What a thread keeps to compress into, in bytes: enough for the pieces of a mount.
const SCRATCH: usize = 80 << 10;

thread_local! {
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How the content of a blob is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// As it is.
    Raw,
    /// One LZ4 block.
    Lz4,
    /// Not at all: the range was given back to the operating system; the stored length says how far it reaches.
    Hole,
}

impl Codec {
    fn byte(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Lz4 => 1,
            Self::Hole => 255,
        }
    }

    fn of(byte: u8) -> Result<Self, Flaw> {
        match byte {
            0 => Ok(Self::Raw),
            1 => Ok(Self::Lz4),
            255 => Ok(Self::Hole),
            _ => Err(Flaw::Header),
        }
    }
}

/// What is wrong with a stored blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The address cannot be that of a blob, or lies outside the files.
    Address,
    /// The segment is free: whoever held the address kept it too long.
    Freed,
    /// There is no header at the address, or it does not verify.
    Header,
    /// The header was written by a newer version of the store.
    Newer(u8),
    /// The content is encrypted under a key that is not known.
    Key(u32),
    /// The lengths in the header and in the address disagree.
    Length,
    /// The header names another content: the address was reused.
    Other,
    /// The content does not have the hash that it was stored under.
    Content,
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address => f.write_str("there is no such place in the data files"),
            Self::Freed => f.write_str("its segment was freed"),
            Self::Header => f.write_str("its header does not verify"),
            Self::Newer(version) => write!(f, "its header has version {version}, newer than this program; upgrade it"),
            Self::Key(key) => write!(f, "it is encrypted under key {key}, which is not known"),
            Self::Length => f.write_str("the lengths in its header and its address disagree"),
            Self::Other => f.write_str("another content lies there"),
            Self::Content => f.write_str("its content does not verify"),
        }
    }
}

impl std::error::Error for Flaw {}

impl From<DecodeError> for Flaw {
    fn from(_: DecodeError) -> Self {
        Self::Header
    }
}

/// The header of a stored blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// How the content is stored.
    pub codec: Codec,
    /// The key that it is encrypted under; 0 for none.
    pub key: u32,
    /// The world that wrote it.
    pub world: WorldId,
    /// The stored length in bytes, without the header.
    pub stored: u32,
    /// The length of the content in bytes.
    pub content: u32,
    /// The hash of the content.
    pub hash: Hash,
}

impl Header {
    /// Makes the header that marks `len` bytes, itself included, as given back.
    ///
    /// `len` is at least [`HEADER`].
    pub fn hole(len: u32) -> Self {
        let stored = len.saturating_sub(HEADER as u32);
        Self { codec: Codec::Hole, key: 0, world: WorldId(0), stored, content: 0, hash: Hash::default() }
    }

    /// Returns the 64 bytes of the header.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut w = Writer(Vec::with_capacity(HEADER));
        w.u8(MAGIC).u8(VERSION).u8(self.codec.byte()).u8(0).u32(self.key).u64(self.world.0);
        w.u32(self.stored).u32(self.content).hash(&self.hash);
        let sum = Hash::of(&w.0).prefix();
        w.u64(sum);
        let mut bytes = [0; HEADER];
        bytes.copy_from_slice(&w.0);
        bytes
    }

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// The bytes are short, are no header or do not verify.
    pub fn decode(bytes: &[u8]) -> Result<Self, Flaw> {
        let bytes = bytes.get(..HEADER).ok_or(Flaw::Header)?;
        let mut r = Reader::new(bytes);
        if r.u8()? != MAGIC {
            return Err(Flaw::Header);
        }
        let (body, sum) = bytes.split_at(HEADER - 8);
        if Hash::of(body).prefix() != Reader::new(sum).u64()? {
            return Err(Flaw::Header);
        }
        let version = r.u8()?;
        if version != VERSION {
            return Err(Flaw::Newer(version));
        }
        let codec = Codec::of(r.u8()?)?;
        if r.u8()? != 0 {
            return Err(Flaw::Header);
        }
        let header = Self {
            codec,
            key: r.u32()?,
            world: WorldId(r.u64()?),
            stored: r.u32()?,
            content: r.u32()?,
            hash: r.hash()?,
        };
        header.check()?;
        Ok(header)
    }

    /// Returns the stored length with the header.
    pub fn len(&self) -> u32 {
        self.stored.saturating_add(HEADER as u32)
    }

    /// Returns whether the blob has no content.
    pub fn is_empty(&self) -> bool {
        self.content == 0
    }

    /// Checks the lengths against each other, so that no later step trusts an absurd one.
    fn check(&self) -> Result<(), Flaw> {
        let sound = match self.codec {
            Codec::Raw => self.stored == self.content && self.content as usize <= MAX_BLOB,
            Codec::Lz4 => self.stored < self.content && self.content as usize <= MAX_BLOB,
            Codec::Hole => self.content == 0,
        };
        if sound { Ok(()) } else { Err(Flaw::Length) }
    }
}

/// Returns `len` rounded up to where the next blob may begin.
pub fn padded(len: u32) -> u32 {
    len.div_ceil(ALIGN).saturating_mul(ALIGN)
}

/// What is stored of a blob, in two parts that lie one behind the other: large content that is not compressed is not copied.
#[derive(Debug)]
pub enum Sealed<'a> {
    /// The header and the content.
    Whole(Vec<u8>),
    /// The header, and the content as it is.
    Apart([u8; HEADER], &'a [u8]),
}

impl Sealed<'_> {
    /// Returns the two parts; the second may be empty.
    pub fn parts(&self) -> [&[u8]; 2] {
        match self {
            Self::Whole(bytes) => [bytes, &[]],
            Self::Apart(header, content) => [header, content],
        }
    }
}

/// Content from this length on is stored from where it is, in bytes: a second write costs less than a copy.
const APART: usize = 32 << 10;

/// Returns the hash of `content` and what to store: the header, and the content in the cheaper codec.
///
/// `content` is at most [`MAX_BLOB`] long.
pub fn seal(world: WorldId, content: &[u8]) -> (Hash, Sealed<'_>) {
    let hash = Hash::of(content);
    let header = |codec, stored: usize| {
        Header { codec, key: 0, world, stored: stored as u32, content: content.len() as u32, hash }.encode()
    };
    if let Some(mut bytes) = compress(content) {
        let header = header(Codec::Lz4, bytes.len() - HEADER);
        bytes[..HEADER].copy_from_slice(&header);
        return (hash, Sealed::Whole(bytes));
    }
    let header = header(Codec::Raw, content.len());
    let sealed = if content.len() < APART {
        Sealed::Whole([&header[..], content].concat())
    } else {
        Sealed::Apart(header, content)
    };
    (hash, sealed)
}

/// Returns room for a header and the compressed content, or nothing when that saves less than an eighth.
fn compress(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < COMPRESS_FROM || (content.len() >= PROBE_FROM && squeeze(&content[..PROBE], |_| ()).is_none()) {
        return None;
    }
    squeeze(content, |squeezed| {
        let mut bytes = Vec::with_capacity(HEADER + squeezed.len());
        bytes.resize(HEADER, 0);
        bytes.extend_from_slice(squeezed);
        bytes
    })
}

/// Hands the compressed content to `take` when it saves an eighth.
fn squeeze<T>(content: &[u8], take: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let most = lz4_flex::block::get_maximum_output_size(content.len());
    scratch(most, |room| {
        let len = lz4_flex::block::compress_into(content, room).ok()?;
        (len <= content.len() - content.len() / 8).then(|| take(&room[..len]))
    })
}

/// Lends `len` bytes with anything in them: a thread that seals or opens one blob after another asks for memory once, unless the
/// blob is large. Not to be called in `work`.
pub(crate) fn scratch<T>(len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    if len > SCRATCH {
        return work(&mut vec![0; len]);
    }
    SPARE.with_borrow_mut(|spare| {
        if spare.is_empty() {
            spare.resize(SCRATCH, 0);
        }
        work(&mut spare[..len])
    })
}

/// Returns the header of `blob` at the start of `bytes`, which agrees with the address and names the content.
///
/// # Errors
/// The header or its lengths do not agree with `blob`, or the content cannot be read.
pub fn header(bytes: &[u8], blob: &BlobRef) -> Result<Header, Flaw> {
    let header = Header::decode(bytes)?;
    if header.codec != Codec::Hole && header.hash != blob.hash {
        return Err(Flaw::Other);
    }
    if header.len() != blob.addr.len {
        return Err(Flaw::Length);
    }
    if header.key != 0 {
        return Err(Flaw::Key(header.key));
    }
    Ok(header)
}

/// Fills `out`, which is as long as the content, from the compressed bytes behind the header of `blob`. Not verified: see
/// [`verify`].
///
/// # Errors
/// The bytes are no such content.
pub fn expand(stored: &[u8], out: &mut [u8]) -> Result<(), Flaw> {
    match lz4_flex::block::decompress_into(stored, out) {
        Ok(len) if len == out.len() => Ok(()),
        _ => Err(Flaw::Content),
    }
}

/// Says whether `content` is that of `blob`.
///
/// # Errors
/// It is not.
pub fn verify(content: &[u8], blob: &BlobRef) -> Result<(), Flaw> {
    if Hash::of(content) == blob.hash { Ok(()) } else { Err(Flaw::Content) }
}

/// Fills `out`, which is as long as the content, from the stored bytes of `blob`, verified.
///
/// # Errors
/// As [`open`].
pub fn open_into(bytes: &[u8], blob: &BlobRef, out: &mut [u8]) -> Result<(), Flaw> {
    let (header, stored) = (header(bytes, blob)?, &bytes[HEADER..]);
    match header.codec {
        Codec::Hole => return Err(Flaw::Freed),
        _ if header.content as usize != out.len() => return Err(Flaw::Length),
        Codec::Raw => out.copy_from_slice(stored),
        Codec::Lz4 => expand(stored, out)?,
    }
    verify(out, blob)
}

/// Returns the content of the stored bytes of `blob`, verified.
///
/// # Errors
/// The header, the lengths or the hash do not agree with `blob` or with each other.
pub fn open(bytes: &Bytes, blob: &BlobRef) -> Result<Bytes, Flaw> {
    let header = header(bytes, blob)?;
    if bytes.len() != blob.addr.len as usize {
        return Err(Flaw::Length);
    }
    let stored = bytes.slice(HEADER..);
    let content = match header.codec {
        Codec::Raw => stored,
        Codec::Lz4 => {
            let mut content = vec![0; header.content as usize];
            expand(&stored, &mut content)?;
            Bytes::from(content)
        }
        Codec::Hole => return Err(Flaw::Freed),
    };
    verify(&content, blob)?;
    Ok(content)
}

#[cfg(test)]
mod tests;
