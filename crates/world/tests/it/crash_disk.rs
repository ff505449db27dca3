//! A store on one simulated disk: both engines lie on it, so that one power cut hits both at the same instant.
//!
//! Nothing here runs on a thread of its own unless it is asked for: every step of the disk follows from the calls.

use mw_env::{Disk, Env};
use mw_meta::embedded;
use mw_meta::{Embedded, Meta};
use mw_segments::{Local, Segments, local};
use mw_sim::{Part, SimDisk};
use mw_world::{Options, Principal, Result, Session, Store};
use std::sync::Arc;

/// The names that the two engines' files begin with.
pub const META: &str = "meta-";
pub const DATA: &str = "data-";

/// One life of a store: from its opening to the end of the process.
pub struct Life {
    pub store: Arc<Store>,
    pub root: Principal,
}

/// The real engines over a disk, without a thread of their own.
pub fn engines(disk: Arc<dyn Disk>, env: &Env) -> Result<(Arc<dyn Meta>, Arc<dyn Segments>)> {
    engines_with(disk, env, false)
}

/// The real engines over a disk.
pub fn engines_with(disk: Arc<dyn Disk>, env: &Env, background: bool) -> Result<(Arc<dyn Meta>, Arc<dyn Segments>)> {
    let small = embedded::Options { wal_bytes: 64 << 10, table_bytes: 24 << 10, cache_bytes: 1 << 20, background };
    let meta = Embedded::open_with(Part::of(disk.clone(), META), env.clone(), small)?;
    let size = local::Options { file_size: 8 << 20, step: 2 << 20 };
    let segments = Local::with(Part::of(disk, DATA), env.clone(), size)?;
    Ok((meta, segments))
}

impl Life {
    /// Opens the store that lies on `disk`, or makes one.
    pub fn begin(disk: &SimDisk, env: &Env, options: &Options) -> Result<Self> {
        let (meta, segments) = engines(Arc::new(disk.clone()), env)?;
        Self::over(meta, segments, env, options)
    }

    pub fn over(meta: Arc<dyn Meta>, segments: Arc<dyn Segments>, env: &Env, options: &Options) -> Result<Self> {
        let store = Store::open(meta, segments, env.clone(), options.clone())?;
        let root = store.principal(&store.root_key()?.id)?;
        Ok(Self { store, root })
    }

    pub fn session(&self, world: &str) -> Result<Session> {
        self.store.session(&self.root, world)
    }

    /// Makes everything that was done in `world` durable.
    pub fn sync(&self, world: &str) -> Result<()> {
        self.session(world)?.sync()
    }
}

/// Options of a store that folds in the call that fills an overlay of `fold_bytes`.
pub fn options(fold_bytes: usize) -> Options {
    // Little enough that merges are committed both ways.
    Options { fold_bytes, little: 24, memory: 16 << 20, background: false, ..Options::default() }
}
