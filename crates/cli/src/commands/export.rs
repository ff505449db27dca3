//! `mw export`, `mw unexport` and `mw exports`. The export lives in the server.

use super::Context;
use crate::failure::{DONE, Result};
use clap::Args;
use mw_http::types::{self, Done, Exports, NewExport, Spot};

/// Export a world over NFS to this machine
#[derive(Debug, Args)]
#[command(
    long_about = "Export a world over NFS version 3 on 127.0.0.1, for machines and containers without FUSE. Its promises \
    are weaker than the mount's: clients cache for seconds, there are no locks between programs of several clients, and whoever \
    reaches the port acts with the key of the export."
)]
pub struct Export {
    /// The world, or WORLD@VERSION, which is read-only
    world: String,
    /// The port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Take no changes
    #[arg(long)]
    read_only: bool,
}

/// Take an export away
#[derive(Debug, Args)]
pub struct Unexport {
    /// Its port
    port: u16,
}

impl Export {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let spot = Spot::parse(&self.world);
        let request = NewExport { world: spot.world, at: spot.at, port: self.port, read_only: self.read_only };
        let export: types::Export = context.client()?.post("exports", &request, None)?;
        context.out.show(&export, |export| {
            let port = export.port;
            format!(
                "exported {} on port {port}\n  Linux  mount -t nfs -o vers=3,tcp,nolock,port={port},mountport={port} 127.0.0.1:/ DIR\n  \
                 macOS  mount_nfs -o vers=3,tcp,locallocks,port={port},mountport={port} 127.0.0.1:/ DIR",
                export.world
            )
        });
        Ok(DONE)
    }
}

impl Unexport {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let done: Done = context.client()?.delete(&format!("exports/{}", self.port), &[])?;
        context.out.show(&done, |_| format!("port {} is closed", self.port));
        Ok(DONE)
    }
}

pub fn list(context: &Context<'_>) -> Result<u8> {
    let exports: Exports = context.client()?.get("exports", &[])?;
    context.out.show(&exports, |exports| {
        let rows: Vec<_> = exports
            .exports
            .iter()
            .map(|export| {
                let at = export.at.as_ref().map(|at| format!("@{at}")).unwrap_or_default();
                let mode = if export.read_only { "ro" } else { "rw" };
                let state = export.problem.clone().unwrap_or_else(|| format!("{} clients", export.clients));
                vec![export.port.to_string(), format!("{}{at}", export.world), mode.to_owned(), state]
            })
            .collect();
        context.out.table(&["PORT", "WORLD", "MODE", "STATE"], &rows)
    });
    Ok(DONE)
}
