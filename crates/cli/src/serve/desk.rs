//! Where restarts are asked for, and where it is known what came of the last one. What one is: `restart`.

use super::mounts::MountTable;
use super::program::Program;
use super::runs::RunTable;
use crate::failure::{Failure, Result};
use mw_env::Env;
use mw_http::host::RestartHost;
use mw_http::types::{Restart, RestartState};
use mw_model::ErrorKind;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

/// Where restarts are asked for.
pub struct Desk {
    program: Program,
    env: Env,
    mounts: Arc<MountTable>,
    runs: Arc<RunTable>,
    last: Mutex<Option<Restart>>,
    bell: Notify,
}

impl Desk {
    /// Opens the desk; `last` is the restart that brought this program here.
    pub fn new(
        program: Program,
        env: Env,
        mounts: Arc<MountTable>,
        runs: Arc<RunTable>,
        last: Option<Restart>,
    ) -> Self {
        Self { program, env, mounts, runs, last: Mutex::new(last), bell: Notify::new() }
    }

    /// Returns the program that is to take over.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Waits until a restart is asked for.
    pub async fn asked(&self) {
        self.bell.notified().await;
    }

    /// Notes that the restart was given up.
    pub fn failed(&self, why: &Failure) {
        tracing::error!("the restart was given up, and the server goes on: {why}");
        if let Some(last) = &mut *self.last.lock() {
            last.state = RestartState::Failed;
            last.problem = Some(why.to_string());
        }
    }

    /// Notes that this program has taken over and answers; clients began to wait at `since`.
    pub fn done(&self, since: u64) {
        if let Some(last) = &mut *self.last.lock() {
            last.state = RestartState::Done;
            env!("CARGO_PKG_VERSION").clone_into(&mut last.version);
            last.waited = self.env.now().saturating_sub(since) / 1_000_000;
            last.problem = self.mounts.lost();
            tracing::info!(mounts = last.mounts, open = last.open, waited_ms = last.waited, "took over");
        }
    }

    /// Refuses while runs are under way: their sandboxes are this process's children, and their files mounts of no table.
    ///
    /// # Errors
    /// `Busy`, naming them.
    pub fn need_no_runs(&self) -> Result<()> {
        let runs = self.runs.under_way();
        if runs.is_empty() {
            return Ok(());
        }
        let message = format!(
            "runs are under way, whose sandboxes would end with the server: {}; wait for them (`mw restart --wait`) or cancel them (`mw runs cancel`)",
            runs.join(", ")
        );
        Err(Failure::new(ErrorKind::Busy, message))
    }

    fn ask(&self) -> Result<Restart> {
        self.need_no_runs()?;
        self.program.examine(&self.mounts.numbers(), &self.env)?;
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|last| last.state == RestartState::UnderWay) {
            return Err(Failure::new(ErrorKind::Busy, "the server is restarting already; wait for the end of that"));
        }
        let restart = Restart {
            id: self.env.token(12),
            state: RestartState::UnderWay,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            mounts: 0,
            open: 0,
            listeners: 0,
            waited: 0,
            problem: None,
        };
        *last = Some(restart.clone());
        self.bell.notify_one();
        Ok(restart)
    }
}

impl RestartHost for Desk {
    fn restart(&self) -> mw_http::Result<Restart> {
        self.ask().map_err(|failure| mw_http::Error::new(failure.kind(), failure.to_string()))
    }

    fn last(&self) -> Option<Restart> {
        self.last.lock().clone()
    }
}
