//! The environment, standard input, output and statuses of a command.

use crate::{Collect, backend, command, possible, run, said, shell};
use mw_sandbox::{Backend, Exit, Output, Stream};
use std::sync::{Arc, Mutex};

#[test]
fn the_environment_is_the_callers_alone() {
    if !possible() {
        return;
    }
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() || std::env::vars_os().count() > 3);
    let mut spec = command(&["env"]);
    spec.env.push(("FORK".into(), "f".into()));
    spec.env.push(("LANG".into(), "C".into()));
    let outcome = run(&spec);
    let text = outcome.out.to_text();
    let mut names: Vec<_> = text.lines().map(|l| l.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["FORK", "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"], "{text}");
    assert!(text.contains("FORK=f\n") && text.contains("LANG=C\n"), "{text}");
    // A secret is neither on a command line nor in another process's environment.
    let mut spec = shell("sleep 600");
    spec.env.push(("SECRET".into(), "do-not-show-me".into()));
    let running = backend().start(&spec, Arc::new(mw_sandbox::Discard)).unwrap();
    assert!(!crate::alive("do-not-show-me"));
    let environment = std::fs::read(format!("/proc/{}/environ", running.pid())).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&environment).contains("do-not-show-me"));
}

#[test]
fn statuses_and_signals_come_through() {
    if !possible() {
        return;
    }
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 3", Exit::Code(3)),
        ("exit 137", Exit::Code(137)),
        ("kill -9 $$", Exit::Signal(9)),
        ("kill -11 $$", Exit::Signal(11)),
        ("kill -15 $$", Exit::Signal(15)),
    ] {
        assert_eq!(said(script).1, exit, "{script}");
    }
}

#[derive(Default)]
struct Both(Mutex<[Vec<u8>; 2]>);

impl Output for Both {
    fn write(&self, stream: Stream, bytes: &[u8]) {
        self.0.lock().unwrap()[usize::from(stream == Stream::Err)].extend_from_slice(bytes);
    }
}

#[test]
fn output_streams_apart_and_complete_while_little_is_kept() {
    if !possible() {
        return;
    }
    let mut spec = shell("seq 1 400000; echo oops >&2");
    spec.limits.output = 1000;
    let both = Arc::new(Both::default());
    let outcome = backend().start(&spec, Arc::<Both>::clone(&both)).unwrap().wait();
    let expected: String = (1..=400_000).map(|n| format!("{n}\n")).collect();
    let both = both.0.lock().unwrap();
    assert_eq!(both[0].len(), expected.len());
    assert!(both[0] == expected.as_bytes());
    assert_eq!(both[1], b"oops\n");
    assert_eq!(outcome.err.to_text(), "oops\n");
    let kept = outcome.out.to_bytes();
    assert!(kept.starts_with(b"1\n2\n") && kept.ends_with(b"399999\n400000\n") && kept.len() < 1100);
    assert_eq!(outcome.out.dropped(), expected.len() as u64 - 1000);
}

#[test]
fn endless_output_ends_at_the_deadline() {
    if !possible() {
        return;
    }
    let mut spec = shell("yes & yes >&2 & wait");
    spec.limits.timeout = Some(std::time::Duration::from_millis(500));
    spec.limits.output = 100;
    let outcome = run(&spec);
    assert_eq!((outcome.exit, outcome.out.to_bytes().len() < 200), (Exit::Deadline, true));
}

#[test]
fn standard_input_is_empty_unless_fed() {
    if !possible() {
        return;
    }
    assert_eq!(said("cat; echo end").0, "end\n");
    let mut spec = shell("read line; echo got $line; cat");
    spec.stdin = true;
    let seen = Arc::new(Collect::default());
    let running = backend().start(&spec, Arc::<Collect>::clone(&seen)).unwrap();
    running.input(b"one\n").unwrap();
    seen.wait_for("got one\n");
    running.input(b"two\n").unwrap();
    running.close_input();
    let outcome = running.wait();
    assert_eq!(outcome.out.to_text(), "got one\ntwo\n");
    assert!(running.input(b"late").is_err());
}
