//! Extents: which bytes of which pieces a file consists of, and how the records that say so are encoded.
//!
//! A record holds one extent, or a *row* of several that lie end to end, as many as the tree takes in one value: a large file that is copied
//! or read costs a record for each row, and a write in the middle of a row rewrites that row alone. Bytes that ride in their record stand alone.
//! The pieces of a large object are in *lists* (`list.rs`), which stand alone too: a row of them would be 200 MB, and a write into one of them
//! would be an entry that refers to all.

use super::newer;
use crate::error::{Error, Result};
use bytes::Bytes;
use mw_model::Hash;
use mw_model::codec::{Reader, Writer};
use mw_segments::{Addr, BlobRef};
use mw_tree::{MAX_INLINE, MAX_LOCATOR, Value};

/// Where the content of an extent lies. Hashes leave this out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Locator {
    /// In the record itself.
    Inline(Bytes),
    /// A blob of its own.
    Blob(Addr),
    /// A part of a larger blob (content that was joined after it was written).
    Within { outer: BlobRef, offset: u32 },
    /// Not content itself: a list of the pieces that are.
    List(BlobRef),
}

impl Locator {
    pub(super) fn encode(&self, w: &mut Writer) {
        match self {
            Self::Inline(bytes) => {
                w.u8(0).raw(bytes);
            }
            Self::Blob(addr) => addr.encode(w.u8(1)),
            Self::Within { outer, offset } => {
                outer.encode(w.u8(2));
                w.var(u64::from(*offset));
            }
            Self::List(blob) => blob.encode(w.u8(3)),
        }
    }
}

/// Content stored or staged: its hash, length and place; or a list of such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The hash of the whole piece; of a list: of what it says of its pieces.
    pub hash: Hash,
    /// The length of the whole piece.
    pub len: u32,
    pub locator: Locator,
}

/// A run of a file's bytes: a part of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent {
    pub piece: Piece,
    /// Where the run starts in the piece.
    pub skip: u32,
    /// The length of the run.
    pub len: u32,
}

impl Extent {
    /// Makes the extent of a whole piece.
    pub(crate) fn whole(piece: Piece) -> Self {
        Self { len: piece.len, skip: 0, piece }
    }

    /// Returns the part that starts `from` bytes into the run and is `len` bytes long.
    pub(crate) fn part(&self, from: u32, len: u32) -> Self {
        Self { piece: self.piece.clone(), skip: self.skip + from, len }
    }

    pub(super) fn encode_data(&self, w: &mut Writer) {
        w.hash(&self.piece.hash).var(u64::from(self.piece.len)).var(u64::from(self.skip)).var(u64::from(self.len));
    }

    /// Returns the record of this extent alone.
    pub(crate) fn encode(&self) -> Value {
        let mut data = Writer(Vec::with_capacity(48));
        self.encode_data(data.u8(if self.is_list() { LIST } else { ALONE }));
        let mut locator = match &self.piece.locator {
            Locator::Inline(bytes) => Writer(Vec::with_capacity(1 + bytes.len())),
            Locator::Blob(_) | Locator::Within { .. } | Locator::List(_) => Writer(Vec::with_capacity(64)),
        };
        self.piece.locator.encode(&mut locator);
        Value { data: data.0.into(), locator: locator.0.into(), weight: u64::from(self.len) }
    }

    /// Reads the extents of a record, in their order.
    pub(crate) fn decode(value: &Value) -> Result<Row<'_>> {
        let mut data = Reader::new(&value.data);
        let holds = match data.u8()? {
            ALONE => Holds::One(&value.locator),
            ROW => Holds::Pieces,
            LIST => Holds::List,
            n => return Err(newer(n)),
        };
        Row::new(holds, data.0, &value.locator)
    }

    /// Returns whether the extent is of a list, and not of a piece.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.piece.locator, Locator::List(_))
    }

    /// Returns the extent of a record whose bytes ride in it; none for every other.
    pub(crate) fn decode_riding(value: &Value) -> Result<Option<Self>> {
        if is_placed(value) {
            return Ok(None);
        }
        Self::decode(value)?.next().transpose()
    }
}

/// The version of a record of one extent of a piece, of a row of such, and of one extent of a list.
const ALONE: u8 = 1;
const ROW: u8 = 2;
const LIST: u8 = 3;

/// What a record or a list holds.
#[derive(Clone, Copy)]
pub(super) enum Holds<'a> {
    /// One extent of a piece, which may ride in this locator.
    One(&'a Bytes),
    Pieces,
    List,
}

/// The extents of one record, or of one list.
pub(crate) struct Row<'a> {
    holds: Holds<'a>,
    data: Reader<'a>,
    locator: Reader<'a>,
}

impl<'a> Row<'a> {
    pub(super) fn new(holds: Holds<'a>, data: &'a [u8], locator: &'a [u8]) -> Result<Self> {
        if data.is_empty() {
            return Err(Error::corrupt("an extent's record is empty; run `mw fsck`"));
        }
        Ok(Self { holds, data: Reader::new(data), locator: Reader::new(locator) })
    }

    fn read(&mut self) -> Result<Extent> {
        let r = &mut self.data;
        let (hash, whole, skip, len) = (r.hash()?, r.var32()?, r.var32()?, r.var32()?);
        if u64::from(skip) + u64::from(len) > u64::from(whole) {
            return Err(Error::corrupt("an extent reaches past its piece; run `mw fsck`"));
        }
        let r = &mut self.locator;
        let locator = match (r.u8()?, self.holds) {
            (0, Holds::One(bytes)) => {
                r.0 = &[];
                Locator::Inline(bytes.slice(1..))
            }
            (1, Holds::One(_) | Holds::Pieces) => Locator::Blob(Addr::decode(r)?),
            (2, Holds::One(_) | Holds::Pieces) => Locator::Within { outer: BlobRef::decode(r)?, offset: r.var32()? },
            (3, Holds::List) => Locator::List(BlobRef::decode(r)?),
            (n, _) => {
                return Err(Error::corrupt(format!("a locator of kind {n} does not belong there; run `mw fsck`")));
            }
        };
        if !matches!(self.holds, Holds::Pieces) || self.data.0.is_empty() {
            self.data.end()?;
            self.locator.end()?;
        }
        Ok(Extent { piece: Piece { hash, len: whole, locator }, skip, len })
    }
}

impl Iterator for Row<'_> {
    type Item = Result<Extent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.data.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.data.0 = &[];
        }
        Some(read)
    }
}

/// Returns the records of extents, which stand in the order of the file: those that lie end to end share one while it takes them.
pub(crate) fn rows(extents: &[(u64, Extent)]) -> Vec<(u64, Value)> {
    let mut rows = Vec::new();
    let mut rest = extents;
    while let Some(((at, first), others)) = rest.split_first() {
        let (value, further) = row(first, others, *at).unwrap_or_else(|| (first.encode(), 0));
        rows.push((*at, value));
        rest = &others[further..];
    }
    rows
}

/// Returns the record of an extent at `at` and of as many of those behind it as lie end to end and fit, and how many these are; none when
/// it stands alone.
fn row(first: &Extent, others: &[(u64, Extent)], at: u64) -> Option<(Value, usize)> {
    let mut weight = u64::from(first.len);
    let placed = |extent: &Extent| extent.piece.blob().is_some() && !extent.is_list();
    let follows = |at: u64, next: &(u64, Extent)| next.0 == at && placed(&next.1);
    if !placed(first) || !others.first().is_some_and(|next| follows(at + weight, next)) {
        return None;
    }
    let (mut data, mut locator) = (Writer(Vec::with_capacity(MAX_INLINE)), Writer(Vec::with_capacity(128)));
    first.encode_data(data.u8(ROW));
    first.piece.locator.encode(&mut locator);
    let mut further = 0;
    for next in others {
        if !follows(at + weight, next) {
            break;
        }
        let before = (data.0.len(), locator.0.len());
        next.1.encode_data(&mut data);
        next.1.piece.locator.encode(&mut locator);
        if data.0.len() > MAX_INLINE || locator.0.len() > MAX_LOCATOR {
            data.0.truncate(before.0);
            locator.0.truncate(before.1);
            break;
        }
        further += 1;
        weight += u64::from(next.1.len);
    }
    Some((Value { data: data.0.into(), locator: locator.0.into(), weight }, further))
}

/// Returns whether the value of an extent refers to bytes in segments.
pub(crate) fn is_placed(extent: &Value) -> bool {
    extent.locator.first().is_some_and(|kind| *kind != 0)
}

impl Piece {
    /// Returns the blob that holds the piece, or is the list, unless it is inline.
    pub(crate) fn blob(&self) -> Option<BlobRef> {
        match &self.locator {
            Locator::Inline(_) => None,
            Locator::Blob(addr) => Some(BlobRef { addr: *addr, hash: self.hash }),
            Locator::Within { outer, .. } | Locator::List(outer) => Some(*outer),
        }
    }
}

#[cfg(test)]
mod tests;
