use super::*;
use mw_model::Hash as Content;

fn blob(n: u64) -> BlobRef {
    BlobRef { hash: Content::of(&n.to_be_bytes()), ..BlobRef::default() }
}

fn thing(len: usize) -> Cached {
    Cached::Large(Bytes::from(vec![0; len]))
}

#[test]
fn what_is_used_stays_and_what_is_not_goes() {
    let cache = Cache::new(200_000);
    cache.insert(&blob(0), thing(10_000));
    for n in 1..500 {
        assert!(cache.get(&blob(0)).is_some(), "thrown out at {n}");
        cache.insert(&blob(n), thing(10_000));
        assert!(cache.used() <= 200_000);
    }
    assert!((1..500).filter(|n| cache.get(&blob(*n)).is_some()).count() >= 15);
}

#[test]
fn what_is_too_large_is_not_taken_in_and_throws_nothing_out() {
    let cache = Cache::new(100_000);
    cache.insert(&blob(1), thing(50_000));
    cache.insert(&blob(2), thing(100_001));
    assert!(cache.get(&blob(1)).is_some() && cache.get(&blob(2)).is_none());
    cache.insert(&blob(1), thing(50_000));
    assert!(cache.used() < 60_000, "counted twice");
}

#[test]
fn addresses_keep_equal_contents_apart() {
    let cache = Cache::new(100_000);
    let mut other = blob(1);
    other.addr.offset = 8;
    cache.insert(&blob(1), thing(10));
    assert!(cache.get(&other).is_none());
}

#[test]
fn all_shards_are_used() {
    let cache = Cache::new(32 * SHARD);
    (0..2000).for_each(|n| cache.insert(&blob(n), thing(100)));
    assert!(cache.shards.iter().all(|shard| shard.clock.read().used > 0));
    assert_eq!((0..2000).filter(|n| cache.get(&blob(*n)).is_some()).count(), 2000);
    assert_eq!(cache.stats(), CacheStats { hits: 2000, misses: 0 });
}
