//! fsck of a store that is at work: what others do meanwhile is no damage, and damage is found all the same.

use crate::rig::{clean, content, file, options};
use crate::watched::Watched;
use mw_env::Env;
use mw_model::Ino;
use mw_segments::SegmentId;
use mw_world::{CreateOptions, ForkOptions, Options, Principal, PromoteOptions, Session, Store};
use std::sync::Arc;
use std::time::Duration;

/// A store with a world `base`, a snapshot of it, and a fork `fork` with changes of its own.
struct Scene {
    meta: Arc<Watched>,
    segments: Arc<mw_segments::Memory>,
    store: Arc<Store>,
    root: Principal,
}

impl Scene {
    fn new() -> Self {
        let (meta, segments) = (Arc::new(Watched::default()), Arc::new(mw_segments::Memory::new()));
        let options = Options { retention: Duration::ZERO, ..options() };
        let store = Store::open(meta.clone(), segments.clone(), Env::seeded(12), options).unwrap();
        let root = store.principal(&store.root_key().unwrap().id).unwrap();
        store.create_world(&root, "base", &CreateOptions::default()).unwrap();
        let scene = Self { meta, segments, store, root };
        let base = scene.session("base");
        file(&base, "a", &noise(1));
        base.snapshot(Some("mark"), None).unwrap();
        file(&base, "d/b", &noise(2));
        scene.store.fork(&scene.root, "base", "fork", &ForkOptions::default()).unwrap();
        file(&scene.session("fork"), "c", &noise(3));
        scene
    }

    fn session(&self, world: &str) -> Session {
        self.store.session(&self.root, world).unwrap()
    }
}

fn noise(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; 100_000];
    Env::seeded(seed).fill(&mut bytes);
    bytes
}

/// Lets `act` happen before each scan of an fsck in turn. It finds nothing, then and afterwards.
fn before_each_scan(act: impl Fn(&Arc<Store>, &Principal) + Clone + Send + 'static) {
    for scans in 0.. {
        let scene = Scene::new();
        let (hooked, act, who) = (Arc::downgrade(&scene.store), act.clone(), scene.root.clone());
        scene.meta.arm(scans, Box::new(move || act(&hooked.upgrade().unwrap(), &who)));
        let report = scene.store.fsck(&mut |_| {}).unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "before scan {scans}");
        if !scene.meta.disarm() {
            assert!(scans > 12, "fsck looks at more than {scans} things");
            return;
        }
        clean(&scene.store);
    }
}

#[test]
fn files_are_written_and_taken_away_meanwhile() {
    before_each_scan(|store, root| {
        let base = store.session(root, "base").unwrap();
        // Enough for a fold, and for a segment of its own.
        for seed in 10..30 {
            file(&base, &format!("new/{seed}"), &noise(seed));
        }
        for n in 0..200 {
            file(&base, &format!("small/{n}"), b"small");
        }
        base.sync().unwrap();
        base.unlink(Ino::ROOT, b"a").unwrap();
    });
}

#[test]
fn a_world_is_made_meanwhile() {
    before_each_scan(|store, root| {
        store.fork(root, "fork", "deeper", &ForkOptions::default()).unwrap();
        store.create_world(root, "another", &CreateOptions::default()).unwrap();
        for world in ["deeper", "another"] {
            file(&store.session(root, world).unwrap(), "x/y", &noise(4));
        }
    });
}

#[test]
fn a_fork_is_promoted_and_discarded_meanwhile() {
    before_each_scan(|store, root| {
        let fork = store.session(root, "fork").unwrap();
        assert!(fork.promote(&PromoteOptions::default()).unwrap().conflicts.is_empty());
        fork.discard().unwrap();
        assert!(content(&store.session(root, "base").unwrap(), "c").unwrap() == noise(3));
    });
}

#[test]
fn a_fork_is_discarded_meanwhile() {
    before_each_scan(|store, root| {
        store.session(root, "fork").unwrap().discard().unwrap();
    });
}

#[test]
fn history_and_a_snapshot_are_swept_away_meanwhile() {
    before_each_scan(|store, root| {
        let base = store.session(root, "base").unwrap();
        let mark = base.snapshots().unwrap().remove(0);
        base.delete_snapshot(mark.version).unwrap();
        base.unlink(Ino::ROOT, b"a").unwrap();
        store.delete_world(root, "fork", true).unwrap();
        store.env().sleep(Duration::from_secs(1));
        store.sweep().unwrap();
    });
}

#[test]
fn damage_is_found_while_files_are_written() {
    let scene = Scene::new();
    let base = scene.session("base");
    file(&base, "e", &noise(5));
    // One byte in every segment that there can be.
    let segments =
        (16..=24).flat_map(|log2| (0..64 << 20).step_by(1 << log2).map(move |at| SegmentId::new(0, at, log2)));
    let damaged = segments.filter(|segment| scene.segments.damage(*segment, 5000, 4)).count();
    assert!(damaged > 0);
    let (hooked, who) = (Arc::downgrade(&scene.store), scene.root.clone());
    let act = move || {
        file(&hooked.upgrade().unwrap().session(&who, "base").unwrap(), "new", &noise(6));
    };
    scene.meta.arm(3, Box::new(act));
    let report = scene.store.fsck(&mut |_| {}).unwrap();
    assert!(!report.problems.is_empty());
}
