//! Content: storing pieces of bytes in segments, and reading verified pieces back through one bounded cache.

use crate::buffers::Buffers;
use crate::error::{Error, Result};
use crate::record::{Extent, Locator, Piece, listed};
use bytes::Bytes;
use mw_model::Hash;
use mw_segments::{BlobRef, Owner, Segments};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Content up to this length rides in the log entry, in bytes; larger content is in segments first.
pub(crate) const RIDE: usize = 8 << 10;
/// Content up to this length stays in its record when it is folded, in bytes.
pub(crate) const STAY: usize = 128;
/// The length of one piece of a mount's write, in bytes.
pub(crate) const PIECE: usize = 64 << 10;

/// Reads and writes pieces.
pub(crate) struct Content {
    segments: Arc<dyn Segments>,
    cache: Mutex<Cache>,
    buffers: Arc<Buffers>,
}

/// Blobs by identity (address and hash), dropped first-in first-out by weight.
struct Cache {
    blobs: HashMap<BlobRef, Bytes>,
    order: VecDeque<BlobRef>,
    used: usize,
    budget: usize,
}

impl Content {
    pub(crate) fn new(segments: Arc<dyn Segments>, budget: usize) -> Self {
        let cache = Cache { blobs: HashMap::new(), order: VecDeque::new(), used: 0, budget };
        Self { segments, cache: Mutex::new(cache), buffers: Arc::default() }
    }

    /// Returns the cached bytes.
    pub(crate) fn used(&self) -> usize {
        self.cache.lock().used
    }

    /// Stores `bytes` as a blob of `owner`'s.
    pub(crate) fn store(&self, owner: Owner, bytes: &[u8]) -> Result<Piece> {
        Ok(piece(&self.segments.append(owner, bytes)?, bytes.len()))
    }

    /// Stores the pieces of a large object as lists.
    pub(crate) fn listed(&self, owner: Owner, extents: Vec<(u64, Extent)>) -> Result<Vec<(u64, Extent)>> {
        listed(extents, |list| Ok(self.segments.append(owner, list)?))
    }

    /// Makes a piece that rides in the entry.
    pub(crate) fn ride(bytes: &[u8]) -> Piece {
        Piece {
            hash: Hash::of(bytes),
            len: bytes.len() as u32,
            locator: Locator::Inline(Bytes::copy_from_slice(bytes)),
        }
    }

    /// Cuts `bytes` into pieces of a file that starts at `offset`: riding when all of it is small.
    pub(crate) fn extents(&self, owner: Owner, offset: u64, bytes: &[u8]) -> Result<Vec<(u64, Extent)>> {
        self.cut(owner, offset, bytes, bytes.len() <= RIDE)
    }

    /// Does the same, all of it riding or nothing.
    pub(crate) fn cut(&self, owner: Owner, offset: u64, bytes: &[u8], ride: bool) -> Result<Vec<(u64, Extent)>> {
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        if ride {
            return Ok(vec![(offset, Extent::whole(Self::ride(bytes)))]);
        }
        let pieces: Vec<&[u8]> = bytes.chunks(PIECE).collect();
        let blobs = self.segments.append_all(owner, &pieces)?;
        let mut at = offset;
        let extents = blobs.into_iter().zip(pieces).map(|(blob, bytes)| {
            let here = at;
            at += bytes.len() as u64;
            (here, Extent::whole(piece(&blob, bytes.len())))
        });
        Ok(extents.collect())
    }

    /// Returns the bytes of an extent.
    pub(crate) fn read(&self, extent: &Extent) -> Result<Bytes> {
        let (skip, len) = (extent.skip as usize, extent.len as usize);
        let (bytes, skip) = match &extent.piece.locator {
            Locator::Inline(bytes) => (bytes.clone(), skip),
            Locator::Blob(addr) => (self.blob(&BlobRef { addr: *addr, hash: extent.piece.hash })?, skip),
            Locator::Within { outer, offset } => (self.blob(outer)?, skip + *offset as usize),
            Locator::List(_) => return Err(Error::corrupt("a list of pieces stands where a piece should")),
        };
        if skip + len > bytes.len() {
            return Err(Error::corrupt("a piece is shorter than its record says; run `mw fsck`"));
        }
        Ok(bytes.slice(skip..skip + len))
    }

    /// Returns a verified blob.
    fn blob(&self, blob: &BlobRef) -> Result<Bytes> {
        if let Some(bytes) = self.cache.lock().blobs.get(blob) {
            return Ok(bytes.clone());
        }
        let bytes = self.segments.read(blob)?;
        let mut cache = self.cache.lock();
        if bytes.len() <= cache.budget / 8 && cache.blobs.insert(*blob, bytes.clone()).is_none() {
            cache.used += bytes.len();
            cache.order.push_back(*blob);
            while cache.used > cache.budget
                && let Some(oldest) = cache.order.pop_front()
            {
                let freed = cache.blobs.remove(&oldest).map_or(0, |b| b.len());
                cache.used -= freed;
            }
        }
        Ok(bytes)
    }

    /// Returns whether pieces of so much content, read in one go, are kept: of more than that nothing would be left for others, and
    /// its beginning would be gone before its end was read.
    pub(crate) fn keeps(&self, len: u64) -> bool {
        len <= self.cache.lock().budget as u64 / 2
    }

    /// Returns `start..end` of a file as runs of bytes, in order and none of them copied; holes are zeros. What is read is kept for
    /// others, or, but for parts of pieces, not.
    pub(crate) fn runs(&self, extents: &[(u64, Extent)], start: u64, end: u64, keep: bool) -> Result<Vec<Bytes>> {
        let mut runs = Vec::with_capacity(extents.len());
        let mut at = start;
        for (from, extent) in extents {
            let (run, to) = ((*from).max(at), (from + u64::from(extent.len)).min(end));
            if run < to {
                zeros(&mut runs, run - at);
                let part = extent.part((run - from) as u32, (to - run) as u32);
                runs.push(if keep { self.read(&part)? } else { self.read_once(&part)? });
                at = to;
            }
        }
        zeros(&mut runs, end - at);
        Ok(runs)
    }

    /// Assembles `start..end` of a file from its extents; holes are zeros.
    pub(crate) fn assemble(&self, extents: &[(u64, Extent)], start: u64, end: u64) -> Result<Bytes> {
        self.gather(extents, start, end, true)
    }

    /// Does the same for somebody who keeps what he reads, as a kernel does: a piece that is read whole is not kept here as well.
    pub(crate) fn assemble_once(&self, extents: &[(u64, Extent)], start: u64, end: u64) -> Result<Bytes> {
        self.gather(extents, start, end, false)
    }

    fn gather(&self, extents: &[(u64, Extent)], start: u64, end: u64, keep: bool) -> Result<Bytes> {
        if let [(at, extent)] = extents
            && *at <= start
            && at + u64::from(extent.len) >= end
            && (keep || end - start < u64::from(extent.len))
        {
            return self.read(&extent.part((start - at) as u32, (end - start) as u32));
        }
        let mut out = self.buffers.lend((end - start) as usize);
        // The buffer holds what somebody else read before: every byte of it is filled, holes too.
        let mut filled = 0;
        for (at, extent) in extents {
            let (from, to) = ((*at).max(start + filled as u64), (at + u64::from(extent.len)).min(end));
            if from >= to {
                continue;
            }
            let (begin, stop) = ((from - start) as usize, (to - start) as usize);
            out[filled..begin].fill(0);
            self.fill(&extent.part((from - at) as u32, (to - from) as u32), &mut out[begin..stop], keep)?;
            filled = stop;
        }
        out[filled..].fill(0);
        Ok(out.share())
    }

    /// Returns the bytes of an extent, and does not keep them when they are a whole piece.
    fn read_once(&self, extent: &Extent) -> Result<Bytes> {
        match whole(extent) {
            Some(blob) if !self.cache.lock().blobs.contains_key(&blob) => {
                let mut out = self.buffers.lend(extent.len as usize);
                self.segments.read_into(&blob, &mut out)?;
                Ok(out.share())
            }
            _ => self.read(extent),
        }
    }

    /// Fills `out` with the bytes of an extent.
    fn fill(&self, extent: &Extent, out: &mut [u8], keep: bool) -> Result<()> {
        if let Some(blob) = whole(extent).filter(|_| !keep) {
            let cached = self.cache.lock().blobs.get(&blob).cloned();
            match cached {
                Some(bytes) if bytes.len() == out.len() => out.copy_from_slice(&bytes),
                _ => self.segments.read_into(&blob, out)?,
            }
            return Ok(());
        }
        out.copy_from_slice(&self.read(extent)?);
        Ok(())
    }
}

/// Returns what was stored as a piece with a blob of its own.
fn piece(blob: &BlobRef, len: usize) -> Piece {
    Piece { hash: blob.hash, len: len as u32, locator: Locator::Blob(blob.addr) }
}

/// Returns the blob of an extent that is all of a piece with a blob of its own.
fn whole(extent: &Extent) -> Option<BlobRef> {
    match &extent.piece.locator {
        Locator::Blob(addr) if extent.skip == 0 && extent.len == extent.piece.len => {
            Some(BlobRef { addr: *addr, hash: extent.piece.hash })
        }
        _ => None,
    }
}

/// Adds `len` zeros.
fn zeros(runs: &mut Vec<Bytes>, mut len: u64) {
    static ZEROS: [u8; PIECE] = [0; PIECE];
    while len > 0 {
        let run = len.min(PIECE as u64);
        runs.push(Bytes::from_static(&ZEROS[..run as usize]));
        len -= run;
    }
}
