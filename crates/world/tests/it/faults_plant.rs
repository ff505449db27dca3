//! Engines and a disk that do one thing wrong, as a careless change to the store would have them do it.
//!
//! They stand between the store and what it stands on, and know records only by their bytes: a tag and a world in a key, and the
//! layout of one log entry.

use bytes::Bytes;
use mw_env::{Disk, File};
use mw_meta::{Batch, Durability, Meta, Order, Ticket};
use mw_model::Hash;
use mw_model::codec::{Reader, Writer};
use mw_segments::{BlobRef, Claim, Dead, Found, Owner, SegmentId, Segments, Usage};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a planted metadata store does to a batch before it hands it on; false: the batch is acknowledged and never written.
pub type Edit = Arc<dyn Fn(&mut Batch, &mut Durability) -> bool + Send + Sync>;

/// A metadata store that edits what it is given.
pub struct BadMeta {
    pub inner: Arc<dyn Meta>,
    pub edit: Edit,
    /// Whether a sync of all that was submitted returns without having synced.
    pub sync_lies: bool,
}

impl std::fmt::Debug for BadMeta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

/// A promise that is as good as kept.
struct Kept;

impl Ticket for Kept {
    fn wait(self: Box<Self>) -> mw_meta::Result<()> {
        Ok(())
    }
}

impl Meta for BadMeta {
    fn get(&self, key: &[u8]) -> mw_meta::Result<Option<Bytes>> {
        self.inner.get(key)
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize, order: Order) -> mw_meta::Result<Vec<(Bytes, Bytes)>> {
        self.inner.scan(start, end, limit, order)
    }

    fn submit(&self, mut batch: Batch, mut durability: Durability) -> mw_meta::Result<Box<dyn Ticket>> {
        if (self.edit)(&mut batch, &mut durability) { self.inner.submit(batch, durability) } else { Ok(Box::new(Kept)) }
    }

    fn sync(&self) -> mw_meta::Result<()> {
        if self.sync_lies { Ok(()) } else { self.inner.sync() }
    }

    fn syncs(&self) -> u64 {
        self.inner.syncs()
    }
}

/// Returns the tag of a key, a letter.
pub fn tag(key: &[u8]) -> char {
    key.get(4).map_or(' ', |tag| char::from(*tag))
}

/// Returns the world in a key.
pub fn world(key: &[u8]) -> Option<&[u8]> {
    key.get(5..13)
}

/// One entry of a log, taken apart. An entry with a root is not.
pub struct Entry {
    head: Vec<u8>,
    pub changes: Vec<(Bytes, Option<Vec<u8>>)>,
}

impl Entry {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader::new(bytes);
        r.take(33).ok()?;
        // Place, time, key.
        let _ = (r.var().ok()?, r.var().ok()?, r.bytes().ok()?);
        if r.u8().ok()? == 1 {
            r.bytes().ok()?;
        }
        r.u8().ok()?;
        if r.u8().ok()? == 1 {
            r.bytes().ok()?;
        }
        r.bytes().ok()?;
        if r.u8().ok()? == 1 {
            return None;
        }
        let head = bytes[..bytes.len() - r.0.len()].to_vec();
        let mut changes = Vec::new();
        for _ in 0..r.var().ok()? {
            let key = Bytes::copy_from_slice(r.bytes().ok()?);
            let value = if r.u8().ok()? == 1 {
                let from = r.0;
                let _ = (r.bytes().ok()?, r.bytes().ok()?, r.var().ok()?);
                Some(from[..from.len() - r.0.len()].to_vec())
            } else {
                None
            };
            changes.push((key, value));
        }
        Some(Self { head, changes })
    }

    pub fn write(&self) -> Bytes {
        let mut w = Writer::new();
        w.raw(&self.head).var(self.changes.len() as u64);
        for (key, value) in &self.changes {
            w.bytes(key);
            match value {
                Some(value) => w.u8(1).raw(value),
                None => w.u8(0),
            };
        }
        w.0.into()
    }
}

/// Changes every entry in a batch for which `edit` says that it did something.
pub fn edit_entries(batch: &mut Batch, edit: impl Fn(&mut Entry) -> bool) {
    for (key, value) in &mut batch.puts {
        if tag(key) == 'L'
            && let Some(mut entry) = Entry::read(value)
            && edit(&mut entry)
        {
            *value = entry.write();
        }
    }
}

/// What a planted segment store does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentFault {
    /// A sync returns without having synced.
    SyncLies,
    /// Every seventh read gives the content of the blob read before.
    AnotherBlob,
    /// What is stored has one bit changed on its way.
    Garbled,
    /// Every fifth blob is said to lie where the one before does.
    WrongAddress,
    /// Freeing takes a live segment along.
    FreesMore,
    /// Claims are not told.
    NoClaims,
    /// One claim is forgotten at the start.
    AdoptsLess,
    /// Dead ranges are given back with the blob behind each.
    PunchesWider,
    /// What a put appended last is given back with the dead ranges: nothing refers to it yet.
    PunchesEarly,
}

/// A segment store that does one thing wrong.
#[derive(Debug)]
pub struct BadSegments {
    pub inner: Arc<dyn Segments>,
    pub fault: SegmentFault,
    count: AtomicUsize,
    last: Mutex<Option<(BlobRef, Bytes)>>,
    claimed: Mutex<Vec<SegmentId>>,
    appended: Mutex<Option<(Owner, BlobRef)>>,
}

impl BadSegments {
    pub fn new(inner: Arc<dyn Segments>, fault: SegmentFault) -> Self {
        Self {
            inner,
            fault,
            count: AtomicUsize::new(0),
            last: Mutex::default(),
            claimed: Mutex::default(),
            appended: Mutex::default(),
        }
    }

    fn one_in(&self, n: usize) -> bool {
        (self.count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(n)
    }
}

impl Segments for BadSegments {
    fn append(&self, owner: Owner, content: &[u8]) -> mw_segments::Result<BlobRef> {
        if self.fault == SegmentFault::Garbled && content.len() > 1_000 {
            let mut garbled = content.to_vec();
            garbled[500] ^= 1;
            let blob = self.inner.append(owner, &garbled)?;
            return Ok(BlobRef { hash: Hash::of(content), ..blob });
        }
        let blob = self.inner.append(owner, content)?;
        // Not what the sweep's own folds append.
        if content.len() > 15_000 {
            *self.appended.lock() = Some((owner, blob));
        }
        let before = self.last.lock().replace((blob, Bytes::copy_from_slice(content)));
        match before {
            Some((before, _)) if self.fault == SegmentFault::WrongAddress && self.one_in(5) => {
                Ok(BlobRef { addr: before.addr, ..blob })
            }
            _ => Ok(blob),
        }
    }

    fn read(&self, blob: &BlobRef) -> mw_segments::Result<Bytes> {
        let bytes = self.inner.read(blob)?;
        let before = self.last.lock().replace((*blob, bytes.clone()));
        match before {
            Some((_, before)) if self.fault == SegmentFault::AnotherBlob && self.one_in(7) => Ok(before),
            _ => Ok(bytes),
        }
    }

    fn claims(&self, owner: Owner) -> Vec<Claim> {
        let claims = self.inner.claims(owner);
        self.claimed.lock().extend(claims.iter().map(|claim| claim.segment));
        if self.fault == SegmentFault::NoClaims { Vec::new() } else { claims }
    }

    fn sync(&self) -> mw_segments::Result<()> {
        if self.fault == SegmentFault::SyncLies { Ok(()) } else { self.inner.sync() }
    }

    fn adopt(&self, claims: &[Claim]) -> mw_segments::Result<()> {
        self.claimed.lock().extend(claims.iter().map(|claim| claim.segment));
        let from = usize::from(self.fault == SegmentFault::AdoptsLess && !claims.is_empty());
        self.inner.adopt(&claims[from..])
    }

    fn seal(&self, owner: Owner) {
        self.inner.seal(owner);
    }

    fn free(&self, segments: &[SegmentId]) -> mw_segments::Result<u64> {
        if self.fault == SegmentFault::FreesMore {
            let more = self.claimed.lock().iter().find(|id| !segments.contains(id)).copied();
            if let Some(more) = more {
                // It may be free already; then there is nothing to take along.
                let _ = self.inner.free(&[more]);
            }
        }
        self.inner.free(segments)
    }

    fn punch(&self, owner: Owner, dead: &[Dead]) -> mw_segments::Result<u64> {
        let mut dead = dead.to_vec();
        if self.fault == SegmentFault::PunchesWider {
            for Dead { segment, ranges } in &mut dead {
                let end = segment.size() as u32;
                ranges.iter_mut().for_each(|(offset, len)| *len = (*len + 24_000).min(end - *offset));
            }
        }
        if let Some((by, BlobRef { addr, .. })) = *self.appended.lock()
            && self.fault == SegmentFault::PunchesEarly
        {
            let ranges = vec![(addr.offset, addr.len.next_multiple_of(8))];
            self.inner.punch(by, &[Dead { segment: addr.segment, ranges }])?;
        }
        self.inner.punch(owner, &dead)
    }

    fn walk(&self, claim: &Claim) -> mw_segments::Result<Vec<Found>> {
        self.inner.walk(claim)
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn held(&self, segment: SegmentId) -> mw_segments::Result<u64> {
        self.inner.held(segment)
    }

    fn footprint(&self) -> mw_segments::Result<u64> {
        self.inner.footprint()
    }

    fn syncs(&self) -> u64 {
        self.inner.syncs()
    }
}

/// What a planted disk does wrong, to the files whose names begin with a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// A sync returns without having synced.
    SyncLies,
    /// Every ninth larger write writes its first half, and says that all went well.
    Tears,
    /// Every ninth write is not done at all.
    Loses,
    /// Every ninth larger write goes 512 bytes too far.
    Misdirects,
}

/// A disk that does one thing wrong.
#[derive(Debug, Clone)]
pub struct BadDisk {
    pub inner: Arc<dyn Disk>,
    pub prefix: &'static str,
    pub fault: DiskFault,
    count: Arc<AtomicUsize>,
}

impl BadDisk {
    pub fn new(inner: Arc<dyn Disk>, prefix: &'static str, fault: DiskFault) -> Self {
        Self { inner, prefix, fault, count: Arc::new(AtomicUsize::new(0)) }
    }
}

impl Disk for BadDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = self.inner.open(name)?;
        if !name.starts_with(self.prefix) {
            return Ok(file);
        }
        Ok(Arc::new(BadFile { file, fault: self.fault, count: self.count.clone() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
}

#[derive(Debug)]
struct BadFile {
    file: Arc<dyn File>,
    fault: DiskFault,
    count: Arc<AtomicUsize>,
}

impl File for BadFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let small = bytes.len() < 200 || offset == 0;
        if small || !(self.count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(9) {
            return self.file.write_at(bytes, offset);
        }
        match self.fault {
            DiskFault::SyncLies => self.file.write_at(bytes, offset),
            DiskFault::Tears => self.file.write_at(&bytes[..bytes.len() / 2], offset),
            DiskFault::Loses => Ok(()),
            DiskFault::Misdirects => self.file.write_at(bytes, offset + 512),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if self.fault == DiskFault::SyncLies { Ok(()) } else { self.file.sync() }
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }

    fn held(&self, offset: u64, len: u64) -> io::Result<u64> {
        self.file.held(offset, len)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.file.allocated()
    }
}
