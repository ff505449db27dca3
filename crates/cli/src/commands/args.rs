//! The command line. Each family of verbs has its arguments beside its code.

use super::{
    admin, completion, diff, env, export, files, fork, key, log, mcp, mount, promote, restart, run, serve, snapshot,
    world,
};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Forkable worlds for agents: files, S3 and history in one namespace.
#[derive(Debug, Parser)]
#[command(name = "mw", version, max_term_width = 100)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Print one JSON document (`mw schema` describes them), and errors as JSON on standard error
    #[arg(long, global = true)]
    pub json: bool,
    /// The directory of the store [default: ~/.local/share/manyworlds]
    #[arg(long, global = true, value_name = "DIR", env = "MW_DATA")]
    pub data: Option<PathBuf>,
}

/// What makes a command that creates something safe to repeat.
#[derive(Debug, Args)]
pub struct Idempotency {
    /// Repeating the command with the same key gives the thing that was made first
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the store: S3, the control plane and mounts
    Serve(serve::Serve),
    /// Put another version of this program in the server's place; clients and programs on the mounts go on
    Restart(restart::Restart),
    /// Print export lines that point S3 clients at the server
    Env(env::Env),
    /// Create, list, show and delete worlds
    #[command(subcommand)]
    World(world::World),
    /// Fork a world, in constant time
    Fork(fork::Fork),
    /// Drop a fork
    Discard(fork::Discard),
    /// Take, list and delete snapshots
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
    /// Compare two worlds, or two instants of one
    Diff(diff::Diff),
    /// Show who changed what, newest first
    Log(log::Log),
    /// Merge a fork back into its base
    Promote(promote::Promote),
    /// Bring a fork up to its base
    Rebase(promote::Rebase),
    /// Set a world back to an instant, as a new change
    Revert(promote::Revert),
    /// Bring one path back from an instant, as a new change
    Restore(promote::Restore),
    /// Create, list and delete keys
    #[command(subcommand)]
    Key(key::Key),
    /// Serve the tools of one world to an MCP client, over standard input and output
    Mcp(mcp::Mcp),
    /// Mount a world, or an instant of it
    Mount(mount::Mount),
    /// Take a mount away
    Unmount(mount::Unmount),
    /// List mounts
    Mounts,
    /// Export a world over NFS to this machine
    Export(export::Export),
    /// Take an export away
    Unexport(export::Unexport),
    /// List exports
    Exports,
    /// Run a command on a fork in a sandbox, judge it, promote or discard
    Run(run::Run),
    /// Run a command on a fork in a sandbox, without a verdict
    Exec(run::Exec),
    /// List, show, watch and cancel runs
    #[command(subcommand)]
    Runs(run::Runs),
    /// List files
    Ls(files::Ls),
    /// Print files
    Cat(files::Cat),
    /// Copy files of this machine into a world
    Put(files::Put),
    /// Copy files of a world to this machine
    Get(files::Get),
    /// Remove files
    Rm(files::Rm),
    /// Copy files within the store
    Cp(files::Cp),
    /// Move files within a world
    Mv(files::Mv),
    /// Show the state of the server
    Status,
    /// Show what a world holds
    Du(admin::Du),
    /// Check that every byte of the store is whole
    Fsck,
    /// Give the space of dropped worlds and old history back
    Gc,
    /// Print a shell's completion script
    Completion(completion::Completion),
    /// Print the JSON Schema of all documents
    Schema,
}
