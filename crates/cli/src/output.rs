//! What is printed: one JSON document with `--json`, text and tables otherwise; failures on standard error.
//!
//! The only file that writes to the terminal. When the reader of standard output is gone, the command ends quietly.

use crate::failure::{Failure, USAGE};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// Where a command prints.
#[derive(Debug)]
pub struct Output {
    json: bool,
    color: bool,
    progress: bool,
}

impl Output {
    /// Prints JSON when `json` is set. Colours and progress only on a terminal.
    pub fn new(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = !json && !plain && std::io::stdout().is_terminal();
        Self { json, color, progress: !json && std::io::stderr().is_terminal() }
    }

    /// Returns whether JSON is wanted.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints `document` as JSON, or what `human` makes of it.
    pub fn show<T: Serialize>(&self, document: &T, human: impl FnOnce(&T) -> String) {
        if self.json {
            let mut text = serde_json::to_string(document).unwrap_or_default();
            text.push('\n');
            self.bytes(text.as_bytes());
        } else {
            let mut text = human(document);
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            self.bytes(text.as_bytes());
        }
    }

    /// Prints raw bytes.
    pub fn bytes(&self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        settle(out.write_all(bytes).and_then(|()| out.flush()));
    }

    /// Prints a line on standard error.
    pub fn note(&self, text: &str) {
        // Whoever closed standard error does not want to be told.
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// Prints raw bytes on standard error.
    pub fn side(&self, bytes: &[u8]) {
        let _ = std::io::stderr().lock().write_all(bytes);
    }

    /// Shows how far long work is, on a terminal only; each call takes the place of the last.
    pub fn progress(&self, text: &str) {
        if self.progress {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K{text}");
        }
    }

    /// Shows how far long work is as [`Output::progress`] does; where that shows nothing, `asked` makes it a line on standard error.
    pub fn step(&self, text: &str, asked: bool) {
        match self.progress {
            true => self.progress(text),
            false if asked => self.note(text),
            false => {}
        }
    }

    /// Takes the progress away.
    pub fn clear(&self) {
        self.progress("");
    }

    /// Prints why a command failed.
    pub fn failure(&self, failure: &Failure) {
        self.clear();
        if self.json {
            let document = mw_http::types::ErrorReply { error: failure.body() };
            self.note(&serde_json::to_string(&document).unwrap_or_default());
        } else {
            self.note(&format!("mw: {failure}"));
        }
    }

    /// Colours `text`, on a terminal.
    pub fn paint(&self, color: Color, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match color {
            Color::Green => 32,
            Color::Red => 31,
            Color::Yellow => 33,
            Color::Cyan => 36,
            Color::Bold => 1,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Makes a table; columns are two spaces apart, and the last is as wide as it likes.
    pub fn table(&self, head: &[&str], rows: &[Vec<String>]) -> String {
        let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = String::new();
            for (cell, width) in cells.zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
            }
            line.trim_end().to_owned()
        };
        let mut text = self.paint(Color::Bold, &line(&mut head.iter().copied()));
        for row in rows {
            text.push('\n');
            text.push_str(&line(&mut row.iter().map(String::as_str)));
        }
        text
    }
}

/// A colour of text.
#[derive(Debug, Clone, Copy)]
pub enum Color {
    /// Added.
    Green,
    /// Deleted, failed.
    Red,
    /// Changed.
    Yellow,
    /// Where in a file.
    Cyan,
    /// A heading.
    Bold,
}

/// Ends the program when standard output cannot be written: quietly when its reader has had enough.
fn settle(outcome: std::io::Result<()>) {
    if let Err(error) = outcome {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        let _ = writeln!(std::io::stderr().lock(), "mw: standard output: {error}");
        std::process::exit(1);
    }
}

/// Prints what the parser of the command line has to say: help, the version, or what is wrong with it.
pub fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
        let message = error.to_string();
        Output::new(true).failure(&Failure::usage(message.trim_start_matches("error: ").trim_end()));
        return ExitCode::from(USAGE);
    }
    // Help for a closed pipe is no failure.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
}
