//! Mounts and runs in the real server. They need the kernel's FUSE and, for runs, bubblewrap.

use crate::bench::{Done, Server, command, temp, write};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

/// Returns whether what a test needs is here. In CI everything must be.
pub fn has(paths: &[&str]) -> bool {
    let missing: Vec<_> = paths.iter().filter(|path| !Path::new(path).exists()).collect();
    if missing.is_empty() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "CI must have {missing:?}");
    println!("skipped: needs {missing:?}");
    false
}

pub const FUSE: &[&str] = &["/dev/fuse"];
pub const RUN: &[&str] = &["/dev/fuse", "/usr/bin/bwrap"];

#[test]
fn a_mount_shows_what_the_commands_see() {
    if !has(FUSE) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.ok(&["world", "create", "other"]);
    s.put("mw://base/d/f", "one");
    let dir = temp();
    let at = dir.path().to_str().unwrap();
    let mount = s.json(&["mount", "base", at]);
    assert_eq!((mount["alive"].as_bool(), mount["dir"].as_str()), (Some(true), Some(at)));
    assert_eq!(fs::read_to_string(dir.path().join("d/f")).unwrap(), "one");
    s.put("mw://base/d/f", "two");
    assert_eq!(fs::read_to_string(dir.path().join("d/f")).unwrap(), "two");
    write(dir.path(), "made", "here");
    assert_eq!(s.ok(&["cat", "mw://base/made"]), "here");
    // The same again changes nothing, another world is refused.
    s.ok(&["mount", "base", at]);
    assert_eq!(s.mw(&["mount", "other", at]).code, 1);
    assert_eq!(s.json(&["mounts"])["mounts"].as_array().unwrap().len(), 1);
    s.ok(&["unmount", at]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(s.mw(&["unmount", at]).code, 4);
    assert_eq!(s.mw(&["mount", "base", &format!("{at}/absent")]).code, 4);
    assert_eq!(s.mw(&["mount", "nowhere", at]).code, 4);
    assert_eq!(s.mw(&["mount", "base", s.path().join("meta").to_str().unwrap()]).code, 2);
}

#[test]
fn a_mount_is_switched_to_another_world_and_says_what_it_shows() {
    if !has(FUSE) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/which", "base");
    s.ok(&["fork", "base", "other"]);
    s.put("mw://other/which", "other");
    let dir = temp();
    let at = dir.path().to_str().unwrap();
    let which = || fs::read_to_string(dir.path().join("which")).unwrap();
    s.ok(&["mount", "base", at]);
    assert_eq!(which(), "base");
    assert!(s.mw(&["mount", "other", at]).err.contains("--switch"));
    s.ok(&["mount", "--switch", "other", at]);
    assert_eq!(which(), "other");
    let status = s.json(&["status"]);
    let mount = &status["mounted"][0];
    assert_eq!((mount["world"].as_str(), mount["dir"].as_str()), (Some("other"), Some(at)));
    assert!(mount["version"].as_str().unwrap().parse::<u64>().unwrap() > 0 && mount["unsynced"] == 0, "{mount}");
    // The table has the new one.
    let s = Server::on(s.kill(), &[]);
    assert_eq!(which(), "other");
    s.ok(&["unmount", at]);
}

#[test]
fn a_mount_comes_back_after_a_kill_and_after_a_clean_end() {
    if !has(FUSE) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let dir = temp();
    let at = dir.path().to_str().unwrap();
    s.ok(&["mount", "base", at]);
    write(dir.path(), "f", "before");
    s.put("mw://base/durable", "x");
    let s = Server::on(s.kill(), &[]);
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "before");
    write(dir.path(), "g", "after");
    let s = Server::on(s.stop(), &[]);
    assert_eq!(fs::read_to_string(dir.path().join("g")).unwrap(), "after");
    s.ok(&["unmount", at]);
    let s = Server::on(s.stop(), &[]);
    assert!(s.json(&["mounts"])["mounts"].as_array().unwrap().is_empty());
}

#[test]
fn a_mount_with_write_back_stays_one_and_loses_nothing_in_order() {
    if !has(FUSE) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.ok(&["world", "create", "other"]);
    let (dir, second) = (temp(), temp());
    let (at, elsewhere) = (dir.path().to_str().unwrap(), second.path().to_str().unwrap());
    let is_writeback = |s: &Server| {
        let mounts = s.json(&["status"])["mounted"].clone();
        assert_eq!(mounts, s.json(&["mounts"])["mounts"]);
        assert_eq!(mounts[0]["alive"], true, "{mounts}");
        mounts[0]["writeback"].as_bool().unwrap_or_default()
    };
    s.ok(&["mount", "other", at]);
    assert!(!is_writeback(&s));
    s.ok(&["mount", "--switch", "--writeback", "base", at]);
    assert!(is_writeback(&s) && s.ok(&["mounts"]).contains("rw,writeback"));
    // Alone, and writable.
    let refused = s.mw(&["mount", "base", elsewhere]);
    assert!(refused.code == 1 && refused.err.contains("mounted with write-back"), "{refused:?}");
    s.ok(&["snapshot", "take", "base", "then"]);
    assert_eq!(s.mw(&["mount", "--writeback", "base@then", elsewhere]).code, 2);
    assert_eq!(s.mw(&["mount", "--writeback", "--read-only", "other", elsewhere]).code, 2);
    s.ok(&["mount", "base@then", elsewhere]);
    s.ok(&["unmount", elsewhere]);
    // What a program wrote and did not close is in a fork, goes through a restart, and is there after a clean end. (A command that is
    // started closes its copy of the descriptor, and the kernel gives up what it holds; nothing is started before the end.)
    let mut open = File::create(dir.path().join("f")).unwrap();
    write!(open, "one ").unwrap();
    s.ok(&["fork", "base", "fork"]);
    assert_eq!(s.ok(&["cat", "mw://fork/f"]), "one ");
    write!(open, "two ").unwrap();
    s.ok(&["restart"]);
    assert!(is_writeback(&s));
    write!(open, "three").unwrap();
    let s = Server::on(s.stop(), &[]);
    assert_eq!(s.ok(&["cat", "mw://base/f"]), "one two three");
    drop(open);
    assert!(is_writeback(&s));
    let s = Server::on(s.kill(), &[]);
    assert!(is_writeback(&s));
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "one two three");
    s.ok(&["unmount", at]);
    s.ok(&["mount", "base", at]);
    assert!(!is_writeback(&s));
    s.ok(&["unmount", at]);
}

#[test]
fn a_past_instant_is_mounted_without_writes() {
    if !has(FUSE) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/f", "then");
    s.ok(&["snapshot", "take", "base", "then"]);
    s.put("mw://base/f", "now");
    let dir = temp();
    s.ok(&["mount", "base@then", dir.path().to_str().unwrap()]);
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "then");
    assert_eq!(fs::write(dir.path().join("g"), "x").unwrap_err().kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    s.ok(&["unmount", dir.path().to_str().unwrap()]);
}

#[test]
fn a_run_promotes_what_passes_and_discards_the_rest() {
    if !has(RUN) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/workspace/f", "broken\n");
    let fails = s.mw(&["run", "base", "--", "sh", "-c", "echo worse > f; exit 3"]);
    assert_eq!(fails.code, 1, "{}", fails.err);
    assert_eq!(s.ok(&["cat", "mw://base/workspace/f"]), "broken\n");
    let late = s.mw(&["run", "base", "--timeout", "1s", "--", "sh", "-c", "trap '' TERM; sleep 60; sleep 60"]);
    assert_eq!(late.code, 124, "{}", late.err);
    let race = s.mw(&[
        "run",
        "base",
        "--validate",
        "grep -q fixed f && echo score: $(wc -c < f)",
        "--cmd",
        "echo hello; exit 0",
        "--cmd",
        "echo fixed > f",
        "--cmd",
        "echo fixed best > f",
        "--json",
    ]);
    assert_eq!(race.code, 0, "{}", race.err);
    let run: serde_json::Value = serde_json::from_str(&race.out).unwrap();
    assert_eq!((run["state"].as_str(), run["winner"].as_u64()), (Some("promoted"), Some(3)), "{run}");
    assert_eq!(s.ok(&["cat", "mw://base/workspace/f"]), "fixed best\n");
    let worlds = s.json(&["world", "list"]);
    assert_eq!(worlds["worlds"].as_array().unwrap().len(), 1, "{worlds}");
    let id = run["id"].as_str().unwrap();
    assert_eq!(s.json(&["runs", "show", id])["state"], "promoted");
    assert_eq!(s.json(&["runs", "list"])["runs"].as_array().unwrap().len(), 3);
    assert_eq!(s.mw(&["runs", "show", "nothing"]).code, 4);
}

#[test]
fn exec_gives_the_commands_own_code_and_output() {
    if !has(RUN) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/workspace/f", "x");
    s.ok(&["fork", "base", "twig"]);
    let done = s.mw(&["exec", "twig", "--", "sh", "-c", "echo out; echo err >&2; echo y > f; exit 7"]);
    assert_eq!((done.code, done.out.as_str()), (7, "out\n"), "{}", done.err);
    assert!(done.err.contains("err\n"));
    assert_eq!(s.ok(&["cat", "mw://twig/workspace/f"]), "y\n");
    assert_eq!(s.ok(&["cat", "mw://base/workspace/f"]), "x");
}

#[test]
fn a_run_left_to_itself_can_be_watched_and_cancelled() {
    if !has(RUN) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/workspace/f", "x");
    let id = s.ok(&["run", "base", "--detach", "--", "sleep", "600"]);
    let id = id.trim();
    let run = s.json(&["runs", "cancel", id]);
    assert_eq!(run["state"], "cancelled", "{run}");
    assert_eq!(s.mw(&["runs", "watch", id]).code, 1);
    assert_eq!(s.json(&["world", "list"])["worlds"].as_array().unwrap().len(), 1);
    assert_eq!(s.json(&["key", "list"])["keys"].as_array().unwrap().len(), 1);
}

#[test]
fn a_command_that_listens_gets_standard_input_to_its_end() {
    if !has(RUN) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.ok(&["fork", "base", "twig"]);
    let sent: String = (0..20_000).map(|n| format!("line {n} of some text, äöü€🌍\n")).collect();
    let file = write(s.path(), "sent", &sent);
    let mut cat = command(s.path());
    cat.args(["exec", "twig", "-i", "--", "sh", "-c", "tee /world/heard"]).stdin(File::open(file).unwrap());
    let done = Done::of(&mut cat);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(done.out, sent, "what comes back is whole, no character cut in two");
    assert_eq!(s.ok(&["cat", "mw://twig/heard"]), sent);
    // Without -i there is nothing to read, and nobody else may type.
    assert_eq!(s.mw(&["exec", "twig", "--", "cat"]).code, 0);
    assert_eq!(s.mw(&["exec", "twig", "-t", "--", "cat"]).code, 2, "standard input is no terminal");
    assert_eq!(s.mw(&["run", "base", "-i", "-n", "2", "--", "cat"]).code, 2);
}

#[test]
fn a_terminal_is_a_terminal() {
    if !has(RUN) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let slave =
        File::options().read(true).write(true).open(ptsname(&master, Vec::new()).unwrap().to_str().unwrap()).unwrap();
    tcsetwinsize(&slave, Winsize { ws_row: 33, ws_col: 111, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let before = format!("{:?}", tcgetattr(&slave).unwrap().local_modes);
    let end = || Stdio::from(slave.try_clone().unwrap());
    let mut child = command(s.path())
        .args(["run", "base", "-it", "--", "sh"])
        .env("TERM", "xterm-test")
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .unwrap();
    let mut master = File::from(master);
    let mut seen = String::new();
    let mut until = |master: &mut File, wanted: &str| {
        let mut piece = [0; 4096];
        while !seen.contains(wanted) {
            let n = master.read(&mut piece).unwrap();
            seen.push_str(&String::from_utf8_lossy(&piece[..n]));
        }
        std::mem::take(&mut seen)
    };
    until(&mut master, "started");
    master.write_all(b"stty size; tty; echo $TERM; echo $((6 * 7)) > answer; echo read''y\n").unwrap();
    let said = until(&mut master, "ready");
    assert!(said.contains("33 111") && said.contains("/dev/pts/") && said.contains("xterm-test"), "{said:?}");
    // ^C reaches the command inside, and ends neither the shell nor the run.
    master.write_all(b"echo beg''un; sleep 600\n").unwrap();
    until(&mut master, "begun");
    master.write_all(&[3]).unwrap();
    master.write_all(b"echo ali''ve; exit\n").unwrap();
    until(&mut master, "alive");
    until(&mut master, "promoted");
    assert!(child.wait().unwrap().success());
    assert_eq!(s.ok(&["cat", "mw://base/workspace/answer"]), "42\n");
    assert_eq!(format!("{:?}", tcgetattr(&slave).unwrap().local_modes), before, "the terminal is as it was");
}

#[test]
fn the_validator_changes_nothing() {
    if !has(RUN) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/workspace/f", "before\n");
    let done = s.mw(&[
        "run",
        "base",
        "--json",
        "--keep",
        "--validate",
        "echo ruined > f && echo more > /world/more && test -z \"$AWS_SECRET_ACCESS_KEY\"",
        "--",
        "sh",
        "-c",
        "echo after > f",
    ]);
    let run: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let fork = run["attempts"][0]["fork"].as_str().unwrap().to_owned();
    assert_eq!(run["attempts"][0]["passed"], true, "{run}");
    assert_eq!(s.ok(&["cat", &format!("mw://{fork}/workspace/f")]), "after\n");
    assert_eq!(s.mw(&["cat", &format!("mw://{fork}/more")]).code, 4);
    assert_eq!(s.ok(&["cat", "mw://base/workspace/f"]), "before\n");
}

#[test]
fn a_server_that_leaves_cancels_its_runs_and_leaves_no_key() {
    if !has(RUN) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.put("mw://base/workspace/f", "x");
    let id = s.ok(&["run", "base", "--detach", "--", "sh", "-c", "echo y > f; sleep 600"]);
    let id = id.trim().to_owned();
    while s.json(&["runs", "show", &id])["attempts"][0]["state"] != "started" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let s = Server::on(s.stop(), &[]);
    assert_eq!(s.json(&["runs", "show", &id])["state"], "cancelled");
    assert_eq!(s.json(&["key", "list"])["keys"].as_array().unwrap().len(), 1);
    assert_eq!(s.ok(&["cat", "mw://base/workspace/f"]), "x");
}
