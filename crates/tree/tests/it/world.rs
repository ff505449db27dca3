//! What the tests share: seeded randomness, segments that count, and short names for the verbs.

use bytes::Bytes;
use mw_env::Env;
use mw_model::{Hash, Incarnation, WorldId};
use mw_segments::{BlobRef, Claim, Dead, Found, Memory, Owner, SegmentId, Segments, Usage};
use mw_tree::{Cache, Root, Salt, Tree, Value};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const SALT: Salt = Salt(*b"salt of lineages");
pub const OWNER: Owner = Owner { world: WorldId(1), incarnation: Incarnation(1) };

pub type Map = BTreeMap<Bytes, Value>;
pub type Edits = Vec<(Bytes, Option<Value>)>;

/// Memory segments that count what is read and written.
#[derive(Debug, Default)]
pub struct Counting {
    pub memory: Memory,
    reads: AtomicU64,
    writes: AtomicU64,
}

impl Counting {
    /// Returns reads and writes since the last call.
    pub fn taken(&self) -> (u64, u64) {
        (self.reads.swap(0, Ordering::Relaxed), self.writes.swap(0, Ordering::Relaxed))
    }
}

impl Segments for Counting {
    fn append(&self, owner: Owner, content: &[u8]) -> mw_segments::Result<BlobRef> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.memory.append(owner, content)
    }

    fn read(&self, blob: &BlobRef) -> mw_segments::Result<Bytes> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.memory.read(blob)
    }

    fn claims(&self, owner: Owner) -> Vec<Claim> {
        self.memory.claims(owner)
    }

    fn sync(&self) -> mw_segments::Result<()> {
        self.memory.sync()
    }

    fn adopt(&self, claims: &[Claim]) -> mw_segments::Result<()> {
        self.memory.adopt(claims)
    }

    fn seal(&self, owner: Owner) {
        self.memory.seal(owner);
    }

    fn free(&self, segments: &[SegmentId]) -> mw_segments::Result<u64> {
        self.memory.free(segments)
    }

    fn punch(&self, owner: Owner, dead: &[Dead]) -> mw_segments::Result<u64> {
        self.memory.punch(owner, dead)
    }

    fn walk(&self, claim: &Claim) -> mw_segments::Result<Vec<Found>> {
        self.memory.walk(claim)
    }

    fn usage(&self) -> Usage {
        self.memory.usage()
    }

    fn held(&self, segment: SegmentId) -> mw_segments::Result<u64> {
        self.memory.held(segment)
    }

    fn footprint(&self) -> mw_segments::Result<u64> {
        self.memory.footprint()
    }

    fn syncs(&self) -> u64 {
        self.memory.syncs()
    }
}

/// A tree with its segments and cache.
pub struct Place {
    pub segments: Arc<Counting>,
    pub cache: Arc<Cache>,
    pub tree: Tree,
}

pub fn place(cache_budget: usize) -> Place {
    let segments = Arc::new(Counting::default());
    let cache = Cache::new(cache_budget);
    Place { tree: Tree::new(segments.clone(), cache.clone()), segments, cache }
}

impl Place {
    pub fn edit(&self, root: &Root, edits: &Edits) -> Root {
        self.tree.edit(root, &SALT, OWNER, edits).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Builds a map with one edit.
    pub fn load(&self, map: &Map) -> Root {
        self.edit(&Root::empty(), &map.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect())
    }

    pub fn all(&self, root: &Root) -> Map {
        self.tree.scan(root, (Bound::Unbounded, Bound::Unbounded)).map(Result::unwrap).collect()
    }

    /// Drops the cache and the counts, so that what follows counts every node that it needs.
    pub fn cold(&self) {
        self.cache.clear();
        self.segments.taken();
    }
}

pub fn value(data: &[u8]) -> Value {
    Value { data: Bytes::copy_from_slice(data), locator: Bytes::new(), weight: data.len() as u64 }
}

pub fn number(n: u64) -> Bytes {
    Bytes::copy_from_slice(&n.to_be_bytes())
}

/// Applies edits to the oracle.
pub fn apply(map: &mut Map, edits: &Edits) {
    for (key, value) in edits {
        match value {
            Some(value) => map.insert(key.clone(), value.clone()),
            None => map.remove(key),
        };
    }
}

/// Random numbers from a seed.
pub struct Dice(Env);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Env::seeded(seed))
    }

    pub fn below(&self, n: u64) -> u64 {
        self.0.random() % n
    }

    pub fn bytes(&self, len: u64) -> Bytes {
        let mut bytes = vec![0; len as usize];
        self.0.fill(&mut bytes);
        bytes.into()
    }

    /// A key out of a small space, so that edits meet: often short, sometimes as long as allowed.
    pub fn key(&self, space: u64) -> Bytes {
        let n = self.below(space);
        match n % 50 {
            0 => [&number(n)[..], &[b'k'; mw_tree::MAX_KEY - 8]].concat().into(),
            1..5 => [&n.to_string().into_bytes()[..], &Hash::of(&n.to_be_bytes()).0].concat().into(),
            _ => n.to_string().into_bytes().into(),
        }
    }

    /// A value: mostly small, sometimes out of line, now and then empty or huge.
    pub fn value(&self) -> Value {
        let len = match self.below(60) {
            0 => 0,
            1 => 256,
            2 => 257,
            3 => 300 + self.below(20_000),
            4..8 => self.below(256),
            _ => self.below(20),
        };
        Value { data: self.bytes(len), locator: self.bytes(self.below(24)), weight: self.below(1000) }
    }

    /// A batch of edits: scattered, or dense, with ranges of removals.
    pub fn edits(&self, map: &Map, space: u64) -> Edits {
        let mut edits = BTreeMap::new();
        let scattered = if self.below(4) == 0 { self.below(600) } else { self.below(12) };
        for _ in 0..scattered {
            let put = self.below(3) > 0;
            edits.insert(self.key(space), put.then(|| self.value()));
        }
        if self.below(6) == 0 {
            let (from, count) = (self.key(space), self.below(1 + map.len() as u64));
            edits.extend(map.range(from..).take(count as usize).map(|(key, _)| (key.clone(), None)));
        }
        if self.below(5) == 0 {
            // The same again: no change, or one of the locator alone.
            for (key, value) in map.range(self.key(space)..).take(self.below(20) as usize) {
                let mut value = value.clone();
                if self.below(2) == 0 {
                    value.locator = self.bytes(8);
                }
                edits.insert(key.clone(), Some(value));
            }
        }
        edits.into_iter().collect()
    }
}
