//! Lists: the pieces of a large object, stored once as a blob, so that whoever shares the object, a copy or the next version of a world, writes
//! a record for each list and not for each piece.
//!
//! To a record a list is a piece: its length is that of all its pieces, and a part of it can stand in a file. Its hash covers what it says of
//! its pieces and not where they lie, as everywhere.

use super::extent::{Extent, Holds, Locator, Piece, Row};
use super::version;
use crate::error::{Error, Result};
use bytes::Bytes;
use mw_model::Hash;
use mw_model::codec::{Reader, Writer};
use mw_segments::{BlobRef, Segments};
use std::collections::HashMap;
use std::sync::Arc;

/// The most pieces of a list: it is read and looked through whole.
const MOST: usize = 64;
/// Fewer pieces stand in records.
const LEAST: usize = 16;
/// The most bytes that the pieces of a list have together: their sum fits a record's 32 bits whatever pieces become.
const MOST_BYTES: u64 = 1 << 30;

/// Returns the extents of a large object as extents of lists, where it has pieces enough. `store` stores a list.
pub(crate) fn listed(
    extents: Vec<(u64, Extent)>,
    mut store: impl FnMut(&[u8]) -> Result<BlobRef>,
) -> Result<Vec<(u64, Extent)>> {
    if extents.len() < LEAST {
        return Ok(extents);
    }
    let mut lists = Vec::new();
    let mut rest = &extents[..];
    while !rest.is_empty() {
        let (first, rest_of) = rest.split_at(end_to_end(rest).max(1));
        rest = rest_of;
        if first.len() < LEAST {
            lists.extend_from_slice(first);
        } else {
            lists.push((first[0].0, list(first, &mut store)?));
        }
    }
    Ok(lists)
}

/// Returns how many of the first extents one list can hold: placed pieces that lie end to end.
fn end_to_end(extents: &[(u64, Extent)]) -> usize {
    let mut end = extents.first().map_or(0, |(at, _)| *at);
    let limit = end + MOST_BYTES;
    let fits = |(at, extent): &&(u64, Extent)| {
        let fits = *at == end && extent.piece.blob().is_some() && !extent.is_list();
        end += u64::from(extent.len);
        fits && end <= limit
    };
    extents.iter().take(MOST).take_while(fits).count()
}

fn list(extents: &[(u64, Extent)], store: &mut impl FnMut(&[u8]) -> Result<BlobRef>) -> Result<Extent> {
    let (mut data, mut locators) = (Writer::new(), Writer::new());
    let mut len = 0;
    for (_, extent) in extents {
        extent.encode_data(&mut data);
        extent.piece.locator.encode(&mut locators);
        len += extent.len;
    }
    let mut stored = Writer::new();
    stored.u8(1).bytes(&data.0).raw(&locators.0);
    Ok(Extent::whole(Piece { hash: Hash::of(&data.0), len, locator: Locator::List(store(&stored.0)?) }))
}

/// Lists, read; those read lately are at hand.
pub(crate) struct Lists {
    segments: Arc<dyn Segments>,
    read: HashMap<BlobRef, Bytes>,
}

impl Lists {
    /// How many are kept: 4 MB of them.
    const KEPT: usize = 1024;

    pub(crate) fn new(segments: Arc<dyn Segments>) -> Self {
        Self { segments, read: HashMap::new() }
    }

    /// Shows what an extent refers to: the blob of its piece, or first the list and then the blobs of the pieces that the extent has of it.
    pub(crate) fn blobs(&mut self, extent: &Extent, show: &mut dyn FnMut(&BlobRef)) -> Result<()> {
        let Some(blob) = extent.piece.blob() else { return Ok(()) };
        show(&blob);
        if !extent.is_list() {
            return Ok(());
        }
        if !self.read.contains_key(&blob) {
            if self.read.len() == Self::KEPT {
                self.read.clear();
            }
            self.read.insert(blob, self.segments.read(&blob)?);
        }
        pieces(extent, &self.read[&blob], |_, extent| {
            if let Some(blob) = extent.piece.blob() {
                show(&blob);
            }
        })
    }
}

/// Shows the extents of pieces that an extent of a list stands for, with their offsets from its start. `stored` is the list.
pub(crate) fn pieces(of: &Extent, stored: &[u8], mut show: impl FnMut(u32, Extent)) -> Result<()> {
    let mut r = Reader::new(stored);
    version(&mut r)?;
    let data = r.bytes()?;
    if Hash::of(data) != of.piece.hash {
        return Err(Error::corrupt("a list of pieces is not the one that its record says; run `mw fsck`"));
    }
    let (start, end) = (u64::from(of.skip), u64::from(of.skip) + u64::from(of.len));
    let mut at = 0;
    for extent in Row::new(Holds::Pieces, data, r.0)? {
        let extent = extent?;
        let (from, to) = (at, at + u64::from(extent.len));
        at = to;
        let (first, last) = (from.max(start), to.min(end));
        if first < last {
            show((first - start) as u32, extent.part((first - from) as u32, (last - first) as u32));
        }
    }
    if at != u64::from(of.piece.len) {
        return Err(Error::corrupt("a list of pieces has another length than its record says; run `mw fsck`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
