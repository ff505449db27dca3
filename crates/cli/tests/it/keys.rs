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
    for verb in [&["status"][..], &["fsck"], &["gc"], &["mounts"], &["unmount", "/mnt"], &["key", "rotate", id]] {
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
    let text = s.with_key(&key, &["env"]).out;
    assert!(text.contains(key["secret"].as_str().unwrap()));
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

/// Returns the files of a directory in which some bytes are found.
fn holding(dir: &std::path::Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(at) = dirs.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if std::fs::read(&path).unwrap().windows(bytes.len()).any(|w| w == bytes) {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found
}

#[test]
fn no_secret_lies_readable_in_the_directory() {
    let s = Server::start();
    s.ok(&["world", "create", "own"]);
    let key = s.json(&["key", "create", "k", "--grant", "own:editor"]);
    let fresh = s.json(&["key", "rotate", key["id"].as_str().unwrap()]);
    assert_ne!(key["secret"], fresh["secret"]);
    assert_eq!(s.with_key(&key, &["world", "show", "own"]).code, 5, "the old secret is dead");
    assert_eq!(s.with_key(&fresh, &["world", "show", "own"]).code, 0);
    let root: Value = serde_json::from_slice(&std::fs::read(s.path().join("root-key.json")).unwrap()).unwrap();
    for secret in [&key["secret"], &fresh["secret"]] {
        assert_eq!(holding(s.path(), secret.as_str().unwrap().as_bytes()), Vec::<String>::new());
    }
    assert_eq!(holding(s.path(), root["secret"].as_str().unwrap().as_bytes()), ["root-key.json"]);
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(s.path().join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("sealing-key"), mode("root-key.json")), (0o600, 0o600));
    let sealing = std::fs::read_to_string(s.path().join("sealing-key")).unwrap();
    assert_eq!(holding(s.path(), sealing.trim().as_bytes()), ["sealing-key"]);
}

/// The directory of a store of an older format, with the keys that it had.
fn of_format(version: u32) -> tempfile::TempDir {
    let dir = crate::bench::temp();
    let archive = format!("{}/tests/fixtures/format-{version}.tar.gz", env!("CARGO_MANIFEST_DIR"));
    let done = std::process::Command::new("tar").args(["-xzf", &archive, "-C"]).arg(dir.path()).status().unwrap();
    assert!(done.success());
    dir
}

fn of_format_one() -> tempfile::TempDir {
    of_format(1)
}

const OLD_ROOT: &str = r#"{"id":"mwkis5ojjqlehvqmgrzv","secret":"hmzptcewhxgvuwzeck47ilixejjwhkqsn4hzaktl"}"#;
const OLD_EDITOR: &str = r#"{"id":"mwkfpi7qiij7lemoyr3i","secret":"ojluno6nz35b7rcndoxi5faqiemx6qorzmfmqetw"}"#;

#[test]
fn a_store_of_format_one_is_sealed_and_its_keys_live_on() {
    let dir = of_format_one();
    let editor: Value = serde_json::from_str(OLD_EDITOR).unwrap();
    let secret = editor["secret"].as_str().unwrap().as_bytes();
    assert!(!holding(dir.path(), secret).is_empty(), "the old store had it readable");
    let s = Server::on(dir, &[]);
    assert_eq!(s.with_key(&editor, &["cat", "mw://base/notes.txt"]).out, "from format one\n");
    assert_eq!(s.with_key(&editor, &["rm", "mw://base/notes.txt"]).code, 0, "its grant is the same");
    let root: Value = serde_json::from_slice(&std::fs::read(s.path().join("root-key.json")).unwrap()).unwrap();
    assert_eq!(root, serde_json::from_str::<Value>(OLD_ROOT).unwrap());
    assert_eq!(holding(s.path(), secret), Vec::<String>::new());
    assert_eq!(std::fs::read_to_string(s.path().join("format")).unwrap(), "manyworlds 3\n");
    assert_eq!(s.json(&["fsck"])["problems"].as_array().map(Vec::len), Some(0));
}

/// Content of format 2, with a record for each of its pieces: what was put, and what was written and then changed through a mount.
#[test]
fn what_a_store_of_format_two_holds_is_read_copied_and_changed() {
    let s = Server::on(of_format(2), &[]);
    let mut lines = (0..4000).map(|i| format!("{i:07} {}\n", "x".repeat(1000))).collect::<String>();
    let mut written = (0..1000).map(|i| format!("{i:07} {}\n", "y".repeat(1000))).collect::<String>();
    written.replace_range(300_000..300_020, "in the middle of it\n");
    let same = |path: &str, content: &str| assert!(s.ok(&["cat", path]) == content, "{path}");
    same("mw://base/big.txt", &lines);
    same("mw://base/mount.txt", &written);
    s.ok(&["cp", "mw://base/mount.txt", "mw://base/copy.txt"]);
    same("mw://base/copy.txt", &written);
    s.ok(&["fork", "base", "fork"]);
    let changed = crate::bench::temp();
    let local = changed.path().join("big.txt");
    lines.insert_str(2_000_000, "another line\n");
    std::fs::write(&local, &lines).unwrap();
    s.ok(&["put", local.to_str().unwrap(), "mw://fork/big.txt"]);
    s.ok(&["promote", "fork"]);
    same("mw://base/big.txt", &lines);
    assert_eq!(std::fs::read_to_string(s.path().join("format")).unwrap(), "manyworlds 3\n");
    assert_eq!(s.json(&["fsck"])["problems"].as_array().map(Vec::len), Some(0));
}

/// Whatever an upgrade that broke off left behind, the next start goes on from.
#[test]
fn an_upgrade_that_broke_off_is_finished() {
    let broken: [(&str, fn(&std::path::Path)); 3] = [
        ("while it copied", |dir| std::fs::create_dir(dir.join("meta.new")).unwrap()),
        ("between the renames", |dir| {
            // What the copy would have been, made by an upgrade of its own.
            let other = Server::on(of_format_one(), &[]).stop();
            std::fs::copy(other.path().join("sealing-key"), dir.join("sealing-key")).unwrap();
            std::fs::rename(other.path().join("meta"), dir.join("meta.new")).unwrap();
            std::fs::rename(dir.join("meta"), dir.join("meta.old")).unwrap();
        }),
        ("before the old one was removed", |dir| {
            let other = Server::on(of_format_one(), &[]).stop();
            std::fs::copy(other.path().join("sealing-key"), dir.join("sealing-key")).unwrap();
            std::fs::rename(dir.join("meta"), dir.join("meta.old")).unwrap();
            std::fs::rename(other.path().join("meta"), dir.join("meta")).unwrap();
        }),
    ];
    let editor: Value = serde_json::from_str(OLD_EDITOR).unwrap();
    for (when, leave) in broken {
        let dir = of_format_one();
        leave(dir.path());
        let s = Server::on(dir, &[]);
        assert_eq!(s.with_key(&editor, &["cat", "mw://base/notes.txt"]).out, "from format one\n", "{when}");
        assert!(!s.path().join("meta.old").exists() && !s.path().join("meta.new").exists(), "{when}");
        assert_eq!(holding(s.path(), editor["secret"].as_str().unwrap().as_bytes()), Vec::<String>::new(), "{when}");
    }
}

#[test]
fn without_its_sealing_key_a_store_does_not_start() {
    let dir = Server::start().stop();
    let kept = std::fs::read(dir.path().join("sealing-key")).unwrap();
    for (what, spoil) in
        [("missing", None), ("damaged", Some("x".to_owned())), ("does not open", Some("00".repeat(32)))]
    {
        match spoil {
            None => std::fs::remove_file(dir.path().join("sealing-key")).unwrap(),
            Some(text) => std::fs::write(dir.path().join("sealing-key"), text).unwrap(),
        }
        let done = Done::of(crate::bench::command(dir.path()).args(["serve", "--listen", "127.0.0.1:0"]));
        assert_ne!(done.code, 0);
        assert!(done.err.contains("sealing-key") && done.err.contains(what), "{what}: {}", done.err);
    }
    std::fs::write(dir.path().join("sealing-key"), kept).unwrap();
    Server::on(dir, &[]).ok(&["world", "list"]);
}

#[test]
fn grants_can_be_narrowed_on_the_command_line() {
    let s = Server::start();
    s.ok(&["world", "create", "own"]);
    for path in ["docs/a", "top"] {
        s.put(&format!("mw://own/{path}"), path);
    }
    let key = s.json(&["key", "create", "k", "--grant", "own:editor,verbs=get+list+put,prefix=docs/", "--forks", "3"]);
    assert_eq!(s.with_key(&key, &["cat", "mw://own/docs/a"]).out, "docs/a");
    assert_eq!(s.with_key(&key, &["cat", "mw://own/top"]).code, 5);
    assert_eq!(s.with_key(&key, &["rm", "mw://own/docs/a"]).code, 5);
    assert_eq!(s.with_key(&key, &["log", "own"]).code, 5);
    let listed = s.ok(&["key", "list"]);
    assert!(listed.contains("own:editor,verbs=get+list+put,prefix=docs/") && listed.contains("forks=3"), "{listed}");
    for wrong in ["own:editor,prefix=", "own:editor,verbs=fly", "own:boss", "own"] {
        assert_eq!(s.mw(&["key", "create", "k", "--grant", wrong]).code, 2, "{wrong}");
    }
    let policy = s.path().join("policy.json");
    let text = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::own/top"}}"#;
    std::fs::write(&policy, text).unwrap();
    let key = s.json(&["key", "create", "k", "--policy", policy.to_str().unwrap()]);
    assert_eq!(s.with_key(&key, &["cat", "mw://own/top"]).out, "top");
    assert_eq!(s.with_key(&key, &["cat", "mw://own/docs/a"]).code, 5);
    std::fs::write(&policy, "{}").unwrap();
    assert_eq!(s.mw(&["key", "create", "k", "--policy", policy.to_str().unwrap()]).code, 2);
}
