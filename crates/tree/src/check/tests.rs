//! Trees built by hand, each with one fault. Every blob of them verifies: only `check` can tell.

use super::*;
use crate::build::{Builder, Built};
use crate::cache::Cache;
use crate::node::{Data, Record};
use crate::shape::Salt;
use mw_model::{ErrorKind, Incarnation, WorldId};
use mw_segments::{Memory, Owner};
use std::sync::Arc;

const SALT: Salt = Salt([5; 16]);
const OWNER: Owner = Owner { world: WorldId(1), incarnation: Incarnation(1) };

/// A tree in the making: leaves of keys, and what their parent will say of them.
struct Made {
    store: Store,
    leaves: Vec<(Bytes, Child)>,
}

/// Keys as the shape wants them in one leaf: the last ends it, the others do not. Two leaves and a rest.
fn leaves() -> [Vec<Bytes>; 3] {
    let shape = Shape::new(&SALT);
    let mut out = [Vec::new(), Vec::new(), Vec::new()];
    let mut at = 0;
    for n in 0u64.. {
        let key = Bytes::copy_from_slice(&n.to_be_bytes());
        out[at].push(key.clone());
        if at == 2 && out[2].len() >= 3 {
            break;
        }
        // Leaves of two keys at least, so that there is something to swap and to cut.
        at += usize::from(at < 2 && out[at].len() > 1 && shape.natural(0, &key));
    }
    // A key that ends a node early was taken in above only as the first of its leaf: leave it out.
    for leaf in &mut out {
        if shape.natural(0, &leaf[0]) {
            leaf.remove(0);
        }
    }
    out.map(|leaf| {
        let last = leaf.len() - 1;
        leaf.into_iter()
            .enumerate()
            .filter(|(i, key)| *i == last || !shape.natural(0, key))
            .map(|(_, key)| key)
            .collect()
    })
}

fn leaf(keys: &[Bytes]) -> Built {
    let mut builder = Builder::new(0);
    for key in keys {
        builder.record(key, &Record { data: Data::Inline(b"data"), weight: 2, locator: b"" });
    }
    builder.finish()
}

impl Made {
    fn new(leaves: &[Vec<Bytes>]) -> Self {
        let mut made = Self { store: Store::new(Arc::new(Memory::new()), Cache::new(0)), leaves: Vec::new() };
        for keys in leaves {
            let built = leaf(keys);
            let child = made.put(&built);
            made.leaves.push((built.last_key, child));
        }
        made
    }

    fn put(&self, built: &Built) -> Child {
        let blob = self.store.put_node(OWNER, built.stored.clone()).unwrap();
        Child { blob, hash: built.hash, entries: built.entries, weight: built.weight }
    }

    fn root(&self) -> Root {
        let mut builder = Builder::new(1);
        self.leaves.iter().for_each(|(key, child)| builder.child(key, child));
        Root::new(Top { level: 1, salt: SALT, child: self.put(&builder.finish()) })
    }

    fn fault(&self) -> Fault {
        self.fault_of(&self.root())
    }

    fn fault_of(&self, root: &Root) -> Fault {
        let error = check(&self.store, root).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        match error {
            Error::Check { fault, .. } => fault,
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_tree_made_by_hand_as_it_should_be_passes() {
    let made = Made::new(&leaves());
    check(&made.store, &made.root()).unwrap();
}

#[test]
fn planted_faults_are_found() {
    let good = leaves();

    let mut made = Made::new(&good);
    made.leaves[1].1.entries += 1;
    assert!(matches!(made.fault(), Fault::Entries));

    let mut made = Made::new(&good);
    made.leaves[1].1.weight -= 1;
    assert!(matches!(made.fault(), Fault::Weight));

    let mut made = Made::new(&good);
    made.leaves[0].1.hash = made.leaves[1].1.hash;
    assert!(matches!(made.fault(), Fault::Hash));

    let mut made = Made::new(&good);
    made.leaves[0].0 = good[1][0].clone();
    assert!(matches!(made.fault(), Fault::LastKey));

    // Two leaves whose ranges overlap, although each is in order and the parent is too.
    let mut overlap = good.clone();
    overlap[1].insert(0, good[0][0].clone());
    assert!(matches!(Made::new(&overlap).fault(), Fault::Overlap));

    // One leaf where there should be two, and two where there should be one.
    let long = [[&good[0][..], &good[1][..]].concat(), good[2].clone()];
    assert!(matches!(Made::new(&long).fault(), Fault::Long));
    let (head, tail) = good[0].split_at(1);
    let cut = [head.to_vec(), tail.to_vec(), good[1].clone(), good[2].clone()];
    assert!(matches!(Made::new(&cut).fault(), Fault::Cut));

    // A top with one child.
    let made = Made::new(&good[..1]);
    assert!(matches!(made.fault(), Fault::Chain));
    // A root that says something else than its node.
    let made = Made::new(&good);
    let root = made.root();
    let mut top = *root.top().unwrap();
    top.child.entries -= 1;
    assert!(matches!(made.fault_of(&Root::new(top)), Fault::Entries));
    let top = Top { level: 2, ..*root.top().unwrap() };
    assert!(matches!(made.fault_of(&Root::new(top)), Fault::Unreadable(_)));
}

#[test]
fn swapped_entries_are_found_in_the_node_and_named() {
    let good = leaves();
    let mut made = Made::new(&good);
    let mut swapped = good[1].clone();
    swapped.swap(0, 1);
    // Such a node cannot even be put through the store, which reads back what it writes.
    let built = leaf(&swapped);
    let memory = Arc::new(Memory::new());
    made.store = Store::new(memory.clone(), Cache::new(0));
    for (i, keys) in good.iter().enumerate() {
        made.leaves[i].1 = made.put(&leaf(keys));
    }
    let blob = mw_segments::Segments::append(&*memory, OWNER, &built.stored).unwrap();
    made.leaves[1].1 = Child { blob, hash: built.hash, ..made.leaves[1].1 };
    let error = check(&made.store, &made.root()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let Error::Check { after, upto, level, fault: Fault::Unreadable(inner) } = &error else { panic!("{error}") };
    assert_eq!((after, upto, *level), (&good[0].last().cloned(), &good[1].last().cloned(), 0));
    assert!(matches!(**inner, Error::Node { flaw: crate::error::Flaw::Order, .. }));
    assert!(error.to_string().contains("\\x00"), "{error}");
}
