//! `mw restart`: another program in the server's place, in the same process. The server does it; here it is asked for and waited for.

use super::Context;
use crate::client::Client;
use crate::dir;
use crate::failure::{DONE, Failure, Result};
use crate::units;
use clap::Args;
use mw_env::Env;
use mw_http::types::{Done, Restart as Report, RestartState, Status};
use mw_model::ErrorKind;
use std::time::Duration;

/// How often the server is asked how far it is, and how often whether runs have ended.
const ASK: Duration = Duration::from_millis(20);
const RUNS: Duration = Duration::from_millis(500);

/// Put another version of this program in the server's place
///
/// The server becomes the program that now lies where it was started from: the same process, with the same mounts, open files and
/// listeners. Requests under way are answered before, later ones wait.
#[derive(Debug, Args)]
pub struct Restart {
    /// Wait until no run is under way
    #[arg(long)]
    wait: bool,
}

impl Restart {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let at = context.dir()?;
        if std::env::var_os("MW_ENDPOINT").is_none() && dir::announced(&at).is_none() {
            let message = format!("no server runs for {}; the next command starts one", at.display());
            return Err(Failure::new(ErrorKind::NotFound, message));
        }
        let (client, env) = (context.client()?, Env::real());
        let asked = self.ask(context, &client, &env)?;
        let report = loop {
            let report: Report = client.get("restart", &[])?;
            if report.id != asked.id || report.state != RestartState::UnderWay {
                break report;
            }
            env.sleep(ASK);
        };
        if let (RestartState::Failed, Some(why)) = (report.state, &report.problem) {
            return Err(Failure::new(ErrorKind::Io, format!("the server goes on as it was: {why}")));
        }
        context.out.show(&report, shown);
        Ok(DONE)
    }

    fn ask(&self, context: &Context<'_>, client: &Client, env: &Env) -> Result<Report> {
        loop {
            let refused = match client.post("restart", &Done {}, None) {
                Err(failure) if self.wait && failure.kind() == ErrorKind::Busy => failure,
                asked => return asked,
            };
            let runs = client.get::<Status>("status", &[])?.runs;
            if runs == 0 {
                // It was busy with something else, or they have just ended.
                return client.post("restart", &Done {}, None).map_err(|_| refused);
            }
            context.out.progress(&format!("waiting for {}", units::count(runs, "run", "runs")));
            env.sleep(RUNS);
        }
    }
}

fn shown(report: &Report) -> String {
    let mut text = format!(
        "version {} serves now, pid {}\nhanded over  {}, {} in them, {}\nclients waited {} ms",
        report.version,
        report.pid,
        units::count(report.mounts, "mount", "mounts"),
        units::count(report.open, "open file", "open files"),
        units::count(report.listeners, "listener", "listeners"),
        report.waited,
    );
    if let Some(problem) = &report.problem {
        text.push_str(&format!("\n{problem}"));
    }
    text
}
