//! Where a run stands. The record in `meta` is the truth about it; `runs/{id}.json` in the base is a copy.

use crate::spec::RunSpec;
use serde::{Deserialize, Serialize};

/// Where a run, or one attempt of it, stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Written down, nothing done.
    Planned,
    /// Its fork stands.
    Forked,
    /// Its key lives.
    Keyed,
    /// Its command runs.
    Started,
    /// Its command ended and its key is dead.
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

impl State {
    /// Returns whether nothing more will happen.
    pub fn is_end(self) -> bool {
        matches!(
            self,
            Self::Promoted | Self::Discarded | Self::Kept | Self::Conflicted | Self::Failed | Self::Cancelled
        )
    }
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// Where it stands.
    pub state: State,
    /// Its fork.
    pub fork: Option<String>,
    /// The id of its key.
    pub key: Option<String>,
    /// The exit status of its command, as a shell shows it (124: deadline).
    pub exit: Option<i32>,
    /// Whether it passed.
    pub passed: Option<bool>,
    /// The score that the validator gave.
    pub score: Option<f64>,
    /// The exit status of the validator.
    pub validator: Option<i32>,
    /// Why it failed.
    pub reason: Option<String>,
    /// How long its command ran, in milliseconds.
    pub milliseconds: Option<u64>,
    /// The end of its output.
    pub output: Option<String>,
    /// The end of the validator's output.
    pub verdict: Option<String>,
    /// The space that discarding its fork gave back, in bytes.
    pub freed: Option<u64>,
    /// What of its space other worlds may still need, in bytes: the sweep decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
}

impl Attempt {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            number,
            state: State::Planned,
            fork: None,
            key: None,
            exit: None,
            passed: None,
            score: None,
            validator: None,
            reason: None,
            milliseconds: None,
            output: None,
            verdict: None,
            freed: None,
            pending: None,
        }
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// What was asked for. The values of environment variables are left out: they may be secrets.
    pub spec: RunSpec,
    /// The key that asked.
    pub key: String,
    /// Where it stands.
    pub state: State,
    /// When it was asked for, in UNIX nanoseconds.
    pub created: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// Its attempts.
    pub attempts: Vec<Attempt>,
    /// The attempt that won.
    pub winner: Option<u32>,
    /// The base's version after the promote.
    pub version: Option<String>,
    /// Paths on which the winner and the base contradict each other.
    pub conflicts: Vec<String>,
    /// What the promote changed: added, changed, deleted.
    pub changes: Vec<String>,
    /// Why it failed.
    pub error: Option<String>,
}

impl Run {
    /// Returns the exit status of `mw run` and `mw exec`: 0 done, 1 none passed, 3 conflict, 124 deadline.
    pub fn exit_status(&self) -> i32 {
        let first = self.attempts.first();
        match self.state {
            State::Promoted | State::Kept | State::Discarded => 0,
            State::Conflicted => 3,
            State::Finished | State::Judged if self.spec.exec => first.and_then(|a| a.exit).unwrap_or(1),
            _ if self.attempts.len() == 1 && first.is_some_and(|a| a.exit == Some(124)) => 124,
            _ => 1,
        }
    }
}
