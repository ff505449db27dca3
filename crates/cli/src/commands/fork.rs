//! `mw fork` and `mw discard`.

use super::args::Idempotency;
use super::{Context, world};
use crate::failure::{DONE, Result};
use crate::place::world_verb;
use crate::units;
use clap::Args;
use mw_http::types::{Done, Freed, NewFork, World};

/// Fork a world
#[derive(Debug, Args)]
pub struct Fork {
    /// The world to fork
    base: String,
    /// The fork's name
    name: String,
    /// Fork at this instant instead of now: a version, an RFC 3339 time or a snapshot's label
    #[arg(long, value_name = "VERSION|TIME")]
    at: Option<String>,
    /// Discard the fork after this time, such as 2h
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,
    #[command(flatten)]
    idempotency: Idempotency,
}

impl Fork {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let ttl_seconds = self.ttl.as_deref().map(units::duration).transpose()?.map(|ttl| ttl.as_secs());
        let request = NewFork { name: self.name, at: self.at, ttl_seconds };
        let client = context.client()?;
        let fork: World =
            client.post(&world_verb(&self.base, "forks"), &request, self.idempotency.idempotency_key.as_deref())?;
        context.out.show(&fork, |fork| match &fork.parent {
            Some(parent) => format!("forked {} from {}@{}", fork.name, parent.name, parent.version),
            None => format!("forked {}", fork.name),
        });
        Ok(DONE)
    }
}

/// Drop a fork
#[derive(Debug, Args)]
pub struct Discard {
    /// The fork
    fork: String,
}

impl Discard {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let freed: Freed = context.client()?.post(&world_verb(&self.fork, "discard"), &Done {}, None)?;
        context.out.show(&freed, |freed| format!("discarded {}: {}", self.fork, world::said(freed)));
        Ok(DONE)
    }
}
