//! Which merges the model and the engine must agree on: the model has simpler rules for names that moved and for directories.

use mw_testkit::{Conflict, ConflictKind, Item, Model, Node, Op, Policy, Tree, Verb};
use std::collections::{BTreeMap, BTreeSet};

/// When names of a world were last moved, and when a world was forked, in operations done.
///
/// The engine follows renames and hard links through a merge; to the model they are a deletion and an addition. To the engine a
/// directory and its marker are two entries, and a directory that a merge brings back has its attributes; to the model they are one
/// item, and what is left of a deleted directory is an implicit one. So merges are compared where neither side has moved a name since the
/// fork, and nothing contradicts in a directory itself; the others are done by the engine alone, in a test of their own.
#[derive(Default)]
pub struct Renames {
    done: usize,
    moved: BTreeMap<String, usize>,
    forked: BTreeMap<String, usize>,
}

impl Renames {
    pub fn note(&mut self, op: &Op) {
        self.done += 1;
        match op {
            Op::In { world, verb: Verb::Rename { .. } | Verb::Link { .. } } => {
                self.moved.insert(world.clone(), self.done);
            }
            Op::Fork { to, at, .. } => {
                // Of an instant that is past, the base may have moved names since.
                self.forked.insert(to.clone(), if at.is_some() { 0 } else { self.done });
                self.moved.remove(to);
            }
            Op::CreateWorld { world } => drop(self.moved.remove(world)),
            // What a revert brings back may be a name from before a rename.
            Op::Revert { world, .. } | Op::Restore { world, .. } if self.moved.contains_key(world) => {
                self.moved.insert(world.clone(), self.done);
            }
            _ => {}
        }
    }

    pub fn comparable(&self, op: &Op, model: &Model) -> bool {
        let (Op::Promote { fork, .. } | Op::Rebase { fork, .. }) = op else { return true };
        let plan = match op {
            Op::Promote { only, .. } => model.plan_promote(fork, Policy::Fail, only.as_deref()),
            _ => model.plan_rebase(fork, Policy::Fail),
        };
        let directory = |c: &Conflict| c.kind == ConflictKind::ParentDeleted || c.path.ends_with('/');
        let target = if matches!(op, Op::Rebase { .. }) { Some(fork.as_str()) } else { model.base_of(fork) };
        if let (Ok(plan), Some(target)) = (plan, target.and_then(|target| model.world(target))) {
            let here = target.tree().flat();
            let left_over = |dir: &String| {
                let below = |path: &String| path != dir && path.starts_with(dir);
                here.keys().any(|path| below(path) && plan.changes.get(path) != Some(&None))
                    || plan.changes.iter().any(|(path, item)| below(path) && item.is_some())
            };
            let gone =
                |(path, item): (&String, &Option<Item>)| item.is_none() && path.ends_with('/') && left_over(path);
            if plan.conflicts.iter().any(directory) || plan.changes.iter().any(gone) {
                return false;
            }
        }
        let since = self.forked.get(fork).copied().unwrap_or(0);
        let still = |world: &str| {
            self.moved.get(world).is_none_or(|at| *at < since)
                && model.world(world).is_none_or(|world| !has_links(world.tree()))
        };
        still(fork) && model.base_of(fork).is_none_or(still)
    }
}

/// Returns whether a file has more than one name.
fn has_links(tree: &Tree) -> bool {
    let mut todo = vec![mw_testkit::tree::ROOT];
    let mut seen = BTreeSet::new();
    while let Some(dir) = todo.pop() {
        let Node::Dir { entries, .. } = &tree.inode(dir).node else { continue };
        for child in entries.values() {
            if !seen.insert(*child) {
                return true;
            }
            todo.push(*child);
        }
    }
    false
}
