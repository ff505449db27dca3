//! `mw snapshot`.

use super::Context;
use super::args::Idempotency;
use crate::failure::{DONE, Result};
use crate::place::world_verb;
use crate::units;
use clap::Subcommand;
use mw_http::types::{self, Done, NewSnapshot, Snapshots};

/// Take, list and delete snapshots
#[derive(Debug, Subcommand)]
pub enum Snapshot {
    /// Take a snapshot and print its version
    Take {
        /// The world
        world: String,
        /// A name for it
        label: Option<String>,
        #[command(flatten)]
        idempotency: Idempotency,
    },
    /// List snapshots, oldest first
    List {
        /// The world
        world: String,
    },
    /// Delete a snapshot; the world itself is not touched
    Delete {
        /// The world
        world: String,
        /// The version
        version: String,
    },
}

impl Snapshot {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let client = context.client()?;
        match self {
            Self::Take { world, label, idempotency } => {
                let key = idempotency.idempotency_key.as_deref();
                let snapshot: types::Snapshot =
                    client.post(&world_verb(&world, "snapshots"), &NewSnapshot { label }, key)?;
                context.out.show(&snapshot, |snapshot| snapshot.version.clone());
            }
            Self::List { world } => {
                let snapshots: Snapshots = client.get(&world_verb(&world, "snapshots"), &[])?;
                context.out.show(&snapshots, |snapshots| {
                    let rows: Vec<_> = snapshots
                        .snapshots
                        .iter()
                        .map(|s| {
                            let label = s.label.clone().unwrap_or_default();
                            vec![s.version.clone(), units::time(&s.created), units::size(s.bytes), label]
                        })
                        .collect();
                    context.out.table(&["VERSION", "TAKEN", "SIZE", "LABEL"], &rows)
                });
            }
            Self::Delete { world, version } => {
                let version = mw_http::uri::encode(version.as_bytes(), false);
                let done: Done = client.delete(&world_verb(&world, &format!("snapshots/{version}")), &[])?;
                context.out.show(&done, |_| format!("deleted the snapshot {version}"));
            }
        }
        Ok(DONE)
    }
}
