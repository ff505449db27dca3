//! The table of mounts. It is kept in `DIR/mounts.json`, so that a restarted server mounts again what was mounted.
//!
//! Invariants: the file names exactly what was asked for and not taken back; the server never opens a path on its own mounts, as it
//! would wait for itself; a mount whose server died is detached before anything else is done with its directory.

use super::MOUNT_GUARD;
use super::table::{self, TableFile};
use mw_env::Env;
use mw_fuse::{Guard, MountOptions};
use mw_http::host::MountHost;
use mw_http::types::{Mount, NewMount, Unmount};
use mw_http::{Error, Result};
use mw_model::ErrorKind;
use mw_world::{Session, Store};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const FILE: &str = "mounts.json";

/// What was asked for: enough to mount it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Wish {
    world: String,
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    read_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<(u32, u32)>,
    /// The key under which the mount acts.
    key: String,
}

/// A wish and what came of it.
struct Place {
    wish: Wish,
    state: std::result::Result<mw_fuse::Mount, String>,
}

/// The mounts of a server.
pub struct MountTable {
    file: TableFile,
    guard: Guard,
    places: Mutex<BTreeMap<PathBuf, Place>>,
}

impl MountTable {
    /// Mounts again what the table in `dir` names. What does not mount stays in the table with its reason.
    pub fn open(dir: &Path, store: &Arc<Store>, env: &Env) -> Self {
        let file = TableFile::new(dir, env, FILE, "mounts");
        let wishes: BTreeMap<PathBuf, Wish> = file.read();
        let guard = guard();
        let places = wishes
            .into_iter()
            .map(|(path, wish)| {
                let state = again(store, &path, &wish, &guard).map_err(|error| {
                    tracing::warn!(%error, dir = %path.display(), world = wish.world, "cannot mount again");
                    error.to_string()
                });
                (path, Place { wish, state })
            })
            .collect();
        Self { file, guard, places: Mutex::new(places) }
    }

    /// Returns whether a mount lives.
    pub fn is_busy(&self) -> bool {
        self.places.lock().values().any(|place| place.state.as_ref().is_ok_and(mw_fuse::Mount::is_alive))
    }

    /// Detaches everything and keeps the table.
    pub fn close(&self) {
        for (path, place) in std::mem::take(&mut *self.places.lock()) {
            if let Ok(mount) = place.state
                && let Err(error) = mount.unmount(false).or_else(|_| mount.unmount(true))
            {
                tracing::warn!(%error, dir = %path.display(), "cannot unmount");
            }
        }
    }

    fn save(&self, places: &BTreeMap<PathBuf, Place>) -> Result<()> {
        let wishes: BTreeMap<&Path, &Wish> = places.iter().map(|(path, place)| (path.as_path(), &place.wish)).collect();
        self.file.write(&wishes)
    }
}

fn again(store: &Arc<Store>, path: &Path, wish: &Wish, guard: &Guard) -> Result<mw_fuse::Mount> {
    mw_fuse::clear_stale(path).map_err(fuse)?;
    let session = table::session(store, &wish.key, &wish.world, wish.at.as_deref())?;
    mw_fuse::mount(session, path, &options(wish, guard)).map_err(fuse)
}

fn options(wish: &Wish, guard: &Guard) -> MountOptions {
    MountOptions {
        read_only: wish.read_only || wish.at.is_some(),
        owner: wish.owner,
        guard: Some(guard.clone()),
        ..MountOptions::default()
    }
}

/// The guard is this program too, also when another has taken its place on the disk.
fn guard() -> Guard {
    Guard::new(|| {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("mw").args([MOUNT_GUARD, &std::process::id().to_string()]);
        command
    })
}

/// Ends the connections of the mounts that the table in `dir` names, whose server is dead and cannot go.
pub fn end_stuck(dir: &Path) {
    let wishes = std::fs::read(dir.join(FILE)).ok();
    let wishes: BTreeMap<PathBuf, Wish> = wishes.and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
    for path in wishes.keys() {
        if let Err(error) = mw_fuse::end_stuck(path) {
            tracing::warn!(%error, dir = %path.display(), "cannot end a dead mount");
        }
    }
}

fn fuse(error: mw_fuse::Error) -> Error {
    Error::new(error.kind(), error.to_string()).with_source(error)
}

fn shown(path: &Path, place: &Place) -> Mount {
    let alive = place.state.as_ref().is_ok_and(mw_fuse::Mount::is_alive);
    Mount {
        world: place.wish.world.clone(),
        at: place.wish.at.clone(),
        dir: path.display().to_string(),
        read_only: place.wish.read_only || place.wish.at.is_some(),
        version: place.state.as_ref().ok().map(|mount| mount.version().to_string()),
        unsynced: place.state.as_ref().map_or(0, mw_fuse::Mount::unsynced),
        alive,
        problem: match &place.state {
            Err(problem) => Some(problem.clone()),
            Ok(_) if !alive => Some("the world is gone, or the mount was taken away".to_owned()),
            Ok(_) => None,
        },
    }
}

/// A directory to mount on: absolute, without `..`, and not the store's own.
fn checked(own: &Path, dir: &str) -> Result<PathBuf> {
    let path = PathBuf::from(dir);
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !plain || path == Path::new("/") {
        return Err(Error::invalid(format!("{dir:?} is no directory to mount on; give an absolute path without '..'")));
    }
    if path.starts_with(own) || own.starts_with(&path) {
        return Err(Error::invalid(format!("{dir:?} holds the store itself, or lies in it; mount somewhere else")));
    }
    Ok(path)
}

impl MountHost for MountTable {
    fn mount(&self, session: Session, request: &NewMount) -> Result<Mount> {
        let session = session.lasting();
        let path = checked(self.file.dir(), &request.dir)?;
        let wish = Wish {
            world: request.world.clone(),
            at: request.at.clone(),
            read_only: request.read_only,
            owner: request.owner,
            key: session.principal().key_id().to_owned(),
        };
        let mut places = self.places.lock();
        if let Some(place) = places.get(&path) {
            match &place.state {
                Ok(mount) if mount.is_alive() && place.wish == wish => return Ok(shown(&path, place)),
                Ok(mount) if mount.is_alive() && request.switch => {
                    let mounted = mw_fuse::switch(session, mount, &options(&wish, &self.guard)).map_err(fuse)?;
                    let place = Place { wish, state: Ok(mounted) };
                    let answer = shown(&path, &place);
                    places.insert(path, place);
                    self.save(&places).map_err(|error| {
                        Error::new(error.kind(), format!("switched, but after a restart the mount goes back: {error}"))
                    })?;
                    return Ok(answer);
                }
                Ok(mount) if mount.is_alive() => {
                    let message = format!(
                        "{} is mounted on {} already; unmount it first, or use --switch",
                        place.wish.world, request.dir
                    );
                    return Err(Error::new(ErrorKind::Busy, message));
                }
                // Dead, or never mounted: its place is free.
                Ok(_) | Err(_) => {
                    places.remove(&path);
                }
            }
        }
        if let Some(other) = places.keys().find(|other| path.starts_with(other)) {
            let message =
                format!("{} lies in the mount {}, which the server cannot look into", request.dir, other.display());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        mw_fuse::clear_stale(&path).map_err(fuse)?;
        let mounted = mw_fuse::mount(session, &path, &options(&wish, &self.guard)).map_err(fuse)?;
        let place = Place { wish, state: Ok(mounted) };
        let answer = shown(&path, &place);
        places.insert(path.clone(), place);
        if let Err(error) = self.save(&places) {
            // Not half made: what is not in the table is not mounted.
            if let Some(Ok(mount)) = places.remove(&path).map(|place| place.state) {
                let _ = mount.unmount(true);
            }
            return Err(error);
        }
        Ok(answer)
    }

    fn unmount(&self, request: &Unmount) -> Result<()> {
        let path = PathBuf::from(&request.dir);
        let mut places = self.places.lock();
        let Some(place) = places.get(&path) else {
            let message = format!("nothing of this store is mounted on {:?}; `mw mounts` lists what is", request.dir);
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        match &place.state {
            Ok(mount) if mount.is_alive() => mount.unmount(request.lazy).map_err(fuse)?,
            Ok(_) | Err(_) => mw_fuse::clear_stale(&path).map_err(fuse)?,
        }
        places.remove(&path);
        self.save(&places)
    }

    fn list(&self) -> Vec<Mount> {
        self.places.lock().iter().map(|(path, place)| shown(path, place)).collect()
    }
}
