//! `mw diff`, with the summary of `--stat` and the unified diff of `--patch`.
//!
//! The server says which paths changed, in time that depends on the changes alone. The text of a change is compared here, out of
//! the contents of both sides.

use super::Context;
use crate::client::Client;
use crate::failure::{DONE, Result};
use crate::output::{Color, Output};
use crate::place::world_verb;
use crate::units;
use clap::Args;
use hyper::Method;
use mw_http::types::{self, Change, How, Kind, Spot, path_bytes};
use similar::TextDiff;
use std::io::Read;

/// The largest text that is compared line by line, in bytes.
const MAX_TEXT: u64 = 8 << 20;

/// Compare two worlds, or two instants of one
#[derive(Debug, Args)]
pub struct Diff {
    /// The older side: WORLD or WORLD@VERSION
    a: String,
    /// The newer side: WORLD or WORLD@VERSION
    b: String,
    /// Show sizes and a summary
    #[arg(long, conflicts_with = "patch")]
    stat: bool,
    /// Show changes of text, line by line
    #[arg(long, short)]
    patch: bool,
}

impl Diff {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let client = context.client()?;
        let query = [("from", self.a.clone().into_bytes()), ("to", self.b.clone().into_bytes())];
        let mut diff: types::Diff = client.get("diff", &query)?;
        if self.patch {
            let (a, b) = (Spot::parse(&self.a), Spot::parse(&self.b));
            for change in &mut diff.changes {
                change.patch = patch(&client, &a, &b, change)?;
            }
        }
        context.out.show(&diff, |diff| {
            if self.patch {
                return patches(context.out, &diff.changes);
            }
            let mut text = lines(context.out, &diff.changes);
            if self.stat {
                text.push_str(&summary(&diff.changes));
            }
            text
        });
        Ok(DONE)
    }
}

/// Shows changes, a line each.
pub fn lines(out: &Output, changes: &[Change]) -> String {
    changes.iter().map(|change| format!("{}\n", line(out, change))).collect()
}

fn line(out: &Output, change: &Change) -> String {
    let (letter, color) = match change.change {
        How::Added => ("A", Color::Green),
        How::Deleted => ("D", Color::Red),
        How::Modified => ("M", Color::Yellow),
        How::Renamed => ("R", Color::Cyan),
        How::TypeChanged => ("T", Color::Yellow),
        How::Attributes => ("a", Color::Yellow),
    };
    let slash = if change.kind == Kind::Directory && !change.path.ends_with('/') { "/" } else { "" };
    let mut text = format!("{} ", out.paint(color, letter));
    if let Some(from) = &change.from {
        text.push_str(&format!("{from}{slash} -> "));
    }
    text.push_str(&format!("{}{slash}", change.path));
    let sizes = match change.change {
        _ if change.kind == Kind::Directory => String::new(),
        How::Added => units::size(change.new_size),
        How::Deleted => units::size(change.old_size),
        How::Modified | How::TypeChanged => {
            format!("{} -> {}", units::size(change.old_size), units::size(change.new_size))
        }
        How::Renamed if change.old_size != change.new_size => {
            format!("{} -> {}", units::size(change.old_size), units::size(change.new_size))
        }
        How::Renamed | How::Attributes => String::new(),
    };
    if sizes.is_empty() { text } else { format!("{text}  ({sizes})") }
}

fn summary(changes: &[Change]) -> String {
    let of = |how: How| changes.iter().filter(|change| change.change == how).count();
    let (more, less) =
        changes.iter().filter(|change| change.kind != Kind::Directory).fold((0_u64, 0_u64), |(more, less), change| {
            let (old, new) = (change.old_size, change.new_size);
            (more + new.saturating_sub(old), less + old.saturating_sub(new))
        });
    let (added, deleted, renamed) = (of(How::Added), of(How::Deleted), of(How::Renamed));
    let changed = changes.len() - added - deleted - renamed;
    format!(
        "{added} added, {changed} changed, {renamed} renamed, {deleted} deleted; +{} -{}\n",
        units::size(more),
        units::size(less)
    )
}

fn patches(out: &Output, changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let Some(patch) = &change.patch else {
            text.push_str(&format!("{}\n", line(out, change)));
            continue;
        };
        for line in patch.lines() {
            let painted = match line.as_bytes() {
                [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => out.paint(Color::Bold, line),
                [b'-', ..] => out.paint(Color::Red, line),
                [b'+', ..] => out.paint(Color::Green, line),
                [b'@', ..] => out.paint(Color::Cyan, line),
                _ => line.to_owned(),
            };
            text.push_str(&painted);
            text.push('\n');
        }
    }
    text
}

/// Returns the change of text as a unified diff; `None` where there is none to show.
fn patch(client: &Client, a: &Spot, b: &Spot, change: &Change) -> Result<Option<String>> {
    let was = change.change != How::Added;
    let is = change.change != How::Deleted;
    let same = change.change == How::Attributes || (change.change == How::Renamed && change.kind == Kind::Directory);
    if change.kind != Kind::File || change.change == How::TypeChanged || same {
        return Ok(None);
    }
    if change.old_size.max(change.new_size) > MAX_TEXT {
        return Ok(Some(format!("Files a/{} and b/{} are too large to compare here\n", change.path, change.path)));
    }
    let old_path = change.from.as_ref().unwrap_or(&change.path);
    let old = if was { content(client, a, old_path)? } else { Vec::new() };
    let new = if is { content(client, b, &change.path)? } else { Vec::new() };
    let (Some(old), Some(new)) = (text(&old), text(&new)) else {
        return Ok(Some(format!("Binary files a/{old_path} and b/{} differ\n", change.path)));
    };
    let from = if was { format!("a/{old_path}") } else { "/dev/null".to_owned() };
    let to = if is { format!("b/{}", change.path) } else { "/dev/null".to_owned() };
    let mut head = String::new();
    if change.from.is_some() {
        head = format!("rename from {old_path}\nrename to {}\n", change.path);
    }
    let body = TextDiff::from_lines(old, new).unified_diff().header(&from, &to).to_string();
    let empty = if body.is_empty() && head.is_empty() { format!("--- {from}\n+++ {to}\n") } else { String::new() };
    Ok(Some(format!("{head}{body}{empty}")))
}

fn content(client: &Client, spot: &Spot, path: &str) -> Result<Vec<u8>> {
    let mut query = vec![("path", path_bytes(path).to_vec())];
    query.extend(spot.at.as_ref().map(|at| ("at", at.clone().into_bytes())));
    let mut bytes = Vec::new();
    client
        .stream(&Method::GET, &world_verb(&spot.world, "content"), &query)?
        .read_to_end(&mut bytes)
        .map_err(|e| crate::failure::Failure::io(path, e))?;
    Ok(bytes)
}

/// Returns the bytes as text, if that is what they are (no NUL, UTF-8).
fn text(bytes: &[u8]) -> Option<&str> {
    if bytes.contains(&0) { None } else { std::str::from_utf8(bytes).ok() }
}
