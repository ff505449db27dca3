//! Carries the command's output out: to the caller as it comes, and to what is kept. A slow caller slows the command, and
//! loses nothing.

use crate::outcome::Kept;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::thread::JoinHandle;

/// One of the two output streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output, or the terminal.
    Out,
    /// Standard error.
    Err,
}

/// Takes a command's output as it comes.
pub trait Output: Send + Sync {
    /// Takes the next bytes of `stream`. While it blocks, the command can fill a pipe and then waits.
    fn write(&self, stream: Stream, bytes: &[u8]);
}

/// Takes output and forgets it; what is kept comes with the outcome.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Output for Discard {
    fn write(&self, _: Stream, _: &[u8]) {}
}

/// A thread that empties one stream.
#[derive(Debug)]
pub(crate) struct Pump(JoinHandle<Kept>);

impl Pump {
    /// Empties `from` into `output` until every writer is gone, and keeps `limit` bytes.
    pub(crate) fn start(from: OwnedFd, stream: Stream, output: Arc<dyn Output>, limit: u64) -> io::Result<Self> {
        let work = move || {
            let mut from = File::from(from);
            let mut kept = Kept::new(limit);
            let mut bytes = vec![0; 64 << 10];
            loop {
                match from.read(&mut bytes) {
                    Ok(0) => return kept,
                    Ok(n) => {
                        kept.push(&bytes[..n]);
                        output.write(stream, &bytes[..n]);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    // A terminal whose inner end is gone says EIO where a pipe says end of file.
                    Err(_) => return kept,
                }
            }
        };
        std::thread::Builder::new().name(String::from("sandbox-output")).spawn(work).map(Self)
    }

    /// Waits for the end of the stream.
    pub(crate) fn finish(self) -> Kept {
        // A caller's `write` that panicked has been reported by its thread; what it was given is not lost with it.
        self.0.join().unwrap_or_default()
    }
}
