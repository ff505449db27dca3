//! Promote, rebase, revert, restore and diff, through the public verbs.

mod mounts;

use crate::rig::{Rig, a, clean, content, file, names};
use bytes::Bytes;
use mw_model::{ErrorKind, FileType, Ino};
use mw_world::{
    At, Change, Changed, Combine, Conditions, ConflictKind, ForkOptions, KeyRequest, Listener, LogQuery, ObjectMeta,
    Policy, PromoteOptions, Promoted, PutOptions, RenameFlag, Role, Session, SetAttr, Side, WriteAt, XattrFlag, diff,
};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;

/// What a side does.
type Do<'a> = &'a dyn Fn(&Session);

pub fn put(w: &Session, key: &str, bytes: &[u8]) {
    put_as(w, key, bytes, ObjectMeta::default());
}

fn put_as(w: &Session, key: &str, bytes: &[u8], meta: ObjectMeta) {
    let mut staged = w.stage().unwrap();
    staged.push(bytes).unwrap();
    w.put(key.as_bytes(), staged, &PutOptions { meta, ..PutOptions::default() }).unwrap();
}

fn delete(w: &Session, key: &str) {
    assert!(w.delete(key.as_bytes(), &Conditions::default()).unwrap(), "{key} is there");
}

fn append(w: &Session, path: &str, bytes: &[u8]) {
    w.write(at(w, path), WriteAt::End, bytes).unwrap();
}

fn write(w: &Session, path: &str, bytes: &[u8]) {
    w.set_attr(at(w, path), &SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
    w.write(at(w, path), WriteAt::Offset(0), bytes).unwrap();
}

fn chmod(w: &Session, path: &str, mode: u32) {
    w.set_attr(at(w, path), &SetAttr { mode: Some(mode), ..SetAttr::default() }).unwrap();
}

fn at(w: &Session, path: &str) -> Ino {
    w.resolve(path.as_bytes()).unwrap_or_else(|e| panic!("{path}: {e}")).ino
}

fn split<'a>(w: &Session, path: &'a str) -> (Ino, &'a [u8]) {
    match path.rsplit_once('/') {
        Some((above, name)) => (at(w, above), name.as_bytes()),
        None => (Ino::ROOT, path.as_bytes()),
    }
}

fn mkdir(w: &Session, path: &str) {
    let (dir, name) = split(w, path);
    w.make(dir, name, &a(FileType::Directory)).unwrap();
}

fn rename(w: &Session, from: &str, to: &str) {
    let ((dir, name), (to_dir, to_name)) = (split(w, from), split(w, to));
    w.rename(dir, name, to_dir, to_name, RenameFlag::Replace).unwrap();
}

fn link(w: &Session, from: &str, to: &str) {
    let (dir, name) = split(w, to);
    w.link(at(w, from), dir, name).unwrap();
}

fn unlink(w: &Session, path: &str) {
    let (dir, name) = split(w, path);
    w.unlink(dir, name).unwrap();
}

fn rmdir(w: &Session, path: &str) {
    let (dir, name) = split(w, path);
    w.rmdir(dir, name).unwrap();
}

fn get(w: &Session, path: &str) -> Option<String> {
    content(w, path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn with(policy: Policy) -> PromoteOptions {
    PromoteOptions { policy, ..PromoteOptions::default() }
}

fn kinds(promoted: &Promoted) -> Vec<(String, ConflictKind)> {
    promoted.conflicts.iter().map(|c| (String::from_utf8_lossy(&c.path).into_owned(), c.kind)).collect()
}

fn changes(entries: &[mw_world::DiffEntry]) -> Vec<String> {
    let line = |entry: &mw_world::DiffEntry| {
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        match &entry.change {
            Change::Added => format!("+{path}"),
            Change::Deleted => format!("-{path}"),
            Change::Modified => format!("~{path}"),
            Change::Renamed { from } => format!("{}>{path}", String::from_utf8_lossy(from)),
            Change::TypeChanged => format!("!{path}"),
            Change::Attributes => format!("@{path}"),
        }
    };
    entries.iter().map(line).collect()
}

/// A base and a fork of it, both changed.
struct Two {
    rig: Rig,
    base: Session,
    fork: Session,
}

fn two(then: Do, ours: Do, theirs: Do) -> Two {
    let rig = Rig::new();
    let base = rig.create("base");
    then(&base);
    let fork = rig.fork("base", "fork");
    ours(&base);
    theirs(&fork);
    Two { rig, base, fork }
}

/// Promotes; the dry run before it must have said the same, and the store must be whole after it.
fn promote(two: &Two, options: &PromoteOptions) -> Promoted {
    let dry = two.fork.promote(&PromoteOptions { dry_run: true, ..options.clone() }).unwrap();
    let before = two.base.info().unwrap().version;
    let real = two.fork.promote(options).unwrap();
    let expected = Promoted { version: real.version, snapshot: real.snapshot, dry_run: false, ..dry };
    assert_eq!(real, expected, "the dry run says what the real one does");
    if let Some(version) = real.version {
        assert_eq!(two.base.info().unwrap().version, version);
        let snapshot = real.snapshot.expect("a snapshot was taken first");
        assert!(two.base.snapshots().unwrap().iter().any(|s| s.version == snapshot));
    } else {
        assert_eq!(two.base.info().unwrap().version, before);
    }
    clean(&two.rig.store);
    real
}

fn nothing(_: &Session) {}

#[test]
fn an_unchanged_base_gets_what_the_fork_has() {
    let two = two(
        &|w| {
            file(w, "d/a", b"1");
            file(w, "gone", b"1");
            file(w, "old/x", b"1");
        },
        &nothing,
        &|w| {
            file(w, "d/a", b"2");
            unlink(w, "gone");
            rename(w, "old", "new");
            put(w, "big", &vec![7; 300_000]);
            put(w, "deep/er/b", b"3");
        },
    );
    let done = promote(&two, &PromoteOptions { message: Some("well done".into()), ..PromoteOptions::default() });
    assert!(done.fast && done.version.is_some());
    assert_eq!(changes(&done.changes), ["+big", "~d/a", "+deep/er/b", "-gone", "old/>new/"]);
    assert_eq!((get(&two.base, "d/a").as_deref(), get(&two.base, "deep/er/b").as_deref()), (Some("2"), Some("3")));
    assert_eq!(names(&two.base, ""), names(&two.fork, ""));
    let log = two.base.log(&mw_world::LogQuery { limit: 1, ..Default::default() }).unwrap();
    assert!(log[0].verb == "promote" && log[0].note.contains("well done") && log[0].note.contains("fork"));
    // Nothing more to do.
    let again = promote(&two, &PromoteOptions::default());
    assert_eq!((again.version, again.changes.len()), (None, 0));
    // The base outlives the fork, whose bytes it has.
    let Two { rig, base, fork } = two;
    fork.discard().unwrap();
    drop((base, fork));
    rig.store.sweep().unwrap();
    let rig = rig.reopen();
    assert_eq!(content(&rig.session("base"), "big"), Some(vec![7; 300_000]));
    clean(&rig.store);
}

#[test]
fn a_promote_is_there_after_a_restart_and_the_snapshot_before_it_reads() {
    let two = two(&|w| put(w, "a", b"1"), &|w| put(w, "b", b"base"), &|w| put(w, "a", b"2"));
    let done = promote(&two, &PromoteOptions::default());
    assert!(!done.fast);
    assert_eq!(changes(&done.changes), ["~a"]);
    let Two { rig, base, fork } = two;
    drop((base, fork));
    let rig = rig.reopen();
    let base = rig.session("base");
    assert_eq!((get(&base, "a").as_deref(), get(&base, "b").as_deref()), (Some("2"), Some("base")));
    let then = base.at(&At::Version(done.snapshot.unwrap())).unwrap();
    assert_eq!(get(&then, "a").as_deref(), Some("1"));
    put(&base, "a", b"3");
    let version = At::Version(done.version.unwrap());
    assert_eq!(get(&base.at(&version).unwrap(), "a").as_deref(), Some("2"));
    clean(&rig.store);
}

#[test]
fn every_kind_of_conflict_and_nothing_is_applied() {
    use ConflictKind::*;
    let link = |w: &Session| {
        unlink(w, "a");
        let make = mw_world::Make { target: Bytes::from_static(b"x"), ..a(FileType::Symlink) };
        w.make(Ino::ROOT, b"a", &make).unwrap();
    };
    let one: Do = &|w| {
        file(w, "a", b"1");
        file(w, "d/in", b"1");
        mkdir(w, "e");
    };
    let cases: Vec<(&str, ConflictKind, Do, Do)> = vec![
        ("a", BothModified, &|w| write(w, "a", b"2"), &|w| write(w, "a", b"3")),
        ("a", BothModified, &|w| put(w, "a", b"2"), &|w| write(w, "a", b"3")),
        ("n", BothAdded, &|w| put(w, "n", b"2"), &|w| put(w, "n", b"3")),
        ("a", ModifyDelete, &|w| write(w, "a", b"2"), &|w| unlink(w, "a")),
        ("a", DeleteModify, &|w| unlink(w, "a"), &|w| write(w, "a", b"2")),
        ("b", ModifyDelete, &|w| rename(w, "a", "b"), &|w| unlink(w, "a")),
        ("b", DeleteModify, &|w| unlink(w, "a"), &|w| rename(w, "a", "b")),
        ("x", RenameRename, &|w| rename(w, "a", "x"), &|w| rename(w, "a", "y")),
        ("x/", RenameRename, &|w| rename(w, "d", "x"), &|w| rename(w, "d", "y")),
        ("a", RenameRename, &|w| put(w, "n", b"new"), &|w| rename(w, "a", "n")),
        ("e/", RenameRename, &|w| rename(w, "d", "z"), &|w| rename(w, "e", "z")),
        ("e/", RenameCycle, &|w| rename(w, "d", "e/d"), &|w| rename(w, "e", "d/e")),
        ("e/n", ParentDeleted, &|w| rmdir(w, "e"), &|w| put(w, "e/n", b"2")),
        ("e/n", ParentDeleted, &|w| put(w, "e/n", b"2"), &|w| rmdir(w, "e")),
        ("a", ParentDeleted, &|w| rmdir(w, "e"), &|w| rename(w, "a", "e/a")),
        ("a", TypeChanged, &|w| write(w, "a", b"2"), &link),
        ("a", TypeChanged, &|w| write(w, "a", b"2"), &|w| {
            unlink(w, "a");
            mkdir(w, "a");
        }),
        ("a", Attributes, &|w| chmod(w, "a", 0o600), &|w| chmod(w, "a", 0o640)),
        ("e/", Attributes, &|w| chmod(w, "e", 0o700), &|w| chmod(w, "e", 0o750)),
    ];
    for (path, kind, ours, theirs) in cases {
        let two = two(one, ours, &|w| {
            theirs(w);
            put(w, "other", b"travels with the rest or not at all");
        });
        let done = promote(&two, &PromoteOptions::default());
        assert_eq!(kinds(&done), [(path.to_owned(), kind)]);
        assert_eq!((done.version, get(&two.base, "other")), (None, None), "{path} {kind}: nothing was applied");
        for policy in [Policy::Ours, Policy::Theirs] {
            let two = self::two(one, ours, &|w| {
                theirs(w);
                put(w, "other", b"2");
            });
            let done = promote(&two, &with(policy));
            assert!(done.version.is_some() && done.conflicts.is_empty(), "{path} {kind} {policy:?}");
            assert_eq!(get(&two.base, "other").as_deref(), Some("2"));
            if policy == Policy::Theirs && kind != ParentDeleted {
                assert_eq!(names(&two.base, ""), names(&two.fork, ""), "{path} {kind}: all of theirs");
            }
        }
    }
}

#[test]
fn policies_and_resolutions_take_whole_entries() {
    let make = || {
        two(
            &|w| {
                put(w, "a", b"1");
                put(w, "b", b"1");
            },
            &|w| {
                put(w, "a", b"ours");
                delete(w, "b");
            },
            &|w| {
                put(w, "a", b"theirs");
                put(w, "b", b"theirs");
            },
        )
    };
    let two = make();
    promote(&two, &with(Policy::Ours));
    assert_eq!((get(&two.base, "a").as_deref(), get(&two.base, "b")), (Some("ours"), None));
    let two = make();
    promote(&two, &with(Policy::Theirs));
    assert_eq!((get(&two.base, "a").as_deref(), get(&two.base, "b").as_deref()), (Some("theirs"), Some("theirs")));
    let two = make();
    let resolve = [(Bytes::from_static(b"a"), Side::Theirs)].into();
    let done = promote(&two, &PromoteOptions { resolve, ..PromoteOptions::default() });
    assert_eq!(kinds(&done), [("b".to_owned(), ConflictKind::DeleteModify)]);
    assert_eq!(get(&two.base, "a").as_deref(), Some("ours"), "one conflict is left, so nothing was applied");
    let resolve = [(Bytes::from_static(b"a"), Side::Theirs), (Bytes::from_static(b"b"), Side::Ours)].into();
    promote(&two, &PromoteOptions { resolve, ..PromoteOptions::default() });
    assert_eq!((get(&two.base, "a").as_deref(), get(&two.base, "b")), (Some("theirs"), None));
}

#[test]
fn what_is_no_conflict() {
    let same: Do = &|w| {
        put(w, "both", b"equal");
        file(w, "dir/one", b"1");
        delete(w, "gone");
    };
    let two = two(
        &|w| {
            put(w, "gone", b"1");
            file(w, "a", b"1");
            file(w, "imp/x", b"1");
            put(w, "i/x", b"1");
        },
        &|w| {
            same(w);
            chmod(w, "a", 0o600);
            w.set_xattr(at(w, "a"), b"user.ours", b"1", XattrFlag::Any).unwrap();
            delete(w, "i/x");
            put(w, "dir/ours", b"1");
            put(w, "p", b"object");
        },
        &|w| {
            same(w);
            write(w, "a", b"2");
            w.set_xattr(at(w, "a"), b"user.theirs", b"2", XattrFlag::Any).unwrap();
            put(w, "i/y", b"1");
            put(w, "dir/theirs", b"1");
            put(w, "p/q", b"beside the object");
        },
    );
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!(kinds(&done), []);
    let base = &two.base;
    assert_eq!(get(base, "a").as_deref(), Some("2"));
    assert_eq!(base.attr(at(base, "a")).unwrap().mode & 0o777, 0o600);
    assert_eq!(base.list_xattr(at(base, "a")).unwrap().len(), 2);
    assert_eq!(names(base, "dir"), ["one", "ours", "theirs"]);
    assert_eq!(names(base, "i"), ["y"], "an implicit directory is never a party");
    assert_eq!(base.get(b"p").unwrap().info.size, 6);
    assert_eq!(get(base, "p/q").as_deref(), Some("beside the object"));
}

#[test]
fn renames_travel_as_renames() {
    let two = two(
        &|w| {
            file(w, "src/lib/a", b"1");
            file(w, "src/lib/b", b"1");
            file(w, "f", b"1");
            file(w, "swap1/x", b"1");
            file(w, "swap2/y", b"2");
        },
        // Changes under directories and files that the fork calls otherwise by then.
        &|w| {
            write(w, "src/lib/a", b"base");
            file(w, "src/lib/new", b"base");
            unlink(w, "src/lib/b");
            write(w, "f", b"base");
            chmod(w, "src/lib", 0o700);
            file(w, "swap1/added", b"base");
        },
        &|w| {
            rename(w, "src/lib", "library");
            mkdir(w, "src/lib");
            put(w, "src/lib/other", b"fork");
            rename(w, "f", "g");
            w.rename(Ino::ROOT, b"swap1", Ino::ROOT, b"swap2", RenameFlag::Exchange).unwrap();
        },
    );
    let lib = at(&two.base, "src/lib");
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!(kinds(&done), []);
    let base = &two.base;
    assert_eq!(
        changes(&done.changes),
        ["f>g", "src/lib/>library/", "+src/lib/", "+src/lib/other", "swap2/>swap1/", "swap1/>swap2/"]
    );
    assert_eq!(at(base, "library"), lib);
    assert_eq!(names(base, "library"), ["a", "new"]);
    assert_eq!(base.attr(lib).unwrap().mode & 0o777, 0o700);
    assert_eq!((get(base, "library/a").as_deref(), get(base, "g").as_deref()), (Some("base"), Some("base")));
    assert_eq!((names(base, "src/lib"), get(base, "f")), (vec!["other".to_owned()], None));
    assert_eq!((names(base, "swap1"), names(base, "swap2")), (vec!["y".to_owned()], vec!["added".into(), "x".into()]));
    // And the other way: the fork changes what the base has renamed.
    rename(base, "library", "lib2");
    two.fork.rebase(&PromoteOptions::default()).unwrap();
    append(&two.fork, "lib2/a", b" and fork");
    clean(&two.rig.store);
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!((done.fast, get(base, "lib2/a").as_deref()), (true, Some("base and fork")));
}

#[test]
fn a_directory_removed_and_made_again_is_the_same_directory() {
    let two = two(
        &|w| {
            file(w, "d/x", b"1");
            file(w, "d/y", b"1");
        },
        &|w| {
            file(w, "d/z", b"base");
        },
        &|w| {
            unlink(w, "d/x");
            unlink(w, "d/y");
            rmdir(w, "d");
            file(w, "d/y", b"1");
            file(w, "d/w", b"fork");
        },
    );
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!(kinds(&done), []);
    assert_eq!(names(&two.base, "d"), ["w", "y", "z"]);
}

#[test]
fn hard_links_stay_one_file() {
    let two = two(
        &|w| {
            file(w, "a", b"1");
            link(w, "a", "b");
            file(w, "c", b"1");
            file(w, "keep", b"1");
        },
        &|w| {
            file(w, "other", b"1");
            link(w, "keep", "keep2");
        },
        &|w| {
            write(w, "a", b"2");
            link(w, "c", "c2");
            file(w, "n1", b"new");
            link(w, "n1", "n2");
            unlink(w, "b");
            link(w, "a", "d");
            write(w, "keep", b"2");
        },
    );
    promote(&two, &PromoteOptions::default());
    let base = &two.base;
    assert_eq!((at(base, "n1"), at(base, "c")), (at(base, "n2"), at(base, "c2")));
    assert_eq!((at(base, "a"), get(base, "d").as_deref()), (at(base, "d"), Some("2")));
    assert_eq!(base.attr(at(base, "a")).unwrap().nlink, 2);
    assert_eq!((at(base, "keep"), get(base, "keep2").as_deref()), (at(base, "keep2"), Some("2")));
    assert_eq!(get(base, "b"), None);
    // A part of a hard link alone: it becomes a file of its own.
    write(&two.fork, "c", b"3");
    let done = promote(&two, &PromoteOptions { only: Some("c2".into()), ..PromoteOptions::default() });
    assert_eq!(changes(&done.changes), ["~c2"]);
    assert_eq!((get(base, "c").as_deref(), get(base, "c2").as_deref()), (Some("1"), Some("3")));
    clean(&two.rig.store);
}

#[test]
fn both_tails_are_kept_again_and_again() {
    let two = two(
        &|w| {
            file(w, "log", b"start\n");
            put(w, "big.jsonl", &[b'x'; 200_000]);
        },
        &nothing,
        &nothing,
    );
    let mut log = "start\n".to_owned();
    for round in 0..4 {
        let (ours, theirs) = (format!("base {round}\n"), format!("fork {round}\n"));
        append(&two.base, "log", ours.as_bytes());
        append(&two.fork, "log", theirs.as_bytes());
        append(&two.base, "big.jsonl", ours.as_bytes());
        append(&two.fork, "big.jsonl", theirs.as_bytes());
        let done = promote(&two, &PromoteOptions::default());
        assert_eq!(done.merged, [&b"big.jsonl"[..], b"log"]);
        log = log + &ours + &theirs;
        assert_eq!(get(&two.base, "log"), Some(log.clone()));
    }
    let big = content(&two.base, "big.jsonl").unwrap();
    assert_eq!((&big[..200_000], &big[200_000..]), (&[b'x'; 200_000][..], &log.as_bytes()[6..]));
    // A rebase puts the fork's tail behind the base's too.
    append(&two.base, "log", b"base 9\n");
    append(&two.fork, "log", b"fork 9\n");
    let done = two.fork.rebase(&PromoteOptions::default()).unwrap();
    assert_eq!(done.conflicts, []);
    assert_eq!(get(&two.fork, "log"), Some(log.clone() + "base 9\nfork 9\n"));
    clean(&two.rig.store);
    assert!(promote(&two, &PromoteOptions::default()).fast);
    assert_eq!(get(&two.base, "log"), Some(log + "base 9\nfork 9\n"));
}

#[test]
fn what_the_fork_never_saw_is_never_overwritten() {
    // The base sets a=2; the fork promotes only b; later it sets a=3.
    let two = two(
        &|w| {
            put(w, "a", b"1");
            put(w, "b", b"1");
        },
        &|w| put(w, "a", b"2"),
        &|w| put(w, "b", b"fork"),
    );
    promote(&two, &PromoteOptions::default());
    put(&two.fork, "a", b"3");
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!(kinds(&done), [("a".to_owned(), ConflictKind::BothModified)]);
    // A rebase brings what the base did before that promote.
    put(&two.fork, "a", b"1");
    let done = two.fork.rebase(&PromoteOptions::default()).unwrap();
    assert_eq!((changes(&done.changes), get(&two.fork, "a").as_deref()), (vec!["~a".to_owned()], Some("2")));
    put(&two.fork, "a", b"3");
    assert!(promote(&two, &PromoteOptions::default()).fast);
    assert_eq!(get(&two.base, "a").as_deref(), Some("3"));
}

#[test]
fn a_rebase_does_not_count_the_forks_own_work_as_promoted() {
    let two = two(&|w| put(w, "a", b"1"), &|w| put(w, "b", b"base"), &|w| put(w, "a", b"fork"));
    let done = two.fork.rebase(&PromoteOptions::default()).unwrap();
    assert_eq!(changes(&done.changes), ["+b"]);
    assert_eq!((get(&two.fork, "a").as_deref(), get(&two.base, "a").as_deref()), (Some("fork"), Some("1")));
    put(&two.base, "a", b"base too");
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!(kinds(&done), [("a".to_owned(), ConflictKind::BothModified)]);
    let done = two.fork.rebase(&with(Policy::Ours)).unwrap();
    assert_eq!((done.conflicts.len(), get(&two.fork, "a").as_deref()), (0, Some("fork")));
    assert!(promote(&two, &PromoteOptions::default()).fast, "the fork has seen the base's and chosen its own");
    assert_eq!(get(&two.base, "a").as_deref(), Some("fork"));
}

#[test]
fn only_a_part() {
    let two = two(
        &|w| {
            put(w, "d/a", b"1");
            put(w, "e/b", b"1");
        },
        &|w| put(w, "x", b"base"),
        &|w| {
            put(w, "d/a", b"2");
            put(w, "d/n", b"2");
            put(w, "e/b", b"2");
        },
    );
    let done = promote(&two, &PromoteOptions { only: Some("d/".into()), ..PromoteOptions::default() });
    assert_eq!(changes(&done.changes), ["~d/a", "+d/n"]);
    assert_eq!((get(&two.base, "d/a").as_deref(), get(&two.base, "e/b").as_deref()), (Some("2"), Some("1")));
    // What was promoted is common now, what was not is not.
    put(&two.base, "d/a", b"base");
    put(&two.base, "e/b", b"base");
    put(&two.fork, "d/n", b"3");
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!(kinds(&done), [("e/b".to_owned(), ConflictKind::BothModified)]);
    promote(&two, &with(Policy::Theirs));
    let read = |key| get(&two.base, key).unwrap();
    assert_eq!(
        (read("d/a"), read("d/n"), read("e/b"), read("x")),
        ("base".into(), "3".into(), "2".into(), "base".into())
    );
}

#[test]
fn a_revert_undoes_the_sync_point_too() {
    let two = two(&|w| put(w, "a", b"1"), &|w| put(w, "x", b"base"), &|w| put(w, "a", b"2"));
    let first = promote(&two, &PromoteOptions::default());
    two.base.revert(At::Version(first.snapshot.unwrap())).unwrap();
    assert_eq!(get(&two.base, "a").as_deref(), Some("1"));
    let again = promote(&two, &PromoteOptions::default());
    assert_eq!((changes(&again.changes), get(&two.base, "a").as_deref()), (vec!["~a".to_owned()], Some("2")));
    // Forward to after the first promote, which counts again.
    two.base.revert(At::Version(first.version.unwrap())).unwrap();
    let none = promote(&two, &PromoteOptions::default());
    assert_eq!((none.version, get(&two.base, "a").as_deref()), (None, Some("2")));
    // A revert of the fork is a change like any other.
    let version = two.fork.info().unwrap().version;
    put(&two.fork, "a", b"3");
    two.fork.revert(At::Version(version)).unwrap();
    assert_eq!(promote(&two, &PromoteOptions::default()).version, None);
}

#[test]
fn revert_goes_back_and_forward_any_number_of_times() {
    let rig = Rig::new();
    let w = rig.create("base");
    let mut versions = Vec::new();
    for i in 0..12u32 {
        file(&w, "n", i.to_string().as_bytes());
        file(&w, &format!("d{}/f", i % 3), &vec![i as u8; 20_000]);
        if i > 2 {
            rename(&w, &format!("d{}", i % 3), "tmp");
            rename(&w, "tmp", &format!("d{}", i % 3));
        }
        versions.push(w.snapshot(Some(&format!("s{i}")), None).unwrap().version);
    }
    let snapshots = w.snapshots().unwrap().len();
    for i in [3usize, 9, 0, 11, 5, 5] {
        let done = w.revert(At::Label(format!("s{i}"))).unwrap();
        assert_eq!(get(&w, "n"), Some(i.to_string()));
        assert!(done.fast);
        clean(&rig.store);
    }
    assert!(w.snapshots().unwrap().len() > snapshots);
    assert_eq!(w.revert(At::Label("nosuch".into())).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    drop(w);
    let rig = rig.reopen();
    let w = rig.session("base");
    assert_eq!(get(&w, "n").as_deref(), Some("5"));
    for (i, version) in versions.iter().enumerate() {
        assert_eq!(get(&w.at(&At::Version(*version)).unwrap(), "n"), Some(i.to_string()));
    }
}

#[test]
fn restore_brings_one_path_back() {
    let rig = Rig::new();
    let w = rig.create("base");
    file(&w, "d/e/a", b"1");
    link(&w, "d/e/a", "d/e/b");
    file(&w, "d/other", b"1");
    put(&w, "k", b"object");
    put(&w, "k/under", b"1");
    let number = at(&w, "d/e/a");
    let then = At::Version(w.snapshot(None, None).unwrap().version);
    write(&w, "d/e/a", b"2");
    unlink(&w, "d/e/b");
    write(&w, "d/other", b"2");
    let done = w.restore(then.clone(), b"d/e/a").unwrap();
    assert_eq!((changes(&done.changes), get(&w, "d/e/a").as_deref()), (vec!["~d/e/a".to_owned()], Some("1")));
    assert_eq!(at(&w, "d/e/a"), number, "the number was free");
    clean(&rig.store);
    unlink(&w, "d/e/a");
    rmdir(&w, "d/e");
    unlink(&w, "d/other");
    rmdir(&w, "d");
    w.restore(then.clone(), b"d/e/").unwrap();
    assert_eq!((names(&w, "d"), names(&w, "d/e")), (vec!["e".to_owned()], vec!["a".into(), "b".into()]));
    assert_eq!(at(&w, "d/e/a"), at(&w, "d/e/b"));
    clean(&rig.store);
    delete(&w, "k");
    put(&w, "k/under", b"2");
    put(&w, "k/more", b"2");
    w.restore(then.clone(), b"k").unwrap();
    assert_eq!((w.get(b"k").unwrap().info.size, names(&w, "k")), (6, vec!["under".to_owned()]));
    assert_eq!(w.restore(then, b"nosuch").err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    clean(&rig.store);
}

#[test]
fn metadata_and_modes_travel() {
    let meta = ObjectMeta {
        content_type: Some("text/x-sh".into()),
        user: vec![("owner".into(), "me".into())],
        ..ObjectMeta::default()
    };
    let two = two(&|w| put_as(w, "t.sh", b"#!/bin/sh\n", meta.clone()), &|w| put(w, "x", b"1"), &|w| {
        chmod(w, "t.sh", 0o700);
        append(w, "t.sh", b"#new\n");
    });
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!(changes(&done.changes), ["~t.sh"]);
    let info = two.base.head(b"t.sh").unwrap();
    assert_eq!((info.mode & 0o777, &info.meta), (0o700, &meta));
    assert_eq!(info.etag, two.fork.head(b"t.sh").unwrap().etag);
    chmod(&two.fork, "t.sh", 0o755);
    let done = promote(&two, &PromoteOptions::default());
    assert_eq!(changes(&done.changes), ["@t.sh"]);
}

#[test]
fn extra_objects_come_with_the_same_commit() {
    let two = two(&|w| put(w, "a", b"1"), &nothing, &|w| put(w, "a", b"2"));
    let extra = vec![(Bytes::from_static(b"runs/1.json"), Bytes::from_static(b"{}"))];
    let done = promote(&two, &PromoteOptions { extra: extra.clone(), ..PromoteOptions::default() });
    assert!(done.fast);
    assert_eq!(changes(&done.changes), ["~a", "+runs/1.json"]);
    assert!(two.base.at(&At::Version(done.snapshot.unwrap())).unwrap().head(b"runs/1.json").is_err());
    assert_eq!(get(&two.base, "runs/1.json").as_deref(), Some("{}"));
    put(&two.fork, "a", b"3");
    let extra = vec![(Bytes::from_static(b"runs/2.json"), Bytes::from(vec![b' '; 20_000]))];
    promote(&two, &PromoteOptions { extra, ..PromoteOptions::default() });
    assert_eq!(content(&two.base, "runs/2.json").map(|c| c.len()), Some(20_000));
}

/// What a mount heard.
#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl Listener for Ear {
    fn changed(&self, changes: &[Changed]) {
        let what = if changes.contains(&Changed::Everything) { "everything" } else { "some" };
        self.0.lock().push(what.to_owned());
    }
    fn write_back(&self) -> mw_world::Result<()> {
        self.0.lock().push("write back".to_owned());
        Ok(())
    }
    fn hold(&self) {
        self.0.lock().push("hold".to_owned());
    }
    fn release(&self) {
        self.0.lock().push("release".to_owned());
    }
}

#[test]
fn mounts_stand_still_and_are_told() {
    let two = two(&|w| put(w, "a", b"1"), &nothing, &|w| {
        for i in 0..300 {
            put(w, &format!("many/{i}"), b"1");
        }
    });
    let (base_ear, fork_ear) = (Arc::new(Ear::default()), Arc::new(Ear::default()));
    let _base = two.base.subscribe(1, base_ear.clone()).unwrap();
    let _fork = two.fork.subscribe(2, fork_ear.clone()).unwrap();
    two.fork.promote(&PromoteOptions::default()).unwrap();
    assert_eq!(*base_ear.0.lock(), ["write back", "hold", "everything", "release"]);
    assert_eq!(*fork_ear.0.lock(), ["write back", "hold", "release"]);
    put(&two.fork, "a", b"2");
    base_ear.0.lock().clear();
    two.fork.promote(&PromoteOptions::default()).unwrap();
    assert_eq!(*base_ear.0.lock(), ["write back", "hold", "some", "release"]);
}

#[test]
fn an_open_file_keeps_its_inode() {
    for changed in [false, true] {
        let two = two(
            &|w| {
                file(w, "a", b"open");
                file(w, "d/b", b"open too");
            },
            &|w| {
                if changed {
                    put(w, "x", b"1");
                }
            },
            &|w| {
                unlink(w, "a");
                put(w, "d/b", b"replaced");
            },
        );
        let (a, b) = (at(&two.base, "a"), at(&two.base, "d/b"));
        two.base.open(a).unwrap();
        two.base.open(b).unwrap();
        let done = two.fork.promote(&PromoteOptions::default()).unwrap();
        assert_eq!(done.fast, !changed);
        assert_eq!((get(&two.base, "a"), get(&two.base, "d/b").as_deref()), (None, Some("replaced")));
        assert_eq!(two.base.read(a, 0, 9).unwrap(), b"open"[..]);
        assert_eq!(two.base.read(b, 0, 9).unwrap(), b"open too"[..]);
        two.base.write(a, WriteAt::End, b" still").unwrap();
        clean(&two.rig.store);
        two.base.release(a);
        two.base.release(b);
        assert!(two.base.attr(a).is_err() && two.base.attr(b).is_err());
        clean(&two.rig.store);
    }
}

#[test]
fn who_may() {
    let rig = Rig::new();
    rig.create("base");
    rig.create("other");
    let fork = rig.fork("base", "fork");
    put(&fork, "a", b"1");
    let session = |grants: &[(&str, Role)]| {
        let grants = grants.iter().map(|(w, r)| mw_world::Grant::new(*w, *r)).collect();
        let request = KeyRequest { name: "k".into(), grants, ..KeyRequest::default() };
        let key = rig.store.create_key(&rig.root, &request).unwrap();
        rig.store.session(&rig.store.principal(&key.id).unwrap(), "fork").unwrap()
    };
    let options = PromoteOptions::default();
    let denied = |result: mw_world::Result<Promoted>| result.unwrap_err();
    let stranger = session(&[("fork", Role::Admin)]);
    let before = denied(stranger.promote(&options)).to_string();
    assert_eq!(denied(stranger.promote(&options)).kind(), ErrorKind::Denied);
    assert_eq!(denied(stranger.rebase(&options)).to_string(), before);
    let reader = session(&[("fork", Role::Admin), ("base", Role::Reader)]);
    assert_eq!(denied(reader.promote(&options)).kind(), ErrorKind::Denied);
    reader.rebase(&options).unwrap();
    let keeper = session(&[("fork", Role::Reader), ("base", Role::Admin)]);
    assert_eq!(denied(keeper.rebase(&options)).kind(), ErrorKind::Denied);
    assert!(keeper.promote(&options).unwrap().version.is_some());
    assert_eq!(rig.session("base").promote(&options).unwrap_err().kind(), ErrorKind::Invalid);
    let then = fork.at(&At::Version(fork.info().unwrap().version)).unwrap();
    assert_eq!(then.promote(&options).unwrap_err().kind(), ErrorKind::ReadOnly);
    rig.store.delete_world(&rig.root, "base", true).unwrap();
    let gone = fork.promote(&options).unwrap_err();
    assert!(gone.kind() == ErrorKind::NotFound && gone.to_string().contains("base"), "{gone}");
    assert_eq!(denied(stranger.promote(&options)).to_string(), before, "one answer, whether it is there or not");
}

#[test]
fn a_promote_costs_what_changed() {
    let two = two(
        &|w| {
            for i in 0..400 {
                put(w, &format!("d{}/f{i}", i % 7), &vec![i as u8; 9_000]);
            }
        },
        &|w| put(w, "d1/new", b"base"),
        &|w| put(w, "d2/new", b"fork"),
    );
    let syncs = two.rig.store.status().unwrap();
    let claimed = syncs.claimed;
    promote(&two, &PromoteOptions::default());
    let grown = two.rig.store.status().unwrap().claimed - claimed;
    assert!(grown <= 1 << 20, "{grown} bytes for one file");
}

#[test]
fn diff_says_what_leads_from_one_to_the_other() {
    let rig = Rig::new();
    let w = rig.create("base");
    file(&w, "a", b"1");
    file(&w, "d/x", b"1");
    file(&w, "t", b"1");
    put(&w, "i/j", b"1");
    let then = w.at(&At::Version(w.info().unwrap().version)).unwrap();
    assert_eq!(diff(&then, &w).unwrap(), []);
    file(&w, "a", b"longer");
    rename(&w, "d", "e");
    file(&w, "e/y", b"1");
    unlink(&w, "t");
    mkdir(&w, "t");
    delete(&w, "i/j");
    put(&w, "n/m", b"1");
    chmod(&w, "e", 0o700);
    let found = diff(&then, &w).unwrap();
    assert_eq!(changes(&found), ["~a", "d/>e/", "+e/y", "-i/j", "+n/m", "!t/"]);
    assert_eq!((found[0].old_size, found[0].new_size), (1, 6));
    assert_eq!(changes(&diff(&w, &then).unwrap()), ["~a", "e/>d/", "-e/y", "+i/j", "-n/m", "!t"]);
    let fork = rig.fork("base", "fork");
    assert_eq!(diff(&w, &fork).unwrap(), []);
    // Worlds that have nothing in common are compared by path.
    let other = rig.create("other");
    file(&other, "a", b"longer");
    assert!(!changes(&diff(&w, &other).unwrap()).contains(&"~a".to_owned()));
    rig.store
        .fork(&rig.root, "base", "past", &ForkOptions { at: then.version().map(At::Version), ..Default::default() })
        .unwrap();
    assert_eq!(diff(&then, &rig.session("past")).unwrap(), []);
}

#[test]
fn deep_chains_of_forks_promote_to_their_own_base() {
    let rig = Rig::new();
    let w = rig.create("w-0");
    put(&w, "a", b"0");
    let one = rig.fork("w-0", "w-1");
    let two = rig.fork("w-1", "w-2");
    put(&two, "a", b"2");
    put(&one, "b", b"1");
    assert!(two.promote(&PromoteOptions::default()).unwrap().version.is_some());
    assert_eq!((get(&one, "a").as_deref(), get(&w, "a").as_deref()), (Some("2"), Some("0")));
    assert!(one.promote(&PromoteOptions::default()).unwrap().fast);
    assert_eq!((get(&w, "a").as_deref(), get(&w, "b").as_deref()), (Some("2"), Some("1")));
    let rig = {
        drop((w, one, two));
        rig.reopen()
    };
    rig.store.sweep().unwrap();
    clean(&rig.store);
    assert_eq!(get(&rig.session("w-0"), "a").as_deref(), Some("2"));
}

#[test]
fn writers_beside_a_promote_lose_nothing() {
    let two = two(&|w| put(w, "a", b"1"), &nothing, &nothing);
    let writer = |w: &Session, name: &str| {
        let (w, name) = (w.clone(), name.to_owned());
        std::thread::spawn(move || (0..150).for_each(|i| put(&w, &format!("{name}/{i}"), b"1")))
    };
    let writers = [writer(&two.base, "base"), writer(&two.fork, "fork")];
    let mut rounds = 0;
    while !writers.iter().all(std::thread::JoinHandle::is_finished) || rounds < 3 {
        let done = match rounds % 2 {
            0 => two.fork.promote(&PromoteOptions::default()),
            _ => two.fork.rebase(&PromoteOptions::default()),
        };
        assert_eq!(done.unwrap().conflicts, []);
        rounds += 1;
    }
    writers.into_iter().for_each(|w| w.join().unwrap());
    two.fork.promote(&PromoteOptions::default()).unwrap();
    for i in 0..150 {
        assert_eq!(get(&two.base, &format!("base/{i}")).as_deref(), Some("1"));
        assert_eq!(get(&two.base, &format!("fork/{i}")).as_deref(), Some("1"));
    }
    clean(&two.rig.store);
}

#[test]
fn a_deep_tree_merges() {
    let deep = (0..400).map(|_| "d").collect::<Vec<_>>().join("/");
    let two = two(&|w| put(w, &format!("{deep}/x"), b"1"), &|w| put(w, &format!("{deep}/y"), b"base"), &|w| {
        put(w, &format!("{deep}/x"), b"fork")
    });
    promote(&two, &PromoteOptions::default());
    assert_eq!(get(&two.base, &format!("{deep}/x")).as_deref(), Some("fork"));
    assert_eq!(get(&two.base, &format!("{deep}/y")).as_deref(), Some("base"));
}

#[test]
fn renames_at_random_keep_every_world_whole() {
    // The model does not follow renames. Here only what must always hold is asked: the dry run is right, fsck is clean, a second
    // promote has nothing to do. `MW_RENAME_SEEDS=N` runs N more seeds.
    let more: u64 = std::env::var("MW_RENAME_SEEDS").ok().map_or(0, |n| n.parse().unwrap());
    for seed in 0..40 + more {
        let mut rng = mw_testkit::Rng::new(seed);
        let paths = |w: &Session| {
            let mut found = Vec::new();
            let mut open = vec![String::new()];
            while let Some(dir) = open.pop() {
                for name in names(w, dir.trim_end_matches('/')) {
                    let path = format!("{dir}{name}");
                    if w.resolve(path.as_bytes()).unwrap().kind == FileType::Directory {
                        open.push(format!("{path}/"));
                    }
                    found.push(path);
                }
            }
            found
        };
        let mut go = |w: &Session, tag: &str, steps: usize| {
            for step in 0..steps {
                let all = paths(w);
                let pick =
                    |rng: &mut mw_testkit::Rng| all.get(rng.below(all.len().max(1))).cloned().unwrap_or_default();
                let (from, to) = (pick(&mut rng), pick(&mut rng));
                let fresh = if rng.one_in(2) { format!("{tag}{step}") } else { format!("{to}/{tag}{step}") };
                let target = if rng.one_in(3) { to } else { fresh };
                let place = |path: &str| -> Option<(Ino, Vec<u8>)> {
                    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
                    Some((w.resolve(dir.as_bytes()).ok()?.ino, name.as_bytes().to_vec()))
                };
                let (Some((a_dir, a_name)), Some((b_dir, b_name))) = (place(&from), place(&target)) else { continue };
                let flag = if rng.one_in(4) { RenameFlag::Exchange } else { RenameFlag::Replace };
                // Many of these are refused, which is fine.
                let _ = match rng.below(8) {
                    0..=2 => w.rename(a_dir, &a_name, b_dir, &b_name, flag),
                    3 => w.make(b_dir, &b_name, &a(FileType::Directory)).map(drop),
                    4 => w.make(b_dir, &b_name, &a(FileType::File)).and_then(|at| {
                        w.write(at.ino, WriteAt::Offset(0), format!("{tag}{step}").as_bytes()).map(drop)
                    }),
                    5 => w
                        .resolve(from.as_bytes())
                        .and_then(|at| w.write(at.ino, WriteAt::End, tag.as_bytes()))
                        .map(drop),
                    6 => w.unlink(a_dir, &a_name).or_else(|_| w.rmdir(a_dir, &a_name)),
                    _ => w.resolve(from.as_bytes()).and_then(|at| w.link(at.ino, b_dir, &b_name)).map(drop),
                };
            }
        };
        let rig = Rig::new();
        let base = rig.create("base");
        go(&base, "c", 30);
        let fork = rig.fork("base", "fork");
        for round in 0..4 {
            go(&base, "b", 8);
            go(&fork, "f", 8);
            let two =
                Two { rig: Rig { store: rig.store.clone(), ..Rig::new() }, base: base.clone(), fork: fork.clone() };
            let fail = promote(&two, &with(Policy::Fail));
            let policy = if (seed + round) % 2 == 0 { Policy::Ours } else { Policy::Theirs };
            let done = promote(&two, &with(policy));
            assert_eq!(done.conflicts, [], "seed {seed}");
            if fail.conflicts.is_empty() {
                assert_eq!(done.version, None, "seed {seed}: everything was promoted, then {done:?}");
            }
            assert_eq!(promote(&two, &PromoteOptions::default()).version, None, "seed {seed}: nothing is left to do");
            if round == 2 {
                fork.rebase(&with(policy)).unwrap();
                clean(&rig.store);
                let left = changes(&diff(&base, &fork).unwrap());
                assert!(left.is_empty() || policy == Policy::Ours, "seed {seed}: {left:?}");
            }
        }
    }
}

const LINES: &str = "one\ntwo\nthree\nfour\nfive\n";

fn text(w: &Session, key: &str, content: &str) {
    put(w, key, content.as_bytes());
}

fn combining() -> PromoteOptions {
    PromoteOptions { combine: Combine { text: true, json: true }, ..PromoteOptions::default() }
}

#[test]
fn text_and_json_are_combined_when_asked() {
    let two = two(
        &|w| {
            text(w, "f.txt", LINES);
            text(w, "p.json", "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
        },
        &|w| {
            text(w, "f.txt", &LINES.replace("one", "ONE"));
            text(w, "p.json", "{\n  \"a\": 1,\n  \"b\": 2,\n  \"ours\": 3\n}\n");
        },
        &|w| {
            text(w, "f.txt", &LINES.replace("five", "FIVE"));
            text(w, "p.json", "{\n  \"a\": 10,\n  \"b\": 2\n}\n");
        },
    );
    let refused = two.fork.promote(&PromoteOptions::default()).unwrap();
    let both = [("f.txt".to_owned(), ConflictKind::BothModified), ("p.json".to_owned(), ConflictKind::BothModified)];
    assert_eq!(kinds(&refused), both, "never without asking");
    let done = promote(&two, &combining());
    assert_eq!(done.merged, ["f.txt", "p.json"].map(Bytes::from));
    assert_eq!(get(&two.base, "f.txt").unwrap(), LINES.replace("one", "ONE").replace("five", "FIVE"));
    assert_eq!(get(&two.base, "p.json").unwrap(), "{\n  \"a\": 10,\n  \"b\": 2,\n  \"ours\": 3\n}\n");
    assert_eq!(get(&two.fork, "f.txt").unwrap(), LINES.replace("five", "FIVE"), "the fork is as it was");
    // The same changes are not brought twice, and the next ones are combined with what came out.
    let again = promote(&two, &combining());
    assert_eq!((again.version, again.changes.len()), (None, 0));
    text(&two.fork, "f.txt", &LINES.replace("three", "THREE").replace("five", "FIVE"));
    promote(&two, &combining());
    let all = LINES.replace("one", "ONE").replace("three", "THREE").replace("five", "FIVE");
    assert_eq!(get(&two.base, "f.txt").unwrap(), all);
    let object = two.base.head(b"f.txt").unwrap();
    assert_eq!(object.size, all.len() as u64);
}

#[test]
fn lines_that_meet_are_a_conflict_however_it_is_asked() {
    let two = two(&|w| text(w, "f", LINES), &|w| text(w, "f", &LINES.replace("three", "ours")), &|w| {
        text(w, "f", &LINES.replace("three", "theirs"))
    });
    assert_eq!(kinds(&promote(&two, &combining())), [("f".to_owned(), ConflictKind::BothModified)]);
    assert_eq!(get(&two.base, "f").unwrap(), LINES.replace("three", "ours"));
}

#[test]
fn a_rebase_combines_too() {
    let two = two(&|w| text(w, "f", LINES), &|w| text(w, "f", &LINES.replace("one", "base")), &|w| {
        text(w, "f", &LINES.replace("five", "fork"))
    });
    let done = two.fork.rebase(&combining()).unwrap();
    assert_eq!(done.merged, [Bytes::from("f")]);
    let both = LINES.replace("one", "base").replace("five", "fork");
    assert_eq!(get(&two.fork, "f").unwrap(), both);
    promote(&two, &PromoteOptions::default());
    assert_eq!(get(&two.base, "f").unwrap(), both);
}

#[test]
fn history_of_a_path_shows_the_promote_that_changed_it() {
    let two = two(
        &|w| {
            text(w, "d/f", "1");
            text(w, "g", "1");
        },
        &|w| text(w, "elsewhere", "1"),
        &|w| text(w, "d/f", "2"),
    );
    let options =
        PromoteOptions { run: Some("r1".to_owned()), message: Some("m".to_owned()), ..PromoteOptions::default() };
    promote(&two, &options);
    let verbs = |path: &'static str| -> Vec<(String, Option<String>)> {
        let query = LogQuery { path: Some(path.into()), limit: 100, before: None };
        two.base.log(&query).unwrap().into_iter().map(|entry| (entry.verb, entry.run)).collect()
    };
    let promoted = ("promote".to_owned(), Some("r1".to_owned()));
    for path in ["d/f", "d", "d/"] {
        assert_eq!(verbs(path)[0], promoted, "{path}");
    }
    for path in ["g", "elsewhere", "d/other", "nowhere"] {
        assert!(!verbs(path).contains(&promoted), "{path}");
    }
    let back = two.base.info().unwrap().version;
    text(&two.base, "d/f", "3");
    two.base.revert(At::Version(back)).unwrap();
    assert_eq!(verbs("d/f")[0].0, "revert");
    assert!(verbs("g").iter().all(|(verb, _)| verb != "revert"));
}

#[test]
fn a_merge_says_how_far_it_is_and_stops_until_it_commits() {
    let rig = Rig::new();
    let base = rig.create("base");
    file(&base, "old", b"1");
    let mut stopped = 0;
    for asked in 0.. {
        let name = format!("fork-{asked}");
        let fork = rig.fork("base", &name);
        for n in 0..300 {
            file(&fork, &format!("d/f{n}"), format!("{asked}").as_bytes());
        }
        // Not the fast way: the base has changed too.
        file(&base, "old", format!("{asked}").as_bytes());
        let before = (base.info().expect("info").version, content(&base, "d/f7"));
        let said = RefCell::new(Vec::new());
        let outcome = fork.promote_watched(&PromoteOptions::default(), &|text| {
            said.borrow_mut().push(text.to_owned());
            if said.borrow().len() == asked + 1 {
                fork.stop_merge().expect("asked to stop");
            }
        });
        let said = said.into_inner();
        match outcome {
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Cancelled, "{e}");
                assert_eq!(said.len(), asked + 1, "it ends with the next look: {said:?}");
                assert_eq!(
                    (base.info().expect("info").version, content(&base, "d/f7")),
                    before,
                    "stopped at {:?}",
                    said.last()
                );
                stopped += 1;
                // What was asked is over: the next merge goes through.
                fork.promote(&PromoteOptions { dry_run: true, ..Default::default() }).expect("not stopped");
                fork.discard().expect("discarded");
            }
            Ok(done) => {
                assert!(done.version.is_some() && content(&base, "d/f7") == Some(format!("{asked}").into_bytes()));
                assert_eq!(said.last().map(String::as_str), Some("committing"), "what is being committed is done");
                assert!(said.iter().any(|text| text.starts_with("merging: 256 of ")), "{said:?}");
                break;
            }
        }
    }
    assert!(stopped >= 6, "{stopped}");
    clean(&rig.store);
}

#[test]
fn a_base_that_keeps_changing_is_merged_at_last_with_both_locked() {
    let two = two(&|w| put(w, "a", b"1"), &nothing, &|w| put(w, "a", b"theirs"));
    let changed = RefCell::new(0);
    let done = two
        .fork
        .promote_watched(&PromoteOptions::default(), &|text| {
            // Between each plan and its commit, as long as nothing is locked.
            if text == "writing what changes" && *changed.borrow() < 4 {
                *changed.borrow_mut() += 1;
                put(&two.base, "busy", changed.borrow().to_string().as_bytes());
            }
        })
        .unwrap();
    assert_eq!((*changed.borrow(), done.version.is_some()), (4, true));
    assert_eq!((get(&two.base, "a").as_deref(), get(&two.base, "busy").as_deref()), (Some("theirs"), Some("4")));
    clean(&two.rig.store);
}
