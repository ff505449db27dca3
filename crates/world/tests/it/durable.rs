//! What is on disk when: readers before the sync, verbs that nobody waits for, instants across a power cut.

use crate::crash_disk::{Life, engines_with, options};
use crate::rig::{content, file, put};
use crate::watched::Watched;
use mw_env::Env;
use mw_model::Version;
use mw_sim::SimDisk;
use mw_world::{At, CreateOptions, Options, Store};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_put_is_seen_before_its_sync_ends_and_answered_after() {
    let meta = Arc::new(Watched::default());
    let segments = Arc::new(mw_segments::Memory::new());
    let store = Store::open(meta.clone(), segments, Env::seeded(5), crate::rig::options()).unwrap();
    let root = store.principal(&store.root_key().unwrap().id).unwrap();
    store.create_world(&root, "base", &CreateOptions::default()).unwrap();
    let base = || store.session(&root, "base").unwrap();
    let (writer, reader) = (base(), base());
    // What is taken in blocks, such as numbers of inodes, is there.
    put(&writer, "first", b"0");
    meta.stick(true);
    std::thread::scope(|scope| {
        let putting = scope.spawn(move || put(&writer, "a", b"1"));
        while content(&reader, "a").is_none() {
            assert!(!putting.is_finished(), "it is answered before anybody sees it");
            std::thread::yield_now();
        }
        assert!(!putting.is_finished(), "it is answered before its sync has ended");
        meta.stick(false);
    });
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the store's own threads keep real time")]
fn what_nobody_waits_for_comes_to_disk_all_the_same() {
    let (disk, env) = (SimDisk::new(6), Env::real());
    let (meta, segments) = engines_with(Arc::new(disk.clone()), &env, true).unwrap();
    let life = Life::over(meta, segments, &env, &Options { background: true, ..options(1 << 20) }).unwrap();
    life.store.create_world(&life.root, "base", &CreateOptions::default()).unwrap();
    let w = life.session("base").unwrap();
    // Content in segments, then a name: neither is waited for.
    let bytes = vec![7; 300_000];
    file(&w, "large", &bytes);
    file(&w, "small", b"1");
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let found = Life::begin(&disk.crash(), &env, &options(1 << 20)).unwrap();
        let w = found.session("base").unwrap();
        if content(&w, "small").as_deref() == Some(b"1") {
            assert!(content(&w, "large") == Some(bytes), "what came before it is there");
            break;
        }
    }
}

#[test]
fn an_instant_reads_the_same_after_a_power_cut() {
    for seed in 0..6 {
        let (env, options) = (Env::seeded(seed), options(8 << 10));
        let mut disk = SimDisk::new(seed);
        let life = Life::begin(&disk, &env, &options).unwrap();
        life.store.create_world(&life.root, "base", &CreateOptions::default()).unwrap();
        drop(life);
        let mut instants = Vec::new();
        for n in 0..20u8 {
            let life = Life::begin(&disk, &env, &options).unwrap();
            let w = life.session("base").unwrap();
            put(&w, "n", &[n]);
            let now = At::Version(Version(env.now()));
            assert_eq!(content(&w.at(&now).unwrap(), "n"), Some(vec![n]));
            instants.push(now);
            // Kept or lost by the power cut, as luck has it.
            file(&w, "n", b"later");
            disk.power_off();
            disk = disk.crash();
        }
        let life = Life::begin(&disk, &env, &options).unwrap();
        let w = life.session("base").unwrap();
        for (n, at) in instants.iter().enumerate() {
            assert_eq!(content(&w.at(at).unwrap(), "n"), Some(vec![n as u8]), "seed {seed}");
        }
    }
}
