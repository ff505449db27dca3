//! One node: its encoding, decoding, and how entries are found in it. It does not know where a node ends or how it is
//! reached.
//!
//! ```text
//! stored  = format u8 | count var | length of hashed var | hashed | addresses
//! hashed  = level u8 | entry...            the logical hash of the node is the hash of exactly these bytes
//! entry   = key length var | key | leaf:  data length << 1 | large var | data, or its hash | weight var
//!                                | inner: logical hash of the child | entries var | weight var
//! addresses, one per entry       = leaf:  address of large data, if large | locator length var | locator
//!                                | inner: blob of the child
//! ```
//!
//! The key of an inner entry is the last key of its child. Keys stand whole: nodes are compressed beneath, and so keys and
//! values are slices of the one buffer, and an entry moves from node to node by copying its bytes.

use crate::Result;
use crate::error::{Error, Flaw};
use crate::shape::MAX_LEVEL;
use crate::value::{MAX_INLINE, MAX_KEY, MAX_LOCATOR};
use bytes::Bytes;
use mw_model::Hash;
use mw_model::codec::{DecodeError, Reader, Writer};
use mw_segments::{Addr, BlobRef};
use std::cmp::Ordering;

/// The first byte of a stored node.
pub(crate) const FORMAT: u8 = 1;

/// A node as its parent knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) blob: BlobRef,
    /// The logical hash.
    pub(crate) hash: Hash,
    pub(crate) entries: u64,
    pub(crate) weight: u64,
}

/// The data of a record as it stands in a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data<'a> {
    Inline(&'a [u8]),
    Large { len: usize, blob: BlobRef },
}

impl Data<'_> {
    /// Returns whether the content is the same, wherever it lies.
    pub(crate) fn same(&self, other: &Data<'_>) -> bool {
        match (self, other) {
            (Data::Inline(a), Data::Inline(b)) => a == b,
            (Data::Large { len: a, blob: x }, Data::Large { len: b, blob: y }) => a == b && x.hash == y.hash,
            _ => false,
        }
    }
}

/// What a leaf holds for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) data: Data<'a>,
    pub(crate) weight: u64,
    pub(crate) locator: &'a [u8],
}

impl<'a> Record<'a> {
    pub(crate) fn encode(&self, hashed: &mut Writer, addrs: &mut Writer) {
        match &self.data {
            Data::Inline(data) => {
                hashed.var((data.len() as u64) << 1).raw(data);
            }
            Data::Large { len, blob } => {
                hashed.var((*len as u64) << 1 | 1).hash(&blob.hash);
                blob.addr.encode(addrs);
            }
        }
        hashed.var(self.weight);
        addrs.bytes(self.locator);
    }

    fn decode(hashed: &mut Reader<'a>, addrs: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let tag = hashed.var()?;
        let len = usize::try_from(tag >> 1).map_err(|_| DecodeError::Range)?;
        let data = if tag & 1 == 0 {
            Data::Inline(hashed.take(len)?)
        } else {
            let hash = hashed.hash()?;
            Data::Large { len, blob: BlobRef { addr: Addr::decode(addrs)?, hash } }
        };
        // One content has one encoding, or equal trees would have unequal hashes.
        if (len > MAX_INLINE) != matches!(data, Data::Large { .. }) {
            return Err(DecodeError::Range);
        }
        let (weight, locator) = (hashed.var()?, addrs.bytes()?);
        if locator.len() > MAX_LOCATOR {
            return Err(DecodeError::Range);
        }
        Ok(Self { data, weight, locator })
    }
}

impl Child {
    pub(crate) fn encode(&self, hashed: &mut Writer, addrs: &mut Writer) {
        hashed.hash(&self.hash).var(self.entries).var(self.weight);
        self.blob.encode(addrs);
    }

    fn decode(hashed: &mut Reader<'_>, addrs: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (hash, entries, weight) = (hashed.hash()?, hashed.var()?, hashed.var()?);
        Ok(Self { blob: BlobRef::decode(addrs)?, hash, entries, weight })
    }
}

/// Where the parts of one entry begin in the stored bytes.
#[derive(Debug, Clone, Copy)]
struct Slot {
    entry: u32,
    key: u32,
    body: u32,
    addr: u32,
}

/// A decoded node: the stored bytes and where the entries are in them. Never empty; keys strictly ascending.
#[derive(Debug)]
pub(crate) struct Node {
    blob: BlobRef,
    bytes: Bytes,
    slots: Box<[Slot]>,
    /// Where the hashed part begins and ends.
    hashed: (usize, usize),
    level: u8,
}

impl Node {
    /// Decodes and validates the bytes stored as `blob`. Allocates in proportion to them, whatever they claim.
    pub(crate) fn decode(blob: BlobRef, bytes: Bytes) -> Result<Self> {
        Self::parse(blob, bytes).map_err(|flaw| Error::Node { blob, flaw })
    }

    fn parse(blob: BlobRef, bytes: Bytes) -> Result<Self, Flaw> {
        let total = bytes.len();
        u32::try_from(total).map_err(|_| DecodeError::Range)?;
        let mut r = Reader::new(&bytes);
        match r.u8()? {
            FORMAT => {}
            other => return Err(Flaw::Format(other)),
        }
        let (count, hashed_len) = (r.var32()? as usize, r.var32()? as usize);
        let start = total - r.0.len();
        let mut hashed = Reader::new(r.take(hashed_len)?);
        let end = start + hashed_len;
        let mut addrs = r;
        let level = hashed.u8()?;
        if level > MAX_LEVEL || count == 0 || count > hashed_len {
            return Err(DecodeError::Range.into());
        }
        let mut slots = Vec::with_capacity(count);
        let mut previous: Option<&[u8]> = None;
        for _ in 0..count {
            let (entry, addr) = (end - hashed.0.len(), total - addrs.0.len());
            let key = hashed.bytes()?;
            let body = end - hashed.0.len();
            if key.len() > MAX_KEY {
                return Err(DecodeError::Range.into());
            }
            if previous.is_some_and(|previous| previous >= key) {
                return Err(Flaw::Order);
            }
            previous = Some(key);
            match level {
                0 => drop(Record::decode(&mut hashed, &mut addrs)?),
                _ => drop(Child::decode(&mut hashed, &mut addrs)?),
            }
            // All are below `total`, which fits 32 bits.
            slots.push(Slot {
                entry: entry as u32,
                key: (body - key.len()) as u32,
                body: body as u32,
                addr: addr as u32,
            });
        }
        hashed.end()?;
        addrs.end()?;
        Ok(Self { blob, slots: slots.into_boxed_slice(), hashed: (start, end), level, bytes })
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the bytes that the logical hash covers.
    pub(crate) fn hashed(&self) -> &[u8] {
        &self.bytes[self.hashed.0..self.hashed.1]
    }

    /// Returns the memory that the node takes, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.slots.len() * size_of::<Slot>()
    }

    pub(crate) fn key(&self, i: usize) -> &[u8] {
        let slot = &self.slots[i];
        &self.bytes[slot.key as usize..slot.body as usize]
    }

    /// Returns the key as a slice that shares the node's memory.
    pub(crate) fn key_bytes(&self, i: usize) -> Bytes {
        let slot = &self.slots[i];
        self.bytes.slice(slot.key as usize..slot.body as usize)
    }

    pub(crate) fn last_key(&self) -> &[u8] {
        self.key(self.len() - 1)
    }

    /// Returns a slice of the node, taken from one of its records, as bytes that share the node's memory.
    pub(crate) fn share(&self, part: &[u8]) -> Bytes {
        self.bytes.slice_ref(part)
    }

    /// Finds `key`: its place, or the place where it would stand.
    pub(crate) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        self.search_between(0, self.len(), key)
    }

    /// Finds `key` as [`Node::search`] does, where all entries before `from` are known to be before it: quickly when it is near.
    pub(crate) fn search_from(&self, from: usize, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut step) = (from, 1);
        while low + step <= self.len() {
            match self.key(low + step - 1).cmp(key) {
                Ordering::Less => (low, step) = (low + step, 2 * step),
                Ordering::Equal => return Ok(low + step - 1),
                Ordering::Greater => return self.search_between(low, low + step - 1, key),
            }
        }
        self.search_between(low, self.len(), key)
    }

    fn search_between(&self, mut low: usize, mut high: usize, key: &[u8]) -> Result<usize, usize> {
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Returns the place of the first key that is not before `key`; `len()` when all are. In an inner node that is the
    /// child that holds `key` if any does.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|place| place)
    }

    /// Returns the stored entry: its part of the hashed bytes and its part of the addresses.
    pub(crate) fn raw(&self, i: usize) -> (&[u8], &[u8]) {
        let slot = &self.slots[i];
        let (entry_end, addr_end) = self.ends(i);
        (&self.bytes[slot.entry as usize..entry_end], &self.bytes[slot.addr as usize..addr_end])
    }

    /// Returns where the key stands in the hashed part of its entry.
    pub(crate) fn key_span(&self, i: usize) -> (usize, usize) {
        let slot = &self.slots[i];
        ((slot.key - slot.entry) as usize, (slot.body - slot.entry) as usize)
    }

    /// Returns what a leaf holds at `i`.
    pub(crate) fn record(&self, i: usize) -> Result<Record<'_>> {
        let (mut hashed, mut addrs) = self.bodies(i);
        Record::decode(&mut hashed, &mut addrs).map_err(|e| self.flawed(e.into()))
    }

    /// Returns the child at `i` of an inner node.
    pub(crate) fn child(&self, i: usize) -> Result<Child> {
        let (mut hashed, mut addrs) = self.bodies(i);
        Child::decode(&mut hashed, &mut addrs).map_err(|e| self.flawed(e.into()))
    }

    /// Returns the error that this node is not what it should be.
    pub(crate) fn flawed(&self, flaw: Flaw) -> Error {
        Error::Node { blob: self.blob, flaw }
    }

    /// Returns how many entries of the map the entry at `i` stands for, and their weight.
    pub(crate) fn totals(&self, i: usize) -> Result<(u64, u64)> {
        Ok(match self.level {
            0 => (1, self.record(i)?.weight),
            _ => {
                let child = self.child(i)?;
                (child.entries, child.weight)
            }
        })
    }

    fn bodies(&self, i: usize) -> (Reader<'_>, Reader<'_>) {
        let slot = &self.slots[i];
        let (entry_end, addr_end) = self.ends(i);
        let hashed = Reader::new(&self.bytes[slot.body as usize..entry_end]);
        (hashed, Reader::new(&self.bytes[slot.addr as usize..addr_end]))
    }

    fn ends(&self, i: usize) -> (usize, usize) {
        match self.slots.get(i + 1) {
            Some(next) => (next.entry as usize, next.addr as usize),
            None => (self.hashed.1, self.bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests;
