//! A scoped key reaches its world and nothing else: one answer for a world that exists and for one that does not, from every verb.

use crate::bench::{Done, Server, write};
use serde_json::Value;

/// Every verb that names a world, with `WORLD` where the name stands and `OWN` where the key's own world does.
const VERBS: &[&[&str]] = &[
    &["world", "show", "WORLD"],
    &["world", "delete", "WORLD"],
    &["world", "delete", "WORLD", "--force"],
    &["world", "create", "WORLD"],
    &["fork", "WORLD", "new-fork"],
    &["discard", "WORLD"],
    &["snapshot", "take", "WORLD"],
    &["snapshot", "list", "WORLD"],
    &["snapshot", "delete", "WORLD", "1700000000000000000"],
    &["diff", "WORLD", "OWN"],
    &["diff", "OWN", "WORLD"],
    &["diff", "OWN", "WORLD@1700000000000000000"],
    &["log", "WORLD"],
    &["promote", "WORLD"],
    &["rebase", "WORLD"],
    &["revert", "WORLD", "1700000000000000000"],
    &["restore", "WORLD@1700000000000000000", "f"],
    &["key", "create", "k", "--grant", "WORLD:reader"],
    &["run", "WORLD", "--", "true"],
    &["exec", "WORLD", "--", "true"],
    &["ls", "mw://WORLD/"],
    &["ls", "mw://WORLD/", "--hidden"],
    &["cat", "mw://WORLD/f"],
    &["cat", "mw://WORLD@1700000000000000000/f"],
    &["get", "mw://WORLD/f", "DIR/got"],
    &["put", "DIR/file", "mw://WORLD/f"],
    &["rm", "mw://WORLD/f"],
    &["cp", "mw://WORLD/f", "mw://OWN/f"],
    &["cp", "mw://OWN/f", "mw://WORLD/f"],
    &["mv", "mw://OWN/f", "mw://WORLD/f"],
    &["du", "WORLD"],
    &["mount", "WORLD", "DIR/mount"],
];

fn call(s: &Server, key: &Value, verb: &[&str], world: &str) -> Done {
    let dir = s.path().to_str().unwrap();
    let args: Vec<String> =
        verb.iter().map(|arg| arg.replace("WORLD", world).replace("OWN", "own").replace("DIR", dir)).collect();
    let done = s.with_key(key, &args.iter().map(String::as_str).collect::<Vec<_>>());
    // What differs may differ only by the name that was asked for.
    Done { out: done.out.replace(world, "WORLD"), err: done.err.replace(world, "WORLD"), ..done }
}

#[test]
fn another_world_is_refused_alike_whether_it_exists_or_not() {
    let s = Server::start();
    s.ok(&["world", "create", "own"]);
    s.ok(&["world", "create", "secret-1"]);
    s.put("mw://own/f", "mine");
    s.put("mw://secret-1/f", "not yours");
    write(s.path(), "file", "content");
    std::fs::create_dir(s.path().join("mount")).unwrap();
    let key = s.json(&["key", "create", "scoped", "--grant", "own:admin"]);
    for verb in VERBS {
        let there = call(&s, &key, verb, "secret-1");
        let absent = call(&s, &key, verb, "secret-2");
        assert_eq!(there.code, 5, "{verb:?}: {} {}", there.out, there.err);
        assert_eq!(there, absent, "{verb:?}");
        assert_eq!(there.out, "", "{verb:?}");
    }
    assert_eq!(s.ok(&["cat", "mw://secret-1/f"]), "not yours");
    assert!(!s.path().join("got").exists());
    let seen = s.with_key(&key, &["world", "list", "--json"]);
    let seen: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(seen["worlds"].as_array().unwrap().len(), 1);
}

#[test]
fn what_concerns_the_whole_store_is_for_the_root_key() {
    let s = Server::start();
    s.ok(&["world", "create", "own"]);
    let key = s.json(&["key", "create", "scoped", "--grant", "own:admin"]);
    let root: Value = serde_json::from_slice(&std::fs::read(s.path().join("root-key.json")).unwrap()).unwrap();
    let id = root["id"].as_str().unwrap();
    for verb in [&["status"][..], &["fsck"], &["gc"], &["mounts"], &["unmount", "/mnt"], &["env", "--key", id]] {
        assert_eq!(s.with_key(&key, verb).code, 5, "{verb:?}");
    }
}

#[test]
fn roles_bound_what_a_key_may_do() {
    let s = Server::start();
    s.ok(&["world", "create", "own"]);
    s.put("mw://own/f", "x");
    let file = write(s.path(), "file", "content");
    let file = file.to_str().unwrap();
    let reader = s.json(&["key", "create", "r", "--grant", "own:reader"]);
    let editor = s.json(&["key", "create", "e", "--grant", "own:editor"]);
    for (args, of_reader, of_editor) in [
        (&["cat", "mw://own/f"][..], 0, 0),
        (&["ls", "mw://own"], 0, 0),
        (&["put", file, "mw://own/g"], 5, 0),
        (&["cp", "mw://own/f", "mw://own/h"], 5, 0),
        (&["mv", "mw://own/f", "mw://own/f"], 5, 0),
        (&["snapshot", "take", "own"], 5, 0),
        (&["rm", "mw://own/f"], 5, 0),
        (&["fork", "own", "twig"], 5, 5),
        (&["key", "create", "k", "--grant", "own:reader"], 5, 5),
        (&["run", "own", "--", "true"], 5, 5),
    ] {
        assert_eq!(s.with_key(&reader, args).code, of_reader, "reader {args:?}");
        let done = s.with_key(&editor, args);
        assert_eq!(done.code, of_editor, "editor {args:?}: {}", done.err);
    }
}

#[test]
fn a_dead_key_and_a_wrong_secret_are_refused_alike() {
    let s = Server::start();
    s.ok(&["world", "create", "own"]);
    let key = s.json(&["key", "create", "k", "--grant", "own:admin"]);
    let mut wrong = key.clone();
    wrong["secret"] = "wrong".into();
    let mut unknown = key.clone();
    unknown["id"] = "MWUNKNOWN".into();
    assert_eq!(s.with_key(&key, &["world", "show", "own"]).code, 0);
    s.ok(&["key", "delete", key["id"].as_str().unwrap()]);
    let answers = [&key, &wrong, &unknown].map(|key| s.with_key(key, &["world", "show", "own"]));
    assert_eq!(answers[0].code, 5);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

#[test]
fn env_points_clients_at_the_server() {
    let s = Server::start();
    s.ok(&["world", "create", "own"]);
    let key = s.json(&["key", "create", "k", "--grant", "own:reader"]);
    let text = s.ok(&["env", "--key", key["id"].as_str().unwrap()]);
    for name in
        ["AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_IAM", "TIGRIS_ENDPOINT"]
    {
        assert!(text.lines().any(|line| line.starts_with(&format!("export {name}="))), "{name} in {text}");
    }
    for line in ["export AWS_REGION=auto", "export AWS_DEFAULT_REGION=auto", "export TIGRIS_FORCE_PATH_STYLE=true"] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    let script = format!("{text}exec \"$0\" cat mw://own/f");
    s.put("mw://own/f", "seen");
    let done = Done::of(std::process::Command::new("sh").args(["-c", &script, crate::bench::MW]));
    assert_eq!((done.code, done.out.as_str()), (0, "seen"), "{}", done.err);
}
