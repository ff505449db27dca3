//! The verbs about worlds and their history: documents, exit codes, idempotency.

use crate::bench::{Server, command, write};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn every_verb_prints_a_document() {
    let s = Server::start();
    let world = s.json(&["world", "create", "base"]);
    assert_eq!(world["name"], "base");
    assert!(world["id"].is_string() && world["version"].is_string());
    s.put("mw://base/dir/a.txt", "one\ntwo\n");
    assert_eq!(s.json(&["world", "list"])["worlds"][0]["name"], "base");
    assert_eq!(s.json(&["world", "show", "base"])["name"], "base");
    let snapshot = s.json(&["snapshot", "take", "base", "first"]);
    let version = snapshot["version"].as_str().unwrap().to_owned();
    assert!(version.len() >= 19);
    assert_eq!(s.json(&["snapshot", "list", "base"])["snapshots"][0]["label"], "first");
    let fork = s.json(&["fork", "base", "twig", "--ttl", "2h"]);
    assert_eq!(fork["parent"]["name"], "base");
    assert!(fork["expires"].is_string());
    s.put("mw://twig/dir/a.txt", "one\nTWO\n");
    s.put("mw://twig/b.txt", "new\n");
    let diff = s.json(&["diff", "base", "twig"]);
    let paths: Vec<_> = diff["changes"].as_array().unwrap().iter().map(|c| c["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["b.txt", "dir/a.txt"]);
    let patch = s.json(&["diff", "base", "twig", "--patch"]);
    assert!(patch["changes"][1]["patch"].as_str().unwrap().contains("-two\n+TWO\n"), "{patch}");
    assert!(s.ok(&["diff", "base", "twig", "--stat"]).contains("1 added, 1 changed"));
    assert!(s.ok(&["diff", "base", "twig", "--patch"]).contains("+++ b/dir/a.txt"));
    let log = s.json(&["log", "twig", "b.txt"]);
    assert!(log["entries"][0]["seq"].is_string(), "{log}");
    let dry = s.json(&["promote", "twig", "--dry-run"]);
    assert_eq!((dry["dry_run"].as_bool(), dry["changes"].as_array().unwrap().len()), (Some(true), 2));
    let promoted = s.json(&["promote", "twig", "-m", "better"]);
    assert_eq!(promoted["changes"], dry["changes"]);
    assert!(promoted["version"].is_string());
    assert_eq!(s.ok(&["cat", "mw://base/b.txt"]), "new\n");
    assert_eq!(s.ok(&["cat", &format!("mw://base@{version}/dir/a.txt")]), "one\ntwo\n");
    s.json(&["restore", &format!("base@{version}"), "dir/a.txt"]);
    assert_eq!(s.ok(&["cat", "mw://base/dir/a.txt"]), "one\ntwo\n");
    s.json(&["revert", "base", "first"]);
    assert_eq!(s.mw(&["cat", "mw://base/b.txt"]).code, 4);
    s.json(&["rebase", "twig"]);
    assert!(s.json(&["du", "base"])["files"].is_u64());
    assert!(s.json(&["status"])["store"].is_object());
    assert!(s.json(&["fsck"])["problems"].as_array().unwrap().is_empty());
    assert!(s.json(&["discard", "twig"])["bytes"].is_u64());
    assert!(s.json(&["gc"])["freed"].is_u64());
    let key = s.json(&["key", "create", "k", "--grant", "base:reader"]);
    assert!(key["secret"].is_string());
    assert!(s.json(&["key", "list"])["keys"].is_array());
    s.json(&["key", "delete", key["id"].as_str().unwrap()]);
    assert!(s.json(&["mounts"])["mounts"].as_array().unwrap().is_empty());
    assert!(s.json(&["schema"])["$defs"]["World"].is_object());
    s.json(&["snapshot", "delete", "base", &version]);
    assert_eq!(s.json(&["env"])["MW_ENDPOINT"], s.endpoint.as_str());
    assert!(s.json(&["world", "delete", "base", "--force"])["bytes"].is_u64());
}

#[test]
fn the_version_of_a_snapshot_stands_alone_on_its_line() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let text = s.ok(&["snapshot", "take", "base"]);
    let version = text.strip_suffix('\n').unwrap();
    assert!(version.len() == 19 && version.bytes().all(|b| b.is_ascii_digit()), "{text:?}");
    // Not a digit is lost on the way through JSON, and it can be forked at.
    assert_eq!(s.json(&["snapshot", "list", "base"])["snapshots"][0]["version"], version);
    s.ok(&["fork", "base", "then", "--at", version]);
}

#[test]
fn exit_codes() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let code = |args: &[&str]| s.mw(args).code;
    assert_eq!(code(&["world", "show", "nowhere"]), 4);
    assert_eq!(code(&["cat", "mw://base/nothing"]), 4);
    assert_eq!(code(&["world", "create", "base"]), 3);
    assert_eq!(code(&["no-such-verb"]), 2);
    assert_eq!(code(&["fork", "base"]), 2);
    assert_eq!(code(&["fork", "base", "f", "--ttl", "soon"]), 2);
    assert_eq!(code(&["cat", "base/nothing"]), 2);
    assert_eq!(code(&["--help"]), 0);
    assert_eq!(code(&["--version"]), 0);
    s.put("mw://base/f", "x");
    assert_eq!(code(&["world", "delete", "base"]), 1);
    assert_eq!(code(&["rm", "mw://base@1/f"]), 1);
    let usage = s.mw(&["fork", "base", "--json"]);
    assert_eq!(usage.code, 2);
    assert_eq!(serde_json::from_str::<Value>(&usage.err).unwrap()["error"]["kind"], "invalid");
}

#[test]
fn a_conflict_leaves_the_base_untouched_and_says_what_to_do() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/f", "base\n");
    s.ok(&["fork", "base", "twig"]);
    s.put("mw://base/f", "ours\n");
    s.put("mw://twig/f", "theirs\n");
    let done = s.mw(&["promote", "twig"]);
    assert_eq!(done.code, 3);
    assert!(done.err.contains("C f") && done.err.contains("--resolve"), "{}", done.err);
    assert_eq!(s.ok(&["cat", "mw://base/f"]), "ours\n");
    let done = s.mw(&["promote", "twig", "--json"]);
    assert_eq!(done.code, 3);
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap()["conflicts"][0]["kind"], "both-modified");
    assert_eq!(serde_json::from_str::<Value>(&done.err).unwrap()["error"]["kind"], "conflict");
    assert_eq!(s.mw(&["promote", "twig", "--dry-run"]).code, 3);
    let lines = write(s.path(), "lines", "# decided\ntheirs f\n");
    s.ok(&["promote", "twig", "--dry-run", "--resolve", lines.to_str().unwrap()]);
    let wrong = write(s.path(), "wrong", "mine f\n");
    assert_eq!(s.mw(&["promote", "twig", "--resolve", wrong.to_str().unwrap()]).code, 2);
    let json = write(s.path(), "json", &json!({"f": "theirs"}).to_string());
    s.ok(&["promote", "twig", "--resolve", json.to_str().unwrap()]);
    assert_eq!(s.ok(&["cat", "mw://base/f"]), "theirs\n");
}

/// C30: a create that is repeated with its idempotency key, also by twenty at once, makes one thing; with another request it is a conflict.
#[test]
fn a_repeated_create_makes_one_thing() {
    let s = Server::start();
    s.ok(&["world", "create", "base", "--idempotency-key", "w"]);
    s.ok(&["world", "create", "base", "--idempotency-key", "w"]);
    s.ok(&["world", "create", "other"]);
    let children: Vec<_> = (0..20)
        .map(|_| {
            let mut command = crate::bench::command(s.path());
            command.args(["fork", "base", "run-5", "--idempotency-key", "K", "--json"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut ids = std::collections::BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let fork: Value = serde_json::from_slice(&output.stdout).unwrap();
        ids.insert(fork["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 1);
    assert_eq!(s.mw(&["fork", "base", "run-5"]).code, 3);
    assert_eq!(s.mw(&["fork", "other", "run-5", "--idempotency-key", "K"]).code, 3);
    let take = || s.json(&["snapshot", "take", "base", "label", "--idempotency-key", "S"])["version"].clone();
    assert_eq!(take(), take());
    let key = || s.json(&["key", "create", "k", "--grant", "base:reader", "--idempotency-key", "A"]);
    assert_eq!(key(), key());
}

#[test]
fn names_and_numbers_out_of_range_are_refused_at_the_door() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let long = "a".repeat(64);
    for name in ["ab", "-ab", "Base", "a_b", "a..b", "1.2.3.4", "xn--a", "w@1", "a/b", "", &long] {
        let done = s.mw(&["world", "create", "--", name]);
        assert_eq!(done.code, 2, "{name:?}: {}", done.err);
        assert_eq!(s.mw(&["fork", "base", "--", name]).code, 2, "{name:?}");
    }
    assert_eq!(s.json(&["world", "list"])["worlds"].as_array().unwrap().len(), 1);
    for at in ["99999999999999999999", "-1", "2999-01-01T00:00:00Z"] {
        let done = s.mw(&["fork", "base", "later", &format!("--at={at}")]);
        assert!(matches!(done.code, 2 | 4), "{at}: {}", done.err);
    }
    assert_eq!(s.mw(&["log", "base", "-n", "0"]).code, 2);
    assert_eq!(s.mw(&["log", "base", "-n", "1", "--before", "x"]).code, 2);
    assert_eq!(s.mw(&["snapshot", "delete", "base", "x"]).code, 2);
    assert_eq!(s.mw(&["key", "create", "k", "--grant", "base:king"]).code, 2);
    assert_eq!(s.mw(&["world", "create", "fine", "--idempotency-key", &"k".repeat(256)]).code, 2);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let s = Server::start();
    let mut child = crate::bench::command(s.path())
        .arg("schema")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_promote_shows_how_far_it_is_when_asked_and_is_the_same_otherwise() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/a", "1");
    s.ok(&["fork", "base", "twig"]);
    s.put("mw://twig/a", "2");
    let quiet = s.mw(&["promote", "twig", "--dry-run"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""), "standard error is no terminal");
    let told = s.mw(&["promote", "twig", "--dry-run", "--progress"]);
    assert_eq!((told.code, &told.out), (0, &quiet.out));
    assert!(told.err.contains("looking for changes\n"), "{}", told.err);
    let document = s.json(&["promote", "twig", "--dry-run"]);
    assert_eq!(s.json(&["promote", "twig", "--dry-run", "--progress"]), document);
    // Refused before it begins, and with the same exit code.
    assert_eq!(s.mw(&["promote", "nowhere", "--progress"]).code, 4);
    assert_eq!(s.mw(&["promote", "base", "--progress"]).code, 2);
}

#[test]
fn an_interrupted_promote_says_which_it_was() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let tree = s.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    for n in 0..3_000 {
        std::fs::write(tree.join(format!("f{n}")), format!("{n}")).unwrap();
    }
    let mut outcomes = [0, 0];
    for round in 0..6u64 {
        let fork = format!("fork-{round}");
        s.ok(&["fork", "base", &fork]);
        s.ok(&["put", tree.to_str().unwrap(), &format!("mw://{fork}/round-{round}")]);
        s.put("mw://base/changed", &format!("{round}"));
        let mut child = command(s.path())
            .args(["promote", &fork, "--progress"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        err.read_line(&mut told).unwrap();
        // From the first look on until late, so that some are stopped and some are not.
        std::thread::sleep(Duration::from_millis(round * round * 40));
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        err.read_to_string(&mut told).unwrap();
        let code = child.wait().unwrap().code();
        let there = s.mw(&["cat", &format!("mw://base/round-{round}/tree/f7")]).code == 0
            || s.mw(&["cat", &format!("mw://base/round-{round}/f7")]).code == 0;
        if there {
            assert_eq!(code, Some(0), "it is in the base: {told}");
        } else {
            assert_eq!(code, Some(1), "it is not in the base: {told}");
            assert!(told.contains("nothing was applied, the base is untouched"), "{told}");
        }
        outcomes[usize::from(there)] += 1;
    }
    assert!(outcomes[0] > 0, "none was stopped: {outcomes:?}");
}
