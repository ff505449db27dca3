//! The table of mounts. It is kept in `DIR/mounts.json`, so that a restarted server mounts again what was mounted.
//!
//! Invariants: the file names exactly what was asked for and not taken back; the server never opens a path on its own mounts, as it
//! would wait for itself; a mount whose server died is detached before anything else is done with its directory.

use super::MOUNT_GUARD;
use super::table::{self, TableFile};
use crate::failure::Failure;
use mw_env::Env;
use mw_fuse::{Guard, MountOptions};
use mw_http::host::MountHost;
use mw_http::types::{Mount, NewMount, Unmount};
use mw_http::{Error, Result};
use mw_model::ErrorKind;
use mw_world::{Session, Store};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const FILE: &str = "mounts.json";
/// How long a mount may take to come to a standstill.
const STILL: Duration = Duration::from_secs(10);

/// What was asked for: enough to mount it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    world: String,
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    read_only: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    writeback: bool,
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

/// A mount on its way to the next server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HandedMount {
    path: PathBuf,
    wish: Wish,
    /// It was unmounted, and some program still uses it.
    leaving: bool,
    /// What was in memory alone.
    pub state: mw_fuse::Handed,
}

/// A mount that was unmounted lazily.
struct Leaving {
    path: PathBuf,
    wish: Wish,
    mount: mw_fuse::Mount,
}

/// The mounts of a server.
pub struct MountTable {
    file: TableFile,
    guard: Guard,
    places: Mutex<BTreeMap<PathBuf, Place>>,
    /// What is out of sight, for as long as programs use it.
    leaving: Mutex<Vec<Leaving>>,
    /// What could not be taken over.
    lost: Vec<String>,
}

impl MountTable {
    /// Goes on with the mounts that were handed over, and mounts again what else the table in `dir` names. What does not mount stays in
    /// the table with its reason.
    pub fn open(dir: &Path, store: &Arc<Store>, env: &Env, handed: Vec<(HandedMount, OwnedFd)>) -> Self {
        let file = TableFile::new(dir, env, FILE, "mounts");
        let wishes: BTreeMap<PathBuf, Wish> = file.read();
        let guard = guard();
        let (mut taken, mut leaving, mut lost) = (BTreeMap::new(), Vec::new(), Vec::new());
        let adopted: Vec<_> = handed
            .into_iter()
            .map(|(handed, device)| {
                let HandedMount { path, wish, leaving, .. } = handed.clone();
                (path, wish, leaving, adopt(store, handed, device, &guard))
            })
            .collect();
        // Only now: what is open in one must not be dropped by a program in another.
        for (path, wish, leaves, adopted) in adopted {
            match adopted.and_then(|adopted| adopted.begin().map_err(fuse)) {
                Ok(mount) if leaves => leaving.push(Leaving { path, wish, mount }),
                Ok(mount) => drop(taken.insert(path, mount)),
                Err(error) => {
                    tracing::error!(%error, dir = %path.display(), "a mount could not be taken over");
                    lost.push(format!("{}: {error}", path.display()));
                }
            }
        }
        let places = wishes
            .into_iter()
            .map(|(path, wish)| {
                if let Some(mount) = taken.remove(&path) {
                    return (path, Place { wish, state: Ok(mount) });
                }
                let state = again(store, &path, &wish, &guard).map_err(|error| {
                    tracing::warn!(%error, dir = %path.display(), world = wish.world, "cannot mount again");
                    error.to_string()
                });
                (path, Place { wish, state })
            })
            .collect();
        Self { file, guard, places: Mutex::new(places), leaving: Mutex::new(leaving), lost }
    }

    /// Returns whether a mount lives.
    pub fn is_busy(&self) -> bool {
        self.places.lock().values().any(|place| place.state.as_ref().is_ok_and(mw_fuse::Mount::is_alive))
    }

    /// Returns what could not be taken over from the server before, if something could not.
    pub fn lost(&self) -> Option<String> {
        (!self.lost.is_empty()).then(|| format!("not handed over: {}", self.lost.join("; ")))
    }

    /// Returns the kernel's numbers of the mounts.
    pub fn numbers(&self) -> Vec<u32> {
        let places = self.places.lock();
        let mounted = places.values().filter_map(|place| place.state.as_ref().ok()?.number());
        mounted.chain(self.leaving.lock().iter().filter_map(|leaving| leaving.mount.number())).collect()
    }

    /// Brings every mount to a standstill, until what is returned is dropped.
    ///
    /// # Errors
    /// `Busy`: something takes its time. All mounts then go on.
    pub fn halt(&self) -> crate::failure::Result<Still<'_>> {
        let still = Still { places: self.places.lock(), leaving: self.leaving.lock() };
        let failed = |e: mw_fuse::Error| Failure::new(e.kind(), format!("{e}; try again later"));
        // In turns: nothing may be on its way to any kernel when the first mount stops answering, and nobody is given a lock
        // when the last has.
        still.mounts().try_for_each(|(_, _, mount)| mount.quiet(STILL)).map_err(failed)?;
        still.mounts().try_for_each(|(_, _, mount)| mount.halt(STILL)).map_err(failed)?;
        still.mounts().try_for_each(|(_, _, mount)| mount.give_back()).map_err(failed)?;
        self.guard.dismiss();
        Ok(still)
    }

    /// Keeps what was unmounted for as long as programs use it.
    fn leave(&self, path: PathBuf, place: Place) {
        let mut leaving = self.leaving.lock();
        leaving.retain(|leaving| leaving.mount.is_alive());
        if let Ok(mount) = place.state
            && mount.is_alive()
        {
            leaving.push(Leaving { path, wish: place.wish, mount });
        }
    }

    /// Detaches everything and keeps the table.
    pub fn close(&self) {
        for (path, place) in std::mem::take(&mut *self.places.lock()) {
            if let Ok(mount) = place.state
                && let Err(error) = mount.unmount(false).or_else(|_| give_up(&mount))
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

/// The mounts of a server at a standstill; dropped, they go on.
pub struct Still<'a> {
    places: MutexGuard<'a, BTreeMap<PathBuf, Place>>,
    leaving: MutexGuard<'a, Vec<Leaving>>,
}

impl Still<'_> {
    fn mounts(&self) -> impl Iterator<Item = (&PathBuf, &Wish, &mw_fuse::Mount)> {
        let mounted =
            self.places.iter().filter_map(|(path, place)| Some((path, &place.wish, place.state.as_ref().ok()?)));
        mounted.chain(self.leaving.iter().map(|leaving| (&leaving.path, &leaving.wish, &leaving.mount)))
    }

    /// Returns each mount with its device.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn hand_over(&self) -> crate::failure::Result<Vec<(HandedMount, OwnedFd)>> {
        let mut all = Vec::new();
        for (path, wish, mount) in self.mounts() {
            let handed = mount.hand_over().map_err(|e| Failure::new(e.kind(), e.to_string()))?;
            let leaving = self.leaving.iter().any(|leaving| std::ptr::eq(&leaving.mount, mount));
            if let Some((device, state)) = handed {
                all.push((HandedMount { path: path.clone(), wish: wish.clone(), leaving, state }, device));
            }
        }
        Ok(all)
    }
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        for (path, _, mount) in self.mounts() {
            if let Err(error) = mount.go_on() {
                tracing::error!(%error, dir = %path.display(), "a mount does not go on");
            }
        }
    }
}

/// Detaches a mount that programs use, with what they have written so far.
fn give_up(mount: &mw_fuse::Mount) -> mw_fuse::Result<()> {
    let written = mount.write_back();
    mount.unmount(true)?;
    written
}

/// Takes over a mount of the server before.
fn adopt(store: &Arc<Store>, handed: HandedMount, device: OwnedFd, guard: &Guard) -> Result<mw_fuse::Adopted> {
    let HandedMount { path, wish, state, .. } = handed;
    // The very instant, whatever a label means by now.
    let at = state.instant().map(|version| version.to_string());
    let session = table::session(store, &wish.key, &wish.world, at.as_deref())?;
    mw_fuse::adopt(session, &path, device, state, &options(&wish, guard)).map_err(fuse)
}

fn again(store: &Arc<Store>, path: &Path, wish: &Wish, guard: &Guard) -> Result<mw_fuse::Mount> {
    mw_fuse::clear_stale(path).map_err(fuse)?;
    let session = table::session(store, &wish.key, &wish.world, wish.at.as_deref())?;
    mw_fuse::mount(session, path, &options(wish, guard)).map_err(fuse)
}

fn options(wish: &Wish, guard: &Guard) -> MountOptions {
    MountOptions {
        read_only: wish.read_only || wish.at.is_some(),
        writeback: wish.writeback,
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
        writeback: place.wish.writeback,
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
            writeback: request.writeback,
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
                    if let Some(before) = places.insert(path.clone(), place) {
                        self.leave(path, before);
                    }
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
        if let Some(place) = places.remove(&path) {
            self.leave(path, place);
        }
        self.save(&places)
    }

    fn list(&self) -> Vec<Mount> {
        self.places.lock().iter().map(|(path, place)| shown(path, place)).collect()
    }
}
