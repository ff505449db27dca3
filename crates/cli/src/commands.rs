//! One file for each family of verbs. A command reads its arguments, calls the control plane once or a few times, and shows
//! what came back.

pub mod admin;
pub mod args;
pub mod completion;
pub mod diff;
pub mod env;
pub mod export;
pub mod files;
pub mod fork;
pub mod key;
pub mod log;
pub mod mcp;
pub mod mount;
pub mod promote;
pub mod restart;
pub mod run;
mod schema;
pub mod serve;
pub mod snapshot;
pub mod world;

use crate::client::Client;
use crate::endpoint;
use crate::failure::Result;
use crate::output::Output;
use args::{Cli, Command};
use std::path::PathBuf;

/// What every command has at hand.
pub struct Context<'a> {
    pub out: &'a Output,
    data: Option<PathBuf>,
}

impl Context<'_> {
    /// Returns the directory of the store.
    pub fn dir(&self) -> Result<PathBuf> {
        endpoint::data_dir(self.data.as_deref())
    }

    /// Connects to the server.
    pub fn client(&self) -> Result<Client> {
        Client::connect(self.dir()?)
    }
}

/// Does what the command line says, and returns the exit code.
pub fn run(cli: Cli, out: &Output) -> Result<u8> {
    let context = &Context { out, data: cli.global.data };
    match cli.command {
        Command::Serve(args) => args.run(context),
        Command::Restart(args) => args.run(context),
        Command::Env(args) => args.run(context),
        Command::World(args) => args.run(context),
        Command::Fork(args) => args.run(context),
        Command::Discard(args) => args.run(context),
        Command::Snapshot(args) => args.run(context),
        Command::Diff(args) => args.run(context),
        Command::Log(args) => args.run(context),
        Command::Promote(args) => args.run(context),
        Command::Rebase(args) => args.run(context),
        Command::Revert(args) => args.run(context),
        Command::Restore(args) => args.run(context),
        Command::Key(args) => args.run(context),
        Command::Mcp(args) => args.run(context),
        Command::Mount(args) => args.run(context),
        Command::Unmount(args) => args.run(context),
        Command::Mounts => mount::list(context),
        Command::Export(args) => args.run(context),
        Command::Unexport(args) => args.run(context),
        Command::Exports => export::list(context),
        Command::Run(args) => args.run(context),
        Command::Exec(args) => args.run(context),
        Command::Runs(args) => args.run(context),
        Command::Ls(args) => args.run(context),
        Command::Cat(args) => args.run(context),
        Command::Put(args) => args.run(context),
        Command::Get(args) => args.run(context),
        Command::Rm(args) => args.run(context),
        Command::Cp(args) => args.run(context),
        Command::Mv(args) => args.run(context),
        Command::Status => admin::status(context),
        Command::Du(args) => args.run(context),
        Command::Fsck => admin::fsck(context),
        Command::Gc => admin::gc(context),
        Command::Completion(args) => args.run(context),
        Command::Schema => schema::run(context),
    }
}
