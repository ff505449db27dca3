//! Workloads for the crash tests: events, and what the model says the worlds look like after each of them.

use crate::oracle_apply::{Versions, durable, left_out, worded};
use crate::oracle_merges::Renames;
use crate::oracle_view::{self as view, Seen};
use mw_model::ErrorKind;
use mw_testkit::{Content, Exchange, Model, Op, Policy, Rng, Verb, random_op};
use mw_world::Options;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One event of a workload.
#[derive(Debug, Clone)]
pub enum Event {
    Do(Op),
    /// fsync of any file of the world.
    Sync(String),
    Sweep,
    /// The store is closed and opened again.
    Reopen,
}

/// What every world looks like after an event; none for a world that is not there.
pub type Looks = BTreeMap<String, Arc<Seen>>;

/// A workload with what the model says of it.
pub struct Work {
    pub name: String,
    pub options: Options,
    pub events: Vec<Event>,
    /// What was refused by the model, and must be by the store.
    pub refused: Vec<Option<ErrorKind>>,
    /// Before the first event, and after each.
    pub looks: Vec<Looks>,
    /// Snapshots taken, by world and label, after each event.
    pub snapshots: Vec<BTreeMap<(String, String), Arc<Seen>>>,
    /// The worlds that each event makes durable.
    pub durable: Vec<Vec<String>>,
    /// The model's version of every world after each event.
    pub versions: Vec<BTreeMap<String, u64>>,
}

impl Work {
    pub fn new(name: &str, options: Options, events: Vec<Event>) -> Self {
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
    pub fn fixed(name: &str, options: Options, events: Vec<Event>) -> Self {
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

    pub fn part(&self, upto: usize) -> Self {
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

pub fn on(world: &str, verb: Verb) -> Event {
    Event::Do(Op::In { world: world.to_owned(), verb })
}

fn put(world: &str, key: &str, tag: u8, len: u32) -> Event {
    on(world, Verb::Put { key: key.to_owned(), content: Content { tag, len }, content_type: None, if_absent: false })
}

pub fn create(world: &str, path: &str) -> Event {
    on(world, Verb::Create { path: path.to_owned(), mode: 0o644 })
}

pub fn write(world: &str, path: &str, offset: u64, tag: u8, len: u32) -> Event {
    on(world, Verb::Write { path: path.to_owned(), offset, content: Content { tag, len } })
}

fn fork(from: &str, to: &str) -> Event {
    Event::Do(Op::Fork { from: from.to_owned(), at: None, to: to.to_owned() })
}

pub fn new(world: &str) -> Event {
    Event::Do(Op::CreateWorld { world: world.to_owned() })
}

fn gone(world: &str) -> Event {
    Event::Do(Op::DeleteWorld { world: world.to_owned() })
}

fn snapshot(world: &str, name: &str) -> Event {
    Event::Do(Op::Snapshot { world: world.to_owned(), name: name.to_owned() })
}

pub fn sync(world: &str) -> Event {
    Event::Sync(world.to_owned())
}

/// Small and large writes of a mount, some synced; forks and snapshots right behind writes that are not.
pub fn mount_work() -> Vec<Event> {
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
pub fn object_work() -> Vec<Event> {
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

/// An object with enough pieces to be in a list: copied, forked, written into, and gone but for what shares its bytes.
pub fn large_work() -> Vec<Event> {
    let base = "base";
    vec![
        new(base),
        put(base, "large", 1, 2_400_000),
        on(base, Verb::Copy { from: "large".to_owned(), to: "copy".to_owned() }),
        fork(base, "fork-one"),
        write("fork-one", "copy", 700_000, 2, 9_000),
        write("fork-one", "copy", 709_000, 3, 300),
        on(base, Verb::Delete { key: "large".to_owned() }),
        gone(base),
        Event::Sweep,
        put("fork-one", "large", 4, 9_000),
        Event::Sweep,
        sync("fork-one"),
        on("fork-one", Verb::Truncate { path: "copy".to_owned(), len: 50_000 }),
        Event::Sweep,
        put("fork-one", "large", 5, 9_000),
    ]
}

/// Forks promoted, rebased, reverted and restored, with what is not synced on both sides.
pub fn merge_work() -> Vec<Event> {
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
pub fn random_work(seed: u64, count: usize) -> Vec<Event> {
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
