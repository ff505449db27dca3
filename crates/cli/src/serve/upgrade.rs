//! A directory of an older format, made one of this.
//!
//! Format 1 kept the secrets of keys readable in `meta/`. Sealing them in place would leave the old bytes where files are used again only
//! in time, so that `meta/` is written anew, as a whole, and the old one removed. Segments and everything else stay as they are.
//!
//! Format 2 had a record for each extent. Such records are read as they are; that the directory says format 3 keeps older programs away from
//! those that hold several.
//!
//! Whatever breaks this off, the next start finishes it: the new directory takes its place in two renames, and the format is written last.

use crate::dir;
use crate::failure::{Failure, Result};
use mw_env::{Env, LocalDisk};
use mw_meta::{Batch, Durability, Embedded, Meta, Order};
use mw_model::ErrorKind;
use mw_world::SealingKey;
use std::path::Path;
use std::sync::Arc;

/// How many records are read at a time.
const PAGE: usize = 1024;
/// About how many bytes are written at a time.
const WEIGHT: usize = 4 << 20;

/// Brings `dir` to the format of this program.
///
/// # Errors
/// The old store does not open, or the disk fails or is full; the directory is then as it was.
pub fn upgrade(dir: &Path, env: &Env, sealing: &SealingKey) -> Result<()> {
    let (meta, fresh, old) = (dir.join("meta"), dir.join("meta.new"), dir.join("meta.old"));
    if !meta.exists() && old.exists() && fresh.exists() {
        rename(&fresh, &meta)?;
    }
    if dir::format(dir)? < dir::SEALED && meta.exists() && !old.exists() {
        tracing::info!("sealing the secrets of the keys of a store of format 1");
        remove(&fresh)?;
        copy(&meta, &fresh, env, sealing)?;
        rename(&meta, &old)?;
        rename(&fresh, &meta)?;
    }
    remove(&old)?;
    remove(&fresh)?;
    if dir::format(dir)? < dir::VERSION {
        dir::set_format(dir, env)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, env: &Env, sealing: &SealingKey) -> Result<()> {
    let open = |path: &Path| {
        let disk = LocalDisk::new(path).map(Arc::new).map_err(|e| Failure::io(path.display(), e))?;
        Embedded::open(disk, env.clone()).map_err(|e| failed(path, &e))
    };
    let (old, new) = (open(from)?, open(to)?);
    mw_world::seal_secrets(&*old, env, sealing)?;
    let end = bytes::Bytes::from_static(&[0xff; 8]);
    let mut start = bytes::Bytes::new();
    loop {
        let page = old.scan(&start, &end, PAGE, Order::Up).map_err(|e| failed(from, &e))?;
        let Some((last, _)) = page.last() else { break };
        start = [&last[..], b"\0"].concat().into();
        let (mut batch, mut weight) = (Batch::new(), 0);
        for (key, value) in page {
            weight += key.len() + value.len();
            batch.put(key, value);
            if weight > WEIGHT {
                new.commit(std::mem::replace(&mut batch, Batch::new()), Durability::Soon)
                    .map_err(|e| failed(to, &e))?;
                weight = 0;
            }
        }
        new.commit(batch, Durability::Soon).map_err(|e| failed(to, &e))?;
    }
    new.sync().map_err(|e| failed(to, &e))
}

fn failed(path: &Path, error: &mw_meta::Error) -> Failure {
    Failure::new(ErrorKind::Io, format!("{}: the upgrade failed, and the store is as it was: {error}", path.display()))
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).map_err(|e| Failure::io(from.display(), e))?;
    let parent = to.parent().unwrap_or(to);
    std::fs::File::open(parent).and_then(|dir| dir.sync_all()).map_err(|e| Failure::io(parent.display(), e))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::io(path.display(), e)),
        _ => Ok(()),
    }
}
