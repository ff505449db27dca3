//! Rows of extents.

use super::*;
use mw_segments::SegmentId;

fn placed(n: u32, len: u32) -> Extent {
    let addr = Addr { segment: SegmentId(u64::MAX - u64::from(n)), offset: u32::MAX, len: u32::MAX - n };
    Extent::whole(Piece { hash: Hash::of(&n.to_le_bytes()), len, locator: Locator::Blob(addr) })
}

fn joined(n: u32, len: u32) -> Extent {
    let Extent { piece, .. } = placed(n, u32::MAX);
    let Locator::Blob(addr) = piece.locator else { unreachable!("placed makes blobs") };
    let locator = Locator::Within { outer: BlobRef { addr, hash: piece.hash }, offset: u32::MAX };
    Extent { piece: Piece { locator, ..piece }, skip: u32::MAX - len, len }
}

fn riding(n: u32, len: u32) -> Extent {
    let bytes = Bytes::from(vec![n as u8; len as usize]);
    Extent::whole(Piece { hash: Hash::of(&bytes), len, locator: Locator::Inline(bytes) })
}

fn read(rows: &[(u64, Value)]) -> Vec<(u64, Extent)> {
    let mut found = Vec::new();
    for (at, value) in rows {
        let mut at = *at;
        let start = at;
        for extent in Extent::decode(value).unwrap() {
            let extent = extent.unwrap();
            let len = u64::from(extent.len);
            found.push((at, extent));
            at += len;
        }
        assert_eq!(value.weight, at - start);
        assert!(value.data.len() <= MAX_INLINE && (value.locator.len() <= MAX_LOCATOR || !is_placed(value)));
    }
    found
}

#[test]
fn extents_come_back_from_rows() {
    let makers: [fn(u32, u32) -> Extent; 3] = [placed, joined, riding];
    for seed in 0..3_000_u32 {
        let mut extents = Vec::new();
        let mut at = u64::from(seed % 7) * 4_096;
        for i in 0..seed % 23 {
            let bits = Hash::of(&(u64::from(seed) << 32 | u64::from(i)).to_le_bytes()).0;
            let extent = makers[usize::from(bits[0] % 3).min(usize::from(bits[1] % 3))](i, 1 + u32::from(bits[2]));
            at += if bits[3].is_multiple_of(8) { 1 } else { 0 };
            extents.push((at, extent.clone()));
            at += u64::from(extent.len);
        }
        let rows = rows(&extents);
        assert_eq!(read(&rows), extents, "seed {seed}");
    }
}

#[test]
fn a_row_takes_what_the_tree_takes() {
    let end_to_end =
        |make: fn(u32, u32) -> Extent| (0..60).map(|i| (u64::from(i) * 100, make(i, 100))).collect::<Vec<_>>();
    assert_eq!(rows(&end_to_end(placed)).len(), 9, "seven, with the longest of addresses");
    assert_eq!(rows(&end_to_end(joined)).len(), 15, "four, with the longest of locators");
    assert_eq!(rows(&end_to_end(riding)).len(), 60, "what rides stands alone");
    let apart: Vec<_> = (0..60).map(|i| (u64::from(i) * 101, placed(i, 100))).collect();
    assert_eq!(rows(&apart).len(), 60, "with a hole between them");
    assert_eq!(rows(&apart)[0].1, placed(0, 100).encode(), "as it was before there were rows");
    assert_eq!(rows(&[]), []);
}

#[test]
fn lists_and_pieces_share_no_record() {
    let list = |n: u32, len: u32| {
        let mut extent = placed(n, len);
        let Locator::Blob(addr) = extent.piece.locator else { unreachable!("placed makes blobs") };
        extent.piece.locator = Locator::List(BlobRef { addr, hash: extent.piece.hash });
        extent
    };
    let mut extents: Vec<_> = (0..12).map(|i| (u64::from(i) * 100, list(i, 100))).collect();
    let rows_of_lists = rows(&extents);
    assert_eq!((read(&rows_of_lists), rows_of_lists.len()), (extents.clone(), 12), "each alone");
    extents[5].1 = placed(5, 100);
    let mixed = rows(&extents);
    assert_eq!((read(&mixed), mixed.len()), (extents, 12));
    let alone = list(1, 7).encode();
    assert!(Extent::decode(&alone).unwrap().all(|extent| extent.unwrap().is_list()));
    let as_piece = Value { data: [&[ALONE], &alone.data[1..]].concat().into(), ..alone };
    assert!(Extent::decode(&as_piece).unwrap().next().unwrap().is_err());
}

#[test]
fn what_is_damaged_is_refused() {
    let rows = rows(&[(0, placed(0, 100)), (100, placed(1, 50)), (150, placed(2, 7))]);
    let [(0, row)] = &rows[..] else { panic!("one row") };
    let refused = |row: &Value| match Extent::decode(row) {
        Ok(extents) => extents.collect::<Result<Vec<_>>>().is_err(),
        Err(_) => true,
    };
    assert!(!refused(row));
    for len in 0..row.data.len() {
        // Cut between two extents, the locators say that one is missing.
        assert!(refused(&Value { data: row.data.slice(..len), ..row.clone() }), "data of {len} bytes");
    }
    for len in 0..row.locator.len() {
        assert!(refused(&Value { locator: row.locator.slice(..len), ..row.clone() }), "locators of {len} bytes");
    }
    let more = |bytes: &Bytes| Bytes::from([&bytes[..], b"\x01"].concat());
    assert!(refused(&Value { data: more(&row.data), ..row.clone() }));
    assert!(refused(&Value { locator: more(&row.locator), ..row.clone() }));
    let versions: Vec<u8> = vec![0, 1, 3, 4, 255];
    for version in versions {
        let data = [&[version], &row.data[1..]].concat();
        assert!(refused(&Value { data: data.into(), ..row.clone() }), "version {version}");
    }
    let inline = [&[0], &row.locator[1..]].concat();
    assert!(refused(&Value { locator: inline.into(), ..row.clone() }), "bytes that ride in a row");
}
