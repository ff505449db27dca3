//! Keys that an attacker who knows the salt would choose.

use super::*;
use crate::cache::Cache;
use crate::check::check;
use mw_model::{Incarnation, WorldId};
use mw_segments::Memory;
use std::collections::BTreeMap;

const SALT: Salt = Salt([3; 16]);
const OWNER: Owner = Owner { world: WorldId(1), incarnation: Incarnation(1) };

type Edits = Vec<(Bytes, Option<Value>)>;

fn store() -> Store {
    Store::new(Arc::new(Memory::new()), Cache::new(32 << 20))
}

fn keys(count: usize, wanted: impl Fn(&Shape, &[u8]) -> bool) -> Vec<Bytes> {
    let shape = Shape::new(&SALT);
    let all = (0u64..).map(|n| Bytes::copy_from_slice(&n.to_be_bytes()));
    all.filter(|key| wanted(&shape, key)).take(count).collect()
}

fn value(n: usize) -> Value {
    Value { data: Bytes::from(n.to_string().into_bytes()), weight: n as u64, ..Value::default() }
}

/// Adds `keys` in an odd order, takes some away again, and compares with one edit at every step.
fn trial(keys: &[Bytes]) {
    let store = store();
    let mut map: BTreeMap<Bytes, Value> = BTreeMap::new();
    let mut root = Root::empty();
    let mut step = |map: &mut BTreeMap<Bytes, Value>, edits: &Edits| {
        for (key, value) in edits {
            match value {
                Some(value) => map.insert(key.clone(), value.clone()),
                None => map.remove(key),
            };
        }
        root = edit(&store, &root, &SALT, OWNER, edits).unwrap();
        let whole: Edits = map.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
        assert_eq!(root.hash(), edit(&store, &Root::empty(), &SALT, OWNER, &whole).unwrap().hash());
        check(&store, &root).unwrap();
    };
    let count = keys.len();
    for part in 0..7 {
        let edits: Edits =
            (0..count).filter(|n| n * 31 % 7 == part).map(|n| (keys[n].clone(), Some(value(n)))).collect();
        step(&mut map, &edits);
    }
    for n in (0..count).step_by(count / 9 + 1) {
        step(&mut map, &vec![(keys[n].clone(), None)]);
        step(&mut map, &vec![(keys[count - 1 - n].clone(), Some(value(1_000_000)))]);
    }
    step(&mut map, &keys[count / 4..count / 2].iter().map(|key| (key.clone(), None)).collect());
    step(&mut map, &keys[1..].iter().map(|key| (key.clone(), None)).collect());
    step(&mut map, &vec![(keys[0].clone(), None)]);
}

#[test]
fn keys_that_never_end_a_node() {
    trial(&keys(6000, |shape, key| !shape.natural(0, key)));
    trial(&keys(6000, |shape, key| (0..4).all(|level| !shape.natural(level, key))));
}

#[test]
fn keys_that_always_end_a_node() {
    trial(&keys(300, |shape, key| shape.natural(0, key)));
    trial(&keys(60, |shape, key| shape.natural(0, key) && shape.natural(1, key)));
}

#[test]
fn keys_that_end_nodes_on_many_levels_at_once() {
    // Chains of nodes with one child each, in the middle of a tree, that shrinking must not leave at its top.
    let chains = keys(12, |shape, key| shape.natural(0, key) && shape.natural(1, key));
    let mut mixed = keys(3000, |_, _| true);
    mixed.extend(chains.clone());
    mixed.sort();
    mixed.dedup();
    trial(&mixed);
    let store = store();
    let all: Edits = mixed.iter().enumerate().map(|(n, key)| (key.clone(), Some(value(n)))).collect();
    let root = edit(&store, &Root::empty(), &SALT, OWNER, &all).unwrap();
    for keep in &chains {
        let others: Edits = mixed.iter().filter(|key| *key != keep).map(|key| (key.clone(), None)).collect();
        let rest = edit(&store, &root, &SALT, OWNER, &others).unwrap();
        check(&store, &rest).unwrap();
        assert_eq!((rest.entries(), rest.top().map(|top| top.level)), (1, Some(0)));
    }
}

#[test]
fn a_full_node_at_the_end_takes_no_more() {
    // Entries of equal size, none of which ends a node: appended one by one, over several full nodes.
    let store = store();
    let keys = keys(2000, |shape, key| !shape.natural(0, key));
    let mut root = Root::empty();
    for (n, key) in keys.iter().enumerate() {
        root = edit(&store, &root, &SALT, OWNER, &[(key.clone(), Some(value(n)))]).unwrap();
    }
    check(&store, &root).unwrap();
    let all: Edits = keys.iter().enumerate().map(|(n, key)| (key.clone(), Some(value(n)))).collect();
    assert_eq!(root.hash(), edit(&store, &Root::empty(), &SALT, OWNER, &all).unwrap().hash());
}
