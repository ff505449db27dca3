//! The power goes at every step of a workload; what is found is a whole prefix that holds everything acknowledged.
//!
//! Without threads of the store's own each step follows from the calls, so one number of a step replays one failure.

use bytes::Bytes;
use mw_env::Env;
use mw_meta::embedded::Options;
use mw_meta::{Batch, Durability, Embedded, Expect, Meta, Order};
use mw_sim::SimDisk;
use std::collections::BTreeMap;
use std::sync::Arc;

fn options() -> Options {
    Options { wal_bytes: 12 << 10, table_bytes: 4 << 10, cache_bytes: 1 << 20, background: false }
}

fn open(disk: &SimDisk) -> mw_meta::Result<Arc<Embedded>> {
    Embedded::open_with(Arc::new(disk.clone()), Env::seeded(9), options())
}

type State = BTreeMap<Bytes, Bytes>;

/// What was submitted, and what was acknowledged.
#[derive(Default)]
struct Told {
    /// The state after each batch; the first is the empty store.
    states: Vec<State>,
    /// The number of batches that a durable wait or a sync has answered for.
    durable: usize,
}

/// A batch of a handful of changes, now and then larger than a log file; it names its own number.
fn batch(env: &Env, number: usize) -> Batch {
    let mut batch = Batch::new();
    let below = |n: u64| env.random() % n;
    batch.put("number", number.to_string());
    for _ in 0..below(3) {
        batch.delete(format!("k{}", below(12)));
    }
    for _ in 0..1 + below(4) {
        let len = if below(40) == 0 { 15_000 } else { below(400) };
        batch.put(format!("k{}", below(12)), vec![number as u8; len as usize]);
    }
    batch
}

/// Submits until the end or the first failure. States of `told` go on from the last.
fn work(store: &dyn Meta, told: &mut Told, env: &Env, batches: usize) -> mw_meta::Result<()> {
    for _ in 0..batches {
        let number = told.states.len();
        let batch = batch(env, number);
        let mut state = told.states.last().unwrap().clone();
        batch.deletes.iter().for_each(|key| drop(state.remove(key)));
        state.extend(batch.puts.clone());
        // Before the call: a batch whose submit failed in the power cut may be found.
        told.states.push(state);
        let durability = if env.random().is_multiple_of(4) { Durability::Durable } else { Durability::Soon };
        store.submit(batch, durability)?.wait()?;
        if durability == Durability::Durable {
            told.durable = number;
        }
        if env.random().is_multiple_of(23) {
            store.sync()?;
            told.durable = number;
        }
    }
    Ok(())
}

fn all(store: &dyn Meta) -> State {
    store.scan(b"", b"z", usize::MAX, Order::Up).unwrap().into_iter().collect()
}

/// Checks what a crash left, and goes on from there as if it had been the last word.
fn check(store: &dyn Meta, told: &mut Told, context: &str) {
    let found = all(store);
    let number = found.get(&b"number"[..]).map_or(0, |n| String::from_utf8_lossy(n).parse().unwrap());
    assert!(number >= told.durable, "{context}: batch {} was acknowledged, and only {number} are there", told.durable);
    assert!(number < told.states.len(), "{context}: batch {number} was never submitted");
    assert!(found == told.states[number], "{context}: not the state after batch {number}");
    told.states.truncate(number + 1);
    // The store may have been opened, crashed and opened again: what was seen once stays, since opening made it durable.
    told.durable = number;
}

/// Runs one life: open, check what the last one left, work. Returns whether the power held.
fn life(disk: &SimDisk, told: &mut Told, env: &Env, batches: usize, context: &str) -> bool {
    match open(disk) {
        Ok(store) => {
            check(&*store, told, context);
            let done = work(&*store, told, env, batches);
            assert!(done.is_ok() || disk.is_off(), "{context}: {done:?}");
        }
        Err(error) => assert!(disk.is_off(), "{context}: {error}"),
    }
    !disk.is_off()
}

fn fresh() -> Told {
    Told { states: vec![State::new()], durable: 0 }
}

#[test]
fn power_cut_at_every_step() {
    let mut step = 0;
    loop {
        let disk = SimDisk::new(step);
        disk.fail_at(step);
        let (mut told, env) = (fresh(), Env::seeded(3));
        let held = life(&disk, &mut told, &env, 70, &format!("step {step}, first life"));
        // Three outcomes of the same cut, and a second life after each, cut again somewhere.
        for luck in 0..3 {
            let found = disk.crash_as(step * 3 + luck);
            let context = format!("step {step}, luck {luck}");
            found.fail_at((step * 7 + luck * 31) % 97);
            let mut told = Told { states: told.states.clone(), durable: told.durable };
            life(&found, &mut told, &Env::seeded(step), 40, &format!("{context}, second life"));
            let last = found.crash();
            let store = open(&last).unwrap_or_else(|error| panic!("{context}, third life: {error}"));
            check(&*store, &mut told, &format!("{context}, third life"));
        }
        if held {
            assert!(step > 200, "the workload has only {step} steps");
            return;
        }
        step += 1;
    }
}

#[test]
fn a_killed_process_loses_nothing() {
    for seed in 0..8 {
        let disk = SimDisk::new(seed);
        let (mut told, env) = (fresh(), Env::seeded(seed));
        let store = open(&disk).unwrap();
        work(&*store, &mut told, &env, 60).unwrap();
        let killed = disk.kill();
        assert!(all(&*open(&killed).unwrap()) == *told.states.last().unwrap(), "seed {seed}");
    }
}

/// Threads of the store and of the callers, and a cut at an arbitrary step: no order to foresee, but the promises hold.
#[test]
fn power_cut_among_threads() {
    const WRITERS: usize = 4;
    for seed in 0..25 {
        let disk = SimDisk::new(seed);
        disk.fail_at(30 + seed * 37);
        let mut durable = [0usize; WRITERS];
        let options = Options { background: true, ..options() };
        if let Ok(store) = Embedded::open_with(Arc::new(disk.clone()), Env::seeded(seed), options) {
            std::thread::scope(|scope| {
                for (writer, durable) in durable.iter_mut().enumerate() {
                    let store = &store;
                    scope.spawn(move || {
                        for number in 1..400 {
                            let mut batch = Batch::new();
                            batch
                                .put(format!("w{writer}"), number.to_string())
                                .put(format!("w{writer}/{number}"), vec![0; number % 300]);
                            match store.commit(batch, Durability::Durable) {
                                Ok(()) => *durable = number,
                                Err(_) => return,
                            }
                        }
                    });
                }
            });
        }
        let found = open(&disk.crash()).unwrap();
        for (writer, durable) in durable.into_iter().enumerate() {
            let newest = found.get(format!("w{writer}").as_bytes()).unwrap();
            let newest: usize = newest.map_or(0, |n| String::from_utf8_lossy(&n).parse().unwrap());
            assert!(newest >= durable, "seed {seed}: writer {writer} lost {}", newest + 1);
            for number in 1..=newest + 1 {
                let there = found.get(format!("w{writer}/{number}").as_bytes()).unwrap();
                assert_eq!(
                    there.map(|value| value.len()),
                    (number <= newest).then_some(number % 300),
                    "seed {seed}: {writer}/{number}"
                );
            }
        }
    }
}

/// Writers that are faster than the tree: several tables wait for it when the process dies, each in a log file of its own.
#[test]
fn tables_that_wait_for_the_tree_survive_a_kill() {
    for seed in 0..6 {
        let disk = SimDisk::new(seed);
        let options = Options { background: true, ..options() };
        let store = Embedded::open_with(Arc::new(disk.clone()), Env::seeded(seed), options).unwrap();
        let rounds = 400 + seed * 97;
        for number in 0..rounds {
            let mut batch = Batch::new();
            // The same keys again and again, so that every table has another value of each.
            batch.put(format!("k{}", number % 50), number.to_string()).put(format!("n{number}"), vec![1; 100]);
            if number >= 50 {
                batch.require(format!("k{}", number % 50), Expect::Value((number - 50).to_string().into()));
            }
            batch.require(format!("n{number}"), Expect::Absent);
            store.submit(batch, Durability::Soon).unwrap();
            let back = number.saturating_sub(30);
            assert_eq!(store.get(format!("k{}", back % 50).as_bytes()).unwrap(), Some(back.to_string().into()));
        }
        let scanned = store.scan(b"n", b"o", usize::MAX, Order::Up).unwrap().len() as u64;
        assert_eq!(scanned, rounds, "seed {seed}");
        let found = open(&disk.kill()).unwrap();
        for number in rounds - 50..rounds {
            let value = found.get(format!("k{}", number % 50).as_bytes()).unwrap();
            assert_eq!(value, Some(number.to_string().into()), "seed {seed}");
        }
        assert_eq!(found.scan(b"n", b"o", usize::MAX, Order::Up).unwrap().len() as u64, rounds, "seed {seed}");
    }
}
