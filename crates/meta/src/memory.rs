//! An engine in memory, for tests: one map under one lock. It is as durable as the process.

use crate::{Batch, Durability, Meta, Order, Result, Ticket};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store that dies with the process.
#[derive(Debug, Default)]
pub struct Memory {
    map: Mutex<BTreeMap<Bytes, Bytes>>,
    syncs: AtomicU64,
}

impl Memory {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Memory cannot become more durable by waiting.
#[derive(Debug)]
struct Done;

impl Ticket for Done {
    fn wait(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Meta for Memory {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.map.lock().get(key).cloned())
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize, order: Order) -> Result<Vec<(Bytes, Bytes)>> {
        if start >= end {
            return Ok(Vec::new());
        }
        let map = self.map.lock();
        let range = map.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)));
        let pair = |(key, value): (&Bytes, &Bytes)| (key.clone(), value.clone());
        Ok(match order {
            Order::Up => range.map(pair).take(limit).collect(),
            Order::Down => range.rev().map(pair).take(limit).collect(),
        })
    }

    fn submit(&self, batch: Batch, durability: Durability) -> Result<Box<dyn Ticket>> {
        batch.check()?;
        let mut map = self.map.lock();
        batch.check_requires(|key| Ok(map.get(key).cloned()))?;
        for key in &batch.deletes {
            map.remove(key);
        }
        map.extend(batch.puts);
        if durability == Durability::Durable {
            self.syncs.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Box::new(Done))
    }

    fn sync(&self) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}
