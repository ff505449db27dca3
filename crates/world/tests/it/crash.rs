//! The power goes, or the process dies, at every step of a workload: nothing acknowledged is lost, what survives is a prefix, and
//! fsck is clean.
//!
//! A workload is a list of events; the model says beforehand what every world looks like after each of them. The store is run over a
//! disk whose power fails at step 0, 1, 2, ...; what is found then must be one of those looks, for every world: not older than the last
//! one that was acknowledged as durable, and not younger than the event that was under way.

use crate::crash_disk::{DATA, Life, META, options};
use crate::oracle::Renames;
use crate::oracle_apply::{Versions, apply, durable, left_out, worded};
use crate::oracle_view::{self as view, Seen};
use mw_env::Env;
use mw_model::ErrorKind;
use mw_sim::SimDisk;
use mw_testkit::{Content, Exchange, Model, Op, Policy, Rng, Verb, random_op};
use mw_world::{At, Options};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One event of a workload.
#[derive(Debug, Clone)]
enum Event {
    Do(Op),
    /// fsync of any file of the world.
    Sync(String),
    Sweep,
    /// The store is closed and opened again.
    Reopen,
}

/// What every world looks like after an event; none for a world that is not there.
type Looks = BTreeMap<String, Arc<Seen>>;

/// A workload with what the model says of it.
struct Work {
    name: String,
    options: Options,
    events: Vec<Event>,
    /// What was refused by the model, and must be by the store.
    refused: Vec<Option<ErrorKind>>,
    /// Before the first event, and after each.
    looks: Vec<Looks>,
    /// Snapshots taken, by world and label, after each event.
    snapshots: Vec<BTreeMap<(String, String), Arc<Seen>>>,
    /// The worlds that each event makes durable.
    durable: Vec<Vec<String>>,
    /// The model's version of every world after each event.
    versions: Vec<BTreeMap<String, u64>>,
}

impl Work {
    fn new(name: &str, options: Options, events: Vec<Event>) -> Self {
        let mut model = Model::new();
        let mut work = Self {
            name: name.to_owned(),
            options,
            events,
            refused: Vec::new(),
            looks: vec![Looks::new()],
            snapshots: vec![BTreeMap::new()],
            durable: Vec::new(),
            versions: vec![BTreeMap::new()],
        };
        for event in work.events.clone() {
            let mut refused = None;
            let mut durable = made_durable(&event, &model);
            if let Event::Do(op) = &event {
                refused = worded(op, &model, model.clone().apply(op).map(drop)).err();
                let _ = model.apply(op);
            }
            if refused.is_some() {
                durable.clear();
            }
            work.durable.push(durable);
            work.note(&model, refused);
        }
        work
    }

    /// A workload of which nothing may be refused.
    fn fixed(name: &str, options: Options, events: Vec<Event>) -> Self {
        let work = Self::new(name, options, events);
        assert!(work.refused.iter().all(Option::is_none), "{name}: {:?}", work.refused);
        work
    }

    /// Notes the model as it is after an event.
    fn note(&mut self, model: &Model, refused: Option<ErrorKind>) {
        let before = &self.looks[self.looks.len() - 1];
        let mut looks = Looks::new();
        let mut snapshots = BTreeMap::new();
        for (name, world) in model.worlds() {
            let seen = view::model(world.tree());
            let kept = before.get(name).filter(|old| ***old == seen).cloned();
            looks.insert(name.clone(), kept.unwrap_or_else(|| Arc::new(seen)));
            for (label, version) in world.snapshots() {
                let tree = world.at(*version).expect("a snapshot of the model");
                snapshots.insert((name.clone(), label.clone()), Arc::new(view::model(tree)));
            }
        }
        self.versions.push(model.worlds().iter().map(|(name, world)| (name.clone(), world.version())).collect());
        self.looks.push(looks);
        self.snapshots.push(snapshots);
        self.refused.push(refused);
    }
}

/// Returns the worlds of which everything is durable once the event has returned.
fn made_durable(event: &Event, model: &Model) -> Vec<String> {
    match event {
        Event::Do(op) if !durable(op) => Vec::new(),
        Event::Do(Op::Fork { from, to, .. }) => vec![from.clone(), to.clone()],
        Event::Do(Op::Promote { fork, .. }) => model.base_of(fork).map(str::to_owned).into_iter().collect(),
        Event::Do(Op::Rebase { fork: world, .. })
        | Event::Do(Op::In { world, .. } | Op::CreateWorld { world } | Op::DeleteWorld { world })
        | Event::Do(Op::Snapshot { world, .. } | Op::Revert { world, .. } | Op::Restore { world, .. })
        | Event::Sync(world) => vec![world.clone()],
        Event::Reopen => model.worlds().keys().cloned().collect(),
        Event::Sweep => Vec::new(),
    }
}

/// How far a run came.
struct Told {
    /// How many events have returned.
    done: usize,
    /// For every world, the event up to which it is durable: an index into the looks.
    durable: BTreeMap<String, usize>,
}

impl Told {
    /// Notes that an event has returned.
    fn returned(&mut self, work: &Work) {
        let reached = &work.durable[self.done];
        self.done += 1;
        self.durable.extend(reached.iter().map(|world| (world.clone(), self.done)));
    }
}

/// Runs a workload until its end or until the power is gone.
fn run(work: &Work, disk: &SimDisk, env: &Env, told: &mut Told, upto: usize) -> Option<Life> {
    let mut life = Life::begin(disk, env, &work.options).ok()?;
    let mut versions = Versions::default();
    while told.done < upto {
        let outcome: Result<(), ErrorKind> = match &work.events[told.done] {
            Event::Do(op) => apply(&life, &versions, op),
            Event::Sync(world) => life.sync(world).map_err(|e| e.kind()),
            Event::Sweep => life.store.sweep().map(drop).map_err(|e| e.kind()),
            Event::Reopen => {
                life.store.close();
                let Life { store, root } = life;
                drop((root, store));
                life = Life::begin(disk, env, &work.options).ok()?;
                Ok(())
            }
        };
        if disk.is_off() {
            return None;
        }
        assert_eq!(outcome.err(), work.refused[told.done], "{}: {:?}", work.name, work.events[told.done]);
        told.returned(work);
        for (name, at) in &work.versions[told.done] {
            let version = life.session(name).and_then(|w| w.info()).expect("a version").version;
            versions.0.entry(name.clone()).or_default().entry(*at).or_insert(version);
        }
        versions.0.retain(|name, _| work.versions[told.done].contains_key(name));
    }
    Some(life)
}

/// Checks what a crash left of every world, proves it whole, and goes on with it.
fn check(work: &Work, disk: &SimDisk, env: &Env, told: &Told, killed: bool, context: &str) {
    let life = Life::begin(disk, env, &work.options).unwrap_or_else(|e| panic!("{context}: opening: {e}"));
    // The event under way may have happened or not; after a kill, everything that returned has.
    let last = (told.done + 1).min(work.looks.len() - 1);
    let mut found: BTreeMap<String, Seen> = BTreeMap::new();
    for info in life.store.worlds(&life.root).unwrap_or_else(|e| panic!("{context}: listing: {e}")) {
        let session = life.session(&info.name).unwrap_or_else(|e| panic!("{context}: {}: {e}", info.name));
        found.insert(
            info.name.clone(),
            view::engine(&session).unwrap_or_else(|e| panic!("{context}: {}: {e}", info.name)),
        );
    }
    let names: Vec<&String> = work.looks[..=last].iter().flat_map(|looks| looks.keys()).collect();
    for name in names.into_iter().chain(found.keys()) {
        let from = if killed { told.done } else { told.durable.get(name).copied().unwrap_or(0) };
        let here = found.get(name);
        let fits = work.looks[from..=last].iter().any(|looks| looks.get(name).map(|seen| &**seen) == here);
        if !fits {
            let now = work.looks[told.done].get(name).map(|seen| here.map(|h| h.difference(seen)));
            let older = work.looks[..from].iter().any(|looks| looks.get(name).map(|seen| &**seen) == here);
            panic!(
                "{context}: world {name} is no state between events {from} and {last} (older: {older}); found {here:?}; the first is \
                 what was found, the second how it was after event {}:\n{now:?}",
                told.done
            );
        }
    }
    for ((name, label), seen) in &work.snapshots[told.done] {
        // Deleted worlds take their snapshots along, also when the deletion was under way.
        if !found.contains_key(name) {
            continue;
        }
        let then = life.session(name).and_then(|w| w.at(&At::Label(label.clone())));
        let then = then.unwrap_or_else(|e| panic!("{context}: snapshot {name}@{label}: {e}"));
        let then = view::engine(&then).unwrap_or_else(|e| panic!("{context}: snapshot {name}@{label}: {e}"));
        assert_eq!(then.difference(seen), "", "{context}: snapshot {name}@{label}");
    }
    fsck(&life, context);
    go_on(&life, &found, context);
    drop(life);
    // What was found once stays, also when the power goes again at once.
    let life = Life::begin(&disk.crash(), env, &work.options).unwrap_or_else(|e| panic!("{context}: again: {e}"));
    for name in found.keys() {
        let session = life.session(name).unwrap_or_else(|e| panic!("{context}: {name} again: {e}"));
        let object = session.get(b"after the crash").unwrap_or_else(|e| panic!("{context}: {name} again: {e}"));
        assert_eq!(object.info.size, 9_000, "{context}: {name}: what was put after the crash");
        view::engine(&session).unwrap_or_else(|e| panic!("{context}: {name} again: {e}"));
    }
    fsck(&life, &format!("{context}, again"));
}

fn fsck(life: &Life, context: &str) {
    let report = life.store.fsck(&mut |_| {}).unwrap_or_else(|e| panic!("{context}: fsck: {e}"));
    assert_eq!(report.problems, Vec::<String>::new(), "{context}: fsck");
}

/// Writes to what is there, sweeps, and makes a world and a fork of each.
fn go_on(life: &Life, found: &BTreeMap<String, Seen>, context: &str) {
    let done = |op: &Op| {
        apply(life, &Versions::default(), op).unwrap_or_else(|e| panic!("{context}: going on with {op}: {e}"));
    };
    for (i, world) in found.keys().enumerate() {
        let content = Content { tag: 77, len: 9_000 };
        let put = Verb::Put { key: "after the crash".to_owned(), content, content_type: None, if_absent: false };
        done(&Op::In { world: world.clone(), verb: put });
        done(&Op::Fork { from: world.clone(), at: None, to: format!("after-{i}") });
    }
    done(&Op::CreateWorld { world: "after".to_owned() });
    life.store.sweep().unwrap_or_else(|e| panic!("{context}: sweeping: {e}"));
    for (world, seen) in found {
        let session = life.session(world).unwrap_or_else(|e| panic!("{context}: {world}: {e}"));
        session.delete(b"after the crash", &mw_world::Conditions::default()).expect("deleted");
        let now = view::engine(&session).unwrap_or_else(|e| panic!("{context}: {world} goes on: {e}"));
        assert_eq!(now.difference(seen), "", "{context}: {world} goes on as it was found");
        let content = Content { tag: 78, len: 9_000 };
        let put = Verb::Put { key: "after the crash".to_owned(), content, content_type: None, if_absent: false };
        done(&Op::In { world: world.clone(), verb: put });
    }
    fsck(life, &format!("{context}, gone on"));
}

/// Cuts the power at every `stride`th step of the workload, several times with other luck.
fn cut_everywhere(work: &Work, stride: u64, lucks: u64) {
    let mut step = 0;
    loop {
        let (disk, env) = (SimDisk::new(step), Env::seeded(5));
        disk.fail_at(step);
        let mut told = Told { done: 0, durable: BTreeMap::new() };
        let life = run(work, &disk, &env, &mut told, work.events.len());
        let held = life.is_some() && !disk.is_off();
        // The former life ends without a power to write with.
        disk.power_off();
        drop(life);
        let context = |what: &str| format!("{}: step {step}, {what}, in event {}", work.name, told.done);
        for luck in 0..lucks {
            let found = disk.crash_as(step * 31 + luck);
            check(work, &found, &Env::seeded(6 + luck), &told, false, &context(&format!("luck {luck}")));
        }
        for (kept, what) in [(META, "the log kept and the content lost"), (DATA, "the content kept and the log lost")] {
            let found = disk.crash_split(|name| name.starts_with(kept));
            check(work, &found, &Env::seeded(9), &told, false, &context(what));
        }
        if held {
            assert!(step > 40, "{}: the workload has only {step} steps", work.name);
            return;
        }
        step += stride;
    }
}

/// Kills the process after every event.
fn kill_everywhere(work: &Work) {
    for upto in 0..=work.events.len() {
        let (disk, env) = (SimDisk::new(9), Env::seeded(5));
        let mut told = Told { done: 0, durable: BTreeMap::new() };
        let life = run(work, &disk, &env, &mut told, upto).expect("the power holds");
        let killed = disk.kill();
        disk.power_off();
        drop(life);
        // No event was under way.
        check(
            &work.part(upto),
            &killed,
            &Env::seeded(6),
            &told,
            true,
            &format!("{}: killed after event {upto}", work.name),
        );
    }
}

impl Work {
    fn part(&self, upto: usize) -> Self {
        Self {
            name: self.name.clone(),
            options: self.options.clone(),
            events: self.events[..upto].to_vec(),
            refused: self.refused[..upto].to_vec(),
            looks: self.looks[..=upto].to_vec(),
            snapshots: self.snapshots[..=upto].to_vec(),
            durable: self.durable[..upto].to_vec(),
            versions: self.versions[..=upto].to_vec(),
        }
    }
}

fn on(world: &str, verb: Verb) -> Event {
    Event::Do(Op::In { world: world.to_owned(), verb })
}

fn put(world: &str, key: &str, tag: u8, len: u32) -> Event {
    on(world, Verb::Put { key: key.to_owned(), content: Content { tag, len }, content_type: None, if_absent: false })
}

fn create(world: &str, path: &str) -> Event {
    on(world, Verb::Create { path: path.to_owned(), mode: 0o644 })
}

fn write(world: &str, path: &str, offset: u64, tag: u8, len: u32) -> Event {
    on(world, Verb::Write { path: path.to_owned(), offset, content: Content { tag, len } })
}

fn fork(from: &str, to: &str) -> Event {
    Event::Do(Op::Fork { from: from.to_owned(), at: None, to: to.to_owned() })
}

fn new(world: &str) -> Event {
    Event::Do(Op::CreateWorld { world: world.to_owned() })
}

fn gone(world: &str) -> Event {
    Event::Do(Op::DeleteWorld { world: world.to_owned() })
}

fn snapshot(world: &str, name: &str) -> Event {
    Event::Do(Op::Snapshot { world: world.to_owned(), name: name.to_owned() })
}

fn sync(world: &str) -> Event {
    Event::Sync(world.to_owned())
}

/// Small and large writes of a mount, some synced; forks and snapshots right behind writes that are not.
fn mount_work() -> Vec<Event> {
    let base = "base";
    vec![
        new(base),
        create(base, "a"),
        write(base, "a", 0, 1, 100),
        write(base, "a", 50, 2, 20_000),
        sync(base),
        create(base, "b"),
        write(base, "b", 0, 3, 9_000),
        snapshot(base, "s1"),
        write(base, "b", 4_000, 4, 9_000),
        fork(base, "fork-one"),
        write("fork-one", "b", 0, 5, 12_000),
        write(base, "a", 0, 6, 10_000),
        fork("fork-one", "fork-two"),
        on("fork-two", Verb::Unlink { path: "a".to_owned() }),
        sync("fork-two"),
        on(base, Verb::Truncate { path: "b".to_owned(), len: 10 }),
        on(base, Verb::Rename { from: "b".to_owned(), to: "c".to_owned(), how: Exchange::Replace }),
        write(base, "c", 10, 7, 30_000),
        snapshot(base, "s2"),
        gone("fork-one"),
        Event::Sweep,
        write(base, "c", 0, 8, 9_000),
        sync(base),
    ]
}

/// Objects put, replaced and deleted, with folds between, a base deleted under its fork, and space used again.
fn object_work() -> Vec<Event> {
    let base = "base";
    let mut events = vec![new(base)];
    for i in 0..6u8 {
        events.push(put(base, &format!("d/o{i}"), i + 1, if i % 2 == 0 { 300 } else { 60_000 }));
    }
    events.extend([
        fork(base, "fork-one"),
        put("fork-one", "d/o1", 20, 70_000),
        on(base, Verb::Delete { key: "d/o3".to_owned() }),
        on(base, Verb::Copy { from: "d/o1".to_owned(), to: "e/copy".to_owned() }),
        snapshot("fork-one", "kept"),
        on("fork-one", Verb::Delete { key: "d/o1".to_owned() }),
        gone(base),
        Event::Sweep,
        put("fork-one", "d/o5", 21, 70_000),
        Event::Sweep,
        new(base),
        put(base, "other", 22, 40_000),
        Event::Reopen,
        put("fork-one", "d/o2", 23, 5_000),
        gone("fork-one"),
        Event::Sweep,
        put(base, "another", 24, 50_000),
    ]);
    events
}

/// Forks promoted, rebased, reverted and restored, with what is not synced on both sides.
fn merge_work() -> Vec<Event> {
    let base = "base";
    let promote = |fork: &str| Event::Do(Op::Promote { fork: fork.to_owned(), policy: Policy::Fail, only: None });
    let mut events = vec![new(base)];
    for (i, key) in ["a/1", "a/2", "b/1"].into_iter().enumerate() {
        events.push(put(base, key, i as u8 + 1, 20_000));
    }
    // The first version of the world that has all three; the model counts from 1.
    let then = events.len() as u64;
    events.extend([
        fork(base, "fork-one"),
        write("fork-one", "a/1", 0, 10, 12_000),
        create("fork-one", "new"),
        write("fork-one", "new", 0, 11, 9_000),
        promote("fork-one"),
        fork(base, "fork-two"),
        put(base, "b/1", 12, 10_000),
        write(base, "a/2", 100, 13, 9_000),
        on("fork-two", Verb::Unlink { path: "new".to_owned() }),
        write("fork-two", "a/1", 50, 14, 30_000),
        Event::Do(Op::Rebase { fork: "fork-two".to_owned(), policy: Policy::Fail }),
        promote("fork-two"),
        write(base, "b/1", 0, 15, 9_000),
        Event::Do(Op::Revert { world: base.to_owned(), at: then }),
        write(base, "a/1", 0, 16, 9_000),
        Event::Do(Op::Restore { world: base.to_owned(), path: "b/1".to_owned(), at: then }),
        gone("fork-one"),
        Event::Sweep,
        write("fork-two", "a/2", 0, 17, 9_000),
        Event::Do(Op::Promote { fork: "fork-two".to_owned(), policy: Policy::Theirs, only: None }),
        sync(base),
    ]);
    events
}

/// Whatever the generator draws, with syncs between.
fn random_work(seed: u64, count: usize) -> Vec<Event> {
    let (mut rng, mut model) = (Rng::new(seed), Model::new());
    let (mut versions, mut renames) = (Versions::default(), Renames::default());
    let mut events = Vec::new();
    let mut op = Op::CreateWorld { world: "world-0".to_owned() };
    while events.len() < count {
        if !left_out(&op, &model, &versions) && renames.comparable(&op, &model) {
            if model.apply(&op).is_ok() {
                renames.note(&op);
            }
            // Here only the fact counts that a world has a version, or has not.
            versions.0.retain(|name, _| model.world(name).is_some());
            for (name, world) in model.worlds() {
                versions.0.entry(name.clone()).or_default().insert(world.version(), mw_model::Version(0));
            }
            events.push(Event::Do(op));
            match rng.below(12) {
                0 => events.extend(model.worlds().keys().next().map(|name| Event::Sync(name.clone()))),
                1 => events.push(Event::Sweep),
                2 => events.push(Event::Reopen),
                _ => {}
            }
        }
        op = random_op(&mut rng, &model);
    }
    events
}

fn forgetful(fold_bytes: usize) -> Options {
    Options { retention: Duration::ZERO, ..options(fold_bytes) }
}

#[test]
fn a_power_cut_at_any_step_of_mount_writes_loses_nothing_acknowledged() {
    cut_everywhere(&Work::fixed("mount", options(1_500), mount_work()), 1, 2);
}

#[test]
fn a_power_cut_at_any_step_of_mount_writes_without_folds_loses_nothing_acknowledged() {
    cut_everywhere(&Work::fixed("mount without folds", options(1 << 20), mount_work()), 1, 2);
}

#[test]
fn a_power_cut_at_any_step_of_object_writes_loses_nothing_acknowledged() {
    cut_everywhere(&Work::fixed("objects", options(1_500), object_work()), 1, 2);
}

#[test]
fn a_power_cut_at_any_step_of_merges_loses_nothing_acknowledged() {
    cut_everywhere(&Work::fixed("merges", options(1_500), merge_work()), 1, 2);
}

#[test]
fn a_power_cut_at_any_step_with_retention_over_at_once_loses_nothing_acknowledged() {
    cut_everywhere(&Work::fixed("mount, forgetful", forgetful(600), mount_work()), 1, 2);
    cut_everywhere(&Work::fixed("objects, forgetful", forgetful(600), object_work()), 1, 2);
}

#[test]
fn a_power_cut_in_whatever_comes_loses_nothing_acknowledged() {
    for seed in 0..6 {
        cut_everywhere(&Work::new(&format!("random {seed}"), options(900), random_work(seed, 60)), 3, 1);
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_power_cut_in_whatever_comes_loses_nothing_acknowledged_for_long() {
    for seed in 100..140 {
        let options = options([300, 2_000, 1 << 20][(seed % 3) as usize]);
        cut_everywhere(&Work::new(&format!("random {seed}"), options, random_work(seed, 80)), 1, 3);
    }
}

#[test]
fn a_killed_process_loses_nothing_that_returned() {
    kill_everywhere(&Work::fixed("mount", options(1_500), mount_work()));
    kill_everywhere(&Work::fixed("objects", options(1_500), object_work()));
    kill_everywhere(&Work::fixed("merges", options(1_500), merge_work()));
    kill_everywhere(&Work::fixed("objects, forgetful", forgetful(600), object_work()));
    for seed in 10..13 {
        kill_everywhere(&Work::new(&format!("random {seed}"), options(900), random_work(seed, 50)));
    }
}
