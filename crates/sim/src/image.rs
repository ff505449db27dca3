//! The bytes of one file: a length, sparse pages, and which pages take space.
//!
//! Invariants: a byte without a page reads as zero; no byte at or past the length is other than zero; a copy shares its
//! pages, so that a crash of a large preallocated file costs little. It does not know what is durable.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The unit in which a disk writes: a sector is old or new, never a mixture.
pub(crate) const SECTOR: u64 = 512;
/// The unit in which space is taken.
pub(crate) const PAGE: u64 = 4096;

type Page = [u8; PAGE as usize];

#[derive(Clone, Default)]
pub(crate) struct Image {
    len: u64,
    pages: BTreeMap<u64, Arc<Page>>,
    space: Space,
}

impl Image {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the bytes of disk that the file takes.
    pub(crate) fn used(&self) -> u64 {
        self.space.count() * PAGE
    }

    /// Returns how many bytes of `range` take disk.
    pub(crate) fn held(&self, range: Range<u64>) -> u64 {
        let within = |page: u64| (page * PAGE).clamp(range.start, range.end.max(range.start));
        self.space.0.iter().map(|(&start, &end)| within(end) - within(start)).sum()
    }

    /// Returns how much more disk a write or reservation of `range` takes.
    pub(crate) fn wants(&self, range: Range<u64>) -> u64 {
        let mut more = self.space.clone();
        more.add(pages_of(range));
        (more.count() - self.space.count()) * PAGE
    }

    /// Fills `out` from `offset`, with zeros past the end.
    pub(crate) fn read(&self, out: &mut [u8], offset: u64) {
        for (page, within, part) in split(offset, out.len()) {
            match self.pages.get(&page) {
                Some(bytes) => out[part.clone()].copy_from_slice(&bytes[within..within + part.len()]),
                None => out[part].fill(0),
            }
        }
    }

    /// Writes and grows.
    pub(crate) fn write(&mut self, bytes: &[u8], offset: u64) {
        if bytes.is_empty() {
            return;
        }
        self.put(bytes, offset);
        self.len = self.len.max(offset + bytes.len() as u64);
    }

    /// Cuts or grows.
    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let end = self.len.next_multiple_of(PAGE);
            self.zero(len..end);
            self.space.remove(len.div_ceil(PAGE)..u64::MAX);
        }
        self.len = len;
    }

    /// Reserves space and grows to hold it.
    pub(crate) fn allocate(&mut self, range: Range<u64>) {
        self.len = self.len.max(range.end);
        self.space.add(pages_of(range));
    }

    /// Makes `range` zeros and gives back its whole pages.
    pub(crate) fn punch(&mut self, range: Range<u64>) {
        let range = range.start..range.end.min(self.len);
        if range.is_empty() {
            return;
        }
        self.zero(range.clone());
        // The last page of the file is whole as soon as the hole reaches the end.
        let end = if range.end == self.len { range.end.div_ceil(PAGE) } else { range.end / PAGE };
        self.space.remove(range.start.div_ceil(PAGE)..end);
    }

    /// Changes one bit, if it lies in the file.
    pub(crate) fn flip(&mut self, offset: u64, bit: u8) -> bool {
        let inside = offset < self.len;
        if inside {
            let mut byte = [0];
            self.read(&mut byte, offset);
            byte[0] ^= 1 << (bit & 7);
            self.put(&byte, offset);
        }
        inside
    }

    /// Makes sector number `sector` read as it does in `from`; the length stays.
    pub(crate) fn copy_sector(&mut self, from: &Self, sector: u64) {
        let mut bytes = [0; SECTOR as usize];
        from.read(&mut bytes, sector * SECTOR);
        self.put(&bytes, sector * SECTOR);
    }

    /// Takes the length `len` and the space of `other` as far as that length goes.
    pub(crate) fn settle(&mut self, len: u64, other: &Self) {
        // Sectors that survived past the surviving length are cut like any other bytes.
        let end = self.pages.last_key_value().map_or(0, |(page, _)| (page + 1) * PAGE);
        self.len = self.len.max(end);
        self.set_len(len);
        for (&start, &end) in &other.space.0 {
            self.space.add(start..end);
        }
        self.space.remove(len.div_ceil(PAGE)..u64::MAX);
    }

    fn put(&mut self, bytes: &[u8], offset: u64) {
        for (page, within, part) in split(offset, bytes.len()) {
            let to = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE as usize]));
            Arc::make_mut(to)[within..within + part.len()].copy_from_slice(&bytes[part]);
        }
        self.space.add(pages_of(offset..offset + bytes.len() as u64));
    }

    fn zero(&mut self, range: Range<u64>) {
        let touched: Vec<u64> = self.pages.range(pages_of(range.clone())).map(|(&page, _)| page).collect();
        for page in touched {
            let start = page * PAGE;
            let (from, to) = (range.start.max(start) - start, range.end.min(start + PAGE) - start);
            if from == 0 && to == PAGE {
                self.pages.remove(&page);
            } else if let Some(bytes) = self.pages.get_mut(&page) {
                Arc::make_mut(bytes)[from as usize..to as usize].fill(0);
            }
        }
    }
}

/// Which pages take space: disjoint ranges, start to end, that do not touch.
#[derive(Clone, Default)]
struct Space(BTreeMap<u64, u64>);

impl Space {
    fn count(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    fn add(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.0.range(..=range.end).next_back()
            && end >= range.start
        {
            if start <= range.start && end >= range.end {
                return;
            }
            self.0.remove(&start);
            range = range.start.min(start)..range.end.max(end);
        }
        self.0.insert(range.start, range.end);
    }

    fn remove(&mut self, range: Range<u64>) {
        while !range.is_empty()
            && let Some((&start, &end)) = self.0.range(..range.end).next_back()
            && end > range.start
        {
            self.0.remove(&start);
            if end > range.end {
                self.0.insert(range.end, end);
            }
            if start < range.start {
                self.0.insert(start, range.start);
                break;
            }
        }
    }
}

fn pages_of(range: Range<u64>) -> Range<u64> {
    if range.is_empty() { 0..0 } else { range.start / PAGE..range.end.div_ceil(PAGE) }
}

/// Cuts `len` bytes at `offset` by pages: page number, place within it, and which part of the bytes goes there.
fn split(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE) as usize;
        let take = (PAGE as usize - within).min(len - done);
        let part = done..done + take;
        done += take;
        (take > 0).then_some((at / PAGE, within, part))
    })
}

#[cfg(test)]
mod tests;
