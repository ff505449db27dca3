//! The engine against the naive model: random sequences of every verb, with folds, sweeps, reopened stores, killed processes and power
//! cuts in between.
//!
//! Everything follows from one seed. A failure prints it, with every operation so far; `MW_SEED=N` runs that seed alone. The ignored
//! tests run more of them: 120, or as many as `MW_SEEDS` says.

use crate::crash_disk::{Life, options};
use crate::oracle_apply::{Versions, apply, left_out, merge, worded};
use crate::oracle_merges::Renames;
use crate::oracle_view as view;
use mw_env::Env;
use mw_model::{ErrorKind, Version};
use mw_sim::SimDisk;
use mw_testkit::{Model, Op, Policy, Rng, Verb, random_op};
use mw_world::{At, Options, Promoted};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How a run is set up.
pub struct Plan {
    pub seed: u64,
    pub ops: usize,
    pub options: Options,
    /// Opens the store that lies on a disk.
    pub open: Opener,
    /// Whether a failure is expected, and so its story is of no interest.
    pub quiet: bool,
}

/// Opens a store.
pub type Opener = Box<dyn Fn(&SimDisk, &Env, &Options) -> mw_world::Result<Life>>;

/// A store and the model, side by side.
pub struct Run {
    plan: Plan,
    rng: Rng,
    disk: SimDisk,
    env: Env,
    life: Option<Life>,
    model: Model,
    versions: Versions,
    renames: Renames,
    /// What was done so far, printed when something is wrong.
    story: Vec<String>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.plan.quiet {
            eprintln!("the story of seed {}:\n{}", self.plan.seed, self.story.join("\n"));
            eprintln!("MW_SEED={} replays it", self.plan.seed);
        }
    }
}

impl Run {
    pub fn new(plan: Plan) -> Self {
        let (disk, env) = (SimDisk::new(plan.seed), Env::seeded(plan.seed));
        let life = Some((plan.open)(&disk, &env, &plan.options).expect("a store on an empty disk"));
        let (rng, model, versions) = (Rng::new(plan.seed), Model::new(), Versions::default());
        Self { plan, rng, disk, env, life, model, versions, renames: Renames::default(), story: Vec::new() }
    }

    pub fn life(&self) -> &Life {
        self.life.as_ref().expect("the store is open")
    }

    fn go(&mut self) {
        let mut op = Op::CreateWorld { world: "world-0".to_owned() };
        for _ in 0..self.plan.ops {
            self.step(&op);
            self.meanwhile();
            op = random_op(&mut self.rng, &self.model);
        }
        self.restart(false);
        self.look();
        self.fsck();
        self.end();
    }

    /// Deletes every world: nothing is left of them, neither space nor records.
    fn end(&mut self) {
        while let Some(world) = self.model.worlds().keys().next().cloned() {
            self.step(&Op::DeleteWorld { world });
        }
        // What a world lent keeps its records until nothing refers to them; that takes a sweep more for each fork of a fork.
        for _ in 0..6 {
            self.sweep();
        }
        let store = &self.life().store;
        assert_eq!(store.status().expect("status").claimed, 0, "no world, no space");
        let left = store.meta().scan(&[], &[u8::MAX; 8], usize::MAX, mw_meta::Order::Up).expect("a scan");
        let tags: BTreeSet<char> = left.iter().filter_map(|(key, _)| key.get(4).map(|tag| char::from(*tag))).collect();
        assert!(tags.is_subset(&BTreeSet::from(['C', 'K', 'X'])), "no world, no records: {tags:?}");
    }

    /// Does one operation to both, and compares the answers.
    pub fn step(&mut self, op: &Op) {
        if left_out(op, &self.model, &self.versions) {
            return;
        }
        if !self.renames.comparable(op, &self.model) {
            return;
        }
        self.story.push(op.to_string());
        let mut next = self.model.clone();
        let expected = worded(op, &self.model, next.apply(op).map(drop));
        let actual = apply(self.life(), &self.versions, op);
        let past = matches!(op, Op::Fork { at: Some(_), .. } | Op::Revert { .. } | Op::Restore { .. });
        if actual == Err(ErrorKind::Unsupported) || (self.forgets() && past && actual == Err(ErrorKind::NotFound)) {
            self.story.push("  (not done by the store)".to_owned());
            return;
        }
        assert_eq!(actual, expected, "{op}: the store's answer, and the model's");
        if actual.is_ok() {
            self.renames.note(op);
            self.model = next;
            let life = self.life.as_ref().expect("the store is open");
            let noted = self.versions.note(life, &self.model).expect("every world can be asked for its version");
            self.story.extend(noted);
        }
    }

    fn forgets(&self) -> bool {
        self.plan.options.retention.is_zero()
    }

    /// Does one operation to the store alone; the model only keeps up as well as it can, so that what is drawn next meets something.
    fn step_alone(&mut self, op: &Op) {
        if left_out(op, &self.model, &self.versions) {
            return;
        }
        self.story.push(op.to_string());
        let done = match merge(self.life(), &self.versions, op, true) {
            Some(dry) => self.merge_alone(op, dry),
            None => apply(self.life(), &self.versions, op),
        };
        let broken = |kind| matches!(kind, ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::Unsupported);
        assert!(!done.is_err_and(broken), "{op}: {done:?}");
        if done.is_ok() && self.model.apply(op).is_ok() {
            let life = self.life.as_ref().expect("the store is open");
            self.versions.note(life, &self.model).expect("every world can be asked for its version");
        }
    }

    /// Merges. A dry run says what the real one does and touches nothing; the real one touches one world, or none where something
    /// contradicts; the store is whole after it.
    fn merge_alone(&self, op: &Op, dry: mw_world::Result<Promoted>) -> Result<(), ErrorKind> {
        let sights = |run: &Self| -> BTreeMap<String, view::Seen> {
            let seen = |name: &String| view::engine(&run.life().session(name).expect("there")).expect("whole");
            run.model.worlds().keys().map(|name| (name.clone(), seen(name))).collect()
        };
        let target = match op {
            Op::Promote { fork, .. } => self.model.base_of(fork).map(str::to_owned),
            Op::Rebase { fork: world, .. } | Op::Revert { world, .. } | Op::Restore { world, .. } => {
                Some(world.clone())
            }
            _ => None,
        };
        let before = sights(self);
        let real = merge(self.life(), &self.versions, op, false).expect("a merge");
        for (name, seen) in sights(self) {
            let may_change = Some(&name) == target.as_ref() && real.as_ref().is_ok_and(|done| done.version.is_some());
            assert!(may_change || seen == before[&name], "{op} changed {name}: {}", seen.difference(&before[&name]));
        }
        let report = self.life().store.fsck(&mut |_| {}).expect("fsck runs");
        assert_eq!(report.problems, Vec::<String>::new(), "fsck after {op}");
        if !matches!(op, Op::Promote { .. } | Op::Rebase { .. }) {
            return real.map(drop).map_err(|e| e.kind());
        }
        let (real, dry) = match (real, dry) {
            (Ok(real), Ok(dry)) => (real, dry),
            (Err(real), Err(dry)) => {
                assert_ne!(real.kind(), ErrorKind::Busy, "{op}: nobody else is writing");
                assert_eq!(real.kind(), dry.kind(), "{op}: the real run, and the dry one");
                return Err(real.kind());
            }
            (real, dry) => panic!("{op}: the real run says {real:?}, the dry one {dry:?}"),
        };
        let told = |done: &Promoted| (done.fast, done.changes.clone(), done.merged.clone(), done.conflicts.clone());
        assert_eq!(told(&dry), told(&real), "{op}: the dry run, and the real one");
        Ok(())
    }

    /// What else happens to a store.
    fn meanwhile(&mut self) {
        match self.rng.below(100) {
            0..=9 => self.look(),
            10..=17 => self.look_back(),
            18..=20 => self.sweep(),
            21 => self.fsck(),
            22 | 23 => self.restart(false),
            24 => self.restart(true),
            25 | 26 => {
                self.sync_all();
                let found = self.disk.crash();
                self.power_cut(found);
                self.look();
            }
            _ => {}
        }
    }

    /// Ends the process, by a kill or in order, and opens the store again.
    pub fn restart(&mut self, kill: bool) {
        self.story.push(if kill { "kill" } else { "close" }.to_owned());
        if !kill {
            self.life().store.close();
        }
        let found = self.disk.kill();
        self.life = None;
        self.open(found);
    }

    fn open(&mut self, disk: SimDisk) {
        self.disk = disk;
        self.life = Some((self.plan.open)(&self.disk, &self.env, &self.plan.options).expect("the store opens again"));
    }

    pub fn sync_all(&mut self) {
        for name in self.model.worlds().keys() {
            self.life().sync(name).expect("synced");
        }
    }

    /// Compares every world, and every snapshot.
    pub fn look(&mut self) {
        self.story.push("look".to_owned());
        let life = self.life();
        let listed: Vec<String> = life.store.worlds(&life.root).expect("listed").into_iter().map(|w| w.name).collect();
        assert_eq!(listed, self.model.worlds().keys().cloned().collect::<Vec<_>>(), "the worlds that there are");
        for (name, world) in self.model.worlds() {
            let session = life.session(name).expect("a world that there is");
            same(&session, world.tree(), name);
            for (label, version) in world.snapshots() {
                let then = session.at(&At::Label(label.clone())).expect("a snapshot stays");
                same(&then, world.at(*version).expect("in the model"), &format!("{name}@{label}"));
            }
        }
    }

    /// Compares a world with what it was at some version.
    fn look_back(&mut self) {
        let names: Vec<String> = self.versions.0.keys().cloned().collect();
        let Some(name) = (!names.is_empty()).then(|| self.rng.pick(&names).clone()) else { return };
        let known: Vec<_> = self.versions.0[&name].iter().map(|(at, version)| (*at, *version)).collect();
        let (at, version) = *self.rng.pick(&known);
        self.look_at(&name, at, version);
    }

    /// Compares every world with what it was at every version.
    pub fn look_back_everywhere(&mut self) {
        for (name, known) in self.versions.0.clone() {
            known.into_iter().for_each(|(at, version)| self.look_at(&name, at, version));
        }
    }

    fn look_at(&mut self, name: &str, at: u64, version: Version) {
        self.story.push(format!("look back at {name}@{at} (version {version})"));
        let (life, forgets) = (self.life(), self.forgets());
        match life.store.session_at(&life.root, name, At::Version(version)) {
            Err(e) if forgets && e.kind() == ErrorKind::NotFound => {}
            then => {
                let world = self.model.world(name).expect("in the model");
                same(&then.expect("retained"), world.at(at).expect("in the model"), &format!("{name}@{at}"));
            }
        }
    }

    pub fn sweep(&mut self) {
        self.story.push("sweep".to_owned());
        self.life().store.sweep().expect("the sweep runs");
    }

    /// Goes on with the disk as the power cut left it.
    pub fn power_cut(&mut self, found: SimDisk) {
        self.story.push("power cut".to_owned());
        self.life = None;
        self.open(found);
    }

    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    pub fn fsck(&mut self) {
        self.story.push("fsck".to_owned());
        let report = self.life().store.fsck(&mut |_| {}).expect("fsck runs");
        assert_eq!(report.problems, Vec::<String>::new(), "fsck");
    }
}

/// Fails unless a world of the engine looks like a tree of the model.
pub fn same(session: &mw_world::Session, tree: &mw_testkit::Tree, name: &str) {
    let (actual, expected) = (view::engine(session).unwrap_or_else(|e| panic!("{name}: {e}")), view::model(tree));
    let difference = actual.difference(&expected);
    assert!(difference.is_empty(), "{name}: the store (first) and the model (second) differ:\n{difference}");
}

/// Runs a seed; its setup follows from it too.
fn run(seed: u64, ops: usize) {
    let fold_bytes = [200, 2_000, 20_000, 1 << 20][(seed % 4) as usize];
    let mut options = options(fold_bytes);
    if seed % 3 == 2 {
        options.retention = Duration::ZERO;
    }
    Run::new(Plan { seed, ops, options, open: Box::new(Life::begin), quiet: false }).go();
}

/// Runs a seed on the engine alone, for what the model has simpler rules for: names moved on both sides of a merge.
fn run_alone(seed: u64, ops: usize) {
    let options = options([300, 1 << 20][(seed % 2) as usize]);
    let mut run = Run::new(Plan { seed, ops, options, open: Box::new(Life::begin), quiet: false });
    let mut op = Op::CreateWorld { world: "world-0".to_owned() };
    for i in 0..ops {
        run.step_alone(&op);
        match i % 40 {
            13 => run.sweep(),
            27 => run.restart(i % 3 == 0),
            _ => {}
        }
        op = random_op(&mut run.rng, &run.model);
    }
}

/// Runs the seed that the environment names, or all of these.
fn each(seeds: std::ops::Range<u64>, run: impl Fn(u64, usize)) {
    match std::env::var("MW_SEED") {
        Ok(seed) => run(seed.parse().expect("MW_SEED is a number"), 250),
        Err(_) => seeds.for_each(|seed| run(seed, 250)),
    }
}

fn many() -> u64 {
    std::env::var("MW_SEEDS").ok().map_or(120, |n| n.parse().expect("MW_SEEDS is a number"))
}

#[test]
fn engine_and_model_agree() {
    each(0..30, run);
}

#[test]
#[ignore = "takes minutes"]
fn engine_and_model_agree_for_long() {
    each(1_000..1_000 + many(), run);
}

#[test]
fn merges_of_moved_names_leave_the_store_whole() {
    each(100..110, run_alone);
}

#[test]
#[ignore = "takes minutes"]
fn merges_of_moved_names_leave_the_store_whole_for_long() {
    each(2_000..2_000 + many(), run_alone);
}

/// A directory renamed to a name under which the other side put keys: the two are one directory then.
#[test]
fn a_renamed_directory_meets_one_that_keys_made() {
    for policy in [Policy::Fail, Policy::Ours, Policy::Theirs] {
        for renamed in ["base", "fork"] {
            let options = options(1 << 20);
            let mut run = Run::new(Plan { seed: 1, ops: 0, options, open: Box::new(Life::begin), quiet: false });
            let other = if renamed == "base" { "fork" } else { "base" };
            let on = |world: &str, verb: Verb| Op::In { world: world.to_owned(), verb };
            let put = |key: &str| {
                let content = mw_testkit::Content { tag: 1, len: 10 };
                Verb::Put { key: key.to_owned(), content, content_type: None, if_absent: false }
            };
            let rename = Verb::Rename { from: "a/a".into(), to: "b".into(), how: mw_testkit::Exchange::Replace };
            for op in [
                Op::CreateWorld { world: "base".into() },
                on("base", Verb::Mkdir { path: "a".into(), mode: 0o755 }),
                on("base", Verb::Mkdir { path: "a/a".into(), mode: 0o755 }),
                on("base", put("a/a/x")),
                Op::Fork { from: "base".into(), at: None, to: "fork".into() },
                on(renamed, rename),
                on(other, put("b/y")),
                Op::Promote { fork: "fork".into(), policy, only: None },
            ] {
                run.step_alone(&op);
            }
            let seen = view::engine(&run.life().session("base").expect("there")).expect("whole");
            println!("{policy:?} {renamed}: {:?}", seen.mount.keys());
        }
    }
}
