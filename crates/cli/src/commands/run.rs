//! `mw run`, `mw exec` and `mw runs`. The run lives in the server; this shows it, and cancels it at Ctrl-C.

mod keyboard;
mod terminal;

use super::Context;
use super::args::Idempotency;
use crate::client::{Client, take_lines};
use crate::failure::{DONE, FAILED, Failure, Result};
use crate::units;
use clap::{Args, Subcommand};
use hyper::Method;
use keyboard::Keyboard;
use mw_http::types::{self, Attempt, Freed, NewRun, RunEvent, RunState};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terminal::Terminal;

/// What opens, and bounds, the sandbox.
#[derive(Debug, Args)]
struct Sandbox {
    /// The time limit of each attempt, such as 10m
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// The memory limit of each attempt, such as 2G
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// The limit of processes of each attempt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    processes: Option<u32>,
    /// Show this path of the host, read-only. May be repeated
    #[arg(long = "ro", value_name = "HOSTPATH")]
    read_only: Vec<PathBuf>,
    /// Pass this environment variable on, or set it with NAME=VALUE. May be repeated
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Let the command reach this one destination. May be repeated
    #[arg(long, value_name = "HOST:PORT")]
    allow: Vec<String>,
    /// Send standard input to the command, which otherwise has none
    #[arg(short = 'i', long)]
    interactive: bool,
    /// Give the command a terminal, which this one becomes: keys are sent as they are pressed, ^C too
    #[arg(short = 't', long)]
    tty: bool,
    /// Print the run's id and leave it running
    #[arg(long, conflicts_with_all = ["interactive", "tty"])]
    detach: bool,
    #[command(flatten)]
    idempotency: Idempotency,
}

impl Sandbox {
    fn fill(&self, request: &mut NewRun) -> Result<()> {
        request.timeout_seconds =
            self.timeout.as_deref().map(units::duration).transpose()?.map(|limit| limit.as_secs());
        request.memory = self.memory.as_deref().map(units::parse_size).transpose()?;
        request.processes = self.processes;
        request.allow = self.allow.clone();
        for destination in &self.allow {
            let port =
                destination.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(1..))) {
                return Err(Failure::usage(format!("{destination:?} is no destination; write HOST:PORT")));
            }
        }
        request.read_only = self.read_only.iter().map(|path| host_path(path)).collect::<Result<_>>()?;
        request.env = self.env.iter().map(|text| variable(text)).collect::<Result<BTreeMap<_, _>>>()?;
        request.stdin = self.interactive || self.tty;
        request.tty = self.tty;
        if let Some(kind) = std::env::var("TERM").ok().filter(|_| self.tty) {
            request.env.entry("TERM".to_owned()).or_insert(kind);
        }
        Ok(())
    }
}

fn host_path(path: &Path) -> Result<String> {
    let full = path.canonicalize().map_err(|e| Failure::io(path.display(), e))?;
    full.into_os_string().into_string().map_err(|name| Failure::usage(format!("{} is not UTF-8", name.display())))
}

fn variable(text: &str) -> Result<(String, String)> {
    if let Some((name, value)) = text.split_once('=') {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let value = std::env::var(text)
        .map_err(|_| Failure::usage(format!("the environment has no variable {text}; write {text}=VALUE")))?;
    Ok((text.to_owned(), value))
}

/// Run a command on a fork in a sandbox, judge it, promote or discard
#[derive(Debug, Args)]
pub struct Run {
    /// The world to fork
    base: String,
    /// The shell command that judges each attempt; its exit code 0 passes, a last line `score: NUMBER` ranks. Without it the attempt's own exit code counts
    #[arg(long, value_name = "CMD")]
    validate: Option<String>,
    /// How many attempts; attempt i sees MW_ATTEMPT=i
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "cmd")]
    attempts: Option<u32>,
    /// A shell command for an attempt of its own. May be repeated
    #[arg(long, value_name = "CMD", conflicts_with = "command")]
    cmd: Vec<String>,
    /// Keep every fork and promote none
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    sandbox: Sandbox,
    /// The command
    #[arg(last = true, value_name = "CMD", required_unless_present = "cmd")]
    command: Vec<String>,
}

impl Run {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let attempts = if self.cmd.is_empty() {
            self.attempts.unwrap_or(1)
        } else {
            u32::try_from(self.cmd.len()).unwrap_or(u32::MAX)
        };
        let mut request = NewRun {
            base: self.base,
            command: self.command,
            commands: self.cmd,
            attempts,
            validate: self.validate,
            keep: self.keep,
            ..NewRun::default()
        };
        self.sandbox.fill(&mut request)?;
        let Some(run) = start(context, &request, &self.sandbox)? else { return Ok(DONE) };
        context.out.show(&run, said);
        Ok(exit(&run))
    }
}

/// Run a command on a fork in a sandbox, without a verdict
#[derive(Debug, Args)]
pub struct Exec {
    /// The fork
    fork: String,
    #[command(flatten)]
    sandbox: Sandbox,
    /// The command
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

impl Exec {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let mut request =
            NewRun { base: self.fork, command: self.command, attempts: 1, exec: true, ..NewRun::default() };
        self.sandbox.fill(&mut request)?;
        let Some(run) = start(context, &request, &self.sandbox)? else { return Ok(DONE) };
        context.out.show(&run, |run| run.error.as_ref().map_or_else(String::new, |error| error.message.clone()));
        // The command's own code, as with a command that is called directly.
        Ok(exit(&run))
    }
}

/// Starts a run and follows it to its end; `None` when it is left to itself.
fn start(context: &Context<'_>, request: &NewRun, sandbox: &Sandbox) -> Result<Option<types::Run>> {
    let client = Arc::new(context.client()?);
    if sandbox.tty {
        // Refused before anything is made.
        Keyboard::new(&client, "", true)?;
    }
    let run: types::Run = client.post("runs", request, sandbox.idempotency.idempotency_key.as_deref())?;
    if sandbox.detach {
        context.out.show(&run, |run| run.id.clone());
        return Ok(None);
    }
    let listens = sandbox.interactive || sandbox.tty;
    let keyboard = listens.then(|| Keyboard::new(&client, &run.id, sandbox.tty)).transpose()?;
    follow(context, &client, &run, true, keyboard).map(Some)
}

/// Shows the events of a run until it has ended. With `cancel` an interrupt ends the run too; otherwise only the showing.
fn follow(
    context: &Context<'_>,
    client: &Client,
    run: &types::Run,
    cancel: bool,
    mut keyboard: Option<Keyboard>,
) -> Result<types::Run> {
    let id = &run.id;
    let mut terminal = Terminal::new(context.out, run.attempts.len() > 1);
    let mut result = None;
    let mut show = |event: RunEvent| {
        if let Some(keyboard) = &mut keyboard {
            keyboard.hear(&event);
        }
        terminal.show(&event);
        if let RunEvent::Result(run) = event {
            result = Some(*run);
        }
        Ok(())
    };
    let mut stream = client.stream(&Method::GET, &format!("runs/{id}/events"), &[])?;
    let mut rest = Vec::new();
    let interrupted = client.runtime().block_on(async {
        loop {
            tokio::select! {
                piece = stream.next() => match piece? {
                    Some(piece) => take_lines(&mut rest, &piece, &mut show)?,
                    None => return Ok::<_, Failure>(false),
                },
                signal = tokio::signal::ctrl_c() => {
                    signal.map_err(|e| Failure::io("signals", e))?;
                    return Ok(true);
                }
            }
        }
    })?;
    if interrupted && cancel {
        context.out.note("mw: cancelling the run; its sandbox is torn down and its key dies");
        return client.delete(&format!("runs/{id}"), &[]);
    }
    match result {
        Some(run) => Ok(run),
        // The stream ended without the result: the server left, or the user only stopped watching.
        None => client.get(&format!("runs/{id}"), &[]),
    }
}

fn word(state: RunState) -> &'static str {
    match state {
        RunState::Planned => "planned",
        RunState::Forked => "forked",
        RunState::Keyed => "keyed",
        RunState::Started => "started",
        RunState::Finished => "finished",
        RunState::Judged => "judged",
        RunState::Promoted => "promoted",
        RunState::Discarded => "discarded",
        RunState::Kept => "kept",
        RunState::Conflicted => "conflicted",
        RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
    }
}

fn attempt_line(attempt: &Attempt) -> String {
    let mut parts = vec![format!("[{}] {}", attempt.number, word(attempt.state))];
    parts.extend(attempt.fork.as_ref().map(|fork| format!("fork {fork}")));
    parts.extend(attempt.exit.map(|exit| format!("exit code {exit}")));
    parts.extend(attempt.score.map(|score| format!("score {score}")));
    parts.extend(attempt.reason.clone());
    parts.extend(attempt.freed.map(|bytes| super::world::said(&Freed { bytes, later: attempt.pending.unwrap_or(0) })));
    parts.join(", ")
}

fn said(run: &types::Run) -> String {
    let mut lines: Vec<_> = run.attempts.iter().map(attempt_line).collect();
    let winner = run.winner.map(|n| format!(", winner [{n}]")).unwrap_or_default();
    let version = run.version.as_ref().map(|version| format!(", {} is at {version}", run.base)).unwrap_or_default();
    lines.push(format!("run {} {}{winner}{version}", run.id, word(run.state)));
    lines.extend(run.changes.iter().map(|change| format!("  {change}")));
    lines.extend(run.conflicts.iter().map(|path| format!("C {path}")));
    lines.extend(run.error.as_ref().map(|error| error.message.clone()));
    lines.join("\n")
}

/// Returns the exit code that a run stands for; one that has not ended did not succeed.
fn exit(run: &types::Run) -> u8 {
    run.exit.map_or(FAILED, |code| u8::try_from(code).unwrap_or(FAILED))
}

/// List, show, watch and cancel runs
#[derive(Debug, Subcommand)]
pub enum Runs {
    /// List runs, newest first
    List,
    /// Show a run
    Show {
        /// The id
        id: String,
    },
    /// Show what a run does until it ends
    Watch {
        /// The id
        id: String,
    },
    /// Cancel a run and wait for its clean end
    Cancel {
        /// The id
        id: String,
    },
}

impl Runs {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let client = context.client()?;
        let path = |id: &str| format!("runs/{}", mw_http::uri::encode(id.as_bytes(), false));
        match self {
            Self::List => {
                let runs: types::Runs = client.get("runs", &[])?;
                context.out.show(&runs, |runs| {
                    let rows: Vec<_> = runs
                        .runs
                        .iter()
                        .map(|run| {
                            let attempts = run.attempts.len().to_string();
                            vec![
                                run.id.clone(),
                                run.base.clone(),
                                word(run.state).to_owned(),
                                attempts,
                                units::time(&run.created),
                            ]
                        })
                        .collect();
                    context.out.table(&["ID", "BASE", "STATE", "ATTEMPTS", "CREATED"], &rows)
                });
                Ok(DONE)
            }
            Self::Show { id } => {
                let run: types::Run = client.get(&path(&id), &[])?;
                context.out.show(&run, said);
                Ok(DONE)
            }
            Self::Watch { id } => {
                let run: types::Run = client.get(&path(&id), &[])?;
                let run = follow(context, &client, &run, false, None)?;
                context.out.show(&run, said);
                Ok(exit(&run))
            }
            Self::Cancel { id } => {
                let run: types::Run = client.delete(&path(&id), &[])?;
                context.out.show(&run, said);
                Ok(DONE)
            }
        }
    }
}
