//! Lists of pieces.

use super::*;
use mw_segments::{Addr, SegmentId};

fn placed(n: u64, len: u32) -> Extent {
    let addr = Addr { segment: SegmentId(n), offset: 7, len };
    Extent::whole(Piece { hash: Hash::of(&n.to_le_bytes()), len, locator: Locator::Blob(addr) })
}

fn end_to_end(count: u64) -> Vec<(u64, Extent)> {
    let mut at = 0;
    let extents = (0..count).map(|n| {
        let extent = placed(n, 1000 + n as u32);
        at += u64::from(extent.len);
        (at - u64::from(extent.len), extent)
    });
    extents.collect()
}

/// Stores lists in a map.
struct Shelf(HashMap<BlobRef, Bytes>);

impl Shelf {
    fn list(&mut self, extents: Vec<(u64, Extent)>) -> Vec<(u64, Extent)> {
        let store = |bytes: &[u8]| {
            let addr = Addr { segment: SegmentId(1 << 40), offset: self.0.len() as u32, len: bytes.len() as u32 };
            let blob = BlobRef { addr, hash: Hash::of(bytes) };
            self.0.insert(blob, Bytes::copy_from_slice(bytes));
            Ok(blob)
        };
        listed(extents, store).unwrap()
    }

    /// Puts pieces in the place of lists.
    fn open(&self, extents: &[(u64, Extent)]) -> Vec<(u64, Extent)> {
        let mut found = Vec::new();
        for (at, extent) in extents {
            match &extent.piece.locator {
                Locator::List(blob) => {
                    pieces(extent, &self.0[blob], |from, piece| found.push((at + u64::from(from), piece))).unwrap();
                }
                _ => found.push((*at, extent.clone())),
            }
        }
        found
    }
}

#[test]
fn pieces_come_back_from_lists() {
    for count in [0, 1, 15, 16, 17, 63, 64, 65, 79, 80, 200] {
        let mut shelf = Shelf(HashMap::new());
        let extents = end_to_end(count);
        let lists = shelf.list(extents.clone());
        assert_eq!(shelf.open(&lists), extents, "{count} pieces");
        let expected = if count < 16 { count } else { count / 64 + if count % 64 < 16 { count % 64 } else { 1 } };
        assert_eq!(lists.len() as u64, expected, "{count} pieces");
        assert_eq!(shelf.list(lists.clone()), lists, "a list is not listed");
    }
}

#[test]
fn what_does_not_lie_end_to_end_or_rides_is_in_no_list() {
    let mut shelf = Shelf(HashMap::new());
    let mut extents = end_to_end(60);
    for (at, _) in &mut extents[20..] {
        *at += 1;
    }
    extents[30].1.piece.locator = Locator::Inline(Bytes::from(vec![0; 1030]));
    let lists = shelf.list(extents.clone());
    assert_eq!(shelf.open(&lists), extents);
    assert_eq!(lists.len(), 1 + 10 + 1 + 1, "twenty, ten that are too few, the one that rides, and the rest");
    let huge: Vec<_> = (0..40).map(|n| (n << 30, placed(n, 1 << 30))).collect();
    assert_eq!(shelf.list(huge.clone()), huge, "too long for a list");
}

#[test]
fn a_part_of_a_list_is_the_parts_of_its_pieces() {
    let mut shelf = Shelf(HashMap::new());
    let extents = end_to_end(20);
    let lists = shelf.list(extents.clone());
    let [(0, list)] = &lists[..] else { panic!("one list") };
    for (skip, len) in [(0, 1), (0, 1000), (999, 2), (1000, 1001), (500, 5_000), (list.len - 1, 1), (0, list.len)] {
        let part = shelf.open(&[(0, list.part(skip, len))]);
        let (mut at, mut expected) = (0, Vec::new());
        for (from, extent) in &extents {
            let (first, last) = ((*from as u32).max(skip), (*from as u32 + extent.len).min(skip + len));
            if first < last {
                expected.push((u64::from(at), extent.part(first - *from as u32, last - first)));
                at += last - first;
            }
        }
        assert_eq!(part, expected, "{len} bytes at {skip}");
        assert_eq!(at, len);
    }
}

#[test]
fn a_list_that_is_not_the_one_meant_is_refused() {
    let mut shelf = Shelf(HashMap::new());
    let lists = shelf.list(end_to_end(20));
    let (list, stored) = (lists[0].1.clone(), shelf.0.values().next().unwrap().clone());
    let refused = |list: &Extent, stored: &[u8]| pieces(list, stored, |_, _| ()).is_err();
    assert!(!refused(&list, &stored));
    for at in [0, 1, 10, stored.len() / 3, stored.len() / 2] {
        let mut other = stored.to_vec();
        other[at] ^= 1;
        assert!(refused(&list, &other), "byte {at}");
    }
    for len in 0..stored.len() {
        assert!(refused(&list, &stored[..len]), "cut to {len}");
    }
    assert!(refused(&list, &[&stored[..], &[0]].concat()));
    let mut longer = list.clone();
    longer.piece.len += 1;
    assert!(refused(&longer, &stored), "another length");
    let mut other = list;
    other.piece.hash = Hash::of(b"another");
    assert!(refused(&other, &stored), "another list");
}
