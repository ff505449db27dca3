//! `mw promote`, `mw rebase`, `mw revert` and `mw restore`.

use super::{Context, diff};
use crate::client::take_lines;
use crate::failure::{CONFLICT, DONE, Failure, Result};
use crate::place::{Place, world_verb};
use crate::units;
use clap::{Args, ValueEnum};
use mw_http::types::{self, ConflictKind, Done, NewPromote, NewRestore, NewRevert, Progress, Promoted, Side, Spot};
use mw_model::ErrorKind;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

/// What to do about conflicts.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Policy {
    /// Apply nothing and list them
    Fail,
    /// Keep what the target has
    Ours,
    /// Take what the source has
    Theirs,
}

/// Merge a fork back into its base
#[derive(Debug, Args)]
pub struct Promote {
    /// The fork
    fork: String,
    #[command(flatten)]
    how: How,
}

/// Bring a fork up to its base
#[derive(Debug, Args)]
pub struct Rebase {
    /// The fork
    fork: String,
    #[command(flatten)]
    how: How,
}

/// What to combine when both sides changed a content.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Combine {
    /// Text, by lines
    Text,
    /// JSON in files called *.json, by keys
    Json,
}

#[derive(Debug, Args)]
struct How {
    /// Say what would be done and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Only what lies under this path
    #[arg(long, value_name = "PREFIX")]
    only: Option<String>,
    /// What to do about conflicts
    #[arg(long, value_enum, default_value = "fail")]
    policy: Policy,
    /// Combine the contents that both sides changed, where their changes do not meet: text by lines, *.json by keys
    #[arg(long, value_enum, value_name = "SORT", value_delimiter = ',')]
    merge: Vec<Combine>,
    /// Decisions by path: a JSON object {"PATH": "ours"|"theirs"}, or lines `ours PATH` and `theirs PATH`
    #[arg(long, value_name = "FILE")]
    resolve: Option<PathBuf>,
    /// A text for the log
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Say on standard error what is being done, also where that is no terminal
    #[arg(long)]
    progress: bool,
}

impl How {
    fn request(self) -> Result<NewPromote> {
        let policy = match self.policy {
            Policy::Fail => types::Policy::Fail,
            Policy::Ours => types::Policy::Ours,
            Policy::Theirs => types::Policy::Theirs,
        };
        let resolve = self.resolve.as_deref().map(resolutions).transpose()?.unwrap_or_default();
        let merge = self.merge.iter().map(|sort| match sort {
            Combine::Text => types::Combine::Text,
            Combine::Json => types::Combine::Json,
        });
        let merge = merge.collect();
        Ok(NewPromote { dry_run: self.dry_run, only: self.only, policy, merge, resolve, message: self.message })
    }
}

/// Reads a resolution file.
fn resolutions(path: &Path) -> Result<BTreeMap<String, Side>> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::io(path.display(), e))?;
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(&text).map_err(|e| {
            Failure::usage(format!("{}: {e}; write {{\"PATH\": \"ours\" or \"theirs\"}}", path.display()))
        });
    }
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(at, line)| {
            let side = |word| match word {
                "ours" => Some(Side::Ours),
                "theirs" => Some(Side::Theirs),
                _ => None,
            };
            line.split_once(' ').and_then(|(word, path)| Some((path.to_owned(), side(word)?))).ok_or_else(|| {
                Failure::usage(format!("{} line {}: write `ours PATH` or `theirs PATH`", path.display(), at + 1))
            })
        })
        .collect()
}

/// Merges, and shows how far it is. An interrupt stops the merge unless it is being committed, and waits to hear which it was; a second
/// one no longer waits.
fn merge(context: &Context<'_>, fork: &str, verb: &str, how: How) -> Result<Promoted> {
    let (asked, request) = (how.progress, how.request()?);
    let client = context.client()?;
    // Before anything can be interrupted.
    let mut interrupts = {
        let _inside = client.runtime().enter();
        signal(SignalKind::interrupt()).map_err(|e| Failure::io("signals", e))?
    };
    let mut stream = client.stream_of(&world_verb(fork, verb), &[("watch", b"true".to_vec())], &request)?;
    let (mut rest, mut result, mut stopping) = (Vec::new(), None, false);
    let mut hear = |line: Progress<Promoted>| match line {
        Progress::Progress(text) => {
            context.out.step(&text, asked);
            Ok(())
        }
        Progress::Result(promoted) => {
            result = Some(promoted);
            Ok(())
        }
        Progress::Error(error) => Err(Failure::told(error)),
    };
    loop {
        let interrupted = client.runtime().block_on(async {
            loop {
                tokio::select! {
                    piece = stream.next() => match piece? {
                        Some(piece) => take_lines(&mut rest, &piece, &mut hear)?,
                        None => return Ok::<_, Failure>(false),
                    },
                    _ = interrupts.recv() => return Ok(true),
                }
            }
        })?;
        context.out.clear();
        if !interrupted {
            break;
        }
        if stopping {
            return Err(Failure::new(
                ErrorKind::Cancelled,
                format!("left before the {verb} had ended; it is stopped or done as a whole, and `mw log` shows which"),
            ));
        }
        stopping = true;
        context.out.note(&format!("mw: stopping the {verb}; what is being committed is not stopped any more"));
        let _: Done = client.post(&world_verb(fork, &format!("{verb}/stop")), &Done {}, None)?;
    }
    let promoted = result.ok_or_else(|| {
        Failure::Unreachable(format!("the server left before the {verb} had ended; `mw log` shows whether it was done"))
    })?;
    if stopping && promoted.version.is_some() {
        context.out.note(&format!("mw: too late to stop: the {verb} was committed"));
    }
    Ok(promoted)
}

impl Promote {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let promoted = merge(context, &self.fork, "promote", self.how)?;
        Ok(show(context, &promoted, &format!("mw promote {}", self.fork), "promoted"))
    }
}

impl Rebase {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let promoted = merge(context, &self.fork, "rebase", self.how)?;
        Ok(show(context, &promoted, &format!("mw rebase {}", self.fork), "rebased"))
    }
}

/// Set a world back to an instant
#[derive(Debug, Args)]
pub struct Revert {
    /// The world
    world: String,
    /// The instant: a version, an RFC 3339 time or a snapshot's label
    version: String,
}

impl Revert {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let request = NewRevert { to: self.version };
        let promoted: Promoted = context.client()?.post_raw(&world_verb(&self.world, "revert"), &request)?;
        Ok(show(context, &promoted, "mw revert", "reverted"))
    }
}

/// Bring one path back from an instant
#[derive(Debug, Args)]
pub struct Restore {
    /// The world and the instant: WORLD@VERSION
    from: String,
    /// The path
    path: String,
}

impl Restore {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let spot = if Place::is(OsStr::new(&self.from)) {
            Place::parse(OsStr::new(&self.from))?.spot
        } else {
            Spot::parse(&self.from)
        };
        let from =
            spot.at.ok_or_else(|| Failure::usage(format!("{:?} names no instant; write WORLD@VERSION", self.from)))?;
        let request = NewRestore { from, path: self.path };
        let promoted: Promoted = context.client()?.post_raw(&world_verb(&spot.world, "restore"), &request)?;
        Ok(show(context, &promoted, "mw restore", "restored"))
    }
}

fn name(kind: ConflictKind) -> &'static str {
    match kind {
        ConflictKind::BothModified => "both modified",
        ConflictKind::BothAdded => "both added",
        ConflictKind::ModifyDelete => "modified here, deleted there",
        ConflictKind::DeleteModify => "deleted here, modified there",
        ConflictKind::RenameRename => "renamed differently",
        ConflictKind::RenameCycle => "renames make a cycle",
        ConflictKind::ParentDeleted => "parent deleted",
        ConflictKind::TypeChanged => "type changed",
        ConflictKind::Attributes => "attributes differ",
    }
}

/// Prints the outcome and returns the exit code. `again` is the command to repeat with decisions.
fn show(context: &Context<'_>, promoted: &Promoted, again: &str, done: &str) -> u8 {
    context.out.show(promoted, |promoted| {
        let mut text = diff::lines(context.out, &promoted.changes);
        for path in &promoted.merged {
            text.push_str(&format!("+ {path}  (both sides' changes kept)\n"));
        }
        if promoted.conflicts.is_empty() {
            text.push_str(&outcome(promoted, done));
        }
        text
    });
    if promoted.conflicts.is_empty() {
        return DONE;
    }
    if !context.out.is_json() {
        for conflict in &promoted.conflicts {
            let detail = if conflict.detail.is_empty() { String::new() } else { format!(": {}", conflict.detail) };
            context.out.note(&format!("C {}  ({}{detail})", conflict.path, name(conflict.kind)));
        }
        context.out.note(&format!(
            "mw: {}, nothing was applied; decide with `{again} --resolve FILE` (a line `ours PATH` or `theirs PATH` for each), or with --policy ours|theirs",
            units::count(promoted.conflicts.len() as u64, "conflict", "conflicts"),
        ));
    } else if let Some(error) = &promoted.error {
        context.out.failure(&Failure::told(error.clone()));
    }
    CONFLICT
}

fn outcome(promoted: &Promoted, done: &str) -> String {
    let changes = units::count(promoted.changes.len() as u64, "change", "changes");
    if promoted.dry_run {
        return format!("would be {done}: {changes}");
    }
    let version = promoted.version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    let snapshot =
        promoted.snapshot.as_ref().map(|version| format!(", undo with the snapshot {version}")).unwrap_or_default();
    format!("{done}: {changes}{version}{snapshot}")
}
