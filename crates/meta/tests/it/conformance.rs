//! Every engine keeps the contract.

use mw_env::{Env, LocalDisk};
use mw_meta::conformance::{self, Place};
use mw_meta::embedded::Options;
use mw_meta::{Embedded, Memory, Meta};
use mw_sim::SimDisk;
use std::path::Path;
use std::sync::Arc;

struct InMemory;

impl Place for InMemory {
    fn open(&self) -> Arc<dyn Meta> {
        Arc::new(Memory::new())
    }

    fn keeps(&self) -> bool {
        false
    }
}

#[test]
fn memory() {
    conformance::run(|| InMemory);
}

struct InDir(tempfile::TempDir, Options);

impl Place for InDir {
    fn open(&self) -> Arc<dyn Meta> {
        let disk = Arc::new(LocalDisk::new(self.0.path()).unwrap());
        Embedded::open_with(disk, Env::real(), self.1.clone()).unwrap()
    }
}

fn dir() -> tempfile::TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Small enough that every check freezes tables and comes round to the first log file again.
pub fn small() -> Options {
    Options { wal_bytes: 32 << 10, table_bytes: 8 << 10, cache_bytes: 1 << 20, background: true }
}

#[test]
fn embedded() {
    // Smaller log files than usual, because every check makes new ones.
    conformance::run(|| InDir(dir(), Options { wal_bytes: 2 << 20, table_bytes: 1 << 20, ..Options::default() }));
}

#[test]
fn embedded_with_small_tables() {
    conformance::run(|| InDir(dir(), small()));
}

#[test]
fn embedded_with_large_tables_in_small_logs() {
    conformance::run(|| InDir(dir(), Options { wal_bytes: 16 << 10, table_bytes: usize::MAX, ..small() }));
}

struct Simulated(SimDisk);

impl Place for Simulated {
    fn open(&self) -> Arc<dyn Meta> {
        Embedded::open_with(Arc::new(self.0.clone()), Env::seeded(1), Options { background: false, ..small() }).unwrap()
    }
}

#[test]
fn embedded_without_threads() {
    conformance::run(|| Simulated(SimDisk::new(1)));
}
