//! The server: its lock, its format, its start in the background, its end.

use crate::bench::{Background, Done, Server, command, temp};
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_second_server_is_refused_and_told_who_has_it() {
    let server = Server::start();
    let done = server.mw(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(done.code, 1);
    let lock = std::fs::read_to_string(server.path().join("lock")).unwrap();
    assert!(done.err.contains(&format!("pid {}", lock.trim())), "{}", done.err);
    server.ok(&["world", "list"]);
}

#[test]
fn a_directory_of_a_newer_format_is_refused() {
    let dir = temp();
    std::fs::write(dir.path().join("format"), "manyworlds 99\n").unwrap();
    let done = Done::of(command(dir.path()).args(["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(done.code, 1);
    assert!(done.err.contains("format 99") && done.err.contains("newer mw"), "{}", done.err);
    assert!(!dir.path().join("meta").exists());
    // A command that would start a server says why none started.
    let done = Done::of(command(dir.path()).args(["world", "list"]));
    assert_eq!(done.code, 6);
    assert!(done.err.contains("format 99"), "{}", done.err);
}

#[test]
fn the_directory_tells_clients_what_they_need_and_others_nothing() {
    let server = Server::start();
    let key = server.path().join("root-key.json");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let key: serde_json::Value = serde_json::from_slice(&std::fs::read(&key).unwrap()).unwrap();
    assert!(key["id"].is_string() && key["secret"].is_string());
    let said: serde_json::Value =
        serde_json::from_slice(&std::fs::read(server.path().join("server.json")).unwrap()).unwrap();
    assert_eq!(said["endpoint"], server.endpoint.as_str());
    let key_again = {
        let dir = server.stop();
        assert!(!dir.path().join("server.json").exists());
        Server::on(dir, &[])
    };
    let again: serde_json::Value =
        serde_json::from_slice(&std::fs::read(key_again.path().join("root-key.json")).unwrap()).unwrap();
    assert_eq!(again, key);
}

/// C11: what was acknowledged is there after a kill, whole. (A hundred kills in the middle of writing: `tests/real/kill9.sh`.)
#[test]
fn what_was_acknowledged_survives_a_kill_and_a_clean_end() {
    let server = Server::start();
    server.ok(&["world", "create", "kept"]);
    server.put("mw://kept/f", "one");
    let server = Server::on(server.kill(), &[]);
    assert_eq!(server.ok(&["cat", "mw://kept/f"]), "one");
    server.put("mw://kept/g", "two");
    let server = Server::on(server.stop(), &[]);
    assert_eq!(server.ok(&["cat", "mw://kept/g"]), "two");
    server.ok(&["fsck"]);
}

#[test]
fn eight_commands_at_once_start_one_server() {
    let background = Background(temp());
    let dir = background.0.path();
    let children: Vec<_> = (0..8)
        .map(|i| {
            let mut command = command(dir);
            command.args(["world", "create", &format!("world-{i}"), "--json"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let worlds = Done::of(command(dir).args(["world", "list", "--json"]));
    let worlds: serde_json::Value = serde_json::from_str(&worlds.out).unwrap();
    assert_eq!(worlds["worlds"].as_array().unwrap().len(), 8);
    // One life of a server, so one instance: every command found the same.
    let log = std::fs::read_to_string(dir.join("server.log")).unwrap();
    assert_eq!(log.matches("ready http://").count(), 1, "{log}");
}

#[test]
fn a_server_that_was_killed_is_started_again() {
    let background = Background(temp());
    let dir = background.0.path();
    assert_eq!(Done::of(command(dir).args(["world", "create", "one"])).code, 0);
    let pid = rustix::process::Pid::from_raw(background.pid().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let done = Done::of(command(dir).args(["world", "show", "one"]));
    assert_eq!(done.code, 0, "{}", done.err);
}

#[test]
fn a_server_without_anything_to_do_leaves() {
    let dir = temp();
    let mut child = command(dir.path())
        .args(["serve", "--listen", "127.0.0.1:0", "--idle-exit", "1"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!dir.path().join("server.json").exists());
}

#[test]
fn too_little_memory_for_a_server_is_refused() {
    let dir = temp();
    for (memory, why) in [("63M", "is too little"), ("lots", "is no size"), ("99999999999G", "is no size")] {
        let done = Done::of(command(dir.path()).args(["serve", "--listen", "127.0.0.1:0", "--memory", memory]));
        assert_eq!(done.code, 2, "{memory}: {}", done.err);
        assert!(done.err.contains(why), "{memory}: {}", done.err);
    }
    let done = Done::of(command(dir.path()).env("MW_MEMORY", "1M").args(["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(done.code, 2, "{}", done.err);
    let mut child = command(dir.path())
        .args(["serve", "--listen", "127.0.0.1:0", "--idle-exit", "1", "--memory", "64M"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_endpoint_where_nobody_answers_is_told_apart() {
    let dir = temp();
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let with = |endpoint: &str, args: &[&str]| {
        let mut command = command(dir.path());
        command.env("MW_ENDPOINT", endpoint).env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
        Done::of(command.args(args))
    };
    let done = with(&format!("http://{gone}"), &["world", "list"]);
    assert_eq!(done.code, 6, "{}", done.err);
    let done = with(&format!("http://{gone}"), &["world", "list", "--json"]);
    assert_eq!(done.code, 6);
    let error: serde_json::Value = serde_json::from_str(&done.err).unwrap();
    assert_eq!(error["error"]["kind"], "unreachable");
    assert_eq!(with("https://127.0.0.1:1", &["world", "list"]).code, 6);
    assert_eq!(with("gopher://127.0.0.1:1", &["world", "list"]).code, 2);
    let mut keyless = command(dir.path());
    keyless.env("MW_ENDPOINT", format!("http://{gone}"));
    assert_eq!(Done::of(keyless.args(["world", "list"])).code, 2);
}
