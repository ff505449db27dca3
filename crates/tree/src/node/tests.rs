use super::*;
use crate::build::Builder;

fn leaf(keys: &[&[u8]]) -> Bytes {
    let mut builder = Builder::new(0);
    for key in keys {
        builder.record(key, &Record { data: Data::Inline(key), weight: 3, locator: b"here" });
    }
    builder.finish().stored
}

fn decode(stored: &[u8]) -> Result<Node> {
    Node::decode(BlobRef::default(), Bytes::copy_from_slice(stored))
}

#[test]
fn a_node_is_read_as_it_was_built() {
    let node = decode(&leaf(&[b"", b"b", b"bb", b"d"])).unwrap();
    assert_eq!((node.level(), node.len()), (0, 4));
    assert_eq!(node.search(b"bb"), Ok(2));
    assert_eq!(node.search(b""), Ok(0));
    assert_eq!(node.search(b"c"), Err(3));
    assert_eq!(node.search(b"z"), Err(4));
    for i in 0..4 {
        let record = node.record(i).unwrap();
        assert_eq!(record, Record { data: Data::Inline(node.key(i)), weight: 3, locator: b"here" });
    }
    let mut copy = Builder::new(0);
    (0..4).for_each(|i| copy.copy(&node, i).unwrap());
    let built = copy.finish();
    assert_eq!(built.stored, leaf(&[b"", b"b", b"bb", b"d"]));
    assert_eq!((&built.last_key[..], built.entries, built.weight), (&b"d"[..], 4, 12));
    assert_eq!(built.hash, Hash::of(node.hashed()));
}

#[test]
fn an_inner_node_is_read_as_it_was_built() {
    let child = |n: u8| Child {
        blob: BlobRef { addr: Addr { offset: 8 * u32::from(n), len: 300, ..Addr::default() }, hash: Hash([n; 32]) },
        hash: Hash([n + 1; 32]),
        entries: u64::from(n),
        weight: 1000,
    };
    let mut builder = Builder::new(3);
    (1..9).for_each(|n| builder.child(&[n], &child(n)));
    let node = decode(&builder.finish().stored).unwrap();
    assert_eq!(node.level(), 3);
    (1..9).for_each(|n| assert_eq!(node.child(usize::from(n) - 1).unwrap(), child(n)));
    assert_eq!(node.lower_bound(&[4]), 3);
    assert_eq!(node.lower_bound(&[4, 0]), 4);
}

#[test]
fn locators_and_addresses_are_not_hashed() {
    let build = |locator: &[u8], offset| {
        let mut builder = Builder::new(0);
        let blob = BlobRef { addr: Addr { offset, ..Addr::default() }, hash: Hash([1; 32]) };
        builder.record(b"k", &Record { data: Data::Large { len: 300, blob }, weight: 1, locator });
        builder.finish()
    };
    let (a, b) = (build(b"here", 0), build(b"there", 64));
    assert_eq!(a.hash, b.hash);
    assert_ne!(a.stored, b.stored);
}

#[test]
fn what_is_not_a_node_is_refused() {
    let flaw = |stored: &[u8]| match decode(stored).unwrap_err() {
        Error::Node { flaw, .. } => flaw,
        other => panic!("{other}"),
    };
    let good = leaf(&[b"a", b"b"]);
    for cut in 0..good.len() {
        assert!(matches!(flaw(&good[..cut]), Flaw::Decode(_)));
    }
    assert_eq!(flaw(&[&good[..], b"x"].concat()), Flaw::Decode(DecodeError::Trailing));
    assert_eq!(flaw(&[&[9][..], &good[1..]].concat()), Flaw::Format(9));
    assert_eq!(flaw(&leaf(&[b"b", b"a"])), Flaw::Order);
    assert_eq!(flaw(&leaf(&[b"a", b"a"])), Flaw::Order);
    assert!(matches!(flaw(&leaf(&[&[0; MAX_KEY + 1]])), Flaw::Decode(_)));
    assert!(matches!(flaw(&Builder::new(0).finish().stored), Flaw::Decode(_)), "an empty node");
    assert!(matches!(flaw(&Builder::new(200).finish().stored), Flaw::Decode(_)), "too high a level");
    let mut inline = Builder::new(0);
    inline.record(b"k", &Record { data: Data::Inline(&[0; MAX_INLINE + 1]), weight: 0, locator: b"" });
    assert!(matches!(flaw(&inline.finish().stored), Flaw::Decode(_)), "a second encoding of one content");
    // A count that no input can hold does not become an allocation.
    let mut w = Writer::new();
    w.u8(FORMAT).var(u64::from(u32::MAX)).var(1).u8(0);
    assert!(matches!(flaw(&w.0), Flaw::Decode(_)));
}

#[test]
fn no_garbage_panics() {
    let good = leaf(&[b"alpha", b"beta", b"gamma", b"delta-is-out-of-order"]);
    let good = if decode(&good).is_err() { leaf(&[b"alpha", b"beta", b"gamma"]) } else { good };
    for at in 0..good.len() {
        for mask in [1, 0x80, 0xff] {
            let mut bad = good.to_vec();
            bad[at] ^= mask;
            if let Ok(node) = decode(&bad) {
                for i in 0..node.len() {
                    let _ = (node.key(i).len(), node.record(i), node.child(i), node.raw(i));
                }
            }
        }
    }
}
