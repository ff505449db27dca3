//! The cache of decoded nodes and out-of-line records, one for all worlds. Invariant: what it holds never weighs more
//! than its budget. It does not read or decode anything.
//!
//! What it holds is immutable and named by address and hash, so nothing is ever invalidated. Each shard is a CLOCK: a hit
//! sets a mark under a shared lock; a newcomer moves the hand, which takes marks off and throws out what has none.

use crate::node::Node;
use bytes::Bytes;
use mw_segments::BlobRef;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A shard is not made smaller than this, so that a small cache still holds nodes of every size.
const SHARD: usize = 256 << 10;
const MAX_SHARDS: usize = 32;

/// The cache. Share one among all trees.
#[derive(Debug)]
pub struct Cache {
    shards: Box<[Shard]>,
    /// The budget of one shard, in bytes.
    budget: usize,
}

/// How often the cache was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// The times that it had what was asked for.
    pub hits: u64,
    /// The times that it had not.
    pub misses: u64,
}

#[derive(Debug, Default)]
struct Shard {
    clock: RwLock<Clock>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug, Default)]
struct Clock {
    places: HashMap<Key, usize, BuildHasherDefault<Prefix>>,
    ring: Vec<Option<Held>>,
    free: Vec<usize>,
    hand: usize,
    used: usize,
}

#[derive(Debug)]
struct Held {
    key: BlobRef,
    thing: Cached,
    weight: usize,
    marked: AtomicBool,
}

/// What the cache holds.
#[derive(Debug, Clone)]
pub(crate) enum Cached {
    Node(Arc<Node>),
    Large(Bytes),
}

impl Cached {
    fn weight(&self) -> usize {
        // The places in ring and map are counted with room to grow.
        const PLACE: usize = 2 * (size_of::<Option<Held>>() + size_of::<(Key, usize)>());
        PLACE
            + match self {
                Self::Node(node) => node.footprint(),
                Self::Large(data) => data.len(),
            }
    }
}

/// A key that is hashed by a part of what is a hash already.
#[derive(Debug, PartialEq, Eq)]
struct Key(BlobRef);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash.prefix());
    }
}

#[derive(Default)]
struct Prefix(u64);

impl Hasher for Prefix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |n, byte| n.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

impl Cache {
    /// Makes a cache that holds at most `budget` bytes.
    pub fn new(budget: usize) -> Arc<Self> {
        let shards = (budget / SHARD).clamp(1, MAX_SHARDS);
        Arc::new(Self { shards: (0..shards).map(|_| Shard::default()).collect(), budget: budget / shards })
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        self.shards.iter().map(|shard| shard.clock.read().used).sum()
    }

    /// Drops everything.
    pub fn clear(&self) {
        for shard in &self.shards {
            let old = std::mem::take(&mut *shard.clock.write());
            drop(old);
        }
    }

    /// Returns how often the cache was asked since it was made.
    pub fn stats(&self) -> CacheStats {
        self.shards.iter().fold(CacheStats::default(), |sum, shard| CacheStats {
            hits: sum.hits + shard.hits.load(Ordering::Relaxed),
            misses: sum.misses + shard.misses.load(Ordering::Relaxed),
        })
    }

    fn shard(&self, blob: &BlobRef) -> &Shard {
        // Not the bits that the map uses first: of its keys they would all be the same.
        let n = blob.hash.prefix().rotate_left(24) as usize;
        &self.shards[n % self.shards.len()]
    }

    pub(crate) fn get(&self, blob: &BlobRef) -> Option<Cached> {
        let shard = self.shard(blob);
        let found = shard.clock.read().get(blob);
        let counter = if found.is_some() { &shard.hits } else { &shard.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Takes `thing` in, unless it is larger than a shard.
    pub(crate) fn insert(&self, blob: &BlobRef, thing: Cached) {
        let weight = thing.weight();
        if weight > self.budget {
            return;
        }
        let mut thrown = Vec::new();
        self.shard(blob).clock.write().insert(*blob, thing, weight, self.budget, &mut thrown);
        // What was thrown out is freed after the lock is.
        drop(thrown);
    }
}

impl Clock {
    fn get(&self, blob: &BlobRef) -> Option<Cached> {
        let held = self.ring[*self.places.get(&Key(*blob))?].as_ref()?;
        // Marks are read far more often than they change: writing each time would bounce the line between cores.
        if !held.marked.load(Ordering::Relaxed) {
            held.marked.store(true, Ordering::Relaxed);
        }
        Some(held.thing.clone())
    }

    fn insert(&mut self, blob: BlobRef, thing: Cached, weight: usize, budget: usize, thrown: &mut Vec<Held>) {
        if self.places.contains_key(&Key(blob)) {
            return;
        }
        while self.used + weight > budget {
            thrown.extend(self.turn());
        }
        let held = Some(Held { key: blob, thing, weight, marked: AtomicBool::new(false) });
        let place = match self.free.pop() {
            Some(place) => {
                self.ring[place] = held;
                place
            }
            None => {
                self.ring.push(held);
                self.ring.len() - 1
            }
        };
        self.places.insert(Key(blob), place);
        self.used += weight;
    }

    /// Moves the hand by one place and returns what it throws out.
    fn turn(&mut self) -> Option<Held> {
        let place = self.hand;
        self.hand = (self.hand + 1) % self.ring.len();
        let held = self.ring[place].as_mut()?;
        if std::mem::take(held.marked.get_mut()) {
            return None;
        }
        let held = self.ring[place].take()?;
        self.free.push(place);
        self.places.remove(&Key(held.key));
        self.used -= held.weight;
        Some(held)
    }
}

#[cfg(test)]
mod tests;
