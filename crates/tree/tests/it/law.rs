//! The law: equal content and equal salt, equal hash, whatever the order and batching of the edits. That the shape is equal
//! too follows from the hash, for it covers where nodes end.

use crate::world::{Dice, Edits, Map, OWNER, SALT, apply, number, place, value};
use bytes::Bytes;
use mw_tree::{Root, Salt};

#[test]
fn history_leaves_no_trace() {
    for seed in 100..130 {
        let (dice, place) = (Dice::new(seed), place(1 << 20));
        let space = [60, 900, 12_000][seed as usize % 3];
        let (mut map, mut root) = (Map::new(), Root::empty());
        for round in 0..20 {
            let edits = dice.edits(&map, space);
            root = place.edit(&root, &edits);
            apply(&mut map, &edits);
            assert_eq!(root.hash(), place.load(&map).hash(), "seed {seed}, round {round}");
        }
    }
}

#[test]
fn small_trees_pass_between_heights() {
    for seed in 0..60 {
        let (dice, place) = (Dice::new(1000 + seed), place(1 << 20));
        let (mut map, mut root) = (Map::new(), Root::empty());
        let space = 20 << (seed % 5);
        for round in 0..60 {
            // A few puts or removals at a time, often at the ends, where trees grow and shrink.
            let edits: Map = (0..1 + dice.below(3))
                .map(|_| match dice.below(6) {
                    0 => number(dice.below(3)),
                    1 => number(space - dice.below(3)),
                    _ => number(dice.below(space)),
                })
                .map(|key| (key, value(&[1; 5])))
                .collect();
            let growing = round / 20 != 1;
            let keep = || growing == (dice.below(4) > 0);
            let edits: Edits = edits.into_iter().map(|(key, value)| (key, keep().then_some(value))).collect();
            root = place.edit(&root, &edits);
            apply(&mut map, &edits);
            assert_eq!(root.hash(), place.load(&map).hash(), "seed {seed}, round {round}");
            place.tree.check(&root).unwrap();
        }
    }
}

#[test]
fn any_order_and_any_batching_give_one_tree() {
    let (dice, place) = (Dice::new(1), place(4 << 20));
    let map: Map = (0..4000).map(|n| (number(n * n), dice.value())).collect();
    let whole = place.load(&map);
    for batch in [1, 13, 500, 3999] {
        let mut edits: Edits = map.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
        for i in (1..edits.len()).rev() {
            edits.swap(i, dice.below(i as u64 + 1) as usize);
        }
        let mut root = Root::empty();
        for some in edits.chunks_mut(batch) {
            some.sort_by(|a, b| a.0.cmp(&b.0));
            root = place.edit(&root, &some.to_vec());
        }
        assert_eq!(root.hash(), whole.hash(), "batches of {batch}");
        place.tree.check(&root).unwrap();
    }
}

#[test]
fn shrinking_and_growing_pass_through_the_same_trees() {
    let place = place(4 << 20);
    let map: Map = (0..20_000).map(|n| (number(n), value(&n.to_le_bytes()))).collect();
    let full = place.load(&map);
    let remove = |from: u64, to: u64| (from..to).map(|n| (number(n), None)).collect::<Edits>();
    // From the left, from the right, from the middle outward, all but one: down to nothing.
    for (from, to) in [(0, 19_990), (10, 20_000), (1, 19_999), (0, 10_000), (5000, 15_000), (0, 19_999), (1, 20_000)] {
        let rest = place.edit(&full, &remove(from, to));
        let mut left = map.clone();
        apply(&mut left, &remove(from, to));
        assert_eq!(rest.hash(), place.load(&left).hash(), "{from}..{to}");
        place.tree.check(&rest).unwrap();
        let back: Edits = map.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
        assert_eq!(place.edit(&rest, &back).hash(), full.hash());
        assert_eq!(place.edit(&rest, &remove(0, 20_000)), Root::empty());
    }
    // Down one by one, from a small tree on.
    let mut root = place.edit(&full, &remove(300, 20_000));
    for n in (0..300).rev() {
        root = place.edit(&root, &vec![(number(n), None)]);
        let left: Map = map.iter().take(n as usize).map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(root.hash(), place.load(&left).hash());
    }
}

#[test]
fn appending_one_by_one_is_the_bulk_load() {
    let place = place(4 << 20);
    let (mut root, mut map) = (Root::empty(), Map::new());
    for n in 0..3000 {
        root = place.edit(&root, &vec![(number(n), Some(value(b"appended")))]);
        map.insert(number(n), value(b"appended"));
        if n % 97 == 0 || n < 100 {
            assert_eq!(root.hash(), place.load(&map).hash(), "{n}");
            place.tree.check(&root).unwrap();
        }
    }
}

#[test]
fn the_salt_shapes_the_tree_and_not_what_is_in_it() {
    let place = place(4 << 20);
    let map: Map = (0..5000).map(|n| (number(n), value(b"v"))).collect();
    let edits: Edits = map.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    let one = place.tree.edit(&Root::empty(), &SALT, OWNER, &edits).unwrap();
    let other = place.tree.edit(&Root::empty(), &Salt([9; 16]), OWNER, &edits).unwrap();
    assert_ne!(one.hash(), other.hash());
    assert_eq!(place.all(&one), place.all(&other));
    assert_eq!(place.tree.diff(&one, &other).count(), 0);
    place.tree.check(&other).unwrap();
}

#[test]
fn keys_that_share_all_but_their_end_and_empty_values_are_fine() {
    let place = place(4 << 20);
    let long = [b'p'; 1190];
    let mut map: Map =
        (0..400u64).map(|n| ([&long[..], &n.to_be_bytes()].concat().into(), value(b""))).collect::<Map>();
    map.insert(Bytes::new(), value(b""));
    let root = place.load(&map);
    place.tree.check(&root).unwrap();
    assert_eq!(place.all(&root), map);
    assert_eq!(place.tree.get(&root, b"").unwrap(), Some(value(b"")));
    let mut one_by_one = Root::empty();
    for (key, value) in map.iter().rev() {
        one_by_one = place.edit(&one_by_one, &vec![(key.clone(), Some(value.clone()))]);
    }
    assert_eq!(one_by_one.hash(), root.hash());
}
