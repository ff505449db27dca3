//! Addresses, owners and claims. An address never changes.

use mw_model::codec::{DecodeError, Reader, Writer};
use mw_model::{Hash, Incarnation, WorldId};
use std::fmt;

/// Names a segment: file, place and size in one number, so that no table is needed to find it.
///
/// Bits 63..48: file number; 47..8: offset in the file in units of 64 KiB; 7..0: log2 of the segment's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SegmentId(pub u64);

/// The smallest segment, in bytes, and the unit of its offset.
pub const UNIT: u64 = 64 << 10;

/// The size of an owner's first segment, as a power of two: one [`UNIT`].
pub const FIRST_LOG2: u8 = 16;

/// The size that an owner's segments grow to, as a power of two: 4 MiB.
pub const LAST_LOG2: u8 = 22;

/// Returns the size, as a power of two, of the segment that follows one of `1 << last` bytes (0: there was none): twice as
/// large, within limits, and large enough for a blob of `len` bytes.
pub(crate) fn log2_for(last: u8, len: u32) -> u8 {
    let grown = if last == 0 { FIRST_LOG2 } else { last.saturating_add(1).clamp(FIRST_LOG2, LAST_LOG2) };
    grown.max(log2_holding(len))
}

/// Returns the size, as a power of two, of the smallest segment that holds a blob of `len` bytes.
pub(crate) fn log2_holding(len: u32) -> u8 {
    (u64::from(len).next_power_of_two().trailing_zeros() as u8).max(FIRST_LOG2)
}

impl SegmentId {
    /// Makes the id of a segment of `1 << log2` bytes at `offset` (a multiple of [`UNIT`]) of file `file`.
    pub fn new(file: u16, offset: u64, log2: u8) -> Self {
        Self(u64::from(file) << 48 | (offset / UNIT) << 8 | u64::from(log2))
    }

    /// Returns the number of the file.
    pub fn file(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Returns the offset of the segment in its file, in bytes.
    pub fn offset(self) -> u64 {
        (self.0 >> 8 & 0xff_ffff_ffff) * UNIT
    }

    /// Returns the size of the segment, in bytes (0 for an id that no engine made).
    pub fn size(self) -> u64 {
        1u64.checked_shl(u32::from(self.0 as u8)).unwrap_or(0)
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data-{:04}@{}+{}", self.file(), self.offset(), self.size())
    }
}

/// Where a blob lies: a segment, an offset in it, and the stored length with its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Addr {
    /// The segment.
    pub segment: SegmentId,
    /// The offset of the blob's header in the segment.
    pub offset: u32,
    /// The stored length, header included.
    pub len: u32,
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}+{}", self.segment, self.offset, self.len)
    }
}

impl Addr {
    /// Appends the address to a record.
    pub fn encode(&self, w: &mut Writer) {
        w.u64(self.segment.0).var(u64::from(self.offset)).var(u64::from(self.len));
    }

    /// Reads an address.
    ///
    /// # Errors
    /// The input is short or out of range.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { segment: SegmentId(r.u64()?), offset: r.var32()?, len: r.var32()? })
    }
}

/// A blob's address and the hash of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BlobRef {
    /// Where it lies.
    pub addr: Addr,
    /// The hash of its content (before compression).
    pub hash: Hash,
}

impl BlobRef {
    /// Appends the reference to a record.
    pub fn encode(&self, w: &mut Writer) {
        self.addr.encode(w);
        w.hash(&self.hash);
    }

    /// Reads a reference.
    ///
    /// # Errors
    /// The input is short or out of range.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { addr: Addr::decode(r)?, hash: r.hash()? })
    }
}

/// Who may append to a segment: one life of one world's writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Owner {
    /// The world.
    pub world: WorldId,
    /// The writer's life.
    pub incarnation: Incarnation,
}

/// The fact that a segment is owned and used up to a length; the caller keeps it in `meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The segment.
    pub segment: SegmentId,
    /// Its owner.
    pub owner: Owner,
    /// The bytes used, from its start.
    pub used: u32,
}
