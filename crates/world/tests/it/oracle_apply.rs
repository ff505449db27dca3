//! An operation of the model, done to a store: paths resolved as the kernel does, versions mapped, results in the model's terms.

use crate::crash_disk::Life;
use mw_model::name::{MAX_KEY, MAX_NAME, MAX_TARGET, mountable};
use mw_model::{ErrorKind, FileType, Ino, Version};
use mw_testkit::{Exchange, Model, Op, Policy, Verb};
use mw_world::{
    At, Conditions, CopyOptions, CreateOptions, ForkOptions, Make, ObjectMeta, PromoteOptions, Promoted, PutOptions,
    RenameFlag, Session, SetAttr, WriteAt, XattrFlag,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

type Done = Result<(), ErrorKind>;

/// The store's versions by the model's, for every world. What a world had before it was forked is its base's to tell.
#[derive(Debug, Clone, Default)]
pub struct Versions(pub BTreeMap<String, BTreeMap<u64, Version>>);

impl Versions {
    /// Returns the store's version, if the world's own history reaches back that far.
    pub fn of(&self, world: &str, at: u64) -> Option<Version> {
        self.0.get(world)?.range(..=at).next_back().map(|(_, version)| *version)
    }

    /// Notes where each world stands now, in both countings; says what is new.
    pub fn note(&mut self, life: &Life, model: &Model) -> mw_world::Result<Vec<String>> {
        self.0.retain(|name, _| model.world(name).is_some());
        let mut noted = Vec::new();
        for (name, world) in model.worlds() {
            let known = self.0.entry(name.clone()).or_default();
            if let Entry::Vacant(vacant) = known.entry(world.version()) {
                let version = *vacant.insert(life.session(name)?.info()?.version);
                noted.push(format!("  {name}@{} is version {version}", world.version()));
            }
        }
        Ok(noted)
    }
}

/// Returns whether the model and the engine are known to answer differently, on purpose.
///
/// - A fork's own history begins at its fork point; the model copies the base's history into it.
/// - The engine keeps several snapshots of one label; the model refuses the second.
/// - A copy of an object onto itself that changes nothing is refused (AWS); the model does it.
/// - A key over 1,024 bytes, which only a mount can make, can be deleted and copied from; the model refuses it as a name.
pub fn left_out(op: &Op, model: &Model, versions: &Versions) -> bool {
    let before_birth = |world: &String, at: u64| model.world(world).is_some() && versions.of(world, at).is_none();
    match op {
        Op::Fork { from, at: Some(at), .. } => before_birth(from, *at),
        Op::Revert { world, at } | Op::Restore { world, at, .. } => before_birth(world, *at),
        Op::Snapshot { world, name } => model.world(world).is_some_and(|world| world.snapshots().contains_key(name)),
        Op::In { verb: Verb::Copy { from, to }, .. } => from == to || from.len() > MAX_KEY,
        Op::In { verb: Verb::Delete { key }, .. } => key.len() > MAX_KEY,
        _ => false,
    }
}

/// Returns the model's answer as the engine words it: a world that is no fork cannot be promoted, an empty path not be restored, and to
/// ask for either is a mistake, not a search that found nothing.
pub fn worded(op: &Op, model: &Model, expected: Done) -> Done {
    let mistake = match op {
        Op::Promote { fork, .. } | Op::Rebase { fork, .. } => model.world(fork).is_some_and(|fork| !fork.is_fork()),
        Op::Restore { path, .. } => path.is_empty() || path.ends_with('/'),
        _ => false,
    };
    if mistake && expected == Err(ErrorKind::NotFound) { Err(ErrorKind::Invalid) } else { expected }
}

/// Returns whether what `op` did is durable once it has returned.
pub fn durable(op: &Op) -> bool {
    match op {
        Op::In { verb, .. } => matches!(verb, Verb::Put { .. } | Verb::Delete { .. } | Verb::Copy { .. }),
        _ => true,
    }
}

/// Does `op` to the store.
pub fn apply(life: &Life, versions: &Versions, op: &Op) -> Done {
    let at = |world: &str, at: u64| versions.of(world, at).map(At::Version).ok_or(ErrorKind::NotFound);
    let (store, root) = (&life.store, &life.root);
    match op {
        Op::In { world, verb } => run(&life.session(world).map_err(kind)?, verb),
        Op::CreateWorld { world } => store.create_world(root, world, &CreateOptions::default()).map(drop).map_err(kind),
        Op::DeleteWorld { world } => store.delete_world(root, world, true).map(drop).map_err(kind),
        Op::Fork { from, at: then, to } => {
            let then = then.map(|then| at(from, then)).transpose()?;
            let options = ForkOptions { at: then, ..ForkOptions::default() };
            store.fork(root, from, to, &options).map(drop).map_err(kind)
        }
        Op::Snapshot { world, name } => {
            life.session(world).and_then(|w| w.snapshot(Some(name), None)).map(drop).map_err(kind)
        }
        Op::Revert { .. } | Op::Restore { .. } | Op::Promote { .. } | Op::Rebase { .. } => {
            merge(life, versions, op, false).map_or(Ok(()), |done| merged(done.map_err(kind)?))
        }
    }
}

/// Does `op` if it is one that brings one state to another; a dry run of a revert or restore does nothing.
pub fn merge(life: &Life, versions: &Versions, op: &Op, dry_run: bool) -> Option<mw_world::Result<Promoted>> {
    let then = |world: &String, at: u64| match versions.of(world, at) {
        Some(version) => Ok(At::Version(version)),
        None => Err(mw_world::Error::new(ErrorKind::NotFound, "not a version of this world")),
    };
    Some(match op {
        Op::Revert { .. } | Op::Restore { .. } if dry_run => Ok(Promoted::default()),
        Op::Revert { world, at } => then(world, *at).and_then(|at| life.session(world)?.revert(at)),
        Op::Restore { world, path, at } => {
            then(world, *at).and_then(|at| life.session(world)?.restore(at, path.as_bytes()))
        }
        Op::Promote { fork, policy, only } => {
            let only = only.as_ref().map(|only| only.clone().into_bytes().into());
            let options = PromoteOptions { policy: policy_of(*policy), only, dry_run, ..PromoteOptions::default() };
            life.session(fork).and_then(|w| w.promote(&options))
        }
        Op::Rebase { fork, policy } => {
            let options = PromoteOptions { policy: policy_of(*policy), dry_run, ..PromoteOptions::default() };
            life.session(fork).and_then(|w| w.rebase(&options))
        }
        Op::In { .. } | Op::CreateWorld { .. } | Op::DeleteWorld { .. } | Op::Fork { .. } | Op::Snapshot { .. } => {
            return None;
        }
    })
}

fn kind(error: mw_world::Error) -> ErrorKind {
    error.kind()
}

/// Conflicts are data to the engine, and an error to the model.
fn merged(done: Promoted) -> Done {
    let refused = done.version.is_none() && !done.conflicts.is_empty();
    if refused { Err(ErrorKind::Conflict) } else { Ok(()) }
}

fn policy_of(policy: Policy) -> mw_world::Policy {
    match policy {
        Policy::Fail => mw_world::Policy::Fail,
        Policy::Ours => mw_world::Policy::Ours,
        Policy::Theirs => mw_world::Policy::Theirs,
    }
}

fn run(w: &Session, verb: &Verb) -> Done {
    match verb {
        Verb::Put { key, content, content_type, if_absent } => {
            let mut staged = w.stage().map_err(kind)?;
            for part in content.bytes().chunks(70_000) {
                staged.push(part).map_err(kind)?;
            }
            let if_none_match = if_absent.then(|| vec!["*".to_owned()]);
            let options = PutOptions {
                meta: ObjectMeta { content_type: content_type.clone(), ..ObjectMeta::default() },
                conditions: Conditions { if_none_match, ..Conditions::default() },
                ..PutOptions::default()
            };
            w.put(key.as_bytes(), staged, &options).map(drop).map_err(kind)
        }
        Verb::Delete { key } => w.delete(key.as_bytes(), &Conditions::default()).map(drop).map_err(kind),
        Verb::Copy { from, to } => {
            w.copy(w, from.as_bytes(), to.as_bytes(), &CopyOptions::default()).map(drop).map_err(kind)
        }
        Verb::Mkdir { path, mode } => make(w, path, FileType::Directory, *mode, 0, ""),
        Verb::Create { path, mode } => make(w, path, FileType::File, *mode, 0, ""),
        Verb::Mknod { path, kind, mode, rdev } => make(w, path, *kind, *mode, *rdev, ""),
        Verb::Symlink { target, path } => match target.len() {
            0 => Err(ErrorKind::NotFound),
            n if n > MAX_TARGET => Err(ErrorKind::NameTooLong),
            _ => make(w, path, FileType::Symlink, 0o777, 0, target),
        },
        Verb::Write { path, offset, content } => {
            w.write(lookup(w, path)?, WriteAt::Offset(*offset), &content.bytes()).map(drop).map_err(kind)
        }
        Verb::Truncate { path, len } => set(w, path, SetAttr { size: Some(*len), ..SetAttr::default() }),
        Verb::Chmod { path, mode } => set(w, path, SetAttr { mode: Some(*mode), ..SetAttr::default() }),
        Verb::Chown { path, uid, gid } => {
            set(w, path, SetAttr { uid: Some(*uid), gid: Some(*gid), ..SetAttr::default() })
        }
        Verb::Unlink { path } => {
            let (dir, name) = parent(w, path)?;
            w.unlink(dir, name).map_err(kind)
        }
        Verb::Rmdir { path } => {
            let (dir, name) = parent(w, path)?;
            w.rmdir(dir, name).map_err(kind)
        }
        Verb::Rename { from, to, how } => {
            let ((dir, name), (to_dir, to_name)) = (parent(w, from)?, parent(w, to)?);
            let flag = match how {
                Exchange::Replace => RenameFlag::Replace,
                Exchange::NoReplace => RenameFlag::NoReplace,
                Exchange::Exchange => RenameFlag::Exchange,
            };
            w.rename(dir, name, to_dir, to_name, flag).map_err(kind)
        }
        Verb::Link { from, to } => {
            let ino = lookup(w, from)?;
            let (dir, name) = parent(w, to)?;
            w.link(ino, dir, name).map(drop).map_err(kind)
        }
        Verb::SetXattr { path, name, value } => {
            w.set_xattr(lookup(w, path)?, name.as_bytes(), &value.bytes(), XattrFlag::Any).map_err(kind)
        }
        Verb::RemoveXattr { path, name } => w.remove_xattr(lookup(w, path)?, name.as_bytes()).map_err(kind),
    }
}

fn make(w: &Session, path: &str, what: FileType, mode: u32, rdev: u32, target: &str) -> Done {
    let (dir, name) = parent(w, path)?;
    let target = bytes::Bytes::copy_from_slice(target.as_bytes());
    let make = Make { kind: what, mode, uid: 0, gid: 0, rdev, target };
    w.make(dir, name, &make).map(drop).map_err(kind)
}

fn set(w: &Session, path: &str, change: SetAttr) -> Done {
    w.set_attr(lookup(w, path)?, &change).map(drop).map_err(kind)
}

/// Resolves a path as the kernel does (path_lookupat), without following links.
fn lookup(w: &Session, path: &str) -> Result<Ino, ErrorKind> {
    if path.is_empty() {
        return Ok(Ino::ROOT);
    }
    let (dir, name) = parent(w, path)?;
    Ok(w.lookup(dir, name).map_err(kind)?.ino)
}

fn parent<'a>(w: &Session, path: &'a str) -> Result<(Ino, &'a [u8]), ErrorKind> {
    if path.is_empty() {
        return Err(ErrorKind::Busy);
    }
    let (above, leaf) = path.rsplit_once('/').map_or((None, path), |(above, leaf)| (Some(above), leaf));
    let mut dir = Ino::ROOT;
    for name in above.into_iter().flat_map(|above| above.split('/')) {
        check_name(name)?;
        let attr = w.lookup(dir, name.as_bytes()).map_err(kind)?;
        if attr.kind != FileType::Directory {
            return Err(ErrorKind::NotDirectory);
        }
        dir = attr.ino;
    }
    check_name(leaf)?;
    Ok((dir, leaf.as_bytes()))
}

fn check_name(name: &str) -> Done {
    match name {
        _ if name.len() > MAX_NAME => Err(ErrorKind::NameTooLong),
        _ if !mountable(name.as_bytes()) => Err(ErrorKind::Invalid),
        _ => Ok(()),
    }
}
