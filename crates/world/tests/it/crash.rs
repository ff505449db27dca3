//! The power goes, or the process dies, at every step of a workload: nothing acknowledged is lost, what survives is a prefix, and
//! fsck is clean.
//!
//! A workload is a list of events; the model says beforehand what every world looks like after each of them. The store is run over a
//! disk whose power fails at step 0, 1, 2, ...; what is found then must be one of those looks, for every world: not older than the last
//! one that was acknowledged as durable, and not younger than the event that was under way.

use crate::crash_disk::{DATA, Life, META, options};
use crate::crash_work::{Event, Work, large_work, merge_work, mount_work, object_work, random_work};
use crate::oracle_apply::{Versions, apply};
use crate::oracle_view::{self as view, Seen};
use mw_env::Env;
use mw_model::ErrorKind;
use mw_sim::SimDisk;
use mw_testkit::{Content, Op, Verb};
use mw_world::{At, Options};
use std::collections::BTreeMap;
use std::time::Duration;

/// How far a run came.
#[derive(Default)]
pub struct Told {
    /// How many events have returned.
    pub done: usize,
    /// For every world, the event up to which it is durable: an index into the looks.
    pub durable: BTreeMap<String, usize>,
}

impl Told {
    /// Notes that an event has returned.
    fn returned(&mut self, work: &Work) {
        let reached = &work.durable[self.done];
        self.done += 1;
        self.durable.extend(reached.iter().map(|world| (world.clone(), self.done)));
    }
}

/// Runs a workload until its end, until the power is gone, or until the sync that fails in event `failing` is told of.
pub fn run(
    work: &Work,
    disk: &SimDisk,
    env: &Env,
    told: &mut Told,
    upto: usize,
    failing: Option<usize>,
) -> Option<Life> {
    let mut life = Life::begin(disk, env, &work.options).ok()?;
    let mut versions = Versions::default();
    while told.done < upto {
        if failing == Some(told.done) {
            disk.fail_sync_once();
        }
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
        if disk.is_off() || failing.is_some() && outcome == Err(ErrorKind::Io) {
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
pub fn check(work: &Work, disk: &SimDisk, env: &Env, told: &Told, killed: bool, context: &str) {
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
        let mut told = Told::default();
        let life = run(work, &disk, &env, &mut told, work.events.len(), None);
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

/// Fails one sync in or after every event. Whoever waited for it hears of it, and what was acknowledged before is there after a crash:
/// a failed sync is never tried again, since a second one would succeed and save nothing.
fn fail_a_sync_everywhere(work: &Work) {
    for failing in 0..work.events.len() {
        let (disk, env) = (SimDisk::new(failing as u64), Env::seeded(5));
        let mut told = Told::default();
        let life = run(work, &disk, &env, &mut told, work.events.len(), Some(failing));
        for luck in 0..3 {
            let context = format!("{}: a sync failed in or after event {failing}, luck {luck}", work.name);
            check(work, &disk.crash_as(luck), &Env::seeded(6), &told, false, &context);
        }
        disk.power_off();
        drop(life);
    }
}

/// Kills the process after every event.
fn kill_everywhere(work: &Work) {
    for upto in 0..=work.events.len() {
        let (disk, env) = (SimDisk::new(9), Env::seeded(5));
        let mut told = Told::default();
        let life = run(work, &disk, &env, &mut told, upto, None).expect("the power holds");
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
fn a_power_cut_around_a_large_object_loses_nothing_acknowledged() {
    cut_everywhere(&Work::fixed("large", forgetful(600), large_work()), 1, 1);
    kill_everywhere(&Work::fixed("large", options(1 << 20), large_work()));
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
    for seed in 100..108 {
        let options = options([300, 2_000, 1 << 20][(seed % 3) as usize]);
        cut_everywhere(&Work::new(&format!("random {seed}"), options, random_work(seed, 80)), 1, 3);
    }
}

#[test]
fn a_failed_sync_is_told_and_loses_nothing_acknowledged() {
    let without_reopening = |events: Vec<Event>| events.into_iter().filter(|e| !matches!(e, Event::Reopen)).collect();
    for fold_bytes in [1_500, 1 << 20] {
        fail_a_sync_everywhere(&Work::fixed("mount", options(fold_bytes), mount_work()));
        fail_a_sync_everywhere(&Work::fixed("objects", options(fold_bytes), without_reopening(object_work())));
        fail_a_sync_everywhere(&Work::fixed("merges", options(fold_bytes), merge_work()));
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
