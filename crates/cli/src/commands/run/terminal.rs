//! The events of a run on the terminal: what commands write goes where they wrote it, all else to standard error.
//!
//! With several attempts at the same time every line says whose it is, and no line is a mixture of two.

use super::word;
use crate::output::Output;
use mw_http::types::{RunEvent, Stream};
use std::collections::BTreeMap;

/// Where the output of one command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    attempt: u32,
    validator: bool,
    error: bool,
}

/// The terminal of a run.
#[derive(Debug)]
pub struct Terminal<'a> {
    out: &'a Output,
    /// Whether lines say whose they are.
    many: bool,
    /// Lines that have not ended.
    begun: BTreeMap<Source, String>,
}

impl<'a> Terminal<'a> {
    /// Shows a run; `many` when it has several attempts.
    pub fn new(out: &'a Output, many: bool) -> Self {
        Self { out, many, begun: BTreeMap::new() }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Beat => {}
            RunEvent::State { attempt, state } => {
                self.flush(*attempt);
                let who = attempt.map_or_else(|| "run".to_owned(), |n| format!("[{n}]"));
                self.out.note(&format!("{who} {}", word(*state)));
            }
            RunEvent::Output { attempt, stream, validator, text } => {
                self.output(Source { attempt: *attempt, validator: *validator, error: *stream == Stream::Err }, text);
            }
            RunEvent::Verdict { attempt, passed, score, exit } => {
                self.flush(Some(*attempt));
                let score = score.map(|score| format!(", score {score}")).unwrap_or_default();
                let exit = exit.map(|exit| format!(", exit code {exit}")).unwrap_or_default();
                self.out.note(&format!("[{attempt}] {}{exit}{score}", if *passed { "passed" } else { "did not pass" }));
            }
            RunEvent::Result(_) => self.flush(None),
        }
    }

    fn output(&mut self, source: Source, text: &str) {
        if !self.many {
            return self.write(source, text);
        }
        let begun = self.begun.entry(source).or_default();
        begun.push_str(text);
        let Some(end) = begun.rfind('\n') else { return };
        let rest = begun.split_off(end + 1);
        let whole = std::mem::replace(begun, rest);
        self.lines(source, &whole);
    }

    fn lines(&self, source: Source, text: &str) {
        let lines: String = text.lines().map(|line| format!("[{}] {line}\n", source.attempt)).collect();
        self.write(source, &lines);
    }

    fn write(&self, source: Source, text: &str) {
        // With --json standard output is the document's alone.
        if source.error || self.out.is_json() {
            self.out.side(text.as_bytes());
        } else {
            self.out.bytes(text.as_bytes());
        }
    }

    /// Ends the lines of an attempt, or of all.
    fn flush(&mut self, attempt: Option<u32>) {
        let ended: Vec<Source> =
            self.begun.keys().copied().filter(|source| attempt.is_none_or(|n| n == source.attempt)).collect();
        for source in ended {
            if let Some(text) = self.begun.remove(&source).filter(|text| !text.is_empty()) {
                self.lines(source, &text);
            }
        }
    }
}
