//! Documents about runs.

use super::ErrorBody;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request for a run: fork, sandbox, verdict, promote or discard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewRun {
    /// The world to fork; with `exec`, the fork to work on.
    pub base: String,
    /// The command of every attempt, word by word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A shell command for each attempt, instead of `command`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// How many attempts.
    pub attempts: u32,
    /// The shell command that judges; exit code 0 of the attempt itself when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate: Option<String>,
    /// Keep every fork and promote none.
    pub keep: bool,
    /// Work on `base` itself, without a fork and a verdict (`mw exec`).
    pub exec: bool,
    /// The time limit of each attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// The memory limit of each attempt, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The limit of processes of each attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Paths of the host to show read-only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
    /// Environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Destinations (`HOST:PORT`) that may be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Give the command a terminal, which `POST runs/ID/input` types on.
    pub tty: bool,
    /// Let `POST runs/ID/input` feed the command's standard input; otherwise it is empty.
    pub stdin: bool,
}

/// Where a run, or one attempt of it, stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Written down, nothing done.
    Planned,
    /// Its fork stands.
    Forked,
    /// Its key lives.
    Keyed,
    /// Its command runs.
    Started,
    /// Its command ended.
    Finished,
    /// Its verdict is in.
    Judged,
    /// Its fork is in the base.
    Promoted,
    /// Its fork is gone.
    Discarded,
    /// Its fork stands.
    Kept,
    /// Its fork won and contradicts the base; it stands.
    Conflicted,
    /// It failed before a verdict.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// One attempt of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The number, from 1.
    pub number: u32,
    /// Where it stands.
    pub state: RunState,
    /// Its fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<String>,
    /// The exit code of its command (128 + signal when a signal ended it, 124 at the deadline).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Whether it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The score that the validator gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Bytes that discarding its fork gave back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed: Option<u64>,
    /// Bytes of its fork that other worlds may still need (the base, after a promote): the sweep decides. Left out when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The id.
    pub id: String,
    /// The base.
    pub base: String,
    /// Where it stands.
    pub state: RunState,
    /// When it was asked for.
    pub created: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The attempts.
    pub attempts: Vec<Attempt>,
    /// The number of the attempt that was promoted or kept as the winner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<u32>,
    /// The base's version after the promote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Paths on which the winner and the base contradict each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// What the promote changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// The exit code of `mw run`, once it has ended: 0 done, 1 none passed, 3 conflict, 124 deadline; with `exec` the command's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// Runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// The runs.
    pub runs: Vec<Run>,
}

/// Which stream of a command an output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One line of a run's event stream. The last one is a result; a stream without it broke off, and the run goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunEvent {
    /// Nothing happened; the stream lives.
    Beat,
    /// The run, or an attempt of it, moved on.
    State {
        /// The attempt; left out: the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// To where.
        state: RunState,
    },
    /// A command, or the validator, wrote something.
    Output {
        /// The attempt.
        attempt: u32,
        /// Which stream.
        stream: Stream,
        /// Whether the validator wrote it.
        #[serde(default)]
        validator: bool,
        /// The text; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// An attempt was judged.
    Verdict {
        /// The attempt.
        attempt: u32,
        /// Whether it passed.
        passed: bool,
        /// The score.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        score: Option<f64>,
        /// The exit code of what judged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
    },
    /// The run ended.
    Result(Box<Run>),
}
