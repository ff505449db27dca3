//! Small mutable truth: an ordered key-value store with conditional batches. It does not know what the keys mean.
//!
//! - [`Meta`]: the seam, and all that the layers above may use;
//! - [`embedded`]: the default engine: a write-ahead log of our own (one append a batch, one `fdatasync` a group) over a redb B-tree;
//! - [`memory`]: for tests;
//! - [`conformance`]: the contract as a test suite, run against every engine.

mod batch;
pub mod conformance;
pub mod embedded;
mod error;
pub mod memory;

pub use batch::{Batch, Durability, Expect};
pub use embedded::Embedded;
pub use error::Error;
pub use memory::Memory;

use bytes::Bytes;
use std::fmt::Debug;

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 1024;

/// The largest batch, in bytes: its keys and values, and 16 bytes for each change.
pub const MAX_BATCH: usize = 64 << 20;

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Smallest key first.
    Up,
    /// Largest key first.
    Down,
}

/// A promise to make one submitted batch as durable as was asked.
pub trait Ticket: Send {
    /// Waits until the batch is as durable as was asked. Threads that wait at the same time share one sync.
    ///
    /// # Errors
    /// The sync failed: the store is read-only from now on.
    fn wait(self: Box<Self>) -> Result<()>;
}

/// An ordered key-value store with conditional batches. Serialisable: batches take effect one after another, in the order
/// of their `submit` calls.
pub trait Meta: Send + Sync + Debug {
    /// Returns the value of `key`, seeing every batch whose `submit` has returned.
    ///
    /// # Errors
    /// The engine failed or its bytes do not verify.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// Returns at most `limit` pairs with `start <= key < end`, from the end that `order` names.
    ///
    /// # Errors
    /// The engine failed or its bytes do not verify.
    fn scan(&self, start: &[u8], end: &[u8], limit: usize, order: Order) -> Result<Vec<(Bytes, Bytes)>>;

    /// Applies `batch` whole or not at all. On return its order is fixed, every reader sees it and the operating system has
    /// it (it survives a killed process). With [`Durability::Durable`] it survives power loss once the ticket's `wait`
    /// returned; with [`Durability::Soon`] at most a second later, or with the next durable batch, and `wait` returns at once.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a requirement does not hold: nothing was applied. Otherwise the engine failed.
    fn submit(&self, batch: Batch, durability: Durability) -> Result<Box<dyn Ticket>>;

    /// Submits `batch` and waits.
    ///
    /// # Errors
    /// Those of [`Meta::submit`] and [`Ticket::wait`].
    fn commit(&self, batch: Batch, durability: Durability) -> Result<()> {
        self.submit(batch, durability)?.wait()
    }

    /// Makes everything submitted so far durable.
    ///
    /// # Errors
    /// The sync failed: the store is read-only from now on.
    fn sync(&self) -> Result<()>;

    /// Returns the number of syncs since the start (group commit is counted, not hoped for).
    fn syncs(&self) -> u64;
}
