//! A process beside the server that ends its mounts when the server was killed and cannot go.
//!
//! A notification waits in the kernel for a lock that some program holds until the server has answered it. When the server is killed
//! just then, the waiting thread does not die, so that the device stays open; the kernel goes on waiting for an answer, and the program,
//! its mount and the dead server wait for each other for ever. Only somebody else can tell the kernel that no answer comes.
//!
//! The guard holds nothing of a mount but its number. It reads lines from its standard input, `+53` and `-53`, looks after the first thread
//! of the server, and when that is gone aborts the connections that it was told of. Where they are let go the usual way that does nothing.

use crate::device;
use crate::error::{Error, Result};
use crate::proc;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// How often the server is looked after. The kernel tells of the end of a whole process only, which a stuck thread keeps from coming, and
/// since Linux 6.15 that holds for a descriptor of the first thread too (PIDFD_THREAD).
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// The server's end of its guard; clones share one. The process is started for the first mount.
#[derive(Clone)]
pub struct Guard(Arc<Inner>);

struct Inner {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    child: Option<Child>,
    devices: BTreeSet<u32>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Guard({:?})", self.0.state.lock().devices)
    }
}

impl Guard {
    /// Makes the guard of this process. `command` makes the command of a program that calls [`guard_main`] with this process's number.
    pub fn new(command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { command: Box::new(command), state: Mutex::default() }))
    }

    /// Ends the process, as nothing is watched over. The next mount starts another one.
    pub fn dismiss(&self) {
        let child = self.0.state.lock().child.take();
        end(child);
    }

    /// Watches over a mount, until what is returned is dropped.
    pub(crate) fn watch(&self, device: u32) -> Watched {
        let mut state = self.0.state.lock();
        state.devices.insert(device);
        if let Err(e) = state.say(&format!("+{device}\n"), &*self.0.command) {
            tracing::warn!("no process watches over the mounts, so they may hang if this one is killed: {e}");
        }
        Watched { guard: self.clone(), device }
    }
}

impl State {
    /// Tells the guard, and starts it, or another one when it has died.
    fn say(&mut self, line: &str, command: &dyn Fn() -> Command) -> std::io::Result<()> {
        if let Some(child) = &mut self.child {
            let told = child.stdin.as_mut().map(|input| input.write_all(line.as_bytes()));
            if let Some(Ok(())) = told {
                return Ok(());
            }
            // Its input is closed, or it is gone.
            let _ = child.kill();
            let _ = child.wait();
            self.child = None;
        }
        if self.devices.is_empty() {
            return Ok(());
        }
        // A group of its own: what a terminal interrupts is the server, and the guard is there for what comes after.
        let mut child =
            command().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
        let all: String = self.devices.iter().map(|device| format!("+{device}\n")).collect();
        let told = child.stdin.as_mut().map_or(Ok(()), |input| input.write_all(all.as_bytes()));
        self.child = Some(child);
        told
    }
}

/// A mount that is watched over; dropping it ends that.
pub(crate) struct Watched {
    guard: Guard,
    device: u32,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut state = self.guard.0.state.lock();
        state.devices.remove(&self.device);
        if let Err(e) = state.say(&format!("-{}\n", self.device), &*self.guard.0.command) {
            tracing::debug!("the process that watches over the mounts is gone: {e}");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        end(self.state.get_mut().child.take());
    }
}

/// Ends the process that watches, when there is one: at the end of its input it ends.
fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        drop(child.stdin.take());
        let _ = child.wait();
    }
}

/// The life of the guard of process `server`: returns when that has ended, or has closed this one's standard input.
///
/// # Errors
/// Standard input cannot be read.
pub fn guard_main(server: u32) -> Result<()> {
    let failed = |e| Error::io("the guard of mounts cannot read its standard input", e);
    let mut devices = BTreeSet::new();
    let mut text = Vec::new();
    let input = std::io::stdin();
    loop {
        let mut watched = [PollFd::new(&input, PollFlags::IN)];
        let spoken = match poll(&mut watched, Some(&LOOK)) {
            Ok(ready) => ready > 0,
            Err(rustix::io::Errno::INTR) => false,
            Err(e) => return Err(failed(e)),
        };
        if spoken {
            let mut buffer = [0; 4096];
            let read = rustix::io::read(&input, &mut buffer).map_err(failed)?;
            text.extend_from_slice(&buffer[..read]);
            heed(&mut text, &mut devices);
            if read > 0 {
                continue;
            }
            if !is_gone(server) {
                return Ok(());
            }
        }
        if is_gone(server) {
            for device in devices {
                // A connection that is gone already is what was wanted; there is nobody to tell of the rest.
                let _ = device::abort(device);
            }
            return Ok(());
        }
    }
}

/// Takes whole lines from `text`.
fn heed(text: &mut Vec<u8>, devices: &mut BTreeSet<u32>) {
    while let Some(end) = text.iter().position(|b| *b == b'\n') {
        let line: Vec<u8> = text.drain(..=end).collect();
        let Ok(line) = std::str::from_utf8(&line) else { continue };
        match (line.get(..1), line.get(1..).and_then(|number| number.trim().parse().ok())) {
            (Some("+"), Some(device)) => drop(devices.insert(device)),
            (Some("-"), Some(device)) => drop(devices.remove(&device)),
            _ => {}
        }
    }
}

/// Returns whether a process is gone, or is dead and cannot go: its first thread has ended.
pub fn is_gone(process: u32) -> bool {
    proc::stat(process, proc::STATE).is_none_or(|state| matches!(&*state, "Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_heeded_when_they_are_whole() {
        let (mut text, mut devices) = (b"+53\n+5".to_vec(), BTreeSet::new());
        heed(&mut text, &mut devices);
        assert_eq!((text.as_slice(), &devices), (&b"+5"[..], &BTreeSet::from([53])));
        text.extend_from_slice(b"4\nnonsense\n-53\n-9\n");
        heed(&mut text, &mut devices);
        assert_eq!((text.as_slice(), &devices), (&b""[..], &BTreeSet::from([54])));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the real kernel keeps no other time")]
    fn a_process_is_gone_when_its_first_thread_is() {
        assert!(!is_gone(std::process::id()));
        let mut child = Command::new("true").spawn().unwrap();
        // A zombie until it is waited for.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !is_gone(child.id()) && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(is_gone(child.id()));
        child.wait().unwrap();
        assert!(is_gone(child.id()));
    }
}
