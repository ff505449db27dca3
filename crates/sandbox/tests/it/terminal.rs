//! A command with a terminal of its own.

use crate::{Collect, backend, possible, shell};
use mw_sandbox::{Backend, Exit};
use std::sync::Arc;

#[test]
fn a_terminal_is_the_sandboxes_own() {
    if !possible() {
        return;
    }
    let mut spec =
        shell("tty; test -t 0 && test -t 1 && test -t 2 && echo all; echo ready; read x; stty size; echo got $x");
    spec.tty = true;
    let seen = Arc::new(Collect::default());
    let running = backend().start(&spec, Arc::<Collect>::clone(&seen)).unwrap();
    let text = seen.wait_for("ready");
    assert!(text.contains("/dev/pts/0") && text.contains("all"), "{text}");
    running.resize(33, 77).unwrap();
    running.input(b"word\n").unwrap();
    let outcome = running.wait();
    let text = outcome.out.to_text();
    assert!(text.contains("33 77") && text.contains("got word"), "{text}");
    assert_eq!(outcome.exit, Exit::Code(0));
}

#[test]
fn interrupt_typed_on_the_terminal_reaches_the_command() {
    if !possible() {
        return;
    }
    let mut spec = shell("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done");
    spec.tty = true;
    let seen = Arc::new(Collect::default());
    let running = backend().start(&spec, Arc::<Collect>::clone(&seen)).unwrap();
    seen.wait_for("ready");
    running.input(&[3]).unwrap();
    assert_eq!(running.wait().exit, Exit::Code(5));
}

#[test]
fn an_interactive_shell_has_job_control() {
    if !possible() {
        return;
    }
    let mut spec = crate::command(&["/bin/bash", "--norc", "-i"]);
    spec.tty = true;
    let seen = Arc::new(Collect::default());
    let running = backend().start(&spec, Arc::<Collect>::clone(&seen)).unwrap();
    running.input(b"sleep 600 & jobs; echo no''w\n").unwrap();
    let text = seen.wait_for("now");
    assert!(!text.contains("no job control"), "{text}");
    running.input(b"exit 4\n").unwrap();
    assert_eq!(running.wait().exit, Exit::Code(4));
}
