//! What a sandbox keeps its command from, lets it do, and leaves behind. Each refusal stands beside a control that succeeds.
//!
//! The test binary serves as its own process 1 (`serves_as_init`) and as the hostile program (`acts_inside`).

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod acts;
mod ends;
mod files;
mod kernel;
mod limits;
mod network;
mod streams;
mod terminal;

use mw_sandbox::{Backend, Bind, Bubblewrap, Exit, Outcome, Output, Running, Spec, Stream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Not a test: process 1 of the sandboxes that the tests start, and the stage before it.
#[test]
fn serves_as_init() {
    let stdin = std::io::stdin();
    if rustix::net::sockopt::socket_type(&stdin).is_ok_and(|t| t == rustix::net::SocketType::SEQPACKET) {
        let failed = format!("{:?}", mw_sandbox::init_main()) != format!("{:?}", std::process::ExitCode::SUCCESS);
        std::process::exit(i32::from(failed));
    }
}

/// Starts sandboxes whose process 1 is this binary.
pub fn backend() -> Bubblewrap {
    Bubblewrap::new(std::env::current_exe().unwrap()).with_init_arguments([
        "--exact",
        "serves_as_init",
        "--nocapture",
        "--test-threads=1",
    ])
}

/// Says whether sandboxes work here. In CI they must.
pub fn possible() -> bool {
    match backend().probe() {
        Ok(()) => true,
        Err(e) if std::env::var_os("CI").is_some_and(|v| v == "true") => panic!("{e}"),
        Err(e) => {
            println!("skipped: needs a working sandbox: {e}");
            false
        }
    }
}

/// A directory in memory where that can be had.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// A sandbox that runs `script`.
pub fn shell(script: &str) -> Spec {
    command(&["/bin/sh", "-c", script])
}

/// A sandbox that runs a command.
pub fn command(words: &[&str]) -> Spec {
    Spec { command: words.iter().map(Into::into).collect(), ..Spec::default() }
}

/// The same sandbox, with a writable directory of the host at `inside`.
pub fn with_dir(mut spec: Spec, host: &Path, inside: &str) -> Spec {
    spec.binds.push(Bind { host: host.to_owned(), inside: PathBuf::from(inside), writable: true });
    spec
}

/// Runs `spec` to its end.
pub fn run(spec: &Spec) -> Outcome {
    start(spec).wait()
}

/// Starts `spec`.
pub fn start(spec: &Spec) -> Box<dyn Running> {
    backend()
        .start(spec, Arc::new(mw_sandbox::Discard))
        .unwrap_or_else(|e| panic!("{e}: {:?}", std::error::Error::source(&e)))
}

/// Runs `script` and returns what it wrote, both streams, and its status.
pub fn said(script: &str) -> (String, Exit) {
    let outcome = run(&shell(script));
    (outcome.out.to_text() + &outcome.err.to_text(), outcome.exit)
}

/// Collects output, and lets a test wait for a word of it.
#[derive(Default)]
pub struct Collect {
    seen: Mutex<String>,
    more: std::sync::Condvar,
}

impl Output for Collect {
    fn write(&self, _: Stream, bytes: &[u8]) {
        self.seen.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        self.more.notify_all();
    }
}

impl Collect {
    /// Waits until `word` has been written; returns everything written so far.
    pub fn wait_for(&self, word: &str) -> String {
        let seen = self.seen.lock().unwrap();
        self.more.wait_while(seen, |s| !s.contains(word)).unwrap().clone()
    }
}

/// Says whether any process of the machine has `words` on its command line; a shell's script counts.
pub fn alive(words: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    })
}
