//! `mw mount`, `mw unmount` and `mw mounts`. The mount lives in the server.

use super::Context;
use crate::failure::{DONE, Failure, Result};
use crate::place::Place;
use crate::units;
use clap::Args;
use mw_http::types::{self, Done, Mounts, NewMount, Spot};
use mw_model::ErrorKind;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Mount a world
#[derive(Debug, Args)]
pub struct Mount {
    /// The world, or WORLD@VERSION, which is read-only
    world: String,
    /// The directory
    dir: PathBuf,
    /// Take no changes
    #[arg(long)]
    read_only: bool,
    /// Have the kernel collect what programs write, until they close or sync: faster for many small writes to one file, for fewer promises
    /// (SEMANTICS, 7.3). Such a mount of a world is its only one
    #[arg(long, conflicts_with = "read_only")]
    writeback: bool,
    /// Show the files of the store's owner as this user's and group's
    #[arg(long, value_name = "UID:GID", value_parser = owner)]
    owner: Option<(u32, u32)>,
    /// Put it where another world or version is mounted now, in one step; programs keep what they have open
    #[arg(long)]
    switch: bool,
}

/// Take a mount away
#[derive(Debug, Args)]
pub struct Unmount {
    /// The directory
    dir: PathBuf,
    /// Detach it even while files on it are open
    #[arg(long)]
    lazy: bool,
}

/// Returns the absolute name of a directory, without looking at the directory itself: on a mount whose server died, that fails.
fn absolute(dir: &Path) -> Result<String> {
    let full = std::path::absolute(dir).map_err(|e| Failure::io(dir.display(), e))?;
    let full = match (full.parent(), full.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = parent.canonicalize().map_err(|e| Failure::io(parent.display(), e))?;
            parent.join(name)
        }
        // It ends in `..`, or is the root.
        _ => full.canonicalize().map_err(|e| Failure::io(full.display(), e))?,
    };
    full.into_os_string()
        .into_string()
        .map_err(|name| Failure::usage(format!("{} is not UTF-8; mount on another directory", name.display())))
}

fn owner(text: &str) -> std::result::Result<(u32, u32), String> {
    let numbers = text.split_once(':').and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
    numbers.ok_or_else(|| "two numbers are needed, like 1000:1000".to_owned())
}

fn spot(text: &str) -> Result<Spot> {
    if !Place::is(OsStr::new(text)) {
        return Ok(Spot::parse(text));
    }
    let place = Place::parse(OsStr::new(text))?;
    if !place.path.is_empty() {
        return Err(Failure::usage(format!("{text:?} names a path; whole worlds are mounted")));
    }
    Ok(place.spot)
}

impl Mount {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let spot = spot(&self.world)?;
        let link = std::fs::symlink_metadata(&self.dir).is_ok_and(|meta| meta.is_symlink());
        let dir =
            if link { self.dir.canonicalize().map_err(|e| Failure::io(self.dir.display(), e))? } else { self.dir };
        match std::fs::metadata(&dir) {
            Ok(meta) if !meta.is_dir() => {
                return Err(Failure::new(
                    ErrorKind::NotDirectory,
                    format!("{} is no directory; make one to mount on", dir.display()),
                ));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Failure::new(
                    ErrorKind::NotFound,
                    format!("{} does not exist; make it first", dir.display()),
                ));
            }
            // Anything else may be a dead mount, which the server clears away.
            Ok(_) | Err(_) => {}
        }
        let Self { read_only, writeback, switch, owner, .. } = self;
        let (world, at, dir) = (spot.world, spot.at, absolute(&dir)?);
        let request = NewMount { world, at, dir, read_only, writeback, owner, switch };
        let mount: types::Mount = context.client()?.post("mounts", &request, None)?;
        context.out.show(&mount, |mount| format!("mounted {} on {}", mount.world, mount.dir));
        Ok(DONE)
    }
}

impl Unmount {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let request = types::Unmount { dir: absolute(&self.dir)?, lazy: self.lazy };
        let done: Done = context.client()?.post("unmount", &request, None)?;
        context.out.show(&done, |_| format!("unmounted {}", request.dir));
        Ok(DONE)
    }
}

pub fn list(context: &Context<'_>) -> Result<u8> {
    let mounts: Mounts = context.client()?.get("mounts", &[])?;
    context.out.show(&mounts, |mounts| table(context, &mounts.mounts));
    Ok(DONE)
}

/// Returns the table of mounts.
pub fn table(context: &Context<'_>, mounts: &[types::Mount]) -> String {
    let rows: Vec<_> = mounts
        .iter()
        .map(|mount| {
            let world = mount.at.as_ref().map_or_else(|| mount.world.clone(), |at| format!("{}@{at}", mount.world));
            let mode = match (mount.read_only, mount.writeback) {
                (true, _) => "ro",
                (false, false) => "rw",
                (false, true) => "rw,writeback",
            };
            let version = mount.version.clone().unwrap_or_default();
            let state = mount.problem.clone().unwrap_or_else(|| "alive".to_owned());
            vec![mount.dir.clone(), world, mode.to_owned(), version, units::size(mount.unsynced), state]
        })
        .collect();
    context.out.table(&["DIR", "WORLD", "MODE", "VERSION", "UNSYNCED", "STATE"], &rows)
}
