//! `mw`: the only binary, and the only place that reads the command line and prints.
//!
//! - [`commands`]: the command line, and one file for each family of verbs, each a client of the control plane;
//! - [`client`], [`endpoint`], [`transport`], [`trust`]: how a command reaches its server, and starts one when there is none;
//! - [`transfer`]: files of this machine as a stream of frames, both ways;
//! - [`serve`]: the server: its listener, mounts, runs, its end; `serve/wire.rs` composes everything;
//! - [`dir`]: the server's directory;
//! - [`output`], [`failure`]: what is printed, and the exit codes.

mod client;
mod commands;
mod dir;
mod endpoint;
mod failure;
mod output;
mod place;
mod serve;
mod transfer;
mod transport;
mod trust;
mod units;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A sandbox's first process is this program too, the guard of a server's mounts, and what is asked before it takes a server's place. They must not look at anything else of the command line or the environment.
    if std::env::args_os().nth(1).is_some_and(|arg| arg == serve::SANDBOX_INIT) {
        return mw_sandbox::init_main();
    }
    if std::env::args_os().nth(1).is_some_and(|arg| arg == serve::MOUNT_GUARD) {
        return serve::mount_guard();
    }
    if std::env::args_os().nth(1).is_some_and(|arg| arg == serve::CAN_TAKE_OVER) {
        return serve::can_take_over();
    }
    let cli = match commands::args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    let out = output::Output::new(cli.global.json);
    match commands::run(cli, &out) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            out.failure(&failure);
            ExitCode::from(failure.exit())
        }
    }
}
