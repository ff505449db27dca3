//! What the verbs cost, counted in blobs read and written, never in time.

use crate::world::{Dice, Edits, Map, apply, number, place, value};
use bytes::Bytes;
use mw_tree::{Root, Value};
use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;

const SIZE: u64 = 120_000;

fn big() -> Map {
    (0..SIZE).map(|n| (number(n), value(&n.to_be_bytes()))).collect()
}

#[test]
fn an_edit_writes_a_path_and_a_diff_reads_two() {
    let place = place(64 << 20);
    let (dice, root) = (Dice::new(4), place.load(&big()));
    let mut most = 0;
    for _ in 0..60 {
        let key = number(dice.below(SIZE));
        place.cold();
        let edited = place.edit(&root, &vec![(key.clone(), Some(value(b"edited")))]);
        let (reads, writes) = place.segments.taken();
        assert!(reads <= 12 && writes <= 12, "{reads} reads, {writes} writes for one edit");
        most = most.max(writes);

        place.cold();
        let diff: Vec<_> = place.tree.diff(&root, &edited).map(Result::unwrap).collect();
        assert_eq!(diff.len(), 1);
        assert_eq!(diff[0].key, key);
        let (reads, _) = place.segments.taken();
        assert!(reads <= 24, "{reads} reads for a diff of one");
    }
    assert!(most >= 4, "the tree is too small to show anything");

    for changes in [100, 2000] {
        let edits: Edits = (0..changes).map(|n| (number(n * (SIZE / changes)), None)).collect();
        place.cold();
        let edited = place.edit(&root, &edits);
        let (_, writes) = place.segments.taken();
        // Removing keys sometimes joins two nodes; a few more than a leaf and a parent each.
        assert!(writes <= changes * 5 / 2, "{writes} writes for {changes} scattered edits");
        place.cold();
        assert_eq!(place.tree.diff(&root, &edited).count() as u64, changes);
        let (reads, _) = place.segments.taken();
        assert!(reads <= changes * 5, "{reads} reads for a diff of {changes}");
    }
}

#[test]
fn a_diff_passes_over_equal_content_at_other_addresses() {
    let place = place(64 << 20);
    let map = big();
    let (one, two) = (place.load(&map), place.load(&map));
    assert_ne!(one.blob(), two.blob());
    assert_eq!(one.hash(), two.hash());
    place.cold();
    assert_eq!(place.tree.diff(&one, &two).count(), 0);
    assert_eq!(place.segments.taken().0, 0);
    let edited = place.edit(&two, &vec![(number(1234), None), (number(100_000), Some(value(b"new")))]);
    place.cold();
    assert_eq!(place.tree.diff(&one, &edited).count(), 2);
    let (reads, _) = place.segments.taken();
    assert!(reads <= 40, "{reads}");
}

#[test]
fn a_removed_range_costs_what_was_in_it() {
    let place = place(64 << 20);
    let root = place.load(&big());
    let edits: Edits = (30_000..90_000).map(|n| (number(n), None)).collect();
    place.cold();
    let edited = place.edit(&root, &edits);
    let (_, writes) = place.segments.taken();
    assert!(writes <= 10, "{writes} writes to take a range out");
    place.cold();
    assert_eq!(place.tree.diff(&root, &edited).count(), 60_000);
    assert_eq!(place.tree.diff(&edited, &root).count(), 60_000);
    let (reads, _) = place.segments.taken();
    // 60,000 entries are some 1,900 nodes, and the second time they are in the cache.
    assert!(reads <= 2_400, "{reads}");
}

#[test]
fn a_bulk_load_writes_each_node_once() {
    let place = place(64 << 20);
    let root = place.load(&big());
    let (reads, writes) = place.segments.taken();
    assert_eq!(reads, 0);
    let mut nodes = 0;
    place.tree.walk(&root, &mut Nodes(&mut nodes)).unwrap();
    assert_eq!(nodes, writes);
    // And so does a batch of edits: what it wrote is what the new tree has and the old has not.
    let edits: Edits = (0..SIZE).step_by(977).map(|n| (number(n), None)).collect();
    place.segments.taken();
    let edited = place.edit(&root, &edits);
    let (_, writes) = place.segments.taken();
    let (mut old, mut new) = (Blobs::default(), Blobs::default());
    place.tree.walk(&root, &mut old).unwrap();
    place.tree.walk(&edited, &mut new).unwrap();
    assert_eq!(new.0.difference(&old.0).count() as u64, writes);
}

#[test]
fn shrinking_writes_nothing_in_vain() {
    let place = place(64 << 20);
    let root = place.load(&big());
    for (keep, step) in [(0..3, 1), (777..778, 1), (0..SIZE, 40_000), (70_000..70_700, 1)] {
        let kept: BTreeSet<u64> = keep.step_by(step).collect();
        let edits: Edits = (0..SIZE).filter(|n| !kept.contains(n)).map(|n| (number(n), None)).collect();
        place.segments.taken();
        let edited = place.edit(&root, &edits);
        let (_, writes) = place.segments.taken();
        let (mut old, mut new) = (Blobs::default(), Blobs::default());
        place.tree.walk(&root, &mut old).unwrap();
        place.tree.walk(&edited, &mut new).unwrap();
        assert_eq!(edited.entries(), kept.len() as u64);
        assert_eq!(new.0.difference(&old.0).count() as u64, writes);
        place.tree.check(&edited).unwrap();
    }
}

#[test]
fn nodes_without_a_change_keep_their_address() {
    let (dice, place) = (Dice::new(11), place(64 << 20));
    let new = || value(&dice.bytes(6));
    let step = |root: &Root, edits: &Edits| {
        let edited = place.edit(root, edits);
        let (mut old, mut new) = (Blobs::default(), Blobs::default());
        place.tree.walk(root, &mut old).unwrap();
        place.tree.walk(&edited, &mut new).unwrap();
        let contents: HashSet<_> = old.0.iter().map(|blob| blob.hash).collect();
        assert!(new.0.difference(&old.0).all(|blob| !contents.contains(&blob.hash)), "written again: {edits:?}");
        edited
    };

    let mut map: Map = (0..1500).map(|n| (number(n * 10), new())).collect();
    let mut root = place.load(&map);
    for _ in 0..300 {
        let scattered = dice.below(3) * dice.below(15);
        let edits: Map = (0..1 + scattered).map(|_| (number(dice.below(15_000)), new())).collect();
        let edits: Edits = edits.into_iter().map(|(key, value)| (key, (dice.below(3) > 0).then_some(value))).collect();
        root = step(&root, &edits);
        apply(&mut map, &edits);
    }
    assert_eq!(place.all(&root), map);

    // At either end, where a node may have ended and takes no more.
    let mut root = Root::empty();
    for n in 0..400 {
        let n = if n % 2 == 0 { 1000 + n } else { 1000 - n };
        root = step(&root, &vec![(number(n), Some(new()))]);
    }
}

#[test]
fn lookups_and_seeks_read_a_path() {
    let place = place(64 << 20);
    let (dice, root) = (Dice::new(8), place.load(&big()));
    for _ in 0..50 {
        let n = dice.below(SIZE);
        place.cold();
        assert!(place.tree.get(&root, &number(n)).unwrap().is_some());
        assert!(place.segments.taken().0 <= 5);
        place.cold();
        let mut scan = place.tree.scan(&root, (Bound::Excluded(number(n)), Bound::Unbounded));
        scan.next();
        assert!(place.segments.taken().0 <= 7);
        place.cold();
        let mut scan = place.tree.scan(&root, (Bound::Unbounded, Bound::Excluded(number(n))));
        scan.next_back();
        assert!(place.segments.taken().0 <= 7);
    }
    // Many at once: each node once, with no cache to help.
    let bare = mw_tree::Tree::new(place.segments.clone(), mw_tree::Cache::new(0));
    let keys: Vec<Bytes> = (1000..2000).map(number).collect();
    place.cold();
    assert!(bare.get_many(&root, &keys).unwrap().iter().all(Option::is_some));
    let (reads, _) = place.segments.taken();
    assert!(reads <= 60, "{reads} reads for a thousand neighbours");
}

#[test]
fn the_cache_stays_within_its_budget() {
    for budget in [0, 1000, 50_000, 1 << 20, 20 << 20] {
        let place = place(budget);
        let dice = Dice::new(budget as u64);
        let mut map: Map = (0..20_000).map(|n| (number(n), value(&n.to_be_bytes()))).collect();
        map.extend((0..200).map(|n| (number(n * 50), value(&[n as u8; 9000]))));
        let mut root = place.load(&map);
        assert!(place.cache.used() <= budget);
        for _ in 0..2000 {
            let n = number(dice.below(20_000));
            assert_eq!(place.tree.get(&root, &n).unwrap().as_ref(), map.get(&n));
            assert!(place.cache.used() <= budget);
        }
        for n in 0..50 {
            root = place.edit(&root, &vec![(number(n * 400 + 1), None)]);
            assert!(place.cache.used() <= budget);
        }
        let stats = place.cache.stats();
        assert!(stats.misses > 0 && (stats.hits > 0) == (budget > 0), "{stats:?} with {budget}");
        place.cache.clear();
        assert_eq!(place.cache.used(), 0);
    }
}

#[test]
fn many_threads_share_one_cache() {
    let place = place(1 << 20);
    let root = place.load(&big());
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (place, root) = (&place, &root);
            scope.spawn(move || {
                let dice = Dice::new(seed);
                for _ in 0..5000 {
                    let n = dice.below(SIZE);
                    assert_eq!(place.tree.get(root, &number(n)).unwrap(), Some(value(&n.to_be_bytes())));
                }
            });
        }
    });
    assert!(place.cache.used() <= 1 << 20);
}

struct Nodes<'a>(&'a mut u64);

impl mw_tree::Visit for Nodes<'_> {
    fn node(&mut self, _: &mw_segments::BlobRef) -> bool {
        *self.0 += 1;
        true
    }

    fn entry(&mut self, _: &[u8], _: &Value) {}

    fn large(&mut self, _: &mw_segments::BlobRef) {}
}

#[derive(Default)]
struct Blobs(HashSet<mw_segments::BlobRef>);

impl mw_tree::Visit for Blobs {
    fn node(&mut self, blob: &mw_segments::BlobRef) -> bool {
        self.0.insert(*blob)
    }

    fn entry(&mut self, _: &[u8], _: &Value) {}

    fn large(&mut self, blob: &mw_segments::BlobRef) {
        self.0.insert(*blob);
    }
}

#[test]
fn a_tree_of_nothing_costs_nothing() {
    let place = place(1 << 20);
    assert_eq!(place.tree.get(&Root::empty(), b"k").unwrap(), None);
    assert_eq!(place.tree.get_many(&Root::empty(), &[number(1)]).unwrap(), [None]);
    assert_eq!(place.tree.scan(&Root::empty(), (Bound::Unbounded, Bound::Unbounded)).count(), 0);
    place.tree.check(&Root::empty()).unwrap();
    assert_eq!(place.segments.taken(), (0, 0));
}
