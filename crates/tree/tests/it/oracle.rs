//! Every verb against a `BTreeMap`.

use crate::world::{Dice, Edits, Map, apply, number, place, value};
use bytes::Bytes;
use mw_model::ErrorKind;
use mw_model::codec::{Reader, Writer};
use mw_tree::{Change, Root, Salt, Value, Visit};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The changes from `a` to `b` as they follow from the definition.
fn naive_diff(a: &Map, b: &Map) -> Vec<Change> {
    let keys: BTreeSet<&Bytes> = a.keys().chain(b.keys()).collect();
    let change = |key: &Bytes| Change { key: key.clone(), left: a.get(key).cloned(), right: b.get(key).cloned() };
    let differs = |change: &Change| match (&change.left, &change.right) {
        (Some(left), Some(right)) => !left.same(right),
        _ => true,
    };
    keys.into_iter().map(change).filter(differs).collect()
}

#[test]
fn random_edits_agree_with_a_map() {
    for seed in 0..24 {
        let (dice, place) = (Dice::new(seed), place(1 << 20));
        let space = [40, 400, 4_000][seed as usize % 3];
        let (mut map, mut root) = (Map::new(), Root::empty());
        let mut past = vec![(map.clone(), root.clone())];
        for round in 0..24 {
            let edits = dice.edits(&map, space);
            root = place.edit(&root, &edits);
            apply(&mut map, &edits);
            place.tree.check(&root).unwrap_or_else(|e| panic!("seed {seed}, round {round}: {e}"));
            assert_eq!(place.all(&root), map, "seed {seed}, round {round}");
            assert_eq!(root.entries(), map.len() as u64);
            assert_eq!(root.weight(), map.values().map(|value| value.weight).sum::<u64>());

            let mut keys: Vec<Bytes> = (0..40).map(|_| dice.key(space)).collect();
            keys.sort();
            let expected: Vec<Option<Value>> = keys.iter().map(|key| map.get(key).cloned()).collect();
            assert_eq!(place.tree.get_many(&root, &keys).unwrap(), expected);
            for (key, expected) in keys.iter().zip(expected) {
                assert_eq!(place.tree.get(&root, key).unwrap(), expected);
            }

            let (old_map, old_root) = &past[dice.below(past.len() as u64) as usize];
            let diff: Vec<Change> = place.tree.diff(old_root, &root).map(Result::unwrap).collect();
            assert_eq!(diff, naive_diff(old_map, &map), "seed {seed}, round {round}");
            assert_eq!(place.all(old_root), *old_map, "an old root changed");
            past.push((map.clone(), root.clone()));
        }
    }
}

#[test]
fn scans_respect_all_bounds_from_both_ends() {
    let (dice, place) = (Dice::new(5), place(1 << 20));
    for size in [0u64, 1, 2, 33, 500, 3000] {
        let map: Map = (0..size).map(|n| (number(n * 2), value(&n.to_be_bytes()))).collect();
        let root = place.load(&map);
        let bound = || match dice.below(5) {
            0 => Bound::Unbounded,
            n if n % 2 == 0 => Bound::Included(number(dice.below(size * 2 + 2))),
            _ => Bound::Excluded(number(dice.below(size * 2 + 2))),
        };
        for _ in 0..300 {
            let range = (bound(), bound());
            // `BTreeMap::range` panics where the range is inverted; by definition it holds what is inside both bounds.
            let inside = |key: &Bytes| {
                (match &range.0 {
                    Bound::Unbounded => true,
                    Bound::Included(start) => key >= start,
                    Bound::Excluded(start) => key > start,
                }) && (match &range.1 {
                    Bound::Unbounded => true,
                    Bound::Included(end) => key <= end,
                    Bound::Excluded(end) => key < end,
                })
            };
            let expected: Vec<(Bytes, Value)> =
                map.iter().filter(|(key, _)| inside(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
            let found: Vec<_> = place.tree.scan(&root, range.clone()).map(Result::unwrap).collect();
            assert_eq!(found, expected, "{range:?}");
            let mut found: Vec<_> = place.tree.scan(&root, range.clone()).rev().map(Result::unwrap).collect();
            found.reverse();
            assert_eq!(found, expected, "{range:?} from the end");

            // From both ends at random they meet, and nothing is seen twice or left out.
            let (mut scan, mut front, mut back) = (place.tree.scan(&root, range), Vec::new(), Vec::new());
            loop {
                let (next, to) = match dice.below(2) {
                    0 => (scan.next(), &mut front),
                    _ => (scan.next_back(), &mut back),
                };
                match next {
                    Some(entry) => to.push(entry.unwrap()),
                    None => break,
                }
            }
            assert!(scan.next().is_none() && scan.next_back().is_none());
            back.reverse();
            front.extend(back);
            assert_eq!(front, expected);
        }
    }
}

#[test]
fn a_change_of_the_locator_alone_is_stored_and_is_no_change_of_content() {
    let place = place(1 << 20);
    let map: Map = (0..5000).map(|n| (number(n), value(b"content"))).collect();
    let root = place.load(&map);
    let moved = Value { locator: Bytes::from_static(b"elsewhere"), ..value(b"content") };
    let other = place.edit(&root, &vec![(number(77), Some(moved.clone()))]);
    assert_eq!(place.tree.get(&other, &number(77)).unwrap(), Some(moved));
    assert_eq!(other.hash(), root.hash());
    assert_ne!(other, root);
    assert_eq!(place.tree.diff(&root, &other).count(), 0);
    // An edit of a neighbour keeps the locator of the tree that is edited.
    let later = place.edit(&other, &vec![(number(78), Some(value(b"new")))]);
    assert_eq!(&place.tree.get(&later, &number(77)).unwrap().unwrap().locator[..], b"elsewhere");
}

#[test]
fn what_changes_nothing_writes_nothing() {
    let (dice, place) = (Dice::new(9), place(1 << 20));
    let map: Map = (0..3000).map(|n| (number(n), dice.value())).collect();
    let root = place.load(&map);
    place.segments.taken();
    let mut edits: Edits = map.iter().step_by(7).map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    edits.extend((5000..5050).map(|n| (number(n), None)));
    assert_eq!(place.edit(&root, &edits), root);
    assert_eq!(place.edit(&root, &Edits::new()), root);
    assert_eq!(place.edit(&Root::empty(), &vec![(number(1), None)]), Root::empty());
    assert_eq!(place.segments.taken().1, 0);
}

#[test]
fn out_of_line_data_is_written_once_and_carried_along() {
    let place = place(1 << 20);
    let big = value(&[7; 100_000]);
    let root = place.edit(&Root::empty(), &vec![(number(1), Some(big.clone())), (number(2), Some(value(b"x")))]);
    assert_eq!(place.segments.taken().1, 2, "one record, one leaf");
    let other = place.edit(&root, &vec![(number(2), Some(value(b"y")))]);
    let heavier = Value { weight: 5, ..big.clone() };
    let third = place.edit(&other, &vec![(number(1), Some(heavier.clone()))]);
    assert_eq!(place.segments.taken().1, 2, "two leaves and no record");
    assert_eq!(place.tree.get(&third, &number(1)).unwrap(), Some(heavier));
    let diff: Vec<_> = place.tree.diff(&root, &other).map(Result::unwrap).collect();
    assert_eq!(diff.len(), 1);
}

#[test]
fn a_root_survives_its_record() {
    let place = place(1 << 20);
    let root = place.load(&(0..900).map(|n| (number(n), value(b"v"))).collect());
    for root in [Root::empty(), root] {
        let mut w = Writer::new();
        root.encode(&mut w);
        let mut r = Reader::new(&w.0);
        assert_eq!(Root::decode(&mut r).unwrap(), root);
        r.end().unwrap();
        for cut in 0..w.0.len() {
            assert!(Root::decode(&mut Reader::new(&w.0[..cut])).is_err());
        }
    }
    assert_ne!(Root::empty().hash(), place.load(&Map::from([(Bytes::new(), value(b""))])).hash());
}

#[test]
fn bad_batches_are_refused_before_anything_is_written() {
    let place = place(1 << 20);
    let root = place.load(&Map::from([(number(1), value(b"1"))]));
    place.segments.taken();
    let put = |key: Bytes| (key, Some(value(b"v")));
    let long = |len| Bytes::from(vec![b'x'; len]);
    let far = |locator| Value { locator, ..Value::default() };
    let cases: [(Edits, ErrorKind); 6] = [
        (vec![put(number(2)), put(number(1))], ErrorKind::Invalid),
        (vec![put(number(2)), put(number(2))], ErrorKind::Invalid),
        (vec![put(long(mw_tree::MAX_KEY + 1))], ErrorKind::NameTooLong),
        (vec![(number(1), Some(value(&vec![0; mw_segments::MAX_BLOB + 1])))], ErrorKind::TooLarge),
        (vec![(number(1), Some(far(long(mw_tree::MAX_LOCATOR + 1))))], ErrorKind::TooLarge),
        (vec![put(number(3)), (long(mw_tree::MAX_KEY + 1), None)], ErrorKind::NameTooLong),
    ];
    for (edits, kind) in cases {
        let error = place.tree.edit(&root, &crate::world::SALT, crate::world::OWNER, &edits).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    let error = place.tree.edit(&root, &Salt([0; 16]), crate::world::OWNER, &[put(number(2))]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(place.tree.get_many(&root, &[number(2), number(1)]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(place.segments.taken().1, 0);
    // The largest of everything, all at once, fits.
    let largest: Edits = (0..40u8)
        .map(|n| {
            let key = [&[n][..], &long(mw_tree::MAX_KEY - 1)].concat().into();
            (key, Some(Value { data: long(256), locator: long(256), weight: u64::MAX }))
        })
        .collect();
    let root = place.edit(&root, &largest);
    place.tree.check(&root).unwrap();
    assert_eq!((root.entries(), root.weight()), (41, u64::MAX));
}

/// Counts what a walk shows, and goes into each node once.
#[derive(Default)]
struct Seen {
    nodes: BTreeMap<String, u32>,
    entries: Map,
    large: usize,
}

impl Visit for Seen {
    fn node(&mut self, blob: &mw_segments::BlobRef) -> bool {
        let times = self.nodes.entry(blob.addr.to_string()).or_default();
        *times += 1;
        *times == 1
    }

    fn entry(&mut self, key: &[u8], value: &Value) {
        self.entries.insert(Bytes::copy_from_slice(key), value.clone());
    }

    fn large(&mut self, _: &mw_segments::BlobRef) {
        self.large += 1;
    }
}

#[test]
fn a_walk_shows_everything_and_goes_into_shared_nodes_once() {
    let (dice, place) = (Dice::new(3), place(1 << 20));
    let map: Map = (0..8000).map(|n| (number(n), dice.value())).collect();
    let root = place.load(&map);
    let mut seen = Seen::default();
    place.tree.walk(&root, &mut seen).unwrap();
    assert_eq!(seen.entries, map);
    assert_eq!(seen.large, map.values().filter(|value| value.data.len() > 256).count());
    let nodes = seen.nodes.len();

    let fork = place.edit(&root, &vec![(number(4000), Some(value(b"changed")))]);
    seen.entries.clear();
    place.tree.walk(&fork, &mut seen).unwrap();
    assert!((2..8).contains(&(seen.nodes.len() - nodes)), "only the new path is new");
    assert!(seen.entries.len() < 600);
    place.tree.walk(&Root::empty(), &mut seen).unwrap();
}
