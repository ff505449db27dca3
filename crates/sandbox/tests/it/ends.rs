//! However a sandbox ends, nothing of it is alive afterwards.

use crate::{Collect, alive, backend, possible, run, scratch, shell, start, with_dir};
use mw_sandbox::{Backend, Discard, Exit, Output};
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// A script that leaves children behind in every known way: detached, in sessions of their own, deaf to signals.
/// `mark`, three digits that begin with a 7, tells them apart from those of other tests. It is ready when all of them run.
fn litter(mark: &str) -> String {
    format!(
        "trap '' TERM HUP INT; (trap '' TERM; while :; do echo x >>late; sleep 0.02; done) & \
         setsid sh -c 'sleep {mark}1 & wait' & nohup sleep {mark}2 >/dev/null 2>&1 & \
         (setsid sh -c \"trap '' TERM; sleep {mark}3\" &) & \
         until [ -s late ]; do sleep 0.01; done; \
         for n in 1 2 3; do until grep -qsxz \"[7]{rest}$n\" /proc/[0-9]*/cmdline; do sleep 0.01; done; done; \
         echo ready; ",
        rest = &mark[1..]
    )
}

/// Asserts that no process of the litter is alive, the shells and the one that writes among them.
fn nothing_lives(mark: &str, dir: &std::path::Path) {
    for n in 1..=3 {
        assert!(!alive(&format!("sleep {mark}{n}")), "{mark}{n} is alive");
    }
    assert!(fs::metadata(dir.join("late")).unwrap().len() > 0, "nobody ever wrote");
}

/// C26: at the deadline everything of the run ends, with it what left the shell, its session and its group; nothing writes afterwards.
#[test]
fn the_deadline_takes_everything() {
    if !possible() {
        return;
    }
    let host = scratch();
    let mut spec = with_dir(shell(&(litter("700") + "wait; sleep 600")), host.path(), "/world");
    spec.workdir = "/world".into();
    spec.limits.timeout = Some(Duration::from_millis(3000));
    spec.limits.grace = Duration::from_millis(200);
    let outcome = run(&spec);
    assert_eq!((outcome.exit, outcome.exit.status()), (Exit::Deadline, 124));
    assert_eq!(outcome.out.to_text(), "ready\n", "the machine is too slow for this deadline");
    assert!(outcome.duration >= Duration::from_millis(3200), "the grace time counts: {:?}", outcome.duration);
    nothing_lives("700", host.path());
}

#[test]
fn at_the_deadline_the_command_is_asked_first() {
    if !possible() {
        return;
    }
    let mut spec = shell("trap 'echo cleaning up; exit 0' TERM; while :; do sleep 0.01; done");
    spec.limits.timeout = Some(Duration::from_millis(1500));
    spec.limits.grace = Duration::from_secs(600);
    let outcome = run(&spec);
    assert_eq!((outcome.exit, outcome.out.to_text().as_str()), (Exit::Deadline, "cleaning up\n"));
}

#[test]
fn the_end_of_the_command_is_the_end_of_all() {
    if !possible() {
        return;
    }
    let host = scratch();
    let mut spec = with_dir(shell(&(litter("701") + "exit 9")), host.path(), "/world");
    spec.workdir = "/world".into();
    // The children hold the output pipes; without a deadline only their death can end them.
    assert_eq!(run(&spec).exit, Exit::Code(9));
    nothing_lives("701", host.path());
}

#[test]
fn stop_kill_and_drop_take_everything() {
    if !possible() {
        return;
    }
    for how in ["stop", "kill", "drop"] {
        let host = scratch();
        let mut spec = with_dir(shell(&(litter("702") + "sleep 600")), host.path(), "/world");
        spec.workdir = "/world".into();
        spec.limits.grace = Duration::from_millis(50);
        let seen = Arc::new(Collect::default());
        let running = backend().start(&spec, Arc::<Collect>::clone(&seen)).unwrap();
        seen.wait_for("ready");
        assert!(running.outcome().is_none() && alive("sleep 7021"));
        match how {
            "stop" => running.stop(),
            "kill" => running.kill(),
            _ => {}
        }
        if how == "drop" {
            drop(running);
        } else {
            assert_eq!(running.wait().exit, Exit::Cancelled, "{how}");
            assert_eq!(running.outcome().unwrap().exit, Exit::Cancelled);
        }
        nothing_lives("702", host.path());
    }
}

#[test]
fn a_sandbox_outlives_the_thread_that_started_it() {
    if !possible() {
        return;
    }
    let mut spec = shell("read line; echo $line");
    spec.stdin = true;
    let running = std::thread::spawn(move || start(&spec)).join().unwrap();
    running.input(b"still here\n").unwrap();
    assert_eq!(running.wait().out.to_text(), "still here\n");
}

/// Not a test: the server of the next one. Runs a sandbox until it is killed.
#[test]
fn serves_until_killed() {
    let Ok(dir) = std::env::var("MW_SERVE") else { return };
    struct Print;
    impl Output for Print {
        fn write(&self, _: mw_sandbox::Stream, bytes: &[u8]) {
            print!("{}", String::from_utf8_lossy(bytes));
        }
    }
    let mut spec = with_dir(shell(&(litter("703") + "sleep 600")), dir.as_ref(), "/world");
    spec.workdir = "/world".into();
    backend().start(&spec, Arc::new(Print)).unwrap().wait();
}

#[test]
fn a_server_that_is_killed_takes_its_sandboxes_with_it() {
    if !possible() {
        return;
    }
    let host = scratch();
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ends::serves_until_killed", "--nocapture", "--test-threads=1"])
        .env("MW_SERVE", host.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = server.stdout.take().unwrap();
    let mut text = String::new();
    while !text.contains("ready") {
        let mut byte = [0];
        assert_eq!(out.read(&mut byte).unwrap(), 1, "{text}");
        text.push(char::from(byte[0]));
    }
    assert!(alive("sleep 7031") && alive("sleep 7033"));
    server.kill().unwrap();
    assert_eq!(server.wait().unwrap().signal(), Some(9));
    // The kernel works through the tree after the server's own death; there is no event to wait for.
    while alive("sleep 7031") || alive("sleep 7032") || alive("sleep 7033") {
        std::thread::yield_now();
    }
    nothing_lives("703", host.path());
}

#[test]
fn no_groups_and_no_descriptors_are_left() {
    if !possible() {
        return;
    }
    let mut spec = shell("true");
    spec.endpoint = Some("127.0.0.1:9".parse().unwrap());
    spec.allow = vec!["a.example:443".parse().unwrap()];
    let ours = format!("manyworlds-{}-", std::process::id());
    for _ in 0..3 {
        let running = backend().start(&spec, Arc::new(Discard)).unwrap();
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", running.pid())).unwrap_or_default();
        running.wait();
        drop(running);
        for line in groups.lines().filter(|l| l.contains(&ours)) {
            let (controller, path) = line.split_once(':').and_then(|(_, r)| r.split_once(':')).unwrap();
            let dir = std::path::Path::new("/sys/fs/cgroup").join(controller).join(path.trim_start_matches('/'));
            assert!(!dir.exists(), "{}", dir.display());
        }
    }
}
