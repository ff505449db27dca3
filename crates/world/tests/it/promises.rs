//! Promises that need a whole store to be seen: one commit for a fork, verbs that are durable when they return, times to live,
//! a history that cannot be forged.

use crate::crash_disk::{Life, options};
use crate::rig::{Rig, content, file, noise, put};
use crate::watched::Watched;
use bytes::Bytes;
use mw_env::Env;
use mw_meta::{Batch, Durability, Meta, Order};
use mw_model::{ErrorKind, Ino};
use mw_sim::SimDisk;
use mw_world::{
    At, Conditions, CreateOptions, ForkOptions, KeyRequest, Options, PromoteOptions, PutOptions, Quota, RenameFlag,
    Role, Session, Store,
};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_fork_and_a_snapshot_are_one_commit_whatever_the_world() {
    let meta = Arc::new(Watched::default());
    let options = Options { background: false, ..crate::rig::options() };
    let segments = Arc::new(mw_segments::Memory::new());
    let store = Store::open(meta.clone(), segments, Env::seeded(3), options).unwrap();
    let root = store.principal(&store.root_key().unwrap().id).unwrap();
    let (mut costs, mut deep) = (Vec::new(), Vec::new());
    let mut base = "small".to_owned();
    for (name, files) in [("small", 10), ("large", 3000)] {
        store.create_world(&root, name, &CreateOptions::default()).unwrap();
        let w = store.session(&root, name).unwrap();
        for i in 0..files {
            file(&w, &format!("d{}/f{i}", i % 7), b"x");
        }
        w.sync().unwrap();
        base = name.to_owned();
        costs.push(meta.of(|| w.snapshot(None, None).unwrap()));
        costs.push(meta.of(|| store.fork(&root, name, &format!("{name}-fork"), &ForkOptions::default()).unwrap()));
    }
    // Deep down a chain, each level with a change of its own, and beside many forks of one base.
    for level in 0..40 {
        let name = format!("level-{level}");
        deep.push(meta.of(|| store.fork(&root, &base, &name, &ForkOptions::default()).unwrap()));
        file(&store.session(&root, &name).unwrap(), "d0/changed", name.as_bytes());
        base = name;
    }
    for n in 0..40 {
        let name = format!("many-{n}");
        costs.push(meta.of(|| store.fork(&root, "large", &name, &ForkOptions::default()).unwrap()));
    }
    assert!(costs.iter().all(|(commits, _)| *commits == 1), "{costs:?}");
    // Every few levels the new fork is folded as well: here in the call, in a server behind it.
    assert!(deep.iter().all(|(commits, _)| *commits <= 2), "{deep:?}");
    assert!(deep.iter().filter(|(commits, _)| *commits == 2).count() <= deep.len() / 4, "{deep:?}");
    // What the commits say does not grow with the world either.
    assert!(costs.iter().chain(&deep).all(|(_, bytes)| *bytes < 4096), "{costs:?} {deep:?}");
}

#[test]
fn a_promote_of_little_is_one_commit_whatever_the_world() {
    let meta = Arc::new(Watched::default());
    let options = Options { background: false, ..Options::default() };
    let store = Store::open(meta.clone(), Arc::new(mw_segments::Memory::new()), Env::seeded(4), options).unwrap();
    let root = store.principal(&store.root_key().unwrap().id).unwrap();
    let mut costs = Vec::new();
    for (name, files) in [("small", 10), ("large", 3000)] {
        store.create_world(&root, name, &CreateOptions::default()).unwrap();
        let base = store.session(&root, name).unwrap();
        for i in 0..files {
            file(&base, &format!("d{}/f{i}", i % 7), b"x");
        }
        let fork = |n: usize| {
            let fork = format!("{name}-{n}");
            store.fork(&root, name, &fork, &ForkOptions::default()).unwrap();
            let fork = store.session(&root, &fork).unwrap();
            file(&fork, &format!("d{n}/new"), b"theirs");
            fork
        };
        // What is not folded yet may be much; the first promote sees to that.
        assert!(fork(0).promote(&PromoteOptions::default()).unwrap().fast);
        for n in 1..5 {
            let fork = fork(n);
            if n % 2 == 0 {
                file(&base, &format!("d{n}/other"), b"ours");
            }
            let mut done = None;
            costs.push(meta.of(|| done = Some(fork.promote(&PromoteOptions::default()).unwrap())));
            assert_eq!(
                (done.unwrap().fast, content(&base, &format!("d{n}/new")).as_deref()),
                (n % 2 == 1, Some(&b"theirs"[..]))
            );
        }
    }
    assert!(costs.iter().all(|(commits, bytes)| *commits == 1 && *bytes < 8192), "{costs:?}");
    crate::rig::clean(&store);
}

#[test]
fn a_forged_snapshot_is_found() {
    let rig = Rig::new();
    let w = rig.create("base");
    file(&w, "a", b"1");
    let first = w.snapshot(Some("good"), None).unwrap().version;
    file(&w, "a", b"2");
    w.snapshot(Some("later"), None).unwrap();
    let (start, end) = (Bytes::from_static(b"\0\0\0\0V"), Bytes::from_static(b"\0\0\0\0W"));
    let found = rig.meta.scan(&start, &end, 10, Order::Up).unwrap();
    let [(key, good), (_, later)] = &found[..] else { panic!("two snapshots: {found:?}") };
    // Somebody who can write to the disk, but has not the store's key, makes the snapshot show another moment, or signs it.
    let mut signed = good.to_vec();
    let seal = 1 + 1 + "good".len() + 1 + rig.root.key_id().len();
    signed[seal] ^= 1;
    for (forged, why) in [(later.to_vec(), "instead"), (signed, "signature")] {
        let mut batch = Batch::new();
        batch.put(key.clone(), forged);
        rig.meta.commit(batch, Durability::Durable).unwrap();
        let report = rig.store.fsck(&mut |_| {}).unwrap();
        let named = |problem: &String| problem.contains(&first.to_string()) && problem.contains(why);
        assert!(report.problems.iter().any(named), "{why}: {:?}", report.problems);
    }
}

#[test]
fn a_fork_goes_when_its_time_is_over_and_not_before() {
    let rig = Rig::new();
    rig.create("base");
    let options = ForkOptions { ttl: Some(Duration::from_secs(60)), ..ForkOptions::default() };
    rig.store.fork(&rig.root, "base", "short", &options).unwrap();
    rig.store.fork(&rig.root, "base", "kept", &options).unwrap();
    rig.fork("base", "long");
    rig.session("kept").keep().unwrap();
    rig.env.sleep(Duration::from_secs(59));
    assert_eq!(rig.store.reap().unwrap(), Vec::<String>::new());
    rig.env.sleep(Duration::from_secs(2));
    assert_eq!(rig.store.reap().unwrap(), ["short"]);
    let gone = rig.store.session(&rig.root, "short").unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    for name in ["base", "kept", "long"] {
        rig.session(name);
    }
    crate::rig::clean(&rig.store);
}

/// What a verb does in a life, and what must hold in the next.
type Step<'a> = (&'a str, Box<dyn Fn(&Life)>, Box<dyn Fn(&Life)>);

#[test]
fn verbs_that_promise_it_are_durable_when_they_return() {
    let is = |world: &'static str, path: &'static str, wanted: Option<&'static [u8]>| -> Box<dyn Fn(&Life)> {
        Box::new(move |life| {
            assert_eq!(content(&life.session(world).unwrap(), path).as_deref(), wanted, "{world}/{path}");
        })
    };
    let at = |world: &'static str, work: fn(&Life, Session)| -> Box<dyn Fn(&Life)> {
        Box::new(move |life| work(life, life.session(world).unwrap()))
    };
    let key = |life: &Life| KeyRequest {
        name: format!("key {}", life.store.keys(&life.root).unwrap().len()),
        grants: vec![mw_world::Grant::new("base", Role::Editor)],
        ..KeyRequest::default()
    };
    let steps: Vec<Step<'_>> = vec![
        ("put", at("base", |_, w| put(&w, "p", b"put")), is("base", "p", Some(b"put"))),
        ("big put", at("base", |_, w| put(&w, "big", &[7; 100_000])), is("base", "big", Some(&[7; 100_000]))),
        (
            "copy",
            at("base", |_, w| drop(w.copy(&w, b"p", b"q", &Default::default()).unwrap())),
            is("base", "q", Some(b"put")),
        ),
        (
            "fork",
            at("base", |life, _| drop(life.store.fork(&life.root, "base", "fork", &ForkOptions::default()).unwrap())),
            is("fork", "p", Some(b"put")),
        ),
        (
            "promote",
            at("fork", |_, w| {
                put(&w, "p", b"changed");
                w.promote(&PromoteOptions::default()).unwrap();
            }),
            is("base", "p", Some(b"changed")),
        ),
        (
            "rebase",
            at("fork", |life, w| {
                put(&life.session("base").unwrap(), "r", b"base's");
                w.rebase(&PromoteOptions::default()).unwrap();
            }),
            is("fork", "r", Some(b"base's")),
        ),
        (
            "restore and revert",
            at("base", |_, w| {
                let then = w.snapshot(None, None).unwrap().version;
                w.delete(b"r", &Conditions::default()).unwrap();
                w.restore(At::Version(then), b"r").unwrap();
                put(&w, "s", b"too much");
                w.revert(At::Version(then)).unwrap();
            }),
            Box::new(|life| {
                let w = life.session("base").unwrap();
                assert_eq!((content(&w, "r").as_deref(), content(&w, "s")), (Some(&b"base's"[..]), None));
            }),
        ),
        ("delete", at("base", |_, w| assert!(w.delete(b"r", &Conditions::default()).unwrap())), is("base", "r", None)),
        (
            "rename, synced",
            at("base", |_, w| {
                w.rename(Ino::ROOT, b"q", Ino::ROOT, b"q2", RenameFlag::Replace).unwrap();
                w.sync().unwrap();
            }),
            is("base", "q2", Some(b"put")),
        ),
        (
            "quota",
            at("base", |_, w| w.set_quota(Quota { bytes: Some(1 << 20), inodes: None }).unwrap()),
            Box::new(|life| assert_eq!(life.session("base").unwrap().quota().unwrap().0.bytes, Some(1 << 20))),
        ),
        (
            "key made",
            Box::new(move |life| drop(life.store.create_key(&life.root, &key(life)).unwrap())),
            Box::new(|life| assert_eq!(life.store.keys(&life.root).unwrap().len(), 2)),
        ),
        (
            "key deleted",
            Box::new(|life| {
                let keys = life.store.keys(&life.root).unwrap();
                let id = keys.iter().map(|key| key.id.clone()).find(|id| id != life.root.key_id()).unwrap();
                life.store.delete_key(&life.root, &id).unwrap();
            }),
            Box::new(|life| assert_eq!(life.store.keys(&life.root).unwrap().len(), 1)),
        ),
        (
            "discard",
            at("fork", |_, w| assert!(w.discard().is_ok())),
            Box::new(|life| assert_eq!(life.session("fork").unwrap_err().kind(), ErrorKind::NotFound)),
        ),
    ];
    for seed in 0..6 {
        let (env, options) = (Env::seeded(seed), options(8 << 10));
        let mut disk = SimDisk::new(seed);
        let life = Life::begin(&disk, &env, &options).unwrap();
        life.store.create_world(&life.root, "base", &CreateOptions::default()).unwrap();
        drop(life);
        for (name, work, holds) in &steps {
            let life = Life::begin(&disk, &env, &options).unwrap_or_else(|e| panic!("before {name}: {e}"));
            work(&life);
            // The power goes the moment the verb has returned.
            disk.power_off();
            disk = disk.crash();
            drop(life);
            let life = Life::begin(&disk, &env, &options).unwrap_or_else(|e| panic!("after {name}: {e}"));
            holds(&life);
            let report = life.store.fsck(&mut |_| {}).unwrap();
            assert_eq!(report.problems, Vec::<String>::new(), "after {name}");
        }
    }
}

fn put_over(w: &Session, key: &str, bytes: &[u8]) {
    let mut staged = w.stage_over(key.as_bytes()).unwrap();
    staged.push(bytes).unwrap();
    w.put(key.as_bytes(), staged, &PutOptions::default()).unwrap();
}

/// Returns the bytes in segments that all worlds together claim.
fn claimed(rig: &Rig) -> u64 {
    rig.store.status().unwrap().claimed
}

#[test]
fn a_new_version_of_a_file_stores_what_is_new_in_it() {
    let rig = Rig::new();
    let w = rig.create("base");
    let mut bytes = noise(1, 16 << 20);
    put_over(&w, "model", &bytes);
    let first = claimed(&rig);
    // Some bytes in the middle, and some at the front that shift all others.
    bytes[8 << 20..(8 << 20) + 100].fill(7);
    bytes.splice(0..0, *b"a new beginning");
    put_over(&w, "model", &bytes);
    assert_eq!(content(&w, "model").as_deref(), Some(&bytes[..]));
    let grown = claimed(&rig) - first;
    assert!(grown <= 4 << 20, "{grown} more bytes for a few that changed");
    // So in a fork, whose former version lies in its base's segments; and it outlives the base and a sweep.
    let fork = rig.fork("base", "fork");
    bytes[1 << 20] ^= 1;
    put_over(&fork, "model", &bytes);
    assert!(claimed(&rig) - first <= 8 << 20);
    drop(w);
    rig.store.delete_world(&rig.root, "base", true).unwrap();
    rig.store.sweep().unwrap();
    assert_eq!(content(&fork, "model").as_deref(), Some(&bytes[..]));
    crate::rig::clean(&rig.store);
}

#[test]
fn pieces_of_a_version_that_went_meanwhile_are_stored_again() {
    let rig = Rig::new();
    let w = rig.create("base");
    let bytes = noise(2, 2 << 20);
    put_over(&w, "f", &bytes);
    let mut staged = w.stage_over(b"f").unwrap();
    staged.push(&bytes).unwrap();
    // The object whose pieces it counts on is replaced before it is put.
    put_over(&w, "f", b"other");
    w.put(b"f", staged, &PutOptions::default()).unwrap();
    assert_eq!(content(&w, "f").as_deref(), Some(&bytes[..]));
    crate::rig::clean(&rig.store);
}
