//! The engine against the naive model: random sequences of every verb, with folds, sweeps, reopened stores, killed processes and power
//! cuts in between.
//!
//! Everything follows from one seed. A failure prints it, with every operation so far; `MW_SEED=N` runs that seed alone, and
//! `MW_SEEDS=N` runs N more than the usual ones.

use crate::crash_disk::{Life, options};
use crate::oracle_apply::{Versions, apply, left_out};
use crate::oracle_view as view;
use mw_env::Env;
use mw_model::ErrorKind;
use mw_sim::SimDisk;
use mw_testkit::{Model, Op, Rng, random_op};
use mw_world::{At, Options};
use std::time::Duration;

/// How a run is set up.
struct Plan {
    seed: u64,
    ops: usize,
    options: Options,
}

/// A store and the model, side by side.
struct Run {
    plan: Plan,
    rng: Rng,
    disk: SimDisk,
    env: Env,
    life: Option<Life>,
    model: Model,
    versions: Versions,
    /// What was done so far, printed when something is wrong.
    story: Vec<String>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the story of seed {}:\n{}", self.plan.seed, self.story.join("\n"));
            eprintln!("MW_SEED={} replays it", self.plan.seed);
        }
    }
}

impl Run {
    fn new(plan: Plan) -> Self {
        let (disk, env) = (SimDisk::new(plan.seed), Env::seeded(plan.seed));
        let life = Some(Life::begin(&disk, &env, &plan.options).expect("a store on an empty disk"));
        let (rng, model, versions) = (Rng::new(plan.seed), Model::new(), Versions::default());
        Self { plan, rng, disk, env, life, model, versions, story: Vec::new() }
    }

    fn life(&self) -> &Life {
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
    }

    /// Does one operation to both, and compares the answers.
    fn step(&mut self, op: &Op) {
        if left_out(op, &self.model, &self.versions) {
            return;
        }
        self.story.push(op.to_string());
        let mut next = self.model.clone();
        let expected = next.apply(op).map(drop);
        let actual = apply(self.life(), &self.versions, op);
        let past = matches!(op, Op::Fork { at: Some(_), .. } | Op::Revert { .. } | Op::Restore { .. });
        if actual == Err(ErrorKind::Unsupported) || (self.forgets() && past && actual == Err(ErrorKind::NotFound)) {
            self.story.push("  (not done by the store)".to_owned());
            return;
        }
        assert_eq!(actual, expected, "{op}: the store's answer, and the model's");
        if actual.is_ok() {
            self.model = next;
            let life = self.life.as_ref().expect("the store is open");
            self.versions.note(life, &self.model).expect("every world can be asked for its version");
        }
    }

    fn forgets(&self) -> bool {
        self.plan.options.retention.is_zero()
    }

    /// What else happens to a store.
    fn meanwhile(&mut self) {
        match self.rng.below(100) {
            0..=9 => self.look(),
            10..=17 => self.look_back(),
            18..=20 => {
                self.story.push("sweep".to_owned());
                self.life().store.sweep().expect("the sweep runs");
            }
            21 => self.fsck(),
            22 | 23 => self.restart(false),
            24 => self.restart(true),
            25 | 26 => {
                self.sync_all();
                self.story.push("power cut".to_owned());
                let found = self.disk.crash();
                self.life = None;
                self.open(found);
                self.look();
            }
            _ => {}
        }
    }

    /// Ends the process, by a kill or in order, and opens the store again.
    fn restart(&mut self, kill: bool) {
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
        self.life = Some(Life::begin(&self.disk, &self.env, &self.plan.options).expect("the store opens again"));
    }

    fn sync_all(&mut self) {
        for name in self.model.worlds().keys() {
            self.life().sync(name).expect("synced");
        }
    }

    /// Compares every world, and every snapshot.
    fn look(&mut self) {
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

    /// Compares a world with what it was.
    fn look_back(&mut self) {
        let names: Vec<String> = self.versions.0.keys().cloned().collect();
        let Some(name) = (!names.is_empty()).then(|| self.rng.pick(&names).clone()) else { return };
        let known: Vec<_> = self.versions.0[&name].iter().map(|(at, version)| (*at, *version)).collect();
        let (at, version) = *self.rng.pick(&known);
        self.story.push(format!("look back at {name}@{at} (version {version})"));
        let (life, forgets) = (self.life(), self.forgets());
        match life.store.session_at(&life.root, &name, At::Version(version)) {
            Err(e) if forgets && e.kind() == ErrorKind::NotFound => {}
            then => {
                let world = self.model.world(&name).expect("in the model");
                same(&then.expect("retained"), world.at(at).expect("in the model"), &format!("{name}@{at}"));
            }
        }
    }

    fn fsck(&mut self) {
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
    Run::new(Plan { seed, ops, options }).go();
}

#[test]
fn engine_and_model_agree() {
    if let Ok(seed) = std::env::var("MW_SEED") {
        return run(seed.parse().expect("MW_SEED is a number"), 250);
    }
    let more: u64 = std::env::var("MW_SEEDS").ok().map_or(0, |n| n.parse().expect("MW_SEEDS is a number"));
    for seed in 0..24 + more {
        run(seed, 250);
    }
}
