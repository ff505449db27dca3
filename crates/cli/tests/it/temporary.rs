//! Temporary keys at every door of the real server, and a new secret for the root key while it runs.

use crate::bench::{Done, Server, command};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

fn server() -> Server {
    let s = Server::start();
    for world in ["own", "other"] {
        s.ok(&["world", "create", world]);
        s.put(&format!("mw://{world}/docs/a"), "kept");
        s.put(&format!("mw://{world}/top"), "kept");
    }
    s
}

fn temporary(s: &Server, grant: &str, more: &[&str]) -> Value {
    s.json(&[&["key", "temporary", "--grant", grant], more].concat())
}

/// Calls a tool through `mw mcp`; none when the command ended with a refusal before it took a message.
fn tool(s: &Server, key: &Value, name: &str, arguments: &Value) -> Option<Value> {
    let mut mcp = command(s.path());
    mcp.env("MW_ENDPOINT", &s.endpoint)
        .env("AWS_ACCESS_KEY_ID", key["id"].as_str().unwrap())
        .env("AWS_SECRET_ACCESS_KEY", key["secret"].as_str().unwrap())
        .args(["mcp", "--world", "own"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(token) = key["token"].as_str() {
        mcp.env("AWS_SESSION_TOKEN", token);
    }
    let mut child = mcp.spawn().unwrap();
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    // A command that was refused reads nothing.
    let _ = writeln!(child.stdin.take().unwrap(), "{message}");
    let done = child.wait_with_output().unwrap();
    done.status.success().then(|| serde_json::from_slice(&done.stdout).unwrap())
}

/// Asks for a URL as anybody would.
fn fetch(s: &Server, url: &str) -> (u16, String) {
    use std::io::Read;
    let authority = s.endpoint.strip_prefix("http://").unwrap();
    let target = url.strip_prefix(&s.endpoint).unwrap();
    let mut stream = std::net::TcpStream::connect(authority).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn a_temporary_key_works_at_every_door_with_its_token_alone() {
    let s = server();
    let key = temporary(&s, "own:editor,prefix=docs/", &[]);
    let other = temporary(&s, "own:editor", &[]);
    assert_eq!(s.with_key(&key, &["cat", "mw://own/docs/a"]).out, "kept");
    assert_eq!(s.with_key(&key, &["cat", "mw://own/top"]).code, 5, "outside its prefix");
    assert_eq!(s.with_key(&key, &["cat", "mw://other/docs/a"]).code, 5);
    assert_eq!(s.with_key(&key, &["cp", "mw://own/docs/a", "mw://own/docs/b"]).code, 0);

    let read = |key: &Value| tool(&s, key, "read", &json!({"path": "docs/a"}));
    assert_eq!(read(&key).unwrap()["result"]["structuredContent"]["text"], "kept");
    let shared = tool(&s, &key, "share", &json!({"path": "docs/a", "expires_seconds": 60})).unwrap();
    let url = shared["result"]["structuredContent"]["url"].as_str().unwrap().to_owned();
    assert!(url.contains("X-Amz-Security-Token="), "{url}");
    assert_eq!(fetch(&s, &url), (200, "kept".to_owned()));
    assert_eq!(fetch(&s, &url.replace("docs/a", "docs/b")).0, 403, "one file and no other");
    let start = url.find("X-Amz-Security-Token=").unwrap();
    let end = start + url[start..].find('&').unwrap();
    assert!(fetch(&s, &format!("{}{}", &url[..start], &url[end + 1..])).0 >= 400, "without the token");

    // Without its token, with another's, with a changed one; and a lasting key with a token that it does not have.
    let lasting = s.json(&["key", "create", "k", "--grant", "own:editor"]);
    let with = |key: &Value, token: Value| {
        let mut key = key.clone();
        key["token"] = token;
        key
    };
    let text = key["token"].as_str().unwrap();
    for wrong in [
        with(&key, Value::Null),
        with(&key, other["token"].clone()),
        with(&key, text[1..].into()),
        with(&lasting, key["token"].clone()),
    ] {
        let done = s.with_key(&wrong, &["cat", "mw://own/docs/a"]);
        assert_eq!((done.code, done.out.as_str()), (5, ""), "{}", done.err);
        assert!(done.err.contains("session token"), "{}", done.err);
        assert_eq!(read(&wrong), None, "mw mcp");
    }
    // It makes no keys and no worlds.
    for verb in [&["key", "create", "x", "--grant", "own:reader"][..], &["key", "temporary", "--grant", "own:reader"]] {
        assert_eq!(s.with_key(&other, verb).code, 5, "{verb:?}");
    }
    s.ok(&["key", "delete", key["id"].as_str().unwrap()]);
    assert_eq!(s.with_key(&key, &["cat", "mw://own/docs/a"]).code, 5);
    assert_eq!(fetch(&s, &url).0, 403, "a shared URL dies with its key");
}

#[test]
fn a_temporary_key_dies_with_its_time_and_with_the_key_it_acts_for() {
    let s = server();
    let parent = s.json(&["key", "create", "p", "--grant", "own:reader"]);
    let make = |ttl: &str| -> Value {
        let done = s.with_key(&parent, &["key", "temporary", "--grant", "*:admin", "--ttl", ttl, "--json"]);
        assert_eq!(done.code, 0, "{}", done.err);
        serde_json::from_str(&done.out).unwrap()
    };
    let (short, long) = (make("1s"), make("1h"));
    assert_eq!(s.with_key(&long, &["cat", "mw://own/top"]).out, "kept");
    assert_eq!(s.with_key(&long, &["rm", "mw://own/top"]).code, 5, "never more than the key that it acts for");
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let expired = s.with_key(&short, &["cat", "mw://own/top"]);
    assert_eq!(expired.code, 5, "{}", expired.err);
    assert_eq!(tool(&s, &short, "stat", &json!({})), None);
    s.ok(&["key", "rotate", parent["id"].as_str().unwrap()]);
    assert_eq!(s.with_key(&long, &["cat", "mw://own/top"]).code, 5);
    for (args, wrong) in [
        (&["--ttl", "0s"][..], "own:reader"),
        (&["--ttl", "37h"], "own:reader"),
        (&["--name", "a b"], "own:reader"),
        (&[], "own:boss"),
        (&[], "own:reader,verbs=fly"),
    ] {
        let done = s.mw(&[&["key", "temporary", "--grant", wrong], args].concat());
        assert_eq!(done.code, 2, "{args:?} {wrong}: {}", done.err);
    }
    assert_eq!(s.mw(&["key", "temporary"]).code, 2, "without bounds it could do nothing");
    assert_eq!(s.mw(&["key", "temporary", "--grant", "none:reader"]).code, 4);
}

#[test]
fn env_prints_the_token_and_takes_back_one_that_is_of_another_key() {
    let s = server();
    let key = temporary(&s, "own:reader", &[]);
    let token = key["token"].as_str().unwrap();
    let text = s.with_key(&key, &["env"]).out;
    assert!(text.contains(&format!("export AWS_SESSION_TOKEN={token}\n")), "{text}");
    let exported = s.ok(&["key", "temporary", "--grant", "own:reader", "--export"]);
    for env in [text, exported] {
        let script = format!("{env}exec \"$0\" cat mw://own/top");
        let done = Done::of(std::process::Command::new("sh").args(["-c", &script, crate::bench::MW]));
        assert_eq!((done.code, done.out.as_str()), (0, "kept"), "{}", done.err);
    }
    let stale = Done::of(command(s.path()).args(["env"]).env("AWS_SESSION_TOKEN", token));
    assert!(stale.out.contains("unset AWS_SESSION_TOKEN\n"), "{}", stale.out);
    assert!(!s.ok(&["env"]).contains("AWS_SESSION_TOKEN"));
}

fn root(s: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(s.join("root-key.json")).unwrap()).unwrap()
}

#[test]
fn the_root_key_is_rotated_while_the_server_runs() {
    let s = server();
    let old = root(s.path());
    let id = old["id"].as_str().unwrap();
    let temporary = temporary(&s, "own:reader", &[]);
    let almost = s.json(&["key", "create", "a", "--grant", "*:admin"]);
    assert_eq!(s.with_key(&almost, &["key", "rotate", id]).code, 5, "who could, would be the root key afterwards");
    assert_eq!(root(s.path()), old);
    let fresh = s.json(&["key", "rotate", id]);
    assert_ne!(fresh["secret"], old["secret"]);
    assert_eq!(root(s.path()), fresh, "the file has it already");
    assert_eq!(s.ok(&["cat", "mw://own/top"]), "kept", "so that commands beside the directory go on");
    assert_eq!(s.with_key(&fresh, &["status"]).code, 0);
    assert_eq!(s.with_key(&old, &["status"]).code, 5, "the old secret is dead at once");
    assert_eq!(s.with_key(&temporary, &["cat", "mw://own/top"]).code, 5, "and what acted for it");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(s.path().join("root-key.json")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let s = Server::on(s.stop(), &[]);
    assert_eq!(root(s.path()), fresh);
    assert_eq!(s.with_key(&fresh, &["status"]).code, 0);
}

/// A long-lived `mw mcp` on the directory's own key goes on under its new secret.
#[test]
fn a_command_that_stays_reads_the_new_secret() {
    let s = server();
    let mut mcp = command(s.path());
    mcp.args(["mcp", "--world", "own"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = mcp.spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut ask = |id: u64| -> Value {
        let message =
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "stat", "arguments": {}}});
        writeln!(to, "{message}").unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut from, &mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    assert_eq!(ask(1)["result"]["structuredContent"]["kind"], "directory");
    s.json(&["key", "rotate", root(s.path())["id"].as_str().unwrap()]);
    assert_eq!(ask(2)["result"]["structuredContent"]["kind"], "directory");
    drop(to);
    assert!(child.wait().unwrap().success());
}

/// Killed at any moment of a rotation, a server starts with a file that says what the store has, and one secret alone is alive.
#[test]
fn a_rotation_that_is_killed_leaves_one_root_key() {
    let mut s = Server::start();
    for round in 0..8u64 {
        let before = root(s.path());
        let mut rotate = command(s.path());
        rotate.args(["key", "rotate", before["id"].as_str().unwrap(), "--json"]).env("MW_ENDPOINT", &s.endpoint);
        rotate.env("AWS_ACCESS_KEY_ID", before["id"].as_str().unwrap());
        rotate.env("AWS_SECRET_ACCESS_KEY", before["secret"].as_str().unwrap());
        let child = rotate.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2 * round));
        let dir = s.kill();
        let done = child.wait_with_output().unwrap();
        s = Server::on(dir, &[]);
        let after = root(s.path());
        assert_eq!(s.with_key(&after, &["status"]).code, 0, "round {round}");
        if done.status.success() {
            assert_eq!(serde_json::from_slice::<Value>(&done.stdout).unwrap(), after, "round {round}");
        }
        assert_eq!(s.with_key(&before, &["status"]).code, if before == after { 0 } else { 5 }, "round {round}");
        let left: Vec<_> = std::fs::read_dir(s.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".root-key")), "{left:?}");
    }
}
