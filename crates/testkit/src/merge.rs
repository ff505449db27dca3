//! The three-way merge of flat trees, entry by entry (DESIGN 9).
//!
//! Both sides are compared with the state that both have seen last. After a promote that is the fork's tree, because the base
//! has all of it, while the fork knows nothing of what the base did meanwhile; after a rebase it is the base's tree. Were each
//! side compared with its own tree of that moment instead, a base's change that the fork never saw would count as settled: the next
//! promote would silently overwrite it, and no rebase would bring it.
//!
//! Invariants: what only one side changed travels; what both made equal is no conflict; an implicit directory is never a
//! party, because it is no item. Renames are a deletion and an addition here; following them is left to tests of their own.

use crate::flat::{Flat, Item};
use crate::op::Policy;
use mw_model::FileType;
use std::collections::{BTreeMap, BTreeSet};

/// Why a path cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConflictKind {
    /// Both sides changed the content.
    BothModified,
    /// Both sides added the path, with a difference.
    BothAdded,
    /// One side deleted what the other changed.
    ModifyDelete,
    /// One side made it another type, and the other changed it too.
    TypeChanged,
    /// One side added the path in an explicit directory that the other removed.
    ParentDeleted,
    /// Both sides changed the same attribute.
    Attributes,
}

/// One path that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The path, of a directory with its slash.
    pub path: String,
    /// The reason.
    pub kind: ConflictKind,
}

/// The two sides and what they had in common.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// The last state that both worlds have seen.
    pub common: &'a Flat,
    /// What the base made of it: the same, or after a promote the base's own changes too. Needed for appended files alone.
    pub base_then: &'a Flat,
    /// The world to be changed.
    pub ours: &'a Flat,
    /// The other world.
    pub theirs: &'a Flat,
    /// Whether the changed world is the base: in a file to which both appended, the base's tail comes first.
    pub into_base: bool,
}

/// What a merge would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merge {
    /// What is to become of our paths.
    pub changes: BTreeMap<String, Option<Item>>,
    /// What stands in the way, whether or not the policy settled it.
    pub conflicts: Vec<Conflict>,
}

/// Plans the merge of the paths that start with `only`.
pub fn merge(sides: Sides<'_>, policy: Policy, only: &str) -> Merge {
    let paths: BTreeSet<&String> =
        [sides.common, sides.ours, sides.theirs].into_iter().flat_map(BTreeMap::keys).collect();
    let mut plan = Merge::default();
    for path in paths.into_iter().filter(|path| path.starts_with(only)) {
        match decide(sides, path) {
            Ok(None) => {}
            Ok(Some(item)) => {
                plan.changes.insert(path.clone(), item);
            }
            Err(kind) => {
                plan.conflicts.push(Conflict { path: path.clone(), kind });
                if policy == Policy::Theirs {
                    plan.changes.insert(path.clone(), sides.theirs.get(path).cloned());
                }
            }
        }
    }
    orphans(sides, policy, only, &mut plan);
    plan.conflicts.sort();
    plan
}

/// Decides one path: nothing to do, a new item (or none), or a conflict.
fn decide(sides: Sides<'_>, path: &str) -> Result<Option<Option<Item>>, ConflictKind> {
    let Sides { common, ours, theirs, .. } = sides;
    let (then, o, t) = (common.get(path), ours.get(path), theirs.get(path));
    if t == then || t == o {
        return Ok(None);
    }
    if o == then {
        return Ok(Some(t.cloned()));
    }
    match (o, t) {
        (Some(o), Some(t)) => match then {
            Some(then) if o.kind != then.kind || t.kind != then.kind => Err(ConflictKind::TypeChanged),
            Some(then) => {
                let merged = fields(then, o, t, sides, path)?;
                Ok((merged != *o).then_some(Some(merged)))
            }
            // Directories added on both sides unify; the changed world's attributes stay.
            None if o.kind == FileType::Directory && t.kind == FileType::Directory => Ok(None),
            None => Err(ConflictKind::BothAdded),
        },
        (None, _) => Err(gone(path, common, ours)),
        (_, None) => Err(gone(path, common, theirs)),
    }
}

/// A side without `path` deleted it, or has put a directory in the place of a file or the reverse.
fn gone(path: &str, then: &Flat, now: &Flat) -> ConflictKind {
    let twin = path.strip_suffix('/').map_or_else(|| format!("{path}/"), str::to_owned);
    let replaced = !twin.is_empty() && now.contains_key(&twin) && !then.contains_key(&twin);
    if replaced { ConflictKind::TypeChanged } else { ConflictKind::ModifyDelete }
}

/// Merges one entry field by field.
fn fields(then: &Item, o: &Item, t: &Item, sides: Sides<'_>, path: &str) -> Result<Item, ConflictKind> {
    let mut merged = o.clone();
    merged.content = match pick(&then.content, &o.content, &t.content) {
        Some(content) => content,
        None => Some(append(then, o, t, sides, path).ok_or(ConflictKind::BothModified)?),
    };
    let number = |get: fn(&Item) -> u32| pick(&get(then), &get(o), &get(t));
    let clash = ConflictKind::Attributes;
    merged.mode = number(|item| item.mode).ok_or(clash)?;
    merged.uid = number(|item| item.uid).ok_or(clash)?;
    merged.gid = number(|item| item.gid).ok_or(clash)?;
    merged.rdev = number(|item| item.rdev).ok_or(clash)?;
    merged.object = pick(&then.object, &o.object, &t.object).ok_or(clash)?;
    for name in then.xattrs.keys().chain(o.xattrs.keys()).chain(t.xattrs.keys()) {
        match pick(&then.xattrs.get(name), &o.xattrs.get(name), &t.xattrs.get(name)).ok_or(clash)? {
            Some(value) => merged.xattrs.insert(name.clone(), value.clone()),
            None => merged.xattrs.remove(name),
        };
    }
    Ok(merged)
}

/// The three-way choice: the side that changed, either if both agree, none if they do not.
fn pick<T: Clone + PartialEq>(then: &T, o: &T, t: &T) -> Option<T> {
    if t == then || t == o {
        Some(o.clone())
    } else if o == then {
        Some(t.clone())
    } else {
        None
    }
}

/// Joins two files that only grew: what they had in common, the base's tail, the fork's tail. After an earlier promote of this kind
/// the base has its own tail before the common one; then it must have grown from what that promote made.
fn append(then: &Item, o: &Item, t: &Item, sides: Sides<'_>, path: &str) -> Option<Vec<u8>> {
    if then.kind != FileType::File {
        return None;
    }
    let start = then.content.as_ref()?;
    let (base, fork) = if sides.into_base { (o, t) } else { (t, o) };
    let base = base.content.as_ref()?;
    let grown = sides.base_then.get(path).and_then(|item| item.content.as_ref());
    if !base.starts_with(start) && !grown.is_some_and(|grown| base.starts_with(grown)) {
        return None;
    }
    let tail = fork.content.as_ref()?.strip_prefix(start.as_slice())?;
    Some([base, tail].concat())
}

/// Finds paths that one side added in an explicit directory that the other side removed.
fn orphans(sides: Sides<'_>, policy: Policy, only: &str, plan: &mut Merge) {
    let Sides { common, ours, theirs, .. } = sides;
    let settled: BTreeSet<String> = plan.conflicts.iter().map(|conflict| conflict.path.clone()).collect();
    let free = |path: &&String| path.starts_with(only) && !settled.contains(*path);
    let added_by_them = theirs.keys().filter(|path| !common.contains_key(*path) && !ours.contains_key(*path));
    for path in added_by_them.filter(free) {
        let lost: Vec<&str> = parents(path).filter(|dir| removed(dir, common, ours)).collect();
        if lost.is_empty() {
            continue;
        }
        plan.conflicts.push(Conflict { path: path.clone(), kind: ConflictKind::ParentDeleted });
        match policy {
            Policy::Theirs => {
                for dir in lost.into_iter().filter(|dir| theirs.contains_key(*dir)) {
                    plan.changes.insert(dir.to_owned(), theirs.get(dir).cloned());
                }
            }
            Policy::Ours | Policy::Fail => {
                plan.changes.remove(path);
            }
        }
    }
    let added_by_us = ours.keys().filter(|path| !common.contains_key(*path) && !theirs.contains_key(*path));
    for path in added_by_us.filter(free) {
        let lost: Vec<&str> = parents(path).filter(|dir| removed(dir, common, theirs)).collect();
        if lost.is_empty() {
            continue;
        }
        plan.conflicts.push(Conflict { path: path.clone(), kind: ConflictKind::ParentDeleted });
        match policy {
            Policy::Theirs => {
                plan.changes.insert(path.clone(), None);
            }
            Policy::Ours | Policy::Fail => {
                for dir in lost {
                    plan.changes.remove(dir);
                }
            }
        }
    }
}

/// Returns the directories above `path`, from the root down.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..=at]).filter(move |dir| *dir != path)
}

/// Returns whether a side removed the explicit directory `dir`. One that lives on as an implicit directory was not removed.
fn removed(dir: &str, then: &Flat, now: &Flat) -> bool {
    then.contains_key(dir) && !now.keys().any(|path| path.starts_with(dir))
}

#[cfg(test)]
mod tests;
