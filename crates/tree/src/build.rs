//! Builds one node after another, entry by entry. It does not know where a node ends; whoever pushes decides.

use crate::Result;
use crate::node::{Child, FORMAT, Node, Record};
use bytes::Bytes;
use mw_model::Hash;
use mw_model::codec::Writer;

/// The node that is being built.
#[derive(Debug)]
pub(crate) struct Builder {
    level: u8,
    hashed: Writer,
    addrs: Writer,
    count: usize,
    entries: u64,
    weight: u64,
    /// Where the last key stands in `hashed`.
    last: (usize, usize),
}

/// A node that is complete and not yet stored.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) stored: Bytes,
    pub(crate) last_key: Bytes,
    pub(crate) hash: Hash,
    pub(crate) count: usize,
    pub(crate) entries: u64,
    pub(crate) weight: u64,
}

impl Builder {
    pub(crate) fn new(level: u8) -> Self {
        let hashed = Writer(vec![level]);
        Self { level, hashed, addrs: Writer::new(), count: 0, entries: 0, weight: 0, last: (0, 0) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the size of the hashed part so far.
    pub(crate) fn hashed_len(&self) -> usize {
        self.hashed.0.len()
    }

    /// Takes the entry at `i` of a stored node of the same level as it is.
    pub(crate) fn copy(&mut self, node: &Node, i: usize) -> Result<()> {
        let (entries, weight) = node.totals(i)?;
        let (hashed, addrs) = node.raw(i);
        let start = self.hashed.0.len();
        self.hashed.raw(hashed);
        self.addrs.raw(addrs);
        let (from, to) = node.key_span(i);
        self.count(entries, weight, (start + from, start + to));
        Ok(())
    }

    /// Adds a record to a leaf.
    pub(crate) fn record(&mut self, key: &[u8], record: &Record<'_>) {
        self.hashed.bytes(key);
        let key_end = self.hashed.0.len();
        record.encode(&mut self.hashed, &mut self.addrs);
        self.count(1, record.weight, (key_end - key.len(), key_end));
    }

    /// Adds a child to an inner node.
    pub(crate) fn child(&mut self, key: &[u8], child: &Child) {
        self.hashed.bytes(key);
        let key_end = self.hashed.0.len();
        child.encode(&mut self.hashed, &mut self.addrs);
        self.count(child.entries, child.weight, (key_end - key.len(), key_end));
    }

    fn count(&mut self, entries: u64, weight: u64, last: (usize, usize)) {
        self.count += 1;
        // Saturating sums of what is not negative do not depend on the order.
        self.entries = self.entries.saturating_add(entries);
        self.weight = self.weight.saturating_add(weight);
        self.last = last;
    }

    /// Completes the node and starts the next.
    pub(crate) fn finish(&mut self) -> Built {
        let (hashed, addrs) = (&self.hashed.0, &self.addrs.0);
        let mut stored = Writer(Vec::with_capacity(hashed.len() + addrs.len() + 11));
        stored.u8(FORMAT).var(self.count as u64).var(hashed.len() as u64).raw(hashed).raw(addrs);
        let built = Built {
            last_key: Bytes::copy_from_slice(&hashed[self.last.0..self.last.1]),
            hash: Hash::of(hashed),
            stored: Bytes::from(stored.0),
            count: self.count,
            entries: self.entries,
            weight: self.weight,
        };
        self.hashed.0.truncate(1);
        self.addrs.0.clear();
        (self.count, self.entries, self.weight) = (0, 0, 0);
        debug_assert_eq!(self.hashed.0, [self.level]);
        built
    }
}
