//! Faults planted on purpose, each a thing that a change to the store could get wrong. Every one of them must be caught: by a
//! comparison with the model, by what a crash leaves, or by fsck. A fault that nothing notices is a test that is missing.

use crate::crash_disk::{DATA, Life, META, engines, options};
use crate::faults_list::meta_faults;
use crate::faults_plant::{BadDisk, BadMeta, BadSegments, DiskFault, Edit, SegmentFault};
use crate::oracle::{Opener, Plan, Run};
use mw_env::{Disk, Env};
use mw_model::ErrorKind;
use mw_sim::SimDisk;
use mw_testkit::{Content, Op, Policy, Verb};
use mw_world::{Conditions, CreateOptions, KeyRequest, Options, PutOptions, Role, Session};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

fn on(world: &str, verb: Verb) -> Op {
    Op::In { world: world.to_owned(), verb }
}

fn put(world: &str, key: &str, tag: u8, len: u32) -> Op {
    let content = Content { tag, len };
    on(world, Verb::Put { key: key.to_owned(), content, content_type: None, if_absent: false })
}

fn create(world: &str, path: &str) -> Op {
    on(world, Verb::Create { path: path.to_owned(), mode: 0o644 })
}

fn write(world: &str, path: &str, tag: u8, len: u32) -> Op {
    on(world, Verb::Write { path: path.to_owned(), offset: 3, content: Content { tag, len } })
}

fn fork(from: &str, to: &str) -> Op {
    Op::Fork { from: from.to_owned(), at: None, to: to.to_owned() }
}

fn new(world: &str) -> Op {
    Op::CreateWorld { world: world.to_owned() }
}

fn snapshot(world: &str, name: &str) -> Op {
    Op::Snapshot { world: world.to_owned(), name: name.to_owned() }
}

fn unlink(world: &str, path: &str) -> Op {
    on(world, Verb::Unlink { path: path.to_owned() })
}

/// One of everything, each looked at from every side. Panics at the first thing that is wrong.
fn scenario(open: Opener) {
    let mut run = Run::new(Plan { seed: 1, ops: 0, options: options(1_200), open, quiet: true });
    let base = "base";
    for op in [
        new(base),
        put(base, "d/one", 1, 60_000),
        put(base, "d/two", 2, 300),
        on(base, Verb::Mkdir { path: "m".to_owned(), mode: 0o755 }),
        create(base, "m/f"),
        write(base, "m/f", 3, 20_000),
        on(base, Verb::Link { from: "m/f".to_owned(), to: "m/g".to_owned() }),
        create(base, "tmp"),
        write(base, "tmp", 4, 9_000),
        unlink(base, "tmp"),
        snapshot(base, "s1"),
        put(base, "d/one", 5, 70_000),
        on(base, Verb::Delete { key: "d/two".to_owned() }),
        snapshot(base, "s2"),
        new("other"),
        put("other", "x", 6, 50_000),
        put("other", "y", 7, 100),
        new(base),
        fork(base, "fork"),
        write("fork", "m/f", 8, 100),
        unlink("fork", "m/g"),
        fork("fork", "twig"),
        put("twig", "leaf", 9, 30_000),
        put(base, "late", 10, 40_000),
        fork(base, "side"),
        put("side", "news", 11, 12_000),
    ] {
        run.step(&op);
    }
    keys(&run);
    retried(&run);
    run.look();
    run.restart(true);
    run.look();
    run.fsck();
    run.step(&Op::Promote { fork: "side".to_owned(), policy: Policy::Fail, only: None });
    run.step(&new("brief"));
    run.step(&put("brief", "all", 15, 60_000));
    run.step(&Op::DeleteWorld { world: "brief".to_owned() });
    run.step(&Op::DeleteWorld { world: base.to_owned() });
    run.step(&new(base));
    for i in 0..5 {
        run.step(&put(base, &format!("n{i}"), 20 + i, 60_000));
    }
    run.sweep();
    for i in 0..5 {
        run.step(&put("other", &format!("n{i}"), 30 + i, 60_000));
    }
    run.look();
    run.fsck();
    for op in [create("fork", "new"), write("fork", "new", 12, 10_000), create("twig", "new")] {
        run.step(&op);
    }
    run.look_back_everywhere();
    run.sync_all();
    run.step(&put("fork", "last", 13, 10_000));
    run.step(&put("other", "small", 14, 50));
    let found = run.disk().crash_split(|_| false);
    run.power_cut(found);
    run.look();
    run.fsck();
    run.step(&create("fork", "last file"));
    run.restart(true);
    run.look();
    run.fsck();
    run.restart(false);
    run.look();
    run.look_back_everywhere();
    run.fsck();
}

/// Dead ranges are given back while a put is under way, and the power goes right after. Panics at the first thing that is wrong.
fn space(open: Opener) {
    let options = Options { retention: Duration::ZERO, ..options(2_000) };
    let (disk, env) = (SimDisk::new(8), Env::seeded(8));
    let life = open(&disk, &env, &options).expect("the store opens");
    life.store.create_world(&life.root, "www", &CreateOptions::default()).expect("made");
    life.store.create_world(&life.root, "other", &CreateOptions::default()).expect("made");
    let (w, other) = (life.session("www").expect("there"), life.session("other").expect("there"));
    let bytes = |tag: u8, len: u32| Content { tag, len }.bytes();
    let put = |w: &Session, key: &str, content: &[u8]| {
        let mut staged = w.stage().expect("staging");
        staged.push(content).expect("pushed");
        w.put(key.as_bytes(), staged, &PutOptions::default()).expect("put");
    };
    // Everything fits into one segment, so that no whole one comes back, whose commit would make all durable that was before.
    for (key, tag) in [("a", 1), ("b", 2), ("c", 3)] {
        put(&w, key, &bytes(tag, 12_000));
    }
    let stir = |w: &Session| (0..3).for_each(|n| put(w, "stir", &bytes(40 + n, 100)));
    stir(&w);
    w.delete(b"b", &Conditions::default()).expect("deleted");
    stir(&w);
    let mut late = other.stage().expect("staging");
    late.push(&bytes(4, 300_000)).expect("pushed");
    w.sync().expect("synced");
    let swept = life.store.sweep().expect("swept");
    assert!(swept.inside >= 8_192 && swept.segments == 0, "{swept:?}");
    let found = disk.crash_split(|_| false);
    other.put(b"late", late, &PutOptions::default()).expect("put");
    let check = |life: &Life, late: bool| {
        let report = life.store.fsck(&mut |_| {}).expect("fsck runs");
        assert_eq!(report.problems, Vec::<String>::new(), "fsck");
        let of = |world: &str, key: &str, len: u32| {
            life.session(world).and_then(|w| w.get(key.as_bytes())).and_then(|o| o.read(0, len as usize)).expect("read")
        };
        assert!(of("www", "a", 12_000) == bytes(1, 12_000) && of("www", "c", 12_000) == bytes(3, 12_000), "what lives");
        assert!(!late || of("other", "late", 300_000) == bytes(4, 300_000), "what was under way");
    };
    check(&life, true);
    disk.power_off();
    check(&open(&found, &env, &options).expect("the store opens again"), false);
}

/// A revoked key is dead, also in hands that hold it, and after every restart.
fn keys(run: &Run) {
    let Life { store, root } = run.life();
    let request = KeyRequest {
        name: "k".into(),
        grants: vec![mw_world::Grant::new("other", Role::Reader)],
        ..KeyRequest::default()
    };
    let key = store.create_key(root, &request).expect("made");
    let who = store.principal(&key.id).expect("alive");
    assert!(store.session(&who, "other").expect("granted").attr(mw_model::Ino::ROOT).is_ok());
    store.delete_key(root, &key.id).expect("revoked");
    assert_eq!(store.principal(&key.id).err().map(|e| e.kind()), Some(ErrorKind::Denied), "the key is dead");
}

/// A call that is tried again does what it did, once.
fn retried(run: &Run) {
    let session = run.life().session("other").expect("there");
    let first = session.snapshot(Some("once"), Some("K")).expect("taken").version;
    assert_eq!(session.snapshot(Some("once"), Some("K")).expect("taken before").version, first, "taken once");
}

/// Runs a scenario; says how it failed.
fn caught(scenario: fn(Opener), open: Opener) -> Option<String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| scenario(open)));
    let panic = outcome.err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default())
}

fn with_meta(edit: Edit) -> Opener {
    Box::new(move |disk, env, options| {
        let (inner, segments) = engines(Arc::new(disk.clone()), env)?;
        Life::over(Arc::new(BadMeta { inner, edit: edit.clone(), sync_lies: false }), segments, env, options)
    })
}

fn with_segments(fault: SegmentFault) -> Opener {
    Box::new(move |disk, env, options| {
        let (meta, inner) = engines(Arc::new(disk.clone()), env)?;
        Life::over(meta, Arc::new(BadSegments::new(inner, fault)), env, options)
    })
}

fn with_disk(prefix: &'static str, fault: DiskFault) -> Opener {
    Box::new(move |disk, env, options| {
        let bad: Arc<dyn Disk> = Arc::new(BadDisk::new(Arc::new(disk.clone()), prefix, fault));
        let (meta, segments) = engines(bad, env)?;
        Life::over(meta, segments, env, options)
    })
}

/// A metadata store of which only `submit` and its tickets are to be believed.
fn with_lying_sync() -> Opener {
    Box::new(move |disk, env, options| {
        let (inner, segments) = engines(Arc::new(disk.clone()), env)?;
        let meta = BadMeta { inner, edit: Arc::new(|_, _| true), sync_lies: true };
        Life::over(Arc::new(meta), segments, env, options)
    })
}

/// Fails unless every fault is caught; prints what caught it.
fn all_caught(scenario: fn(Opener), faults: Vec<(&'static str, Opener)>) {
    let mut missed = Vec::new();
    for (name, open) in faults {
        match caught(scenario, open) {
            Some(how) => println!("{name}: {}", how.lines().next().unwrap_or_default()),
            None => missed.push(name),
        }
    }
    assert!(missed.is_empty(), "nothing notices these faults: {missed:#?}");
}

#[test]
fn without_a_fault_the_scenario_passes() {
    scenario(Box::new(Life::begin));
    scenario(with_meta(Arc::new(|_, _| true)));
}

#[test]
fn planted_faults_of_giving_back_are_caught() {
    use SegmentFault::*;
    space(Box::new(Life::begin));
    space(with_meta(Arc::new(|_, _| true)));
    all_caught(
        space,
        vec![
            ("a punch too wide", with_segments(PunchesWider)),
            ("a punch too early: of what is under way", with_segments(PunchesEarly)),
            ("a punch too early: before it is durable that nothing refers to it", with_lying_sync()),
        ],
    );
}

#[test]
fn planted_faults_of_records_are_caught() {
    all_caught(scenario, meta_faults().into_iter().map(|(name, edit)| (name, with_meta(edit))).collect());
}

#[test]
fn planted_faults_of_content_are_caught() {
    use SegmentFault::*;
    all_caught(
        scenario,
        vec![
            ("content acknowledged without a sync", with_segments(SyncLies)),
            ("another blob is read", with_segments(AnotherBlob)),
            ("content changed on its way", with_segments(Garbled)),
            ("an address of something else", with_segments(WrongAddress)),
            ("a live segment is freed", with_segments(FreesMore)),
            ("new segments are not claimed", with_segments(NoClaims)),
            ("a claim is forgotten when the store opens", with_segments(AdoptsLess)),
        ],
    );
}

#[test]
fn planted_faults_of_the_disk_are_caught() {
    use DiskFault::*;
    all_caught(
        scenario,
        vec![
            ("the log's sync lies", with_disk(META, SyncLies)),
            ("the content's sync lies", with_disk(DATA, SyncLies)),
            ("a write of content is torn", with_disk(DATA, Tears)),
            ("a write of content is lost", with_disk(DATA, Loses)),
            ("a write of content goes astray", with_disk(DATA, Misdirects)),
            ("a write of the log is torn", with_disk(META, Tears)),
            ("a write of the log is lost", with_disk(META, Loses)),
        ],
    );
}

/// One bit of the content at rest changes, anywhere.
#[test]
fn a_bit_that_rots_is_found_by_fsck() {
    let mut run = Run::new(Plan { seed: 2, ops: 0, options: options(600), open: Box::new(Life::begin), quiet: true });
    run.step(&new("base"));
    run.step(&put("base", "a", 1, 50_000));
    run.step(&snapshot("base", "kept"));
    run.step(&on("base", Verb::Delete { key: "a".to_owned() }));
    for i in 0..20 {
        run.step(&put("base", &format!("b{i}"), i, 200));
    }
    run.restart(false);
    run.fsck();
    let bytes = run.disk().contents("data-data-0000").expect("a data file");
    let needle = &Content { tag: 1, len: 50_000 }.bytes()[20_000..20_016];
    let at = bytes.windows(16).position(|window| window == needle).expect("the snapshot's content is stored as it is");
    run.disk().flip("data-data-0000", at as u64, 3).expect("flipped");
    let report = run.life().store.fsck(&mut |_| {}).expect("fsck runs");
    assert!(!report.problems.is_empty(), "the content of a snapshot has rotted, and fsck does not see it");
}
