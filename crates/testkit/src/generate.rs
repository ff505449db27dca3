//! Seeded operations: few names that are nasty to each other, most of them on paths that exist.
//!
//! Everything drawn is legal input; much of it fails (a missing parent, a name taken), which is compared too.

use crate::model::Model;
use crate::op::{Content, Exchange, Op, Policy, Verb};
use crate::rng::Rng;
use crate::tree::Tree;
use mw_model::FileType;

/// Names that sort around each other and around the slash, or break an encoder.
const NAMES: &[&str] = &[
    "a", "a-", "a.", "a0", "a!", "aa", "b", "A", "a b", " ", "%", "a%2Fb", "+", "&", "é", "e\u{301}", "日本", "😀",
    "\u{1}", "\r", "\n", "\u{7f}", "\u{fffd}", "\"", "'", "\\", "...", ".a", "~",
];
/// Parts of keys that no mount can show.
const HIDDEN: &[&str] = &["", ".", "..", "\0"];
const XATTRS: &[&str] = &["user.a", "user.b", "user.é"];
const MODES: &[u32] = &[0o644, 0o600, 0o755, 0o4755, 0o1777, 0];

/// Returns a name that a mount can show.
pub fn random_name(rng: &mut Rng) -> String {
    match rng.below(20) {
        0 => "n".repeat(255),
        // Half of all names are the first few, so that operations meet.
        1..=11 => (*rng.pick(&NAMES[..6])).to_owned(),
        _ => (*rng.pick(NAMES)).to_owned(),
    }
}

/// Returns a key: one to three names, sometimes with a part that only S3 can name, sometimes a marker `d/`.
pub fn random_key(rng: &mut Rng) -> String {
    let mut parts: Vec<String> = (0..=rng.below(3)).map(|_| random_name(rng)).collect();
    if rng.one_in(15) {
        let at = rng.below(parts.len());
        parts[at] = (*rng.pick(HIDDEN)).to_owned();
    }
    if rng.one_in(10) {
        parts.push(String::new());
    }
    let key = parts.join("/");
    if key.is_empty() { "a".to_owned() } else { key }
}

/// Returns a verb for a world that holds `tree`.
pub fn random_verb(rng: &mut Rng, tree: &Tree) -> Verb {
    let paths: Vec<String> = tree.flat().into_keys().filter(|path| !path.is_empty()).collect();
    let keys: Vec<String> = tree.objects().into_keys().collect();
    let path = |rng: &mut Rng| near(rng, &paths).trim_end_matches('/').to_owned();
    let key = |rng: &mut Rng| if rng.one_in(3) || keys.is_empty() { random_key(rng) } else { rng.pick(&keys).clone() };
    let mode = |rng: &mut Rng| *rng.pick(MODES);
    match rng.below(40) {
        0..=6 => Verb::Put {
            key: if rng.one_in(3) { key(rng) } else { random_key(rng) },
            content: content(rng),
            content_type: rng.one_in(3).then(|| "text/plain".to_owned()),
            if_absent: rng.one_in(8),
        },
        7..=10 => Verb::Delete { key: key(rng) },
        11 => Verb::Copy { from: key(rng), to: random_key(rng) },
        12..=14 => Verb::Mkdir { path: path(rng), mode: mode(rng) },
        15..=17 => Verb::Create { path: path(rng), mode: mode(rng) },
        18 => Verb::Mknod { path: path(rng), kind: FileType::Fifo, mode: mode(rng), rdev: 0 },
        19..=22 => Verb::Write { path: path(rng), offset: rng.below(40) as u64, content: content(rng) },
        23 | 24 => Verb::Truncate { path: path(rng), len: rng.below(60) as u64 },
        25 | 26 => Verb::Unlink { path: path(rng) },
        27 => Verb::Rmdir { path: path(rng) },
        28..=31 => {
            let how = *rng.pick(&[Exchange::Replace, Exchange::Replace, Exchange::NoReplace, Exchange::Exchange]);
            Verb::Rename { from: path(rng), to: path(rng), how }
        }
        32 | 33 => Verb::Link { from: path(rng), to: path(rng) },
        34 => Verb::Symlink { target: random_name(rng), path: path(rng) },
        35 => Verb::Chmod { path: path(rng), mode: mode(rng) },
        36 => Verb::Chown { path: path(rng), uid: rng.below(3) as u32, gid: rng.below(3) as u32 },
        37 | 38 => Verb::SetXattr {
            path: path(rng),
            name: (*rng.pick(XATTRS)).to_owned(),
            value: Content { len: 9, ..content(rng) },
        },
        _ => Verb::RemoveXattr { path: path(rng), name: (*rng.pick(XATTRS)).to_owned() },
    }
}

/// Returns an operation for a store that holds `model`. A test that needs a world at once starts with `CreateWorld`.
pub fn random_op(rng: &mut Rng, model: &Model) -> Op {
    let names: Vec<&String> = model.worlds().keys().collect();
    let fresh = format!("world-{}", rng.below(6));
    if names.is_empty() {
        return Op::CreateWorld { world: fresh };
    }
    let world = (*rng.pick(&names)).clone();
    let Some(here) = model.world(&world) else { return Op::CreateWorld { world: fresh } };
    let versions: Vec<u64> = here.versions().collect();
    let forks: Vec<&String> = names.iter().filter(|name| model.base_of(name).is_some()).copied().collect();
    let fork = if forks.is_empty() || rng.one_in(20) { world.clone() } else { (*rng.pick(&forks)).clone() };
    let policy = *rng.pick(&[Policy::Fail, Policy::Fail, Policy::Ours, Policy::Theirs]);
    let at = *rng.pick(&versions);
    match rng.below(100) {
        0..=3 => Op::Fork { from: world, at: rng.one_in(3).then_some(at), to: fresh },
        4 => Op::CreateWorld { world: fresh },
        5 if names.len() > 3 => Op::DeleteWorld { world },
        6 | 7 => Op::Snapshot { world, name: format!("snap-{}", rng.below(4)) },
        8 => Op::Revert { world, at },
        9 | 10 => {
            let then: Vec<String> = here.at(at).map(|tree| tree.flat().into_keys().collect()).unwrap_or_default();
            Op::Restore { world, path: near(rng, &then).trim_end_matches('/').to_owned(), at }
        }
        11..=14 => {
            let only = rng.one_in(4).then(|| random_name(rng));
            Op::Promote { fork, policy, only }
        }
        15 | 16 => Op::Rebase { fork, policy },
        _ => Op::In { world, verb: random_verb(rng, here.tree()) },
    }
}

/// Returns a path that exists, one beside it, one below it, or any.
fn near(rng: &mut Rng, paths: &[String]) -> String {
    let any: Vec<String> = (0..=rng.below(2)).map(|_| random_name(rng)).collect();
    if paths.is_empty() || rng.one_in(5) {
        return any.join("/");
    }
    let path = rng.pick(paths).trim_end_matches('/');
    match rng.below(4) {
        0 => format!("{path}/{}", random_name(rng)),
        1 => match path.rsplit_once('/') {
            Some((above, _)) => format!("{above}/{}", random_name(rng)),
            None => random_name(rng),
        },
        _ => path.to_owned(),
    }
}

/// Draws mostly small contents; a few beyond what rides in a log entry (8 KiB), and fewer beyond one piece of a large file.
fn content(rng: &mut Rng) -> Content {
    let len = match rng.below(60) {
        0 => 300_000,
        1..=3 => 8_191 + rng.below(3),
        4..=8 => 0,
        _ => 1 + rng.below(40),
    };
    Content { tag: rng.below(256) as u8, len: len as u32 }
}
