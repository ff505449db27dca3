//! The engine for tests: segments in memory. Nothing survives the process, so that `sync` has nothing to do but count.
//!
//! Invariant: blobs are stored and verified in the same form as by the local engine, and an address is never given out twice,
//! so that a read of a freed segment always fails. It does not know about files.

use crate::addr::{UNIT, log2_for};
use crate::blob::{self, Codec, Flaw, HEADER, Header};
use crate::{Addr, BlobRef, Claim, Dead, Error, Found, MAX_BLOB, Owner, Result, SegmentId, Segments, Usage, walk};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};

/// Segments in memory. Unlike a disk it starts empty and knows it, so that appending needs no [`Segments::adopt`] first;
/// `adopt` may be called again and again, each time standing for a restart.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    segments: HashMap<SegmentId, Segment>,
    open: HashMap<Owner, Open>,
    /// The end of the space given out so far, in bytes.
    end: u64,
    appended: bool,
    syncs: u64,
}

#[derive(Debug)]
struct Segment {
    owner: Owner,
    bytes: Vec<u8>,
}

/// Where an owner appends.
#[derive(Debug, Default)]
struct Open {
    segment: Option<SegmentId>,
    /// The size of the owner's last segment, as a power of two; 0 before the first.
    log2: u8,
    /// The segments that grew since the last look at the claims.
    grown: BTreeSet<SegmentId>,
}

impl Memory {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Flips the bits of `mask` in the stored byte at `offset` of `segment`, as a failing disk would. For tests of what
    /// stands above; returns whether there was such a byte.
    pub fn damage(&self, segment: SegmentId, offset: u32, mask: u8) -> bool {
        let mut state = self.state.lock();
        let byte = state.segments.get_mut(&segment).and_then(|s| s.bytes.get_mut(offset as usize));
        byte.map(|byte| *byte ^= mask).is_some()
    }
}

impl State {
    /// Returns the segment of `owner` that takes `len` more bytes.
    fn room(&mut self, owner: Owner, len: u32) -> SegmentId {
        let open = self.open.entry(owner).or_default();
        if let Some(id) = open.segment
            && let Some(segment) = self.segments.get(&id)
            && segment.bytes.len() as u64 + u64::from(len) <= id.size()
        {
            return id;
        }
        open.log2 = log2_for(open.log2, len);
        let size = 1u64 << open.log2;
        let offset = self.end.max(UNIT).next_multiple_of(size);
        self.end = offset + size;
        let id = SegmentId::new(0, offset, open.log2);
        self.segments.insert(id, Segment { owner, bytes: Vec::new() });
        open.segment = Some(id);
        id
    }
}

impl Segments for Memory {
    fn append(&self, owner: Owner, content: &[u8]) -> Result<BlobRef> {
        if content.len() > MAX_BLOB {
            return Err(Error::TooLarge { len: content.len() });
        }
        let (hash, sealed) = blob::seal(owner.world, content);
        let bytes = sealed.parts().concat();
        let len = bytes.len() as u32;
        let mut state = self.state.lock();
        let id = state.room(owner, blob::padded(len));
        let Some(segment) = state.segments.get_mut(&id) else { return Err(Error::unowned(id)) };
        let offset = segment.bytes.len() as u32;
        segment.bytes.extend_from_slice(&bytes);
        segment.bytes.resize(blob::padded(offset + len) as usize, 0);
        state.open.entry(owner).or_default().grown.insert(id);
        state.appended = true;
        Ok(BlobRef { addr: Addr { segment: id, offset, len }, hash })
    }

    fn read(&self, blob: &BlobRef) -> Result<Bytes> {
        let flawed = |flaw| Error::Blob { blob: *blob, flaw };
        let range = blob.addr.offset as usize..(blob.addr.offset as usize).saturating_add(blob.addr.len as usize);
        let stored = {
            let state = self.state.lock();
            let segment = state.segments.get(&blob.addr.segment).ok_or_else(|| flawed(Flaw::Freed))?;
            Bytes::copy_from_slice(segment.bytes.get(range).ok_or_else(|| flawed(Flaw::Address))?)
        };
        blob::open(&stored, blob).map_err(flawed)
    }

    fn claims(&self, owner: Owner) -> Vec<Claim> {
        let mut state = self.state.lock();
        let State { segments, open, .. } = &mut *state;
        let Some(at) = open.get_mut(&owner) else { return Vec::new() };
        let grown = std::mem::take(&mut at.grown);
        if at.segment.is_none() {
            open.remove(&owner);
        }
        let used = |id: SegmentId| segments.get(&id).map(|s| s.bytes.len() as u32);
        grown.into_iter().filter_map(|segment| Some(Claim { segment, owner, used: used(segment)? })).collect()
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.appended) {
            state.syncs += 1;
        }
        Ok(())
    }

    fn adopt(&self, claims: &[Claim]) -> Result<()> {
        let mut state = self.state.lock();
        let mut kept = HashMap::new();
        for claim in claims {
            let id = claim.segment;
            let held = state.segments.get(&id).is_some_and(|s| s.bytes.len() >= claim.used as usize);
            if !held {
                return Err(Error::Claims { what: format!("segment {id} is not there, or shorter than its claim") });
            }
            if kept.insert(id, *claim).is_some() {
                return Err(Error::Claims { what: format!("segment {id} is claimed twice") });
            }
        }
        state.open.clear();
        state.segments.retain(|id, segment| {
            kept.get(id).is_some_and(|claim| {
                segment.owner = claim.owner;
                segment.bytes.truncate(claim.used as usize);
                true
            })
        });
        Ok(())
    }

    fn seal(&self, owner: Owner) {
        let mut state = self.state.lock();
        if let Some(open) = state.open.get_mut(&owner) {
            open.segment = None;
            if open.grown.is_empty() {
                state.open.remove(&owner);
            }
        }
    }

    fn free(&self, segments: &[SegmentId]) -> Result<u64> {
        let mut state = self.state.lock();
        let mut seen = BTreeSet::new();
        if let Some(id) = segments.iter().find(|id| !state.segments.contains_key(id) || !seen.insert(**id)) {
            return Err(Error::unowned(*id));
        }
        for id in segments {
            if let Some(segment) = state.segments.remove(id)
                && let Some(open) = state.open.get_mut(&segment.owner)
            {
                open.grown.remove(id);
                open.segment = open.segment.filter(|at| at != id);
            }
        }
        Ok(segments.iter().map(|id| id.size()).sum())
    }

    fn punch(&self, owner: Owner, dead: &[Dead]) -> Result<u64> {
        let mut state = self.state.lock();
        let mut total = 0;
        for dead in dead {
            let open = state.open.get(&owner).is_some_and(|open| open.segment == Some(dead.segment));
            let Some(found) = state.segments.get_mut(&dead.segment).filter(|found| found.owner == owner) else {
                continue;
            };
            let bytes = &mut found.bytes;
            dead.check(if open { bytes.len() as u64 } else { dead.segment.size() })?;
            for &(offset, len) in &dead.ranges {
                // What was never written takes no memory.
                let end = (offset + len).min(bytes.len() as u32);
                if ((end.saturating_sub(offset)) as usize) < HEADER {
                    continue;
                }
                let header = |at: u32| Ok::<_, Error>(head_of(&bytes[at as usize..]));
                let before: u32 = walk::holes(offset, end, header)?.iter().map(|(_, len)| len).sum();
                bytes[offset as usize..end as usize].fill(0);
                let hole = Header::hole(len).encode();
                bytes[offset as usize..offset as usize + HEADER].copy_from_slice(&hole);
                total += u64::from(end - offset - before);
            }
        }
        Ok(total)
    }

    fn walk(&self, claim: &Claim) -> Result<Vec<Found>> {
        let state = self.state.lock();
        let segment = state.segments.get(&claim.segment).ok_or_else(|| Error::unowned(claim.segment))?;
        let used = segment.bytes.len().min(claim.used as usize);
        let bytes = Bytes::copy_from_slice(&segment.bytes[..used]);
        drop(state);
        Ok(walk::blobs(claim.segment, &bytes))
    }

    fn usage(&self) -> Usage {
        Usage { claimed: self.state.lock().segments.keys().map(|id| id.size()).sum(), ..Usage::default() }
    }

    fn held(&self, segment: SegmentId) -> Result<u64> {
        let state = self.state.lock();
        let bytes = &state.segments.get(&segment).ok_or_else(|| Error::unowned(segment))?.bytes;
        let mut given = 0;
        let mut at = 0;
        while bytes.len().saturating_sub(at) >= HEADER
            && let Ok(header) = Header::decode(&bytes[at..])
        {
            let len = (blob::padded(header.len()) as usize).min(bytes.len() - at);
            given += if header.codec == Codec::Hole { len } else { 0 };
            at += len;
        }
        Ok((bytes.len() - given) as u64)
    }

    fn footprint(&self) -> Result<u64> {
        let ids: Vec<SegmentId> = self.state.lock().segments.keys().copied().collect();
        ids.into_iter().map(|id| self.held(id)).sum()
    }

    fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }
}

/// Returns the first bytes, as many as a header has.
fn head_of(bytes: &[u8]) -> [u8; HEADER] {
    let mut head = [0; HEADER];
    let len = bytes.len().min(HEADER);
    head[..len].copy_from_slice(&bytes[..len]);
    head
}
