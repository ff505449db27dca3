//! After a restart: every run that had not ended is finished or cleaned up.
//!
//! Its sandboxes died with the server. Its keys die now. A run whose winner was decided is promoted, unless the base already holds
//! the copy of its record, which comes with the promote's own commit. Forks of the others stay for inspection, until their time is over.

use crate::console::Console;
use crate::error::Result;
use crate::events::Events;
use crate::record::{Run, State};
use crate::runs::{Live, Runs};
use mw_world::Principal;
use parking_lot::Mutex;
use std::sync::atomic::AtomicBool;

impl Runs {
    /// Returns the store's own principal.
    pub(crate) fn root(&self) -> Result<Principal> {
        Ok(self.store.principal(&self.store.root_key()?.id)?)
    }

    pub(crate) fn recover(&self) -> Result<()> {
        for run in self.journal.all()? {
            if run.ended.is_none() {
                self.recover_one(run)?;
            }
        }
        Ok(())
    }

    fn recover_one(&self, run: Run) -> Result<()> {
        let root = self.root()?;
        self.kill_keys(&run.id);
        let judged = run.state == State::Judged && !run.spec.keep;
        let live = Live {
            spec: run.spec.clone(),
            who: root.clone(),
            events: Events::default(),
            cancelled: AtomicBool::new(false),
            sandboxes: Mutex::new(Vec::new()),
            console: Console::default(),
            run: Mutex::new(run.clone()),
        };
        tracing::info!(run = run.id, "a run did not end before the restart");
        if let (true, Some(won)) = (judged, run.winner) {
            let copy = format!("runs/{}.json", run.id);
            let base = self.store.session(&root, &run.spec.base);
            if base.is_ok_and(|base| base.resolve(copy.as_bytes()).is_ok()) {
                self.end(&live, |run| {
                    run.state = State::Promoted;
                    run.attempts[won as usize - 1].state = State::Promoted;
                });
                self.discard_rest(&root, &run);
                return Ok(());
            }
            let promoted = self.promote(&root, &run, won);
            return self.conclude(&live, &run, won, promoted);
        }
        self.end(&live, |run| {
            run.state = State::Failed;
            run.error = Some("the server restarted while the run was under way; its forks stay for inspection until their time is over".to_owned());
            for attempt in &mut run.attempts {
                if !attempt.state.is_end() {
                    attempt.state = if attempt.fork.is_some() { State::Kept } else { State::Failed };
                    attempt.reason.get_or_insert_with(|| "the server restarted".to_owned());
                }
            }
        });
        Ok(())
    }

    fn discard_rest(&self, root: &Principal, run: &Run) {
        for fork in run.attempts.iter().filter_map(|a| a.fork.as_deref()) {
            if let Err(e) = self.store.delete_world(root, fork, true) {
                tracing::debug!(fork, "not discarded: {e}");
            }
        }
    }

    /// Revokes every key that was made for a run.
    pub(crate) fn kill_keys(&self, run: &str) {
        let killed = (|| -> Result<()> {
            let root = self.root()?;
            for key in self.store.keys(&root)? {
                if key.run.as_deref() == Some(run) {
                    self.store.delete_key(&root, &key.id)?;
                }
            }
            Ok(())
        })();
        if let Err(e) = killed {
            tracing::error!(run, "a key of the run may live until its time is over: {e}");
        }
    }
}
