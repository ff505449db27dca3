//! The default engine: a write-ahead log of our own over a redb B-tree, on any [`Disk`].
//!
//! A batch is checked, numbered, appended to the log and put into a table in memory under one lock (`write`); threads that
//! wait for the disk share syncs (`group`); a full table is frozen and moved into the tree in the background (`apply`), after
//! which its log file is used again. Opening replays what the tree does not have (`recover`).
//!
//! Invariant: what a reader sees is an exact prefix of the submitted batches, and so is what is found after a crash, down to
//! the last batch whose durable ticket was waited for. It does not know what the keys mean, and it does not lock its
//! directory: one process may open a store at a time, and its caller sees to that.

mod apply;
mod backend;
mod base;
mod flusher;
mod group;
mod memtable;
mod merge;
mod recover;
mod required;
mod wal;
mod write;

use crate::{Batch, Durability, Error, Meta, Order, Result, Ticket};
use base::Base;
use bytes::Bytes;
use flusher::Pulse;
use group::Group;
use memtable::Memtable;
use merge::{Source, merge};
use mw_env::{Disk, Env};
use parking_lot::{Condvar, Mutex, RwLock};
use std::ops::Bound;
use std::sync::Arc;
use std::thread::JoinHandle;
use write::Log;

/// Sizes, and whether threads of the store's own are wanted.
#[derive(Debug, Clone)]
pub struct Options {
    /// The bytes of a log file. Two are preallocated; a larger batch makes its file grow for a while.
    pub wal_bytes: u64,
    /// The bytes of changes in memory beyond which a table is frozen and moved into the tree.
    pub table_bytes: usize,
    /// The bytes of the tree's page cache.
    pub cache_bytes: usize,
    /// Move tables and sync `soon` batches on threads of the store's own. Without them a table is moved by the `submit` that
    /// fills it, and a `soon` batch reaches the disk with the next durable one or the end: every step then follows from the
    /// calls, as a simulation wants it.
    pub background: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { wal_bytes: 32 << 20, table_bytes: 16 << 20, cache_bytes: 64 << 20, background: true }
    }
}

/// What readers see. Swapped whole, cloned in no time.
#[derive(Debug, Clone)]
struct View {
    active: Memtable,
    /// The tables that wait for the tree, the newest first.
    frozen: Vec<Memtable>,
    base: Arc<Base>,
}

/// The store without its threads. Locks are taken in the order `log`, `applying`, `view`, then that of `group`.
#[derive(Debug)]
struct Core {
    disk: Arc<dyn Disk>,
    env: Env,
    options: Options,
    log: Mutex<Log>,
    /// Held while a table moves into the tree.
    applying: Mutex<()>,
    /// With `log`: a frozen table is gone, or cannot go, or there is a file for another one.
    room: Condvar,
    /// With `log`: there is a frozen table, or the store ends.
    work: Condvar,
    view: RwLock<View>,
    group: Arc<Group>,
    pulse: Arc<Pulse>,
}

/// The embedded store.
#[derive(Debug)]
pub struct Embedded {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
}

impl Embedded {
    /// Opens the store on `disk`, making it when the disk holds none, with the default [`Options`].
    ///
    /// # Errors
    /// The disk refused, the bytes on it do not verify ([`Error::Corrupt`]) or a newer release wrote them ([`Error::Newer`]).
    pub fn open(disk: Arc<dyn Disk>, env: Env) -> Result<Arc<Self>> {
        Self::open_with(disk, env, Options::default())
    }

    /// Opens the store with options of the caller's own.
    ///
    /// # Errors
    /// See [`Embedded::open`].
    pub fn open_with(disk: Arc<dyn Disk>, env: Env, options: Options) -> Result<Arc<Self>> {
        let core = Arc::new(recover::open(disk, env, options)?);
        let mut store = Self { core, threads: Vec::new() };
        if store.core.options.background {
            let (pulse, group) = (store.core.pulse.clone(), store.core.group.clone());
            store.spawn("mw-meta-flush", move || flusher::run(&pulse, &group))?;
            let core = store.core.clone();
            store.spawn("mw-meta-apply", move || core.apply_until_stopped())?;
        }
        Ok(Arc::new(store))
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        self.threads.push(thread.map_err(|e| Error::io("starting a thread", e))?);
        Ok(())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.core.log.lock().stop = true;
        self.core.work.notify_all();
        self.core.pulse.stop();
        for thread in self.threads.drain(..) {
            // A panic of the thread was printed by the thread.
            let _ = thread.join();
        }
        // An orderly end loses nothing, `soon` or not. A failure here was told to whoever waited for it.
        if let Err(error) = self.core.group.wait_all() {
            tracing::warn!(%error, "the metadata store closed without its last batches on disk");
        }
    }
}

/// Waits for a batch by its place in the log. Holds nothing of the store but the log's files.
#[derive(Debug)]
struct Durable {
    group: Arc<Group>,
    lsn: u64,
}

impl Ticket for Durable {
    fn wait(self: Box<Self>) -> Result<()> {
        self.group.wait(self.lsn)
    }
}

/// The operating system has the batch already.
#[derive(Debug)]
struct Soon;

impl Ticket for Soon {
    fn wait(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Meta for Embedded {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.core.get(key)
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize, order: Order) -> Result<Vec<(Bytes, Bytes)>> {
        self.core.scan(start, end, limit, order)
    }

    fn submit(&self, batch: Batch, durability: Durability) -> Result<Box<dyn Ticket>> {
        let lsn = self.core.submit(&batch)?;
        Ok(match durability {
            Durability::Durable => Box::new(Durable { group: self.core.group.clone(), lsn }),
            Durability::Soon => Box::new(Soon),
        })
    }

    fn sync(&self) -> Result<()> {
        self.core.group.wait_all()
    }

    fn syncs(&self) -> u64 {
        self.core.group.syncs()
    }
}

impl Core {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.get_with(key, Base::get)
    }

    /// Returns the value of `key`, from the tables in memory or else as `deeper` finds it.
    fn get_with(&self, key: &[u8], deeper: fn(&Base, &[u8]) -> Result<Option<Bytes>>) -> Result<Option<Bytes>> {
        self.read(|| {
            // The lock covers the look into memory only; a page of the tree may have to come from the disk.
            let view = self.view.read();
            let mut tables = std::iter::once(&view.active).chain(&view.frozen);
            if let Some(value) = tables.find_map(|table| table.get(key)) {
                return (None, Ok(value.clone()));
            }
            let base = view.base.clone();
            drop(view);
            let value = deeper(&base, key);
            (Some(base), value)
        })
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize, order: Order) -> Result<Vec<(Bytes, Bytes)>> {
        if start >= end || limit == 0 {
            return Ok(Vec::new());
        }
        self.read(|| {
            let view = self.view.read().clone();
            let tables = std::iter::once(&view.active).chain(&view.frozen).map(|table| table.scan(start, end, order));
            let pairs = view.base.scan(start, end, order).and_then(|base| merge(tables.chain([base]), limit, order));
            (Some(view.base.clone()), pairs)
        })
    }

    /// Runs `look`, and again when the tree it looked into failed and was opened anew meanwhile: reads go on when writing
    /// has failed.
    fn read<T>(&self, look: impl Fn() -> (Option<Arc<Base>>, Result<T>)) -> Result<T> {
        loop {
            let (base, result) = look();
            let (Some(base), Err(_)) = (base, &result) else { return result };
            let _settled = self.applying.lock();
            if Arc::ptr_eq(&base, &self.view.read().base) {
                return result;
            }
        }
    }
}

impl Memtable {
    fn scan<'a>(&'a self, start: &'a [u8], end: &'a [u8], order: Order) -> Source<'a> {
        let range = self.map.range::<_, [u8]>((Bound::Included(start), Bound::Excluded(end)));
        let pair = |(key, value): (&Bytes, &Option<Bytes>)| Ok((key.clone(), value.clone()));
        match order {
            Order::Up => Box::new(range.map(pair)),
            Order::Down => Box::new(range.rev().map(pair)),
        }
    }
}
