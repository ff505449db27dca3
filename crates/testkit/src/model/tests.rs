//! History, forks and merges of whole worlds.

use super::Model;
use crate::flat::Change;
use crate::op::{Content, Op, Policy, Verb};
use mw_model::ErrorKind;
use std::collections::BTreeMap;

fn store(worlds: &[&str]) -> Model {
    let mut model = Model::new();
    for world in worlds {
        model.apply(&Op::CreateWorld { world: (*world).to_owned() }).unwrap();
    }
    model
}

fn run(model: &mut Model, world: &str, verb: Verb) -> u64 {
    model.apply(&Op::In { world: world.to_owned(), verb }).unwrap().version
}

fn put(model: &mut Model, world: &str, key: &str, tag: u8) -> u64 {
    let content = Content { tag, len: 9 };
    run(model, world, Verb::Put { key: key.to_owned(), content, content_type: None, if_absent: false })
}

fn fork(model: &mut Model, from: &str, at: Option<u64>, to: &str) -> Result<super::Outcome, ErrorKind> {
    model.apply(&Op::Fork { from: from.to_owned(), at, to: to.to_owned() })
}

fn promote(model: &mut Model, fork: &str, only: Option<&str>) -> Result<super::Outcome, ErrorKind> {
    model.apply(&Op::Promote { fork: fork.to_owned(), policy: Policy::Fail, only: only.map(str::to_owned) })
}

fn keys(model: &Model, world: &str) -> Vec<String> {
    model.world(world).unwrap().tree().objects().into_keys().collect()
}

#[test]
fn every_version_can_be_read_and_reverted_to() {
    let mut model = store(&["base"]);
    let first = put(&mut model, "base", "a", 1);
    let second = put(&mut model, "base", "b", 1);
    run(&mut model, "base", Verb::Delete { key: "a".to_owned() });
    let world = model.world("base").unwrap();
    assert_eq!(world.at(first).unwrap().objects().len(), 1);
    assert_eq!(world.at(second).unwrap().objects().len(), 2);
    assert!(world.at(0).is_none());
    let revert = |at| Op::Revert { world: "base".to_owned(), at };
    assert_eq!(model.apply(&revert(1_000)), Err(ErrorKind::Invalid));
    model.apply(&revert(second)).unwrap();
    assert_eq!(keys(&model, "base"), ["a", "b"]);
}

#[test]
fn what_changes_nothing_makes_no_version() {
    let mut model = store(&["base"]);
    let before = put(&mut model, "base", "a", 1);
    assert_eq!(run(&mut model, "base", Verb::Delete { key: "none".to_owned() }), before);
}

#[test]
fn a_fork_has_the_past_and_goes_on_alone() {
    let mut model = store(&["base"]);
    let first = put(&mut model, "base", "a", 1);
    put(&mut model, "base", "b", 1);
    fork(&mut model, "base", Some(first), "old").unwrap();
    fork(&mut model, "base", None, "now").unwrap();
    put(&mut model, "now", "c", 1);
    model.apply(&Op::DeleteWorld { world: "base".to_owned() }).unwrap();
    assert_eq!((keys(&model, "old"), keys(&model, "now").len()), (vec!["a".to_owned()], 3));
    assert_eq!(model.world("now").unwrap().at(first).unwrap().objects().len(), 1);
    assert_eq!(promote(&mut model, "now", None), Err(ErrorKind::NotFound));
    assert_eq!(fork(&mut model, "now", None, "old"), Err(ErrorKind::AlreadyExists));
    assert_eq!(fork(&mut model, "now", None, "X"), Err(ErrorKind::Invalid));
}

#[test]
fn a_second_promote_brings_what_came_since() {
    let mut model = store(&["base"]);
    put(&mut model, "base", "a", 1);
    fork(&mut model, "base", None, "fork").unwrap();
    put(&mut model, "fork", "a", 2);
    promote(&mut model, "fork", None).unwrap();
    // The base goes on from the fork's content; the fork did nothing to it since.
    put(&mut model, "base", "a", 3);
    put(&mut model, "fork", "b", 1);
    promote(&mut model, "fork", None).unwrap();
    assert_eq!(model.world("base").unwrap().tree().get("a").unwrap(), Content { tag: 3, len: 9 }.bytes());
    assert_eq!(keys(&model, "base"), ["a", "b"]);
    model.apply(&Op::Rebase { fork: "fork".to_owned(), policy: Policy::Fail }).unwrap();
    let flat = |world: &str| model.world(world).unwrap().tree().flat();
    assert_eq!(flat("fork"), flat("base"));
}

#[test]
fn a_reverted_promote_can_be_done_again() {
    let mut model = store(&["base"]);
    let before = put(&mut model, "base", "a", 1);
    fork(&mut model, "base", None, "fork").unwrap();
    put(&mut model, "fork", "b", 1);
    promote(&mut model, "fork", None).unwrap();
    model.apply(&Op::Revert { world: "base".to_owned(), at: before }).unwrap();
    assert_eq!(keys(&model, "base"), ["a"]);
    promote(&mut model, "fork", None).unwrap();
    assert_eq!(keys(&model, "base"), ["a", "b"]);
}

#[test]
fn a_change_of_the_base_that_the_fork_never_saw_is_not_settled_by_a_promote() {
    let mut model = store(&["base"]);
    put(&mut model, "base", "a", 1);
    fork(&mut model, "base", None, "fork").unwrap();
    put(&mut model, "base", "a", 2);
    put(&mut model, "fork", "b", 1);
    promote(&mut model, "fork", None).unwrap();
    put(&mut model, "fork", "a", 3);
    assert_eq!(promote(&mut model, "fork", None), Err(ErrorKind::Conflict));
}

#[test]
fn a_rebase_leaves_the_forks_own_work_to_be_promoted() {
    let mut model = store(&["base"]);
    fork(&mut model, "base", None, "fork").unwrap();
    put(&mut model, "fork", "mine", 1);
    put(&mut model, "base", "yours", 1);
    model.apply(&Op::Rebase { fork: "fork".to_owned(), policy: Policy::Fail }).unwrap();
    assert_eq!(keys(&model, "fork"), ["mine", "yours"]);
    promote(&mut model, "fork", None).unwrap();
    assert_eq!(keys(&model, "base"), ["mine", "yours"]);
}

#[test]
fn a_log_that_both_append_to_can_be_promoted_again_and_again() {
    let mut model = store(&["base"]);
    put(&mut model, "base", "log", 1);
    fork(&mut model, "base", None, "fork").unwrap();
    let add = |model: &mut Model, world: &str, tag| {
        let offset = model.world(world).unwrap().tree().get("log").unwrap().len() as u64;
        run(model, world, Verb::Write { path: "log".to_owned(), offset, content: Content { tag, len: 9 } });
    };
    for tag in [10, 20, 30] {
        add(&mut model, "base", tag);
        add(&mut model, "fork", tag + 1);
        promote(&mut model, "fork", None).unwrap();
    }
    let want: Vec<u8> =
        [1, 10, 11, 20, 21, 30, 31].into_iter().flat_map(|tag| Content { tag, len: 9 }.bytes()).collect();
    assert_eq!(model.world("base").unwrap().tree().get("log").unwrap(), want);
    model.apply(&Op::Rebase { fork: "fork".to_owned(), policy: Policy::Fail }).unwrap();
    assert_eq!(model.world("fork").unwrap().tree().get("log").unwrap(), want);
}

#[test]
fn a_part_is_promoted_alone() {
    let mut model = store(&["base"]);
    fork(&mut model, "base", None, "fork").unwrap();
    put(&mut model, "fork", "x/1", 1);
    put(&mut model, "fork", "y/1", 1);
    promote(&mut model, "fork", Some("x/")).unwrap();
    assert_eq!(keys(&model, "base"), ["x/1"]);
    run(&mut model, "base", Verb::Delete { key: "x/1".to_owned() });
    promote(&mut model, "fork", None).unwrap();
    assert_eq!(keys(&model, "base"), ["y/1"], "x/1 was settled by the first promote");
}

#[test]
fn a_conflict_applies_nothing() {
    let mut model = store(&["base"]);
    fork(&mut model, "base", None, "fork").unwrap();
    put(&mut model, "fork", "a", 1);
    put(&mut model, "fork", "z", 1);
    put(&mut model, "base", "a", 2);
    assert_eq!(promote(&mut model, "fork", None), Err(ErrorKind::Conflict));
    assert_eq!(keys(&model, "base"), ["a"]);
    assert_eq!(model.plan_promote("fork", Policy::Fail, None).unwrap().conflicts.len(), 1);
}

#[test]
fn diff_and_restore() {
    let mut model = store(&["base"]);
    put(&mut model, "base", "d/a", 1);
    let then = put(&mut model, "base", "d/b", 1);
    run(&mut model, "base", Verb::Delete { key: "d/a".to_owned() });
    put(&mut model, "base", "d/b", 2);
    let now = put(&mut model, "base", "c", 1);
    let changes = model.diff(("base", then), ("base", now)).unwrap();
    let want = [("c", Change::Added), ("d/a", Change::Deleted), ("d/b", Change::Changed)];
    assert_eq!(changes, BTreeMap::from(want.map(|(path, change)| (path.to_owned(), change))));
    let restore = |path: &str| Op::Restore { world: "base".to_owned(), path: path.to_owned(), at: then };
    assert_eq!(model.apply(&restore("c")), Err(ErrorKind::NotFound));
    model.apply(&restore("d")).unwrap();
    assert_eq!(keys(&model, "base"), ["c", "d/a", "d/b"]);
    assert_eq!(model.world("base").unwrap().tree().get("d/b").unwrap(), Content { tag: 1, len: 9 }.bytes());
}

#[test]
fn snapshots_name_versions_once() {
    let mut model = store(&["base"]);
    let version = put(&mut model, "base", "a", 1);
    let snapshot = Op::Snapshot { world: "base".to_owned(), name: "s".to_owned() };
    assert_eq!(model.apply(&snapshot).unwrap().version, version);
    assert_eq!(model.apply(&snapshot), Err(ErrorKind::AlreadyExists));
    assert_eq!(model.world("base").unwrap().snapshots()["s"], version);
}
