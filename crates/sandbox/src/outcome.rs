//! How a sandbox ended, and what was kept of its output.

use std::time::Duration;

/// Why the command is no longer running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself with this status.
    Code(i32),
    /// It was ended by this signal, sent from inside.
    Signal(i32),
    /// Its time was up. Its own status no longer counts, even if it ended in the grace time.
    Deadline,
    /// The caller stopped or killed it.
    Cancelled,
    /// It was killed because the sandbox had used up its memory.
    OutOfMemory,
}

impl Exit {
    /// Returns the status a shell would show: the command's own, 124 for a deadline (as `timeout` does), otherwise 128 and
    /// the signal.
    pub fn status(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::Deadline => 124,
            Self::Cancelled => 130,
            Self::OutOfMemory => 137,
        }
    }
}

/// The end of a sandbox. When it exists, no process of the sandbox does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Why the command ended.
    pub exit: Exit,
    /// From the start of the command to the death of the last process.
    pub duration: Duration,
    /// The most bytes of memory that the sandbox used at once, where a control group counted them.
    pub peak_memory: Option<u64>,
    /// What was kept of the standard output, or of the terminal.
    pub out: Kept,
    /// What was kept of the standard error.
    pub err: Kept,
}

/// The beginning and the end of a stream, within a fixed number of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    dropped: u64,
    half: usize,
}

impl Kept {
    /// Returns an empty stream that keeps at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { half: usize::try_from(limit / 2).unwrap_or(usize::MAX), ..Self::default() }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        // Of more than half the limit, only the last half can stay.
        let (gone, rest) = rest.split_at(rest.len().saturating_sub(self.half));
        let overflow = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
        self.dropped += (gone.len() + overflow) as u64;
    }

    /// Returns how many bytes in the middle were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the stream; where bytes are missing, a line says how many.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        if self.dropped > 0 {
            all.extend_from_slice(format!("\n[... {} bytes not kept ...]\n", self.dropped).as_bytes());
        }
        all.extend(&self.tail);
        all
    }

    /// Returns the stream as text, what is not UTF-8 replaced.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.to_bytes()).into_owned()
    }
}

#[cfg(test)]
mod tests;
