//! Measures the tree against `BTreeMap` on the same keys, in one process, so that the ratios mean something on any machine.
//! Run by hand: `cargo run --release -p mw-tree --example tree_bench [entries]`.

use bytes::Bytes;
use mw_env::Env;
use mw_model::{Hash, Incarnation, WorldId};
use mw_segments::{Memory, Owner};
use mw_tree::{Cache, Root, Salt, Tree, Value};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

const SALT: Salt = Salt(*b"salt of a bench.");
const OWNER: Owner = Owner { world: WorldId(1), incarnation: Incarnation(1) };

type Failure = Box<dyn std::error::Error>;

/// A key like those of records: an inode number, a kind, and sometimes a name.
fn key(n: u64) -> Bytes {
    let mut key = (n / 4).to_be_bytes().to_vec();
    key.push((n % 4) as u8);
    if n % 4 == 2 {
        key.extend_from_slice(format!("file-{n}.json").as_bytes());
    }
    key.into()
}

fn value(n: u64) -> Value {
    let data =
        Bytes::copy_from_slice(&[&Hash::of(&n.to_le_bytes()).0[..], &[0; 32]].concat()[..40 + (n % 24) as usize]);
    Value { data, locator: Bytes::copy_from_slice(&n.to_le_bytes()), weight: n % 4096 }
}

struct Clock(Env);

impl Clock {
    /// Returns the time that this thread has run, in nanoseconds, so that a busy machine does not distort the numbers; where
    /// the system does not tell, the time that has passed.
    fn now(&self) -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let ran = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
        ran.unwrap_or_else(|| self.0.monotonic())
    }

    /// Runs `work`, and returns what it cost for each of `count`, in nanoseconds.
    fn each<T>(&self, count: u64, work: impl FnOnce() -> Result<T, Failure>) -> Result<(f64, T), Failure> {
        let start = self.now();
        let out = work()?;
        Ok(((self.now() - start) as f64 / count as f64, out))
    }
}

fn show(what: &str, tree: f64, map: f64) {
    println!("{what:<34} {tree:>10.0} ns {map:>10.0} ns {:>8.1}", tree / map);
}

fn main() -> Result<(), Failure> {
    let entries: u64 = std::env::args().nth(1).map_or(Ok(3_000_000), |n| n.parse())?;
    let (env, clock) = (Env::seeded(1), Clock(Env::real()));
    let edits: Vec<(Bytes, Option<Value>)> = (0..entries).map(|n| (key(n), Some(value(n)))).collect();
    println!("{entries} entries                          {:>13} {:>13} {:>8}", "tree", "BTreeMap", "ratio");

    let cache = Cache::new(4 << 30);
    let tree = Tree::new(Arc::new(Memory::new()), cache.clone());
    let (tree_load, root) = clock.each(entries, || Ok(tree.edit(&Root::empty(), &SALT, OWNER, &edits)?))?;
    let (map_load, mut map) = clock.each(entries, || {
        let mut map = BTreeMap::new();
        for (key, value) in &edits {
            if let Some(value) = value {
                map.insert(key.clone(), value.clone());
            }
        }
        Ok(map)
    })?;
    show("bulk load, per entry", tree_load, map_load);
    drop(edits);
    println!(
        "    {} entries, cache {} MiB, {} bytes per entry",
        root.entries(),
        cache.used() >> 20,
        cache.used() as u64 / entries
    );

    let count = 500_000;
    let keys: Vec<Bytes> = (0..count).map(|_| key(env.random() % entries)).collect();
    let mut found = (0, 0);
    for warm in [false, true] {
        let (tree_get, ()) = clock.each(count, || {
            for key in &keys {
                found.0 += tree.get(&root, key)?.map_or(0, |value| value.weight);
            }
            Ok(())
        })?;
        let (map_get, ()) = clock.each(count, || {
            for key in &keys {
                found.1 += map.get(key).cloned().map_or(0, |value| value.weight);
            }
            Ok(())
        })?;
        show(if warm { "get, random, again" } else { "get, random" }, tree_get, map_get);
    }
    let near: Vec<Bytes> = (0..count).map(|n| key(entries / 2 + n % 2000)).collect();
    let (tree_get, ()) = clock.each(count, || {
        for key in &near {
            found.0 += tree.get(&root, key)?.map_or(0, |value| value.weight);
        }
        Ok(())
    })?;
    let (map_get, ()) = clock.each(count, || {
        for key in &near {
            found.1 += map.get(key).cloned().map_or(0, |value| value.weight);
        }
        Ok(())
    })?;
    show("get, among 2000 neighbours", tree_get, map_get);

    let mut sorted = keys[..100_000].to_vec();
    sorted.sort();
    let (tree_many, many) = clock.each(100_000, || Ok(tree.get_many(&root, &sorted)?))?;
    let (map_many, other) =
        clock.each(100_000, || Ok(sorted.iter().map(|k| map.get(k).cloned()).collect::<Vec<_>>()))?;
    show("get_many of 100,000, per key", tree_many, map_many);

    let (tree_scan, ()) = clock.each(entries, || {
        for entry in tree.scan(&root, (Bound::Unbounded, Bound::Unbounded)) {
            found.0 += entry?.1.weight;
        }
        Ok(())
    })?;
    let (map_scan, ()) = clock.each(entries, || {
        for (key, value) in &map {
            found.1 += (key.clone(), value.clone()).1.weight;
        }
        Ok(())
    })?;
    show("scan, per entry", tree_scan, map_scan);
    if found.0 != found.1 || many != other {
        return Err("the tree and the map disagree".into());
    }

    let rounds = 20;
    let batches: Vec<Vec<(Bytes, Option<Value>)>> = (0..rounds)
        .map(|_| {
            let some: BTreeMap<Bytes, u64> = (0..1000).map(|_| env.random() % entries).map(|n| (key(n), n)).collect();
            some.into_iter().map(|(key, n)| (key, Some(value(n + 1)))).collect()
        })
        .collect();
    let mut edited = root.clone();
    let (tree_edit, ()) = clock.each(rounds, || {
        for batch in &batches {
            edited = tree.edit(&edited, &SALT, OWNER, batch)?;
        }
        Ok(())
    })?;
    let (map_edit, ()) = clock.each(rounds, || {
        for (key, value) in batches.iter().flatten() {
            if let Some(value) = value {
                map.insert(key.clone(), value.clone());
            }
        }
        Ok(())
    })?;
    show("edit of 1000 scattered, per edit", tree_edit, map_edit);

    let (tree_diff, changes) = clock.each(1, || Ok(tree.diff(&root, &edited).count()))?;
    println!("diff of {changes} changes               {:>10.0} ns per change", tree_diff / changes as f64);
    let one = tree.edit(&edited, &SALT, OWNER, &[(key(entries / 2), None)])?;
    let mut changes = 0;
    let (tree_diff, ()) = clock.each(10_000, || {
        for _ in 0..10_000 {
            changes += tree.diff(&edited, &one).count();
        }
        Ok(())
    })?;
    println!("diff of {} change                   {tree_diff:>10.0} ns", changes / 10_000);

    cache.clear();
    let (cold, ()) = clock.each(2000, || {
        for key in &keys[..2000] {
            tree.get(&root, key)?;
        }
        Ok(())
    })?;
    println!("get, random, from an empty cache   {cold:>10.0} ns");
    let (checked, ()) = clock.each(entries, || Ok(tree.check(&root)?))?;
    println!("check, per entry                   {checked:>10.0} ns");
    Ok(())
}
