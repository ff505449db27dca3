//! `mw status`, `mw du`, `mw fsck` and `mw gc`.

use super::Context;
use crate::failure::{DONE, FAILED, Failure, Result};
use crate::place::world_verb;
use crate::units;
use clap::Args;
use hyper::Method;
use mw_http::types::{Fsck, Progress, Spot, Status, Swept, Usage};
use mw_model::ErrorKind;
use serde::de::DeserializeOwned;

/// Show what a world holds
#[derive(Debug, Args)]
pub struct Du {
    /// The world, or WORLD@VERSION
    world: String,
}

impl Du {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let spot = Spot::parse(&self.world);
        let query: Vec<_> = spot.at.map(|at| ("at", at.into_bytes())).into_iter().collect();
        let usage: Usage = context.client()?.get(&world_verb(&spot.world, "usage"), &query)?;
        context.out.show(&usage, |usage| {
            format!(
                "content      {}\nown storage  {}\nfiles        {}\ndirectories  {}\nobjects      {}\ninodes       {}",
                units::size(usage.bytes),
                units::size(usage.own),
                usage.files,
                usage.directories,
                usage.objects,
                usage.inodes
            )
        });
        Ok(DONE)
    }
}

pub fn status(context: &Context<'_>) -> Result<u8> {
    let client = context.client()?;
    let status: Status = client.get("status", &[])?;
    context.out.show(&status, |status| {
        let mut text = format!(
            "server   {}, version {}, pid {}\nmounts   {}\nruns     {}\n",
            client.found().endpoint,
            status.version,
            status.pid,
            status.mounts,
            status.runs
        );
        if !status.mounted.is_empty() {
            text.push_str(&super::mount::table(context, &status.mounted));
            text.push('\n');
        }
        let mut rows = Vec::new();
        flatten("", &status.store, &mut rows);
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(7);
        rows.iter().for_each(|(name, value)| text.push_str(&format!("{name:width$}  {value}\n")));
        text
    });
    Ok(DONE)
}

fn flatten(prefix: &str, value: &serde_json::Value, rows: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&name, value, rows);
            }
        }
        serde_json::Value::String(text) => rows.push((prefix.to_owned(), text.clone())),
        other => rows.push((prefix.to_owned(), other.to_string())),
    }
}

/// Starts long work, shows how far it is, and returns its result.
fn long<T: DeserializeOwned>(context: &Context<'_>, verb: &str) -> Result<T> {
    let client = context.client()?;
    let mut result = None;
    client.stream(&Method::POST, verb, &[])?.lines(|line: Progress<T>| match line {
        Progress::Progress(text) => {
            context.out.progress(&text);
            Ok(())
        }
        Progress::Result(found) => {
            result = Some(found);
            Ok(())
        }
        Progress::Error(error) => Err(Failure::told(error)),
    })?;
    context.out.clear();
    result.ok_or_else(|| Failure::Unreachable("the server left before it was done; try again".to_owned()))
}

pub fn fsck(context: &Context<'_>) -> Result<u8> {
    let found: Fsck = long(context, "fsck")?;
    context.out.show(&found, |found| {
        let mut text: String = found.problems.iter().map(|problem| format!("{problem}\n")).collect();
        text.push_str(&format!(
            "checked {}, {}, {}, {}: {}",
            units::count(found.worlds, "world", "worlds"),
            units::count(found.roots, "root", "roots"),
            units::count(found.blobs, "blob", "blobs"),
            units::size(found.bytes),
            match found.problems.len() {
                0 => "whole".to_owned(),
                n => units::count(n as u64, "problem", "problems"),
            }
        ));
        text
    });
    if found.problems.is_empty() {
        return Ok(DONE);
    }
    if context.out.is_json() {
        context
            .out
            .failure(&Failure::new(ErrorKind::Corrupt, "the store is not whole; the document names what is not"));
    }
    Ok(FAILED)
}

pub fn gc(context: &Context<'_>) -> Result<u8> {
    let swept: Swept = long(context, "gc")?;
    context.out.show(&swept, |swept| {
        let hint = match swept.freed {
            0 => "\nhistory is kept for seven days, unless `mw world retention` says otherwise, and snapshots until they are deleted",
            _ => "",
        };
        format!(
            "freed {} ({}, and {} inside others); {} and {} gone; {} discarded{hint}",
            units::size(swept.freed),
            units::count(swept.segments, "segment", "segments"),
            units::size(swept.inside),
            units::count(swept.worlds, "world", "worlds"),
            units::count(swept.entries, "log entry", "log entries"),
            units::count(swept.reaped.len() as u64, "fork", "forks")
        )
    });
    Ok(DONE)
}
