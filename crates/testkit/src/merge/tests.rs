//! The rules of the merge, each on trees of a few paths.

use super::{ConflictKind, Merge, Sides, merge};
use crate::op::{Content, Policy, Verb};
use crate::tree::Tree;

fn tree(start: &Tree, verbs: &[Verb]) -> Tree {
    let mut tree = start.clone();
    for verb in verbs {
        tree.run(verb).unwrap();
    }
    tree
}

fn put(key: &str, tag: u8) -> Verb {
    Verb::Put { key: key.to_owned(), content: Content { tag, len: 9 }, content_type: None, if_absent: false }
}

fn add(path: &str, offset: u64, tag: u8) -> Verb {
    Verb::Write { path: path.to_owned(), offset, content: Content { tag, len: 9 } }
}

fn delete(key: &str) -> Verb {
    Verb::Delete { key: key.to_owned() }
}

fn mkdir(path: &str) -> Verb {
    Verb::Mkdir { path: path.to_owned(), mode: 0o755 }
}

fn chmod(path: &str, mode: u32) -> Verb {
    Verb::Chmod { path: path.to_owned(), mode }
}

/// Merges what `theirs` does to `then` into what `ours` does to it.
fn both(then: &[Verb], ours: &[Verb], theirs: &[Verb], policy: Policy) -> (Merge, Tree) {
    let then = tree(&Tree::default(), then);
    let (mut ours, theirs) = (tree(&then, ours), tree(&then, theirs));
    let (a, b, c) = (then.flat(), ours.flat(), theirs.flat());
    let sides = Sides { common: &a, base_then: &a, ours: &b, theirs: &c, into_base: true };
    let plan = merge(sides, policy, "");
    ours.apply_items(&plan.changes, &theirs);
    (plan, ours)
}

fn conflicts(then: &[Verb], ours: &[Verb], theirs: &[Verb]) -> Vec<(String, ConflictKind)> {
    let (plan, _) = both(then, ours, theirs, Policy::Fail);
    plan.conflicts.into_iter().map(|conflict| (conflict.path, conflict.kind)).collect()
}

#[test]
fn what_one_side_did_travels() {
    let (plan, tree) =
        both(&[put("a", 1), put("b", 1)], &[put("c", 1)], &[put("a", 2), delete("b"), put("d/e", 2)], Policy::Fail);
    assert_eq!(plan.conflicts, []);
    let keys: Vec<String> = tree.objects().into_keys().collect();
    assert_eq!(keys, ["a", "c", "d/e"]);
    assert_eq!(tree.get("a").unwrap(), Content { tag: 2, len: 9 }.bytes());
}

#[test]
fn content_and_attributes_of_one_file_merge() {
    let (plan, tree) = both(&[put("a", 1)], &[chmod("a", 0o600)], &[add("a", 0, 2)], Policy::Fail);
    assert_eq!(plan.conflicts, []);
    assert_eq!((tree.stat("a").unwrap().1.mode, tree.get("a").unwrap()), (0o600, Content { tag: 2, len: 9 }.bytes()));
}

#[test]
fn both_tails_are_kept_the_forks_after_the_bases() {
    let (plan, tree) = both(&[put("log", 1)], &[add("log", 9, 2)], &[add("log", 9, 3)], Policy::Fail);
    assert_eq!(plan.conflicts, []);
    let want: Vec<u8> = [1, 2, 3].into_iter().flat_map(|tag| Content { tag, len: 9 }.bytes()).collect();
    assert_eq!(tree.get("log").unwrap(), want);
}

#[test]
fn every_kind_of_conflict() {
    use ConflictKind::*;
    let one = |path: &str, kind| vec![(path.to_owned(), kind)];
    assert_eq!(conflicts(&[put("a", 1)], &[put("a", 2)], &[put("a", 3)]), one("a", BothModified));
    assert_eq!(conflicts(&[], &[put("a", 2)], &[put("a", 3)]), one("a", BothAdded));
    assert_eq!(conflicts(&[put("a", 1)], &[put("a", 2)], &[delete("a")]), one("a", ModifyDelete));
    assert_eq!(conflicts(&[put("a", 1)], &[delete("a")], &[put("a", 2)]), one("a", ModifyDelete));
    assert_eq!(conflicts(&[put("a", 1)], &[chmod("a", 0)], &[chmod("a", 1)]), one("a", Attributes));
    let link = Verb::Symlink { target: "x".to_owned(), path: "a".to_owned() };
    assert_eq!(conflicts(&[put("a", 1)], &[put("a", 2)], &[delete("a"), link]), one("a", TypeChanged));
    assert_eq!(conflicts(&[put("a", 1)], &[put("a", 2)], &[delete("a"), mkdir("a")]), one("a", TypeChanged));
    let rmdir = Verb::Rmdir { path: "d".to_owned() };
    assert_eq!(conflicts(&[mkdir("d")], std::slice::from_ref(&rmdir), &[put("d/x", 1)]), one("d/x", ParentDeleted));
    assert_eq!(conflicts(&[mkdir("d")], &[put("d/x", 1)], &[rmdir]), one("d/x", ParentDeleted));
}

#[test]
fn equal_changes_and_unified_directories_are_no_conflict() {
    assert_eq!(conflicts(&[], &[put("a", 2)], &[put("a", 2)]), []);
    assert_eq!(conflicts(&[put("a", 1)], &[delete("a")], &[delete("a")]), []);
    assert_eq!(conflicts(&[], &[mkdir("d"), put("d/x", 1)], &[mkdir("d"), chmod("d", 0), put("d/y", 1)]), []);
    // `a` and `a/b` live side by side.
    assert_eq!(conflicts(&[], &[put("a", 1)], &[put("a/b", 1)]), []);
}

#[test]
fn an_implicit_directory_is_never_a_party() {
    let (plan, tree) = both(&[put("d/x", 1)], &[delete("d/x")], &[put("d/y", 1)], Policy::Fail);
    assert_eq!(plan.conflicts, []);
    assert_eq!(tree.objects().into_keys().collect::<Vec<_>>(), ["d/y"]);
}

#[test]
fn policies_take_whole_entries() {
    let (then, ours, theirs) = ([put("a", 1), put("b", 1)], [put("a", 2), delete("b")], [put("a", 3), put("b", 3)]);
    let bytes = |tag| Content { tag, len: 9 }.bytes();
    let (plan, tree) = both(&then, &ours, &theirs, Policy::Ours);
    assert_eq!((plan.conflicts.len(), tree.get("a").unwrap()), (2, bytes(2)));
    assert!(tree.get("b").is_err());
    let (_, tree) = both(&then, &ours, &theirs, Policy::Theirs);
    assert_eq!((tree.get("a").unwrap(), tree.get("b").unwrap()), (bytes(3), bytes(3)));
}

#[test]
fn a_removed_parent_follows_the_policy_both_ways() {
    let rmdir = [Verb::Rmdir { path: "d".to_owned() }];
    let add = [put("d/x", 1)];
    for (ours, theirs, policy, lives) in [
        (&rmdir, &add, Policy::Ours, false),
        (&rmdir, &add, Policy::Theirs, true),
        (&add, &rmdir, Policy::Ours, true),
        (&add, &rmdir, Policy::Theirs, false),
    ] {
        let (_, tree) = both(&[mkdir("d")], ours, theirs, policy);
        assert_eq!((tree.get("d/x").is_ok(), tree.flat().contains_key("d/")), (lives, lives));
    }
}

#[test]
fn hard_links_come_as_one_file() {
    let link = |from: &str, to: &str| Verb::Link { from: from.to_owned(), to: to.to_owned() };
    let (_, tree) = both(&[], &[], &[put("a", 1), link("a", "b")], Policy::Fail);
    assert_eq!(tree.stat("a").unwrap().0, tree.stat("b").unwrap().0);
    assert_eq!(tree.nlink(tree.stat("a").unwrap().0), 2);
}
