//! Runs in the server: `mw_run` over the mount and the sandbox, behind the trait of the control plane.
//!
//! A fork is shown to its sandbox by a mount of its own under `DIR/work`. What a server that died left there is cleared before
//! the runs are opened, as they clean up after themselves with the directories gone.

use super::SANDBOX_INIT;
use crate::failure::{Failure, Result};
use mw_env::Env;
use mw_fuse::MountOptions;
use mw_http::host::{RunHost, Typed};
use mw_http::types::{self, ErrorBody, NewRun, RunEvent, RunState};
use mw_http::when;
use mw_model::ErrorKind;
use mw_run::{Event, Files, Input, Place, RunSpec, Runs, State, Workspace};
use mw_sandbox::Bubblewrap;
use mw_world::{Principal, Session, Store};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many attempts of one run work at the same time.
const PARALLEL: usize = 4;

/// Shows worlds to sandboxes by mounting them.
struct Mounted {
    dir: PathBuf,
    env: Env,
}

/// A world that is shown.
struct Shown {
    dir: PathBuf,
    mount: mw_fuse::Mount,
}

impl Workspace for Mounted {
    fn open(&self, session: Session) -> std::result::Result<Box<dyn Files>, String> {
        let dir = self.dir.join(self.env.token(16));
        std::fs::create_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let options = MountOptions { read_only: session.version().is_some(), ..MountOptions::default() };
        match mw_fuse::mount(session, &dir, &options) {
            Ok(mount) => Ok(Box::new(Shown { dir, mount })),
            Err(error) => {
                // Nothing was mounted on it, so that it is only an empty directory.
                let _ = std::fs::remove_dir(&dir);
                Err(error.to_string())
            }
        }
    }
}

impl Files for Shown {
    fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Err(error) = self.mount.unmount(false).or_else(|_| self.mount.unmount(true)) {
            tracing::warn!(%error, dir = %self.dir.display(), "the files of a run stay mounted");
            return;
        }
        // The next start clears what stays.
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// The runs of a server.
pub struct RunTable(Arc<Runs>);

impl RunTable {
    /// Opens the runs of the store in `dir`. `endpoint` is where the server answers, for the forwarder of the sandbox.
    pub fn open(dir: &Path, store: &Arc<Store>, endpoint: SocketAddr, env: &Env) -> Result<Self> {
        let work = dir.join("work");
        std::fs::create_dir_all(&work).map_err(|e| Failure::io(work.display(), e))?;
        for left in std::fs::read_dir(&work).map_err(|e| Failure::io(work.display(), e))?.flatten() {
            let outcome = mw_fuse::clear_stale(&left.path()).map_err(|e| e.to_string());
            let outcome = outcome.and_then(|()| std::fs::remove_dir(left.path()).map_err(|e| e.to_string()));
            if let Err(error) = outcome {
                tracing::warn!(error, dir = %left.path().display(), "what a former run left cannot be cleared");
            }
        }
        let program = std::env::current_exe().map_err(|e| Failure::io("this program", e))?;
        let place = Place {
            workspace: Arc::new(Mounted { dir: work, env: env.clone() }),
            backend: Arc::new(Bubblewrap::new(program).with_init_arguments([SANDBOX_INIT])),
            endpoint,
            parallel: PARALLEL,
        };
        let runs = Runs::open(store.clone(), place).map_err(|e| Failure::new(e.kind(), e.to_string()))?;
        Ok(Self(runs))
    }

    /// Returns the runs that have not ended.
    pub fn under_way(&self) -> Vec<String> {
        self.0.under_way()
    }
}

fn failed(error: mw_run::Error) -> mw_http::Error {
    mw_http::Error::new(error.kind(), error.to_string()).with_source(error)
}

fn state(state: State) -> RunState {
    match state {
        State::Planned => RunState::Planned,
        State::Forked => RunState::Forked,
        State::Keyed => RunState::Keyed,
        State::Started => RunState::Started,
        State::Finished => RunState::Finished,
        State::Judged => RunState::Judged,
        State::Promoted => RunState::Promoted,
        State::Discarded => RunState::Discarded,
        State::Kept => RunState::Kept,
        State::Conflicted => RunState::Conflicted,
        State::Failed => RunState::Failed,
        State::Cancelled => RunState::Cancelled,
    }
}

fn time(nanoseconds: u64) -> String {
    when::rfc3339(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}

fn document(run: mw_run::Run) -> types::Run {
    let exit = run.exit_status();
    let ended = run.state.is_end() || run.ended.is_some();
    let attempts = run.attempts.into_iter().map(|attempt| types::Attempt {
        number: attempt.number,
        state: state(attempt.state),
        fork: attempt.fork,
        exit: attempt.exit,
        passed: attempt.passed,
        score: attempt.score,
        reason: attempt.reason,
        freed: attempt.freed,
        pending: attempt.pending,
    });
    types::Run {
        id: run.id,
        base: run.spec.base,
        state: state(run.state),
        created: time(run.created),
        ended: run.ended.map(time),
        attempts: attempts.collect(),
        winner: run.winner,
        version: run.version,
        conflicts: run.conflicts,
        changes: run.changes,
        exit: ended.then_some(exit),
        error: run.error.map(|message| ErrorBody { kind: ErrorKind::Io.as_str().to_owned(), message }),
    }
}

fn event(event: Event) -> RunEvent {
    match event {
        Event::Beat => RunEvent::Beat,
        Event::State { attempt, state: to } => RunEvent::State { attempt, state: state(to) },
        Event::Output { attempt, stream, validator, text } => {
            let stream = match stream {
                mw_sandbox::Stream::Out => types::Stream::Out,
                mw_sandbox::Stream::Err => types::Stream::Err,
            };
            RunEvent::Output { attempt, stream, validator, text }
        }
        Event::Verdict { attempt, passed, score, exit } => RunEvent::Verdict { attempt, passed, score, exit },
        Event::Result(run) => RunEvent::Result(Box::new(document(*run))),
    }
}

impl RunHost for RunTable {
    fn start(&self, who: &Principal, request: &NewRun, idempotency: Option<&str>) -> mw_http::Result<types::Run> {
        let spec = RunSpec {
            base: request.base.clone(),
            command: request.command.clone(),
            commands: request.commands.clone(),
            attempts: request.attempts,
            validate: request.validate.clone(),
            keep: request.keep,
            exec: request.exec,
            timeout: request.timeout_seconds,
            memory: request.memory,
            processes: request.processes,
            read_only: request.read_only.iter().map(PathBuf::from).collect(),
            env: request.env.clone(),
            allow: request.allow.clone(),
            tty: request.tty,
            stdin: request.stdin,
        };
        self.0.start(who, &spec, idempotency).map(document).map_err(failed)
    }

    fn list(&self, who: &Principal) -> mw_http::Result<Vec<types::Run>> {
        Ok(self.0.list(who).map_err(failed)?.into_iter().map(document).collect())
    }

    fn show(&self, who: &Principal, id: &str) -> mw_http::Result<types::Run> {
        self.0.show(who, id).map(document).map_err(failed)
    }

    fn watch(&self, who: &Principal, id: &str, each: &mut dyn FnMut(RunEvent) -> bool) -> mw_http::Result<()> {
        self.0.watch(who, id, &mut |happened| each(event(happened))).map_err(failed)
    }

    fn cancel(&self, who: &Principal, id: &str) -> mw_http::Result<types::Run> {
        self.0.cancel(who, id).map(document).map_err(failed)
    }

    fn type_to(&self, who: &Principal, id: &str, typed: Typed<'_>) -> mw_http::Result<()> {
        let input = match typed {
            Typed::Bytes(bytes) => Input::Bytes(bytes.to_vec()),
            Typed::End => Input::End,
            Typed::Size { rows, columns } => Input::Size { rows, columns },
        };
        self.0.input(who, id, &input).map_err(failed)
    }

    fn active(&self) -> u64 {
        self.0.active()
    }

    fn stop(&self) {
        self.0.stop();
    }
}
