//! `mw world`.

use super::Context;
use super::args::Idempotency;
use crate::failure::{DONE, Result};
use crate::place::world_verb;
use crate::units;
use clap::Subcommand;
use mw_http::types::{self, Freed, NewWorld, Worlds};

/// Create, list, show and delete worlds
#[derive(Debug, Subcommand)]
pub enum World {
    /// Create an empty world
    Create {
        /// The name: 3 to 63 of a-z, 0-9, '-' and '.', as for an S3 bucket
        name: String,
        #[command(flatten)]
        idempotency: Idempotency,
    },
    /// List the worlds that the key may read
    List,
    /// Show a world
    Show {
        /// The name
        name: String,
    },
    /// Delete a world; its forks live on
    Delete {
        /// The name
        name: String,
        /// Delete it with all that is in it
        #[arg(long, short)]
        force: bool,
    },
}

impl World {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let client = context.client()?;
        match self {
            Self::Create { name, idempotency } => {
                let world: types::World =
                    client.post("worlds", &NewWorld { name }, idempotency.idempotency_key.as_deref())?;
                context.out.show(&world, |world| format!("created {}", world.name));
            }
            Self::List => list(context, &client.get("worlds", &[])?),
            Self::Show { name } => {
                let world: types::World = client.get(&world_verb(&name, ""), &[])?;
                context.out.show(&world, show);
            }
            Self::Delete { name, force } => {
                let query = if force { vec![("force", b"true".to_vec())] } else { Vec::new() };
                let freed: Freed = client.delete(&world_verb(&name, ""), &query)?;
                context.out.show(&freed, |freed| format!("deleted {name}: {}", said(freed)));
            }
        }
        Ok(DONE)
    }
}

/// Says what a deletion gave back.
pub fn said(freed: &Freed) -> String {
    if freed.later == 0 {
        return format!("{} given back", units::size(freed.bytes));
    }
    format!("{} given back, {} shared with other worlds", units::size(freed.bytes), units::size(freed.later))
}

/// Prints worlds.
pub fn list(context: &Context<'_>, worlds: &Worlds) {
    context.out.show(worlds, |worlds| {
        let rows: Vec<_> = worlds
            .worlds
            .iter()
            .map(|world| {
                let parent = world.parent.as_ref().map(|parent| parent.name.clone()).unwrap_or_default();
                let expires = world.expires.as_deref().map(units::time).unwrap_or_default();
                vec![world.name.clone(), units::time(&world.created), parent, expires]
            })
            .collect();
        context.out.table(&["NAME", "CREATED", "FORK OF", "EXPIRES"], &rows)
    });
}

fn show(world: &types::World) -> String {
    let mut lines = vec![
        format!("name     {}", world.name),
        format!("id       {}", world.id),
        format!("created  {}", world.created),
        format!("version  {}", world.version),
    ];
    lines.extend(world.parent.as_ref().map(|parent| format!("fork of  {}@{}", parent.name, parent.version)));
    lines.extend(world.expires.as_ref().map(|expires| format!("expires  {expires}")));
    lines.extend(world.run.as_ref().map(|run| format!("run      {run}")));
    lines.push(format!("forks    {}", if world.has_forks { "yes" } else { "no" }));
    lines.join("\n")
}
