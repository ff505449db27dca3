//! Damaged storage. Nothing wrong is ever returned as good.

use crate::world::{Map, number, place, value};
use mw_model::ErrorKind;
use mw_segments::BlobRef;
use mw_tree::{Error, Fault, Value, Visit};
use std::ops::Bound;

#[derive(Default)]
struct All(Vec<BlobRef>);

impl Visit for All {
    fn node(&mut self, blob: &BlobRef) -> bool {
        self.0.push(*blob);
        true
    }

    fn entry(&mut self, _: &[u8], _: &Value) {}

    fn large(&mut self, blob: &BlobRef) {
        self.0.push(*blob);
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let place = place(1 << 20);
    let mut map: Map = (0..400).map(|n| (number(n), value(&n.to_be_bytes()))).collect();
    map.insert(number(200), value(&[1; 3000]));
    let root = place.load(&map);
    let mut blobs = All::default();
    place.tree.walk(&root, &mut blobs).unwrap();
    assert!(blobs.0.len() > 5);
    for blob in blobs.0 {
        for at in [blob.addr.len - 1, blob.addr.len / 2] {
            assert!(place.segments.memory.damage(blob.addr.segment, blob.addr.offset + at, 4));
            // The cache still has what was good; proofs do not ask it.
            let error = place.tree.check(&root).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(matches!(error, Error::Check { fault: Fault::Unreadable(_), .. }), "{error}");
            assert_eq!(place.tree.walk(&root, &mut All::default()).unwrap_err().kind(), ErrorKind::Corrupt);
            place.cold();
            let mut scan = place.tree.scan(&root, (Bound::Unbounded, Bound::Unbounded));
            let error = scan.by_ref().find_map(Result::err).unwrap();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(scan.next().is_none(), "a scan ends at an error");
            assert!(place.segments.memory.damage(blob.addr.segment, blob.addr.offset + at, 4));
        }
    }
    place.tree.check(&root).unwrap();
}

#[test]
fn freed_segments_are_errors_with_the_place_named() {
    let place = place(0);
    let root = place.load(&(0..2000).map(|n| (number(n), value(b"v"))).collect());
    let blob = root.blob().unwrap();
    mw_segments::Segments::free(&*place.segments, &[blob.addr.segment]).unwrap();
    let error = place.tree.get(&root, &number(7)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(&blob.hash.to_string()), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}
