//! What others do in the middle of a sweep, before each of its scans in turn: nothing that is made then loses bytes.

use crate::rig::{clean, content, file, options};
use crate::watched::Watched;
use mw_env::Env;
use mw_model::{ErrorKind, Ino};
use mw_world::{At, CreateOptions, ForkOptions, Options, Principal, PromoteOptions, Store};
use std::sync::Arc;
use std::time::Duration;

/// A store whose world `base` has lost the file `a`; the snapshot `mark` alone still has it.
struct Scene {
    meta: Arc<Watched>,
    store: Arc<Store>,
    root: Principal,
    bytes: Vec<u8>,
}

fn scene() -> Scene {
    let env = Env::seeded(11);
    let meta = Arc::new(Watched::default());
    let options = Options { retention: Duration::ZERO, ..options() };
    let store = Store::open(meta.clone(), Arc::new(mw_segments::Memory::new()), env.clone(), options).unwrap();
    let root = store.principal(&store.root_key().unwrap().id).unwrap();
    store.create_world(&root, "base", &CreateOptions::default()).unwrap();
    let mut bytes = vec![0; 300_000];
    env.fill(&mut bytes);
    let base = store.session(&root, "base").unwrap();
    file(&base, "a", &bytes);
    base.snapshot(Some("mark"), None).unwrap();
    base.unlink(Ino::ROOT, b"a").unwrap();
    env.sleep(Duration::from_secs(1));
    store.sweep().unwrap();
    Scene { meta, store, root, bytes }
}

/// Lets `act` happen before each scan of a sweep in turn, and reads the fork that it made.
fn before_each_scan(act: impl Fn(&Arc<Store>, &Principal) + Clone + Send + 'static) {
    let mut scans = 0;
    loop {
        let Scene { meta, store, root, bytes } = scene();
        let (hooked, act, who) = (Arc::downgrade(&store), act.clone(), root.clone());
        meta.arm(scans, Box::new(move || act(&hooked.upgrade().unwrap(), &who)));
        store.sweep().unwrap();
        if !meta.disarm() {
            assert!(scans > 8, "a sweep looks at more than {scans} things");
            return;
        }
        for _ in 0..2 {
            let fork = store.session(&root, "fork").unwrap();
            assert!(content(&fork, "a").unwrap() == bytes, "after scan {scans}");
            clean(&store);
            store.sweep().unwrap();
        }
        scans += 1;
    }
}

fn fork(store: &Arc<Store>, root: &Principal) {
    let at = Some(At::Label("mark".into()));
    store.fork(root, "base", "fork", &ForkOptions { at, ..ForkOptions::default() }).unwrap();
}

#[test]
fn a_snapshot_is_forked_and_deleted_while_a_sweep_runs() {
    before_each_scan(|store, root| {
        fork(store, root);
        let base = store.session(root, "base").unwrap();
        let mark = base.snapshots().unwrap().remove(0);
        base.delete_snapshot(mark.version).unwrap();
    });
}

#[test]
fn a_base_is_forked_and_deleted_while_a_sweep_runs() {
    before_each_scan(|store, root| {
        fork(store, root);
        store.delete_world(root, "base", true).unwrap();
    });
}

#[test]
fn a_fork_is_forked_and_deleted_while_a_sweep_runs() {
    before_each_scan(|store, root| {
        let at = Some(At::Label("mark".into()));
        store.fork(root, "base", "between", &ForkOptions { at, ..ForkOptions::default() }).unwrap();
        store.fork(root, "between", "fork", &ForkOptions::default()).unwrap();
        store.delete_world(root, "between", true).unwrap();
        store.delete_world(root, "base", true).unwrap();
    });
}

#[test]
fn a_fork_is_promoted_and_discarded_while_a_sweep_runs() {
    let mut scans = 0;
    loop {
        let Scene { meta, store, root, bytes } = scene();
        fork(&store, &root);
        let (hooked, who) = (Arc::downgrade(&store), root.clone());
        let act = move || {
            let store = hooked.upgrade().unwrap();
            let fork = store.session(&who, "fork").unwrap();
            file(&fork, "b", &bytes);
            assert!(fork.promote(&PromoteOptions::default()).unwrap().conflicts.is_empty());
            fork.discard().unwrap();
        };
        meta.arm(scans, Box::new(act));
        store.sweep().unwrap();
        if !meta.disarm() {
            assert!(scans > 8, "a sweep looks at more than {scans} things");
            return;
        }
        let Scene { bytes, .. } = scene();
        for _ in 0..2 {
            assert!(content(&store.session(&root, "base").unwrap(), "b").unwrap() == bytes, "after scan {scans}");
            clean(&store);
            store.sweep().unwrap();
        }
        scans += 1;
    }
}

#[test]
fn an_instant_is_forked_while_a_sweep_takes_it_from_history() {
    let (mut scans, mut forked, mut refused) = (0, 0, 0);
    loop {
        let Scene { meta, store, root, bytes } = scene();
        let base = store.session(&root, "base").unwrap();
        file(&base, "b", &bytes);
        let at = Some(At::Version(base.info().unwrap().version));
        base.unlink(Ino::ROOT, b"b").unwrap();
        store.env().sleep(Duration::from_secs(1));
        let (hooked, who) = (Arc::downgrade(&store), root.clone());
        let act = move || {
            let options = ForkOptions { at, ..ForkOptions::default() };
            match hooked.upgrade().unwrap().fork(&who, "base", "fork", &options) {
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), ErrorKind::NotFound, "{e}"),
            }
        };
        meta.arm(scans, Box::new(act));
        store.sweep().unwrap();
        if !meta.disarm() {
            break;
        }
        match store.session(&root, "fork") {
            Ok(fork) => {
                forked += 1;
                assert!(content(&fork, "b").unwrap() == bytes, "after scan {scans}");
            }
            Err(_) => refused += 1,
        }
        clean(&store);
        scans += 1;
    }
    assert!(forked > 0 && refused > 0, "before it was taken {forked}, after that {refused}");
}
