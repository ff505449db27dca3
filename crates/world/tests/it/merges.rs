//! Merges against the naive model: a base and a fork that both change at random, promoted and rebased again and again.
//!
//! Renames and hard links are left out: the model takes a rename for a deletion and an addition, the engine follows it. So are marker
//! objects, which are files of their own to the engine and a part of their directory to the model. `MW_MERGE_SEED=N` runs one
//! seed alone.

use crate::crash_disk::{Life, options};
use crate::oracle::same;
use crate::oracle_apply::{Versions, apply, left_out};
use crate::rig::clean;
use mw_env::Env;
use mw_sim::SimDisk;
use mw_testkit::{Model, Op, Policy, Rng, Verb, random_name, random_verb};
use mw_world::PromoteOptions;
use std::collections::BTreeSet;

struct Run {
    seed: u64,
    rng: Rng,
    life: Life,
    model: Model,
    versions: Versions,
    story: Vec<String>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the story of seed {}:\n{}\nMW_MERGE_SEED={} replays it",
                self.seed,
                self.story.join("\n"),
                self.seed
            );
        }
    }
}

/// Returns whether the engine and the model answer differently, on purpose, once this is merged.
fn unlike(verb: &Verb) -> bool {
    match verb {
        Verb::Rename { .. } | Verb::Link { .. } => true,
        Verb::Put { key, .. } | Verb::Delete { key } | Verb::Copy { to: key, .. } => key.ends_with('/'),
        _ => false,
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let (disk, env) = (SimDisk::new(seed), Env::seeded(seed));
        let fold = [200, 5_000, 1 << 20][(seed % 3) as usize];
        let life = Life::begin(&disk, &env, &options(fold)).expect("a store");
        let (rng, model, versions) = (Rng::new(seed), Model::new(), Versions::default());
        Self { seed, rng, life, model, versions, story: Vec::new() }
    }

    fn step(&mut self, op: &Op) {
        if left_out(op, &self.model, &self.versions) {
            return;
        }
        self.story.push(op.to_string());
        let mut next = self.model.clone();
        let expected = next.apply(op).map(drop);
        let actual = apply(&self.life, &self.versions, op);
        assert_eq!(actual, expected, "{op}: the store's answer, and the model's");
        if actual.is_ok() {
            self.model = next;
            self.versions.note(&self.life, &self.model).expect("noted");
        }
    }

    fn some(&mut self, world: &str, verbs: usize) {
        for _ in 0..verbs {
            let tree = self.model.world(world).expect("in the model").tree().clone();
            let verb = random_verb(&mut self.rng, &tree);
            if !unlike(&verb) {
                self.step(&Op::In { world: world.to_owned(), verb });
            }
        }
    }

    /// The dry run must name the model's conflicts, and the real one leave what the model has.
    fn merge(&mut self, into_base: bool, policy: Policy, only: Option<String>) {
        let plan = if into_base {
            self.model.plan_promote("fork", Policy::Fail, only.as_deref())
        } else {
            self.model.plan_rebase("fork", Policy::Fail)
        };
        let expected: BTreeSet<String> = plan.expect("planned").conflicts.into_iter().map(|c| c.path).collect();
        let fork = self.life.session("fork").expect("the fork");
        let dry = PromoteOptions { dry_run: true, only: only.clone().map(Into::into), ..PromoteOptions::default() };
        let dry = if into_base { fork.promote(&dry) } else { fork.rebase(&dry) }.expect("planned");
        let actual = dry.conflicts.iter().map(|c| String::from_utf8_lossy(&c.path).into_owned()).collect();
        let op = if into_base {
            Op::Promote { fork: "fork".to_owned(), policy, only }
        } else {
            Op::Rebase { fork: "fork".to_owned(), policy }
        };
        if expected != actual {
            self.story.push(format!("{op}\nours: {:#?}", dry.conflicts));
        }
        assert_eq!(actual, expected, "{op}: the store's conflicts, and the model's");
        self.step(&op);
        for world in ["base", "fork"] {
            same(&self.life.session(world).expect("there"), self.model.world(world).expect("there").tree(), world);
        }
    }

    fn go(mut self) {
        self.step(&Op::CreateWorld { world: "base".to_owned() });
        self.some("base", 25);
        self.step(&Op::Fork { from: "base".to_owned(), at: None, to: "fork".to_owned() });
        for _ in 0..6 {
            let (ours, theirs) = (self.rng.below(12), self.rng.below(12));
            self.some("base", ours);
            self.some("fork", theirs);
            let policy = *self.rng.pick(&[Policy::Fail, Policy::Ours, Policy::Theirs]);
            let into_base = !self.rng.one_in(3);
            let only = (into_base && self.rng.one_in(5)).then(|| random_name(&mut self.rng));
            self.merge(into_base, policy, only);
        }
        clean(&self.life.store);
    }
}

#[test]
fn engine_and_model_merge_alike() {
    if let Ok(seed) = std::env::var("MW_MERGE_SEED") {
        return Run::new(seed.parse().expect("MW_MERGE_SEED is a number")).go();
    }
    let more: u64 = std::env::var("MW_MERGE_SEEDS").ok().map_or(0, |n| n.parse().expect("MW_MERGE_SEEDS is a number"));
    for seed in 0..60 + more {
        Run::new(seed).go();
    }
}
