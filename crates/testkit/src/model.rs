//! Worlds by name, each with a whole copy of itself for every version.
//!
//! Rules chosen here: a fork at a version has the source's history up to it; versions count up over the whole model. A revert
//! of the world that a merge changed, to before that merge, undoes the merge's sync point, so that it can be done again; a revert of
//! the other world is a change like any other and travels. Restoring a path restores what stood under its name, directory and
//! hidden object alike, as it was.

use crate::flat::{Change, Flat, diff};
use crate::merge::{Merge, Sides, merge};
use crate::op::{Op, Policy};
use crate::tree::{Node, ROOT, Tree, split};
use mw_model::{ErrorKind, WorldName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every world of a store.
#[derive(Debug, Clone, Default)]
pub struct Model {
    worlds: BTreeMap<String, ModelWorld>,
    /// The last version given to any world.
    clock: u64,
    last_id: u64,
    /// Every sync point of any two worlds, in order.
    syncs: Vec<Sync>,
}

/// One world and its history.
#[derive(Debug, Clone)]
pub struct ModelWorld {
    id: u64,
    /// The id of the world it was forked from.
    base: Option<u64>,
    /// Oldest first; the last is the present.
    history: Vec<State>,
    snapshots: BTreeMap<String, u64>,
}

#[derive(Debug, Clone)]
struct State {
    version: u64,
    tree: Arc<Tree>,
    /// The merges into this world, by their place in the model's sync points, that this state contains.
    merges: BTreeSet<usize>,
}

/// What a fork and its base knew of each other at a fork, promote or rebase.
#[derive(Debug, Clone)]
struct Sync {
    fork: u64,
    base: u64,
    /// The world that the merge changed.
    target: u64,
    /// See [`Sides::common`].
    common: Flat,
    /// See [`Sides::base_then`].
    base_then: Flat,
}

/// What an operation that succeeded did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the world's tree is another than before.
    pub changed: bool,
    /// The world's present version.
    pub version: u64,
}

impl ModelWorld {
    /// Returns the present tree.
    pub fn tree(&self) -> &Tree {
        &self.head().tree
    }

    /// Returns the present version.
    pub fn version(&self) -> u64 {
        self.head().version
    }

    /// Returns the tree as it was at `version`; none before the world's birth.
    pub fn at(&self, version: u64) -> Option<&Tree> {
        self.state_at(version).map(|state| &*state.tree)
    }

    /// Returns the versions at which the world changed, oldest first.
    pub fn versions(&self) -> impl Iterator<Item = u64> {
        self.history.iter().map(|state| state.version)
    }

    /// Returns whether the world was forked from another, which may be gone.
    pub fn is_fork(&self) -> bool {
        self.base.is_some()
    }

    /// Returns the version of every snapshot.
    pub fn snapshots(&self) -> &BTreeMap<String, u64> {
        &self.snapshots
    }

    fn head(&self) -> &State {
        &self.history[self.history.len() - 1]
    }

    fn state_at(&self, version: u64) -> Option<&State> {
        self.history.iter().rev().find(|state| state.version <= version)
    }

    /// Finds a state for a caller who names a version.
    fn asked(&self, version: u64, now: u64) -> Result<&State, ErrorKind> {
        if version > now {
            return Err(ErrorKind::Invalid);
        }
        self.state_at(version).ok_or(ErrorKind::NotFound)
    }
}

impl Model {
    /// Returns a store without worlds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a world by name.
    pub fn world(&self, name: &str) -> Option<&ModelWorld> {
        self.worlds.get(name)
    }

    /// Returns all worlds by name.
    pub fn worlds(&self) -> &BTreeMap<String, ModelWorld> {
        &self.worlds
    }

    /// Returns the name of a fork's base, if that still lives.
    pub fn base_of(&self, fork: &str) -> Option<&str> {
        let base = self.worlds.get(fork)?.base?;
        self.worlds.iter().find(|(_, world)| world.id == base).map(|(name, _)| name.as_str())
    }

    /// Runs one operation. After an error nothing has changed.
    ///
    /// # Errors
    /// The kind that the store must answer with.
    pub fn apply(&mut self, op: &Op) -> Result<Outcome, ErrorKind> {
        match op {
            Op::In { world, verb } => {
                let mut tree = self.find(world)?.tree().clone();
                tree.run(verb)?;
                Ok(self.publish(world, tree, None))
            }
            Op::CreateWorld { world } => {
                self.check_new(world)?;
                let state = State { version: self.tick(), tree: Arc::default(), merges: BTreeSet::new() };
                Ok(self.insert(world, None, vec![state]))
            }
            Op::DeleteWorld { world } => {
                let version = self.find(world)?.version();
                self.worlds.remove(world);
                Ok(Outcome { changed: true, version })
            }
            Op::Fork { from, at, to } => self.fork(from, *at, to),
            Op::Snapshot { world, name } => {
                let version = self.find(world)?.version();
                let snapshots = &mut self.find_mut(world)?.snapshots;
                if snapshots.contains_key(name) {
                    return Err(ErrorKind::AlreadyExists);
                }
                snapshots.insert(name.clone(), version);
                Ok(Outcome { changed: false, version })
            }
            Op::Revert { world, at } => {
                let then = self.find(world)?.asked(*at, self.clock)?.clone();
                Ok(self.publish(world, (*then.tree).clone(), Some(then.merges)))
            }
            Op::Restore { world, path, at } => {
                let here = self.find(world)?;
                let then = here.asked(*at, self.clock)?;
                let tree = restore(here.tree(), &then.tree, path)?;
                Ok(self.publish(world, tree, None))
            }
            Op::Promote { fork, policy, only } => {
                let plan = self.plan_promote(fork, *policy, only.as_deref())?;
                let base = self.base_of(fork).ok_or(ErrorKind::NotFound)?.to_owned();
                self.merge_into(fork, &base, true, plan, *policy, only.as_deref().unwrap_or(""))
            }
            Op::Rebase { fork, policy } => {
                let plan = self.plan_rebase(fork, *policy)?;
                let base = self.base_of(fork).ok_or(ErrorKind::NotFound)?.to_owned();
                self.merge_into(fork, &base, false, plan, *policy, "")
            }
        }
    }

    /// Returns what a promote would do, and every conflict: the dry run.
    ///
    /// # Errors
    /// `NotFound` without a fork or without its base.
    pub fn plan_promote(&self, fork: &str, policy: Policy, only: Option<&str>) -> Result<Merge, ErrorKind> {
        self.plan(fork, true, policy, only.unwrap_or(""))
    }

    /// Returns what a rebase would do, and every conflict.
    ///
    /// # Errors
    /// `NotFound` without a fork or without its base.
    pub fn plan_rebase(&self, fork: &str, policy: Policy) -> Result<Merge, ErrorKind> {
        self.plan(fork, false, policy, "")
    }

    /// Returns what leads from one world at one version to another.
    ///
    /// # Errors
    /// `NotFound` and `Invalid` as for every read at a version.
    pub fn diff(&self, a: (&str, u64), b: (&str, u64)) -> Result<BTreeMap<String, Change>, ErrorKind> {
        let flat = |(world, at): (&str, u64)| Ok(self.find(world)?.asked(at, self.clock)?.tree.flat());
        Ok(diff(&flat(a)?, &flat(b)?))
    }

    fn fork(&mut self, from: &str, at: Option<u64>, to: &str) -> Result<Outcome, ErrorKind> {
        let source = self.find(from)?;
        let at = at.unwrap_or(source.version());
        let then = source.asked(at, self.clock)?;
        let (base, flat, point) = (source.id, then.tree.flat(), then.version);
        let history: Vec<State> = source.history.iter().filter(|state| state.version <= point).cloned().collect();
        self.check_new(to)?;
        let outcome = self.insert(to, Some(base), history);
        let fork = self.last_id;
        self.add_sync(Sync { fork, base, target: fork, common: flat.clone(), base_then: flat });
        Ok(outcome)
    }

    fn plan(&self, fork: &str, into_base: bool, policy: Policy, only: &str) -> Result<Merge, ErrorKind> {
        let fork_world = self.find(fork)?;
        let base_world = self.find(self.base_of(fork).ok_or(ErrorKind::NotFound)?)?;
        let Sync { common, base_then, .. } = self.sync(fork_world, base_world).ok_or(ErrorKind::NotFound)?;
        let (fork, base) = (fork_world.tree().flat(), base_world.tree().flat());
        let (ours, theirs) = if into_base { (&base, &fork) } else { (&fork, &base) };
        Ok(merge(Sides { common, base_then, ours, theirs, into_base }, policy, only))
    }

    /// Finds the latest sync point that was not undone by a revert. The first one was made by the fork itself and stays.
    fn sync(&self, fork: &ModelWorld, base: &ModelWorld) -> Option<&Sync> {
        let all = self.syncs.iter().enumerate();
        let mut own = all.filter(|(_, sync)| (sync.fork, sync.base) == (fork.id, base.id));
        let first = own.next().map(|(_, sync)| sync);
        let target = |sync: &Sync| if sync.target == fork.id { fork } else { base };
        own.rfind(|(number, sync)| target(sync).head().merges.contains(number)).map(|(_, sync)| sync).or(first)
    }

    fn merge_into(
        &mut self,
        fork: &str,
        base: &str,
        into_base: bool,
        plan: Merge,
        policy: Policy,
        only: &str,
    ) -> Result<Outcome, ErrorKind> {
        if policy == Policy::Fail && !plan.conflicts.is_empty() {
            return Err(ErrorKind::Conflict);
        }
        let (ours, theirs) = if into_base { (base, fork) } else { (fork, base) };
        let (target, source) = (self.find(ours)?, self.find(theirs)?);
        let mut sync = self.sync(self.find(fork)?, self.find(base)?).ok_or(ErrorKind::NotFound)?.clone();
        sync.target = target.id;
        let mut tree = target.tree().clone();
        tree.apply_items(&plan.changes, source.tree());
        // The changed world now has all of the other; the other has seen nothing.
        move_records(&mut sync.common, &source.tree().flat(), only);
        let outcome = self.publish(ours, tree, None);
        move_records(&mut sync.base_then, &self.find(base)?.tree().flat(), only);
        self.add_sync(sync);
        Ok(outcome)
    }

    fn add_sync(&mut self, sync: Sync) {
        let number = self.syncs.len();
        for world in self.worlds.values_mut().filter(|world| world.id == sync.target) {
            if let Some(head) = world.history.last_mut() {
                head.merges.insert(number);
            }
        }
        self.syncs.push(sync);
    }

    /// Makes `tree` the world's present, unless it is that already.
    fn publish(&mut self, world: &str, tree: Tree, merges: Option<BTreeSet<usize>>) -> Outcome {
        let version = self.tick();
        let Some(world) = self.worlds.get_mut(world) else { panic!("the caller has looked up {world}") };
        let merges = merges.unwrap_or_else(|| world.head().merges.clone());
        let changed = tree.inodes != world.tree().inodes;
        if changed || merges != world.head().merges {
            world.history.push(State { version, tree: Arc::new(tree), merges });
        }
        Outcome { changed, version: world.version() }
    }

    fn insert(&mut self, name: &str, base: Option<u64>, history: Vec<State>) -> Outcome {
        self.last_id += 1;
        let world = ModelWorld { id: self.last_id, base, history, snapshots: BTreeMap::new() };
        let version = world.version();
        self.worlds.insert(name.to_owned(), world);
        Outcome { changed: true, version }
    }

    fn check_new(&self, name: &str) -> Result<(), ErrorKind> {
        WorldName::new(name).map_err(|_| ErrorKind::Invalid)?;
        if self.worlds.contains_key(name) { Err(ErrorKind::AlreadyExists) } else { Ok(()) }
    }

    fn find(&self, name: &str) -> Result<&ModelWorld, ErrorKind> {
        self.worlds.get(name).ok_or(ErrorKind::NotFound)
    }

    fn find_mut(&mut self, name: &str) -> Result<&mut ModelWorld, ErrorKind> {
        self.worlds.get_mut(name).ok_or(ErrorKind::NotFound)
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

/// Makes the records under `only` those of `now`.
fn move_records(then: &mut Flat, now: &Flat, only: &str) {
    then.retain(|path, _| !path.starts_with(only));
    let moved = now.iter().filter(|(path, _)| path.starts_with(only));
    then.extend(moved.map(|(path, item)| (path.clone(), item.clone())));
}

/// Returns `here` with the entries `path` and `path/` as they are in `then`. Directories above come back with their attributes.
fn restore(here: &Tree, then: &Tree, path: &str) -> Result<Tree, ErrorKind> {
    let (dirs, name) = split(path);
    let source = then.find_dir(&dirs).ok_or(ErrorKind::NotFound)?;
    let found: Vec<(String, u64)> = [name.to_owned(), format!("{name}/")]
        .into_iter()
        .filter_map(|entry| then.entries(source).get(&entry).map(|&ino| (entry, ino)))
        .collect();
    if found.is_empty() || name.is_empty() {
        return Err(ErrorKind::NotFound);
    }
    let mut tree = here.clone();
    let (mut dir, mut above) = (ROOT, ROOT);
    for part in dirs {
        let entry = format!("{part}/");
        above = then.entries(above)[&entry];
        let next = match tree.entries(dir).get(&entry) {
            Some(&next) => next,
            None => {
                let mut inode = then.inode(above).clone();
                if let Node::Dir { entries, .. } = &mut inode.node {
                    entries.clear();
                }
                let next = tree.add(inode);
                tree.put_entry(dir, &entry, next);
                next
            }
        };
        dir = next;
    }
    let mut known = BTreeMap::new();
    for entry in [name.to_owned(), format!("{name}/")] {
        tree.take_entry(dir, &entry);
    }
    for (entry, ino) in found {
        let copy = tree.graft(then, ino, &mut known);
        tree.put_entry(dir, &entry, copy);
    }
    tree.tidy();
    Ok(tree)
}

#[cfg(test)]
mod tests;
