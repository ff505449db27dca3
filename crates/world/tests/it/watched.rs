//! A metadata engine in memory that a test looks into: it counts commits, lets something happen before one of its scans, and its
//! syncs take as long as the test likes.

use bytes::Bytes;
use mw_meta::{Batch, Durability, Memory, Meta, Order, Result, Ticket};
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Hook = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub struct Watched {
    inner: Memory,
    batches: AtomicU64,
    bytes: AtomicU64,
    /// How many scans pass before something happens.
    armed: Mutex<Option<(usize, Hook)>>,
    stuck: Arc<Stuck>,
}

/// Whether syncs are stuck.
#[derive(Default)]
struct Stuck {
    is: Mutex<bool>,
    moved: Condvar,
}

impl Watched {
    /// Returns the commits, and their bytes, that `work` makes.
    pub fn of<T>(&self, work: impl FnOnce() -> T) -> (u64, u64) {
        let now = || (self.batches.load(Ordering::SeqCst), self.bytes.load(Ordering::SeqCst));
        let before = now();
        drop(work());
        let after = now();
        (after.0 - before.0, after.1 - before.1)
    }

    /// Lets `hook` happen after so many scans.
    pub fn arm(&self, scans: usize, hook: Hook) {
        *self.armed.lock() = Some((scans, hook));
    }

    /// Returns whether it has happened; from here on it will not.
    pub fn disarm(&self) -> bool {
        self.armed.lock().take().is_none()
    }

    /// From now on no sync ends, or all do.
    pub fn stick(&self, stuck: bool) {
        *self.stuck.is.lock() = stuck;
        self.stuck.moved.notify_all();
    }

    fn due(&self) -> Option<Hook> {
        let mut armed = self.armed.lock();
        match armed.as_mut()? {
            (0, _) => armed.take().map(|(_, hook)| hook),
            (scans, _) => {
                *scans -= 1;
                None
            }
        }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Meta for Watched {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.inner.get(key)
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize, order: Order) -> Result<Vec<(Bytes, Bytes)>> {
        if let Some(hook) = self.due() {
            hook();
        }
        self.inner.scan(start, end, limit, order)
    }

    fn submit(&self, batch: Batch, durability: Durability) -> Result<Box<dyn Ticket>> {
        self.batches.fetch_add(1, Ordering::SeqCst);
        let bytes: usize = batch.puts.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.bytes.fetch_add(bytes as u64, Ordering::SeqCst);
        let ticket = self.inner.submit(batch, durability)?;
        match durability {
            Durability::Durable => Ok(Box::new(Waiting { ticket, stuck: self.stuck.clone() })),
            Durability::Soon => Ok(ticket),
        }
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn syncs(&self) -> u64 {
        self.inner.syncs()
    }
}

struct Waiting {
    ticket: Box<dyn Ticket>,
    stuck: Arc<Stuck>,
}

impl Ticket for Waiting {
    fn wait(self: Box<Self>) -> Result<()> {
        self.stuck.moved.wait_while(&mut self.stuck.is.lock(), |stuck| *stuck);
        self.ticket.wait()
    }
}
