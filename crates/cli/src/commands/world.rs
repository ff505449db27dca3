//! `mw world`.

use super::Context;
use super::args::Idempotency;
use crate::failure::{DONE, Result};
use crate::place::world_verb;
use crate::units;
use clap::Subcommand;
use mw_http::types::{self, Freed, NewQuota, NewRetention, NewWorld, QuotaReport, RetentionReport, Worlds};

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
    /// Show how large a world may grow, or set it
    #[command(
        long_about = "Show how large a world may grow, or set it. A fork counts what it shares with its base and has its \
        base's quota; history and snapshots are not counted. Only a key with everything may set it."
    )]
    Quota {
        /// The name
        name: String,
        /// The most content, such as 10G, holes not counted
        #[arg(long, value_name = "SIZE")]
        bytes: Option<String>,
        /// The most files, directories and links
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        inodes: Option<u64>,
        /// Take the quota away
        #[arg(long, conflicts_with_all = ["bytes", "inodes"])]
        none: bool,
    },
    /// Show how long a world's history stays readable, or set it
    #[command(
        long_about = "Show how long a world's history stays readable, or set it. What is older goes with the next sweep (`mw gc` \
        runs one) and its space with it; snapshots stay. Forks made afterwards have it too. Only a key with everything may set it."
    )]
    Retention {
        /// The name
        name: String,
        /// For how long, such as 12h or 30d, or `default`
        #[arg(value_name = "DURATION")]
        keep: Option<String>,
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
            Self::Quota { name, bytes, inodes, none } => {
                let path = world_verb(&name, "quota");
                let mut quota: QuotaReport = client.get(&path, &[])?;
                if none || bytes.is_some() || inodes.is_some() {
                    let bytes = bytes.as_deref().map(units::parse_size).transpose()?;
                    let new = match none {
                        true => NewQuota::default(),
                        // What is not named stays.
                        false => NewQuota { bytes: bytes.or(quota.bytes), inodes: inodes.or(quota.inodes) },
                    };
                    quota = client.post(&path, &new, None)?;
                }
                context.out.show(&quota, quota_lines);
            }
            Self::Retention { name, keep } => {
                let path = world_verb(&name, "retention");
                let retention: RetentionReport = match keep.as_deref() {
                    None => client.get(&path, &[])?,
                    Some("default") => client.post(&path, &NewRetention::default(), None)?,
                    Some(keep) => {
                        let seconds = Some(units::duration(keep)?.as_secs());
                        client.post(&path, &NewRetention { seconds }, None)?
                    }
                };
                context.out.show(&retention, retention_line);
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

fn quota_lines(quota: &QuotaReport) -> String {
    let line = |what: &str, limit: Option<String>, held: String| match limit {
        Some(limit) => format!("{what:<8} {held} of {limit}"),
        None => format!("{what:<8} no limit"),
    };
    [
        line("bytes", quota.bytes.map(units::size), units::size(quota.held_bytes)),
        line("inodes", quota.inodes.map(|n| n.to_string()), quota.held_inodes.to_string()),
    ]
    .join("\n")
}

fn retention_line(retention: &RetentionReport) -> String {
    let default = if retention.default { " (the default)" } else { "" };
    format!(
        "history is kept for {}{default}; readable since {}",
        units::span(retention.seconds),
        units::time(&retention.oldest)
    )
}

/// Says what a deletion gave back.
pub fn said(freed: &Freed) -> String {
    if freed.later == 0 {
        return format!("{} given back", units::size(freed.bytes));
    }
    format!(
        "{} given back, {} pending: other worlds may need it, the next sweep (`mw gc`) decides",
        units::size(freed.bytes),
        units::size(freed.later)
    )
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
