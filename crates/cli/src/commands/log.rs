//! `mw log`.

use super::Context;
use crate::failure::{DONE, Result};
use crate::place::world_verb;
use crate::units;
use clap::Args;
use mw_http::types::{self, Spot};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Show who changed what, newest first
#[derive(Debug, Args)]
pub struct Log {
    /// The world, or WORLD@VERSION
    world: String,
    /// Only what changed this path, or something under it
    path: Option<OsString>,
    /// How many entries, up to 10000
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: u32,
    /// Only entries before this place in the log
    #[arg(long, value_name = "SEQ")]
    before: Option<String>,
}

impl Log {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let spot = Spot::parse(&self.world);
        let mut query = vec![("limit", self.limit.to_string().into_bytes())];
        query.extend(self.path.map(|path| ("path", path.as_bytes().to_vec())));
        query.extend(self.before.map(|before| ("before", before.into_bytes())));
        query.extend(spot.at.map(|at| ("at", at.into_bytes())));
        let log: types::Log = context.client()?.get(&world_verb(&spot.world, "log"), &query)?;
        context.out.show(&log, |log| {
            let rows: Vec<_> = log
                .entries
                .iter()
                .map(|entry| {
                    let what = match (&entry.path, entry.note.as_str()) {
                        (Some(path), "") => path.clone(),
                        (Some(path), note) => format!("{path}  ({note})"),
                        (None, note) => note.to_owned(),
                    };
                    let run = entry.run.clone().unwrap_or_else(|| "-".to_owned());
                    vec![units::time(&entry.time), entry.key.clone(), run, entry.verb.clone(), what]
                })
                .collect();
            context.out.table(&["TIME", "KEY", "RUN", "VERB", "PATH"], &rows)
        });
        Ok(DONE)
    }
}
