//! The verdict: the validator's, in a sandbox of its own, on a throw-away fork of what is judged.
//!
//! Whatever the validator writes (a build's output, say) goes with the throw-away: the fork itself cannot change any more, since
//! its key is dead and its files are no longer shown anywhere.

use crate::attempt::{Tell, make_workspace, text_of, unavailable};
use crate::error::Result;
use crate::events::Event;
use crate::record::State;
use crate::runs::{Live, Runs};
use crate::spec::shell;
use mw_sandbox::{Exit, Outcome};
use mw_world::ForkOptions;
use std::sync::Arc;
use std::time::Duration;

impl Runs {
    pub(crate) fn judge(&self, live: &Arc<Live>, n: u32, fork: &str, outcome: &Outcome) -> Result<()> {
        let (passed, score, exit, said) = match &live.spec.validate {
            None => (outcome.exit == Exit::Code(0), None, outcome.exit.status(), None),
            // What did not come to its own end has nothing to be judged.
            Some(_) if !matches!(outcome.exit, Exit::Code(_) | Exit::Signal(_)) => {
                (false, None, outcome.exit.status(), None)
            }
            Some(line) => {
                let verdict = self.validate(live, n, fork, line)?;
                let said = text_of(&verdict);
                let score = score(&verdict.out.to_bytes());
                (verdict.exit == Exit::Code(0), score, verdict.exit.status(), Some(said))
            }
        };
        live.attempt(&self.journal, n, |attempt| {
            attempt.state = State::Judged;
            attempt.passed = Some(passed);
            attempt.score = score;
            attempt.verdict = said.clone();
            if said.is_some() {
                attempt.validator = Some(exit);
                if !passed {
                    attempt.reason = Some(format!("the validator ended with exit code {exit}"));
                }
            }
        })?;
        live.events.push(Event::Verdict { attempt: n, passed, score, exit: Some(exit) });
        Ok(())
    }

    fn validate(&self, live: &Arc<Live>, n: u32, fork: &str, line: &str) -> Result<Outcome> {
        let id = live.run.lock().id.clone();
        let name = format!("run-{id}-{n}-judge");
        let root = self.root()?;
        let options = ForkOptions {
            ttl: Some(Duration::from_secs(live.spec.seconds()).saturating_add(Duration::from_secs(3600))),
            run: Some(id),
            ..ForkOptions::default()
        };
        self.store.fork(&root, fork, &name, &options)?;
        let judged = (|| {
            let session = self.store.session(&root, &name)?;
            make_workspace(&session)?;
            let files = self.place.workspace.open(session).map_err(unavailable)?;
            let env = vec![("FORK".to_owned(), fork.to_owned()), ("MW_ATTEMPT".to_owned(), n.to_string())];
            let spec = self.sandbox_spec(live, files.dir(), env, shell(line), false)?;
            self.run_in_sandbox(live, &spec, Tell::new(live, n, true))
        })();
        if let Err(e) = self.store.delete_world(&root, &name, true) {
            tracing::warn!(fork = name, "the throw-away fork stays until its time is over: {e}");
        }
        judged
    }
}

/// Reads `score: NUMBER` from the last line that is not empty.
fn score(out: &[u8]) -> Option<f64> {
    let text = String::from_utf8_lossy(out);
    let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
    last.trim().strip_prefix("score:")?.trim().parse().ok().filter(|n: &f64| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::score;

    #[test]
    fn the_last_line_ranks() {
        assert_eq!(score(b"building\nscore: 0.5\n"), Some(0.5));
        assert_eq!(score(b"score: 1\nscore: -2e3\n\n"), Some(-2000.0));
        for none in [&b"score: 1\ndone\n"[..], b"", b"score: NaN", b"score: inf", b"score: ten"] {
            assert_eq!(score(none), None);
        }
    }
}
