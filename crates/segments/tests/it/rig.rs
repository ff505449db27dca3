//! What the tests share: owners, contents, small files, and a disk whose writes and syncs a test can stop.

use mw_env::{Disk, Env, File};
use mw_model::{Incarnation, WorldId};
use mw_segments::local::Options;
use mw_segments::{Local, Owner};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;

pub const MIB: u64 = 1 << 20;

/// Files small enough that a test sees several.
pub const SMALL: Options = Options { file_size: 8 * MIB, step: 2 * MIB };

pub fn owner(world: u64, incarnation: u64) -> Owner {
    Owner { world: WorldId(world), incarnation: Incarnation(incarnation) }
}

/// Returns `len` bytes that do not compress.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Env::seeded(seed).fill(&mut bytes);
    bytes
}

pub fn open(disk: &(impl Disk + Clone + 'static)) -> Arc<Local> {
    Local::with(Arc::new(disk.clone()), Env::seeded(1), SMALL).expect("open")
}

/// A disk that passes everything on, except what a test has armed.
#[derive(Debug, Clone)]
pub struct Gated<D>(pub D, pub Arc<Gate>);

/// What a test has armed.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct State {
    hold_syncs: bool,
    held: u32,
    torn_writes: u32,
}

impl Gate {
    /// Makes syncs wait until [`Gate::release`].
    pub fn hold_syncs(&self) {
        self.state.lock().hold_syncs = true;
    }

    /// Waits until a sync is being held.
    pub fn wait_held(&self) {
        let mut state = self.state.lock();
        self.moved.wait_while(&mut state, |state| state.held == 0);
    }

    /// Lets the held syncs go.
    pub fn release(&self) {
        self.state.lock().hold_syncs = false;
        self.moved.notify_all();
    }

    /// Makes the next `n` writes write their first half and then find the disk full.
    pub fn tear_writes(&self, n: u32) {
        self.state.lock().torn_writes = n;
    }
}

impl<D: Disk> Disk for Gated<D> {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(GatedFile(self.0.open(name)?, self.1.clone())))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
}

#[derive(Debug)]
struct GatedFile(Arc<dyn File>, Arc<Gate>);

impl File for GatedFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let torn = {
            let left = &mut self.1.state.lock().torn_writes;
            let torn = *left > 0;
            *left = left.saturating_sub(1);
            torn
        };
        if torn {
            self.0.write_at(&bytes[..bytes.len() / 2], offset)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.1.state.lock();
        state.held += 1;
        self.1.moved.notify_all();
        self.1.moved.wait_while(&mut state, |state| state.hold_syncs);
        state.held -= 1;
        drop(state);
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.punch(offset, len)
    }

    fn held(&self, offset: u64, len: u64) -> io::Result<u64> {
        self.0.held(offset, len)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.0.allocated()
    }
}
