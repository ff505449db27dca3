//! The bytes of the write-ahead log: headers and records. No I/O but reading a header, no locks.
//!
//! A file holds a page with two copies of its header, then records, each at a multiple of 8. All numbers are big-endian.
//!
//! ```text
//! header   magic 8 | version 4 | generation 8 | epoch 32 | first 8 | prev 16 | durable 8 | blake3 of it all 32
//! record   sum 16 | body length 4 | lsn 8 | durable 8 | prev 16 | blake3 of the body 16 | body
//! body     deletes: count, keys | puts: count, keys with values          (LEB128 counts and lengths)
//! ```
//!
//! Invariant: a record verifies only where it was written last. `sum` is keyed by the file's epoch, which is drawn anew each
//! time the file is used again, so bytes of its former life never verify; `prev` is the sum of the record before it (through
//! files too), so a record that was cut off once never follows another history. `durable` is the highest number that was
//! known to be on disk when the record was written: it lets recovery tell damage from an ordinary torn tail. `sum` covers the
//! fields and through them the body, so that a prefix verifies alone, at the price of one block, wherever it is looked for.

use crate::{Batch, Error, Result};
use bytes::Bytes;
use mw_model::codec::{DecodeError, Reader, Writer};
use std::ops::Range;

/// The newest format version that this release reads, and the one that it writes.
pub(super) const VERSION: u32 = 1;
/// Where the records start.
pub(super) const HEAD: u64 = 4096;
/// The bytes of a record before its body.
pub(super) const PREFIX: usize = 68;

/// Where the fields of a prefix start, behind its sum.
const FIELDS: usize = 16;

const MAGIC: &[u8; 8] = b"MWMETAWL";
const SECOND_COPY: usize = 2048;
const HEADER: usize = 8 + 4 + 8 + 32 + 8 + 16 + 8;

/// The sum of a record, by which the next one names it.
pub(super) type Chain = [u8; 16];
/// What makes one use of a file different from every other.
pub(super) type Epoch = [u8; 32];

/// Rounds up to where a record may start.
pub(super) fn align(offset: u64) -> u64 {
    offset.next_multiple_of(8)
}

/// The start of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// Counts uses of files; the log is read in this order.
    pub(super) generation: u64,
    pub(super) epoch: Epoch,
    /// The number of the first record.
    pub(super) first: u64,
    /// The sum of the record before the first.
    pub(super) prev: Chain,
    /// The highest number known to be on disk when this was written.
    pub(super) durable: u64,
}

impl Header {
    /// Returns the page: two copies in different sectors, so that no single bad sector loses the file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut copy = Writer::new();
        copy.raw(MAGIC)
            .u32(VERSION)
            .u64(self.generation)
            .raw(&self.epoch)
            .u64(self.first)
            .raw(&self.prev)
            .u64(self.durable);
        let sum = blake3::hash(&copy.0);
        copy.raw(sum.as_bytes());
        let mut page = vec![0; HEAD as usize];
        page[..copy.0.len()].copy_from_slice(&copy.0);
        page[SECOND_COPY..SECOND_COPY + copy.0.len()].copy_from_slice(&copy.0);
        page
    }

    /// Reads a page; `None` when the file is not in use: blank, or its header never reached the disk.
    pub(super) fn decode(page: &[u8], name: &str) -> Result<Option<Self>> {
        for copy in [0, SECOND_COPY] {
            if let Some(header) = page.get(copy..).and_then(|bytes| Self::decode_copy(bytes, name).transpose()) {
                return header.map(Some);
            }
        }
        Ok(None)
    }

    fn decode_copy(bytes: &[u8], name: &str) -> Result<Option<Self>> {
        let read = || -> std::result::Result<_, DecodeError> {
            let mut reader = Reader::new(bytes);
            let magic = reader.take(8)?;
            let version = reader.u32()?;
            let mut header = Self { generation: reader.u64()?, epoch: [0; 32], first: 0, prev: [0; 16], durable: 0 };
            header.epoch.copy_from_slice(reader.take(32)?);
            header.first = reader.u64()?;
            header.prev.copy_from_slice(reader.take(16)?);
            header.durable = reader.u64()?;
            Ok((magic, version, header, reader.hash()?))
        };
        let Ok((magic, version, header, sum)) = read() else { return Ok(None) };
        if magic != MAGIC {
            return Ok(None);
        }
        // Before the sum is looked at: a newer release may have laid out the rest in another way.
        if version > VERSION {
            return Err(Error::Newer { what: format!("the log file {name}"), found: version, known: VERSION });
        }
        Ok((version == VERSION && sum.0 == *blake3::hash(&bytes[..HEADER]).as_bytes()).then_some(header))
    }
}

/// One change, as places in its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) key: Range<usize>,
    /// `None` deletes.
    pub(super) value: Option<Range<usize>>,
}

/// A batch as a record that has no place in the log yet.
#[derive(Debug)]
pub(super) struct Draft {
    bytes: Vec<u8>,
    /// In the order in which they take effect.
    pub(super) changes: Vec<Change>,
}

impl Draft {
    /// Encodes `batch` and hashes its body. Needs no lock: what is left for [`Draft::seal`] does not grow with the batch.
    pub(super) fn new(batch: &Batch) -> Self {
        let puts = batch.puts.iter().map(|(key, value)| key.len() + value.len() + 7).sum::<usize>();
        let size = PREFIX + 10 + puts + batch.deletes.iter().map(|key| key.len() + 2).sum::<usize>();
        let mut out = Writer(Vec::with_capacity(size));
        let mut changes = Vec::with_capacity(batch.deletes.len() + batch.puts.len());
        let put = |out: &mut Writer, bytes: &[u8]| {
            out.bytes(bytes);
            out.0.len() - bytes.len()..out.0.len()
        };
        out.raw(&[0; PREFIX]).var(batch.deletes.len() as u64);
        for key in &batch.deletes {
            changes.push(Change { key: put(&mut out, key), value: None });
        }
        out.var(batch.puts.len() as u64);
        for (key, value) in &batch.puts {
            changes.push(Change { key: put(&mut out, key), value: Some(put(&mut out, value)) });
        }
        let body = short_hash(&out.0[PREFIX..]);
        out.0[52..PREFIX].copy_from_slice(&body);
        Self { bytes: out.0, changes }
    }

    /// Returns the length of the record.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Gives the record its place and returns it with its sum.
    pub(super) fn seal(mut self, epoch: &Epoch, lsn: u64, durable: u64, prev: &Chain) -> (Bytes, Vec<Change>, Chain) {
        let length = (self.bytes.len() - PREFIX) as u32;
        self.bytes[16..20].copy_from_slice(&length.to_be_bytes());
        self.bytes[20..28].copy_from_slice(&lsn.to_be_bytes());
        self.bytes[28..36].copy_from_slice(&durable.to_be_bytes());
        self.bytes[36..52].copy_from_slice(prev);
        let sum = sum(epoch, &self.bytes[FIELDS..PREFIX]);
        self.bytes[..16].copy_from_slice(&sum);
        (Bytes::from(self.bytes), self.changes, sum)
    }
}

fn short(hash: &blake3::Hash) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&hash.as_bytes()[..16]);
    short
}

fn short_hash(bytes: &[u8]) -> [u8; 16] {
    short(&blake3::hash(bytes))
}

fn sum(epoch: &Epoch, fields: &[u8]) -> Chain {
    short(&blake3::keyed_hash(epoch, fields))
}

/// The fields of a record that verify. What they say is true, whatever became of the body.
#[derive(Debug)]
pub(super) struct Prefix {
    length: usize,
    pub(super) durable: u64,
    pub(super) prev: Chain,
    body: [u8; 16],
    pub(super) sum: Chain,
}

impl Prefix {
    /// Reads the prefix at `offset` of `file` when `wanted` accepts its number and it verifies.
    pub(super) fn read(file: &[u8], offset: usize, epoch: &Epoch, wanted: impl Fn(u64) -> bool) -> Option<Self> {
        let bytes = file.get(offset..)?.get(..PREFIX)?;
        let mut reader = Reader::new(bytes);
        let mut prefix = Self { length: 0, durable: 0, prev: [0; 16], body: [0; 16], sum: [0; 16] };
        prefix.sum.copy_from_slice(reader.take(16).ok()?);
        prefix.length = reader.u32().ok()? as usize;
        if !wanted(reader.u64().ok()?) {
            return None;
        }
        prefix.durable = reader.u64().ok()?;
        prefix.prev.copy_from_slice(reader.take(16).ok()?);
        prefix.body.copy_from_slice(reader.take(16).ok()?);
        (prefix.sum == sum(epoch, &bytes[FIELDS..])).then_some(prefix)
    }
}

/// A record that verifies whole.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) bytes: Bytes,
    pub(super) prev: Chain,
    pub(super) sum: Chain,
}

impl Record {
    /// Reads the record `lsn` at `offset` of `file` when it verifies.
    pub(super) fn read(file: &Bytes, offset: usize, epoch: &Epoch, lsn: u64) -> Option<Self> {
        let Prefix { length, prev, body, sum, .. } = Prefix::read(file, offset, epoch, |found| found == lsn)?;
        let end = (offset + PREFIX).checked_add(length)?;
        let intact = body == short_hash(file.get(offset + PREFIX..end)?);
        intact.then(|| Self { bytes: file.slice(offset..end), prev, sum })
    }

    /// Reads the body. An error means that a verified record was written wrongly.
    pub(super) fn changes(&self) -> std::result::Result<Vec<Change>, DecodeError> {
        let total = self.bytes.len();
        let mut reader = Reader::new(&self.bytes[PREFIX..]);
        let field = |reader: &mut Reader<'_>| {
            let length = reader.bytes()?.len();
            let end = total - reader.0.len();
            Ok(end - length..end)
        };
        let mut changes = Vec::new();
        for _ in 0..reader.var()? {
            changes.push(Change { key: field(&mut reader)?, value: None });
        }
        for _ in 0..reader.var()? {
            changes.push(Change { key: field(&mut reader)?, value: Some(field(&mut reader)?) });
        }
        reader.end()?;
        Ok(changes)
    }
}

#[cfg(test)]
mod tests;
