//! The contract of [`Meta`] as a test suite, run against every engine.
//!
//! A check panics with what went wrong. It knows nothing of any engine: all it has is a [`Place`] where a store lives.

use crate::{Batch, Durability, Error, Expect, MAX_BATCH, MAX_KEY, Meta, Order};
use bytes::Bytes;
use mw_env::Env;
use mw_model::ErrorKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where one store lives.
pub trait Place {
    /// Opens the store. Called again only after the store opened before was dropped.
    fn open(&self) -> Arc<dyn Meta>;

    /// Returns whether a store opened again holds what it held.
    fn keeps(&self) -> bool {
        true
    }
}

/// Runs every check, each in a fresh place.
///
/// # Panics
/// When the engine breaks the contract.
pub fn run<P: Place>(fresh: impl Fn() -> P) {
    pairs(&*fresh().open());
    requirements(&*fresh().open());
    one_batch(&*fresh().open());
    scans(&*fresh().open());
    limits(&*fresh().open());
    large(&*fresh().open());
    tickets(&*fresh().open());
    counter(&fresh().open());
    serial(&fresh().open());
    for seed in 0..3 {
        random(&fresh(), seed);
    }
    let place = fresh();
    if place.keeps() {
        reopen(&place);
    }
}

fn put(key: &str, value: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(key.to_owned(), value.to_owned());
    batch
}

fn commit(store: &dyn Meta, batch: &Batch) {
    store.commit(batch.clone(), Durability::Soon).expect("a batch that may be committed");
}

fn get(store: &dyn Meta, key: &str) -> Option<Bytes> {
    store.get(key.as_bytes()).expect("a readable store")
}

fn scan(store: &dyn Meta, start: &str, end: &str, limit: usize, order: Order) -> Vec<String> {
    let pairs = store.scan(start.as_bytes(), end.as_bytes(), limit, order).expect("a readable store");
    pairs.iter().map(|(key, value)| format!("{}={}", key.escape_ascii(), value.escape_ascii())).collect()
}

fn pairs(store: &dyn Meta) {
    assert_eq!(get(store, "a"), None);
    commit(store, &put("a", "1"));
    assert_eq!(get(store, "a"), Some(Bytes::from("1")));
    commit(store, &put("a", ""));
    assert_eq!(get(store, "a"), Some(Bytes::new()), "an empty value is a value");
    let mut delete = Batch::new();
    delete.delete("a").delete("never there");
    commit(store, &delete);
    assert_eq!(get(store, "a"), None);
    commit(store, &Batch::new());
}

fn requirements(store: &dyn Meta) {
    commit(store, &put("there", "1"));
    let cases = [
        ("there", Expect::Absent, false),
        ("there", Expect::Present, true),
        ("there", Expect::Value("1".into()), true),
        ("there", Expect::Value("2".into()), false),
        ("gone", Expect::Absent, true),
        ("gone", Expect::Present, false),
        ("gone", Expect::Value("".into()), false),
    ];
    for (key, expect, holds) in cases {
        for changes in [true, false] {
            let mut batch = Batch::new();
            batch.require("there", Expect::Present).require(key, expect.clone());
            if changes {
                batch.put("mark", "x").delete("there too");
            }
            match store.commit(batch, Durability::Durable) {
                Ok(()) => assert!(holds, "{key} {expect:?} must not hold"),
                Err(Error::Conflict { key: named }) => {
                    assert!(!holds, "{key} {expect:?} must hold");
                    assert_eq!(named, key, "the error names the key");
                    assert_eq!(get(store, "mark"), None, "nothing of a refused batch is applied");
                }
                Err(error) => panic!("{error}"),
            }
            let mut clean = Batch::new();
            clean.delete("mark");
            commit(store, &clean);
        }
    }
}

fn one_batch(store: &dyn Meta) {
    commit(store, &put("k", "old"));
    let mut batch = Batch::new();
    batch.require("k", Expect::Value("old".into())).put("k", "first").put("k", "last").delete("k").put("j", "j");
    commit(store, &batch);
    assert_eq!(get(store, "k"), Some("last".into()), "deletes come first and the last put wins");
    assert_eq!(get(store, "j"), Some("j".into()));
}

fn scans(store: &dyn Meta) {
    for key in ["b", "a", "d", "c", "c\0", "a\u{e9}"] {
        commit(store, &put(key, key));
    }
    let mut delete = Batch::new();
    delete.delete("b");
    commit(store, &delete);
    let all = ["a=a", "a\\xc3\\xa9=a\\xc3\\xa9", "c=c", "c\\x00=c\\x00", "d=d"];
    assert_eq!(scan(store, "", "z", 99, Order::Up), all);
    let down: Vec<_> = all.iter().rev().copied().collect();
    assert_eq!(scan(store, "", "z", 99, Order::Down), down);
    assert_eq!(scan(store, "", "z", 2, Order::Up), all[..2]);
    assert_eq!(scan(store, "", "z", 2, Order::Down), down[..2]);
    assert_eq!(scan(store, "a", "c", 99, Order::Up), all[..2], "the start belongs to a range, the end does not");
    assert_eq!(scan(store, "b", "c\0", 99, Order::Down), ["c=c"]);
    for (start, end, limit) in [("c", "c", 9), ("z", "a", 9), ("a", "z", 0), ("x", "z", 9)] {
        assert!(scan(store, start, end, limit, Order::Up).is_empty());
        assert!(scan(store, start, end, limit, Order::Down).is_empty());
    }
}

fn limits(store: &dyn Meta) {
    let longest = "k".repeat(MAX_KEY);
    commit(store, &put(&longest, "v"));
    assert_eq!(get(store, &longest), Some("v".into()));
    let long = longest + "k";
    let refused = |batch: Batch, kind: ErrorKind| {
        let error = store.commit(batch, Durability::Durable).expect_err("a batch over a limit");
        assert_eq!(error.kind(), kind, "{error}");
    };
    let mut delete = Batch::new();
    delete.delete(long.clone());
    let mut require = Batch::new();
    require.require(long.clone(), Expect::Absent);
    refused(put(&long, "v"), ErrorKind::NameTooLong);
    refused(delete, ErrorKind::NameTooLong);
    refused(require, ErrorKind::NameTooLong);
    let mut large = put("other", "v");
    large.put("big", vec![0; MAX_BATCH]);
    refused(large, ErrorKind::TooLarge);
    assert_eq!(get(store, "other"), None);
}

/// A batch far larger than what an engine gathers at a time.
fn large(store: &dyn Meta) {
    let value = Bytes::from(vec![b'x'; 3 << 20]);
    let mut batch = put("small", "1");
    batch.put("big", value.clone()).put("bigger", value.clone());
    store.commit(batch, Durability::Durable).expect("a large batch");
    commit(store, &put("small", "2"));
    assert!(get(store, "big").as_ref() == Some(&value) && get(store, "bigger") == Some(value));
    assert_eq!(get(store, "small"), Some("2".into()));
}

fn tickets(store: &dyn Meta) {
    let submit = |key, durability| store.submit(put(key, key), durability).expect("a batch that may be committed");
    let first = submit("1", Durability::Durable);
    assert_eq!(get(store, "1"), Some("1".into()), "a submitted batch is seen before anybody waited");
    drop(submit("2", Durability::Durable));
    let third = submit("3", Durability::Durable);
    let soon = submit("4", Durability::Soon);
    third.wait().expect("a sync");
    first.wait().expect("a sync that was done already");
    soon.wait().expect("no wait");
    store.sync().expect("a sync");
    assert!(store.syncs() > 0);
    assert_eq!(scan(store, "", "9", 9, Order::Up), ["1=1", "2=2", "3=3", "4=4"]);
}

/// Many threads count in one key: every step is there once.
fn counter(store: &Arc<dyn Meta>) {
    const THREADS: u64 = 8;
    const STEPS: u64 = 40;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for step in 0..STEPS {
                    let durability = if step % 4 == 0 { Durability::Durable } else { Durability::Soon };
                    while !count_one(&**store, &format!("by/{thread}/{step}"), durability) {}
                }
            });
        }
    });
    assert_eq!(get(&**store, "count"), Some((THREADS * STEPS).to_string().into()));
    assert_eq!(scan(&**store, "by/", "by0", usize::MAX, Order::Up).len() as u64, THREADS * STEPS);
}

fn count_one(store: &dyn Meta, by: &str, durability: Durability) -> bool {
    let found = get(store, "count");
    let count: u64 = found.as_ref().map_or(0, |n| String::from_utf8_lossy(n).parse().expect("a number"));
    let mut batch = put("count", &(count + 1).to_string());
    batch.require("count", found.map_or(Expect::Absent, Expect::Value)).put(by.to_owned(), "");
    match store.commit(batch, durability) {
        Ok(()) => true,
        Err(Error::Conflict { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// A reader never sees half of a batch, nor a batch without the one before it.
fn serial(store: &Arc<dyn Meta>) {
    const ROUNDS: u64 = 300;
    let done = std::sync::atomic::AtomicBool::new(false);
    let number = |pair: &(Bytes, Bytes)| String::from_utf8_lossy(&pair.1).parse::<u64>().expect("a number");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                let mut batch = Batch::new();
                for key in ["s/a", "s/b", "s/c"] {
                    batch.put(key, round.to_string());
                }
                commit(&**store, &batch);
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        for order in [Order::Up, Order::Down] {
            let done = &done;
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(std::sync::atomic::Ordering::Acquire) {
                    let pairs = store.scan(b"s/", b"s0", 9, order).expect("a readable store");
                    let numbers: Vec<u64> = pairs.iter().map(number).collect();
                    assert!(
                        numbers.is_empty() || numbers.len() == 3 && numbers.iter().all(|n| *n == numbers[0]),
                        "torn: {numbers:?}"
                    );
                    let seen = numbers.first().copied().unwrap_or(0);
                    assert!(seen >= last, "went back from {last} to {seen}");
                    last = seen;
                }
            });
        }
    });
}

/// Random batches against a map, with the store closed and opened in between where it keeps what it holds.
fn random(place: &dyn Place, seed: u64) {
    let env = Env::seeded(seed);
    let below = |n: u64| env.random() % n;
    let mut model = BTreeMap::<Bytes, Bytes>::new();
    let mut store = place.open();
    for step in 0..600 {
        let key = || Bytes::from(format!("k{:03}", below(200)));
        let mut batch = Batch::new();
        for _ in 0..below(4) {
            let wrong = below(12) == 0;
            let key = key();
            let expect = match model.get(&key) {
                Some(_) if wrong => Expect::Absent,
                Some(value) => Expect::Value(value.clone()),
                None if wrong => Expect::Present,
                None => Expect::Absent,
            };
            batch.require(key, expect);
        }
        for _ in 0..below(4) {
            batch.delete(key());
        }
        for _ in 0..below(6) {
            batch.put(key(), vec![step as u8; below(if step % 50 == 0 { 9000 } else { 60 }) as usize]);
        }
        let holds = batch.requires.iter().all(|(key, expect)| expect.holds(model.get(key)));
        let durability = if below(5) == 0 { Durability::Durable } else { Durability::Soon };
        match store.commit(batch.clone(), durability) {
            Ok(()) => {
                assert!(holds, "seed {seed} step {step}: committed against its requirements");
                batch.deletes.iter().for_each(|key| drop(model.remove(key)));
                model.extend(batch.puts);
            }
            Err(Error::Conflict { .. }) => {
                assert!(!holds, "seed {seed} step {step}: refused although its requirements hold")
            }
            Err(error) => panic!("seed {seed} step {step}: {error}"),
        }
        if place.keeps() && below(60) == 0 {
            drop(store);
            store = place.open();
        }
        let (start, end, limit) = (key(), key(), below(40) as usize);
        let range =
            if start <= end { model.range(start.clone()..end.clone()) } else { model.range(end.clone()..end.clone()) };
        let pair = |(key, value): (&Bytes, &Bytes)| (key.clone(), value.clone());
        let up: Vec<_> = range.clone().take(limit).map(pair).collect();
        let down: Vec<_> = range.rev().take(limit).map(pair).collect();
        let scan = |order| store.scan(&start, &end, limit, order).expect("a readable store");
        assert!(scan(Order::Up) == up && scan(Order::Down) == down, "seed {seed} step {step}: another range");
        let one = key();
        assert!(
            store.get(&one).expect("a readable store") == model.get(&one).cloned(),
            "seed {seed} step {step}: another value"
        );
    }
}

fn reopen(place: &dyn Place) {
    let store = place.open();
    for n in 0..50 {
        let mut batch = put(&format!("{n:02}"), &"v".repeat(n));
        batch.delete(format!("{:02}", n / 2));
        let durability = if n % 7 == 0 { Durability::Durable } else { Durability::Soon };
        store.commit(batch, durability).expect("a batch that may be committed");
    }
    let before = scan(&*store, "", "a", 99, Order::Up);
    assert_eq!(before.len(), 25);
    drop(store);
    for _ in 0..3 {
        let store = place.open();
        assert!(scan(&*store, "", "a", 99, Order::Up) == before, "an orderly end loses nothing");
    }
}
