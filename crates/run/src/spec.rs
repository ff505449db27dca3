//! What is to be run.

use crate::error::{Error, Result};
use mw_model::ErrorKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A run, as it is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSpec {
    /// The world to fork; with `exec`, the world to work on.
    pub base: String,
    /// The command of every attempt, word by word.
    pub command: Vec<String>,
    /// A shell command for each attempt, instead of `command`.
    pub commands: Vec<String>,
    /// How many attempts, 1 to 1,000.
    pub attempts: u32,
    /// The shell command that judges. None: exit code 0 of the attempt passes.
    pub validate: Option<String>,
    /// Keep every fork and promote none.
    pub keep: bool,
    /// Work on `base` itself, without a fork and without a verdict.
    pub exec: bool,
    /// The time limit of each command, in seconds. None: an hour.
    pub timeout: Option<u64>,
    /// The memory limit of each attempt, in bytes.
    pub memory: Option<u64>,
    /// The limit of processes of each attempt.
    pub processes: Option<u32>,
    /// Paths of the host to show read-only.
    pub read_only: Vec<PathBuf>,
    /// More environment variables.
    pub env: BTreeMap<String, String>,
    /// Destinations (`HOST:PORT`) that may be reached.
    pub allow: Vec<String>,
    /// Give the command a terminal.
    pub tty: bool,
    /// Feed the command's standard input ([`crate::Runs::input`]); otherwise it is empty. A terminal is always fed.
    pub stdin: bool,
}

/// The time limit of a command that names none, in seconds.
const HOUR: u64 = 3600;
/// The most attempts of one run.
const MAX_ATTEMPTS: u32 = 1000;

impl RunSpec {
    /// Checks everything that can be checked before anything is made.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |why: &str| Err(Error::new(ErrorKind::Invalid, why.to_owned()));
        match (self.command.is_empty(), self.commands.is_empty()) {
            (true, true) => return refuse("there is no command to run; give one after `--`, or with --cmd"),
            (false, false) => return refuse("give one command after `--`, or several with --cmd, not both"),
            _ => {}
        }
        if self.count() > MAX_ATTEMPTS {
            return refuse("a run has at most 1000 attempts");
        }
        if !self.commands.is_empty() && self.attempts > 1 && self.attempts as usize != self.commands.len() {
            return refuse("-n and the number of --cmd differ; leave -n out");
        }
        if self.exec && (self.validate.is_some() || self.keep || self.count() != 1) {
            return refuse("exec runs one command on the fork itself; it has no verdict");
        }
        if (self.tty || self.stdin) && self.count() != 1 {
            return refuse("only one command can be typed to; leave -i and -t out, or make one attempt");
        }
        if self.timeout == Some(0) {
            return refuse("the time limit is zero");
        }
        for path in &self.read_only {
            if !path.is_absolute() {
                return refuse("a path given with --ro must be absolute");
            }
        }
        for name in self.env.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                return refuse("an environment variable's name is not empty and has no '='");
            }
        }
        for destination in &self.allow {
            destination.parse::<mw_sandbox::Destination>()?;
        }
        Ok(())
    }

    /// Returns how many attempts the run has.
    pub(crate) fn count(&self) -> u32 {
        if self.commands.is_empty() { self.attempts.max(1) } else { self.commands.len() as u32 }
    }

    /// Returns the command of an attempt (from 1).
    pub(crate) fn words(&self, attempt: u32) -> Vec<String> {
        match self.commands.get(attempt as usize - 1) {
            Some(line) => shell(line),
            None => self.command.clone(),
        }
    }

    /// Returns the time limit in seconds.
    pub(crate) fn seconds(&self) -> u64 {
        self.timeout.unwrap_or(HOUR)
    }
}

/// Returns the words that run a line of shell.
pub(crate) fn shell(line: &str) -> Vec<String> {
    vec!["/bin/sh".to_owned(), "-c".to_owned(), line.to_owned()]
}
