//! The end of a run: the winner is promoted, the others are discarded, every key is dead.

use crate::error::Result;
use crate::record::{Attempt, Run, State};
use crate::runs::{Live, Runs};
use mw_model::ErrorKind;
use mw_world::{Change, DiffEntry, Policy, Principal, PromoteOptions, Promoted};

/// Picks the winner: of those that passed, the highest score, then the lowest number. A pure decision.
pub(crate) fn winner(attempts: &[Attempt]) -> Option<u32> {
    let mut best: Option<&Attempt> = None;
    for attempt in attempts.iter().filter(|a| a.passed == Some(true) && a.state == State::Judged) {
        // What has no score ranks below what has one.
        let score = |a: &Attempt| a.score.unwrap_or(f64::NEG_INFINITY);
        if best.is_none_or(|b| score(attempt) > score(b)) {
            best = Some(attempt);
        }
    }
    best.map(|a| a.number)
}

impl Runs {
    pub(crate) fn settle(&self, live: &Live) -> Result<()> {
        let (run, keep) = (live.run.lock().clone(), live.spec.keep);
        let won = winner(&run.attempts);
        if live.is_cancelled() {
            self.discard_all(live, &run, None);
            self.end(live, |run| run.state = State::Cancelled);
            return Ok(());
        }
        live.advance(&self.journal, None, |run| {
            run.state = State::Judged;
            run.winner = won;
        })?;
        if keep {
            for attempt in run.attempts.iter().filter(|a| a.fork.is_some()) {
                live.attempt(&self.journal, attempt.number, |a| a.state = State::Kept)?;
                self.keep(attempt);
            }
            self.end(live, |run| {
                run.state = if won.is_some() { State::Kept } else { State::Failed };
                if won.is_none() {
                    run.error = Some("no attempt passed; the forks were kept".to_owned());
                }
            });
            return Ok(());
        }
        let Some(won) = won else {
            self.discard_all(live, &run, None);
            self.end(live, |run| {
                run.state = State::Failed;
                run.error = Some("no attempt passed".to_owned());
            });
            return Ok(());
        };
        let promoted = self.promote(&live.who, &run, won);
        self.conclude(live, &run, won, promoted)
    }

    /// Promotes the winner's fork, with a copy of the record in the same commit.
    pub(crate) fn promote(&self, who: &Principal, run: &Run, won: u32) -> Result<Promoted> {
        let fork = run.attempts[won as usize - 1].fork.clone().unwrap_or_default();
        let mut copy = run.clone();
        copy.state = State::Promoted;
        copy.winner = Some(won);
        copy.attempts[won as usize - 1].state = State::Promoted;
        let json = serde_json::to_vec_pretty(&copy)
            .map_err(|e| crate::error::Error::caused(ErrorKind::Invalid, "the run's record cannot be written", e))?;
        let options = PromoteOptions {
            policy: Policy::Fail,
            run: Some(run.id.clone()),
            message: Some(format!("run {}, attempt {won}", run.id)),
            extra: vec![(format!("runs/{}.json", run.id).into(), json.into())],
            ..PromoteOptions::default()
        };
        Ok(self.store.session(who, &fork)?.promote(&options)?)
    }

    /// Writes down what came of the promote, and discards the rest.
    pub(crate) fn conclude(&self, live: &Live, run: &Run, won: u32, promoted: Result<Promoted>) -> Result<()> {
        match promoted {
            Ok(done) if done.conflicts.is_empty() => {
                live.attempt(&self.journal, won, |a| a.state = State::Promoted)?;
                self.discard_all(live, run, None);
                self.end(live, |run| {
                    run.state = State::Promoted;
                    run.version = done.version.map(|v| v.to_string());
                    run.changes = done.changes.iter().map(describe).collect();
                });
            }
            Ok(conflicted) => {
                live.attempt(&self.journal, won, |a| a.state = State::Conflicted)?;
                self.keep(&run.attempts[won as usize - 1]);
                self.discard_all(live, run, Some(won));
                self.end(live, |run| {
                    run.state = State::Conflicted;
                    run.conflicts =
                        conflicted.conflicts.iter().map(|c| String::from_utf8_lossy(&c.path).into_owned()).collect();
                    run.error = Some("the winner contradicts the base; its fork was kept".to_owned());
                });
            }
            Err(e) => {
                live.attempt(&self.journal, won, |a| {
                    a.state = State::Kept;
                    a.reason = Some(format!("it could not be promoted: {e}"));
                })?;
                self.keep(&run.attempts[won as usize - 1]);
                self.discard_all(live, run, Some(won));
                self.end(live, |run| {
                    run.state = State::Failed;
                    run.error = Some(format!("the winner could not be promoted, its fork was kept: {e}"));
                });
            }
        }
        Ok(())
    }

    /// Takes a fork's time to live away: it was kept on purpose.
    fn keep(&self, attempt: &Attempt) {
        let kept = || -> Result<()> {
            let fork = attempt.fork.as_deref().unwrap_or_default();
            Ok(self.store.session(&self.root()?, fork)?.keep()?)
        };
        if let Err(e) = kept() {
            tracing::warn!(attempt = attempt.number, "its fork lives only until its time is over: {e}");
        }
    }

    /// Discards every fork but that of `keep`.
    fn discard_all(&self, live: &Live, run: &Run, keep: Option<u32>) {
        for attempt in &run.attempts {
            let (n, Some(fork)) = (attempt.number, &attempt.fork) else { continue };
            if keep == Some(n) {
                continue;
            }
            let freed = self.root().and_then(|root| Ok(self.store.delete_world(&root, fork, true)?));
            let written = live.attempt(&self.journal, n, |a| match &freed {
                Ok(freed) => {
                    a.freed = Some(freed.bytes);
                    a.pending = Some(freed.later).filter(|bytes| *bytes > 0);
                    if a.state != State::Promoted {
                        a.state = State::Discarded;
                    }
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => {
                    a.reason = Some(format!("its fork could not be discarded, and stays until its time is over: {e}"))
                }
            });
            if let Err(e) = written {
                tracing::warn!(attempt = n, "a discarded fork could not be written down: {e}");
            }
        }
    }
}

fn describe(entry: &DiffEntry) -> String {
    let path = String::from_utf8_lossy(&entry.path);
    match &entry.change {
        Change::Added => format!("added {path}"),
        Change::Deleted => format!("deleted {path}"),
        Change::Modified => format!("changed {path}"),
        Change::Renamed { from } => format!("renamed {} to {path}", String::from_utf8_lossy(from)),
        Change::TypeChanged => format!("type changed {path}"),
        Change::Attributes => format!("attributes changed {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::winner;
    use crate::record::{Attempt, State};

    fn judged(number: u32, passed: bool, score: Option<f64>) -> Attempt {
        Attempt { passed: Some(passed), score, state: State::Judged, ..Attempt::new(number) }
    }

    #[test]
    fn the_highest_score_wins_then_the_lowest_number() {
        assert_eq!(winner(&[]), None);
        assert_eq!(winner(&[judged(1, false, Some(9.0))]), None);
        assert_eq!(winner(&[judged(1, true, None), judged(2, true, None)]), Some(1));
        assert_eq!(
            winner(&[judged(1, true, Some(1.0)), judged(2, true, Some(3.0)), judged(3, true, Some(3.0))]),
            Some(2)
        );
        assert_eq!(winner(&[judged(1, true, None), judged(2, true, Some(-1.0))]), Some(2));
    }
}
