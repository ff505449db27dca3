//! Blobs as nodes and records, through the cache. It does not know how nodes hang together.

use crate::Result;
use crate::cache::{Cache, Cached};
use crate::error::{Error, Flaw};
use crate::node::{Data, Node, Record};
use crate::value::Value;
use bytes::Bytes;
use mw_segments::{BlobRef, Owner, Segments};
use std::sync::Arc;

/// Segments and cache. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    segments: Arc<dyn Segments>,
    cache: Arc<Cache>,
}

impl Store {
    pub(crate) fn new(segments: Arc<dyn Segments>, cache: Arc<Cache>) -> Self {
        Self { segments, cache }
    }

    /// Returns the node in `blob`, which must stand at `level`: that bounds every descent.
    pub(crate) fn node(&self, blob: &BlobRef, level: u8) -> Result<Arc<Node>> {
        if let Some(Cached::Node(node)) = self.cache.get(blob) {
            return if node.level() == level { Ok(node) } else { Err(node.flawed(Flaw::Level)) };
        }
        let node = Arc::new(self.stored_node(blob, level)?);
        self.cache.insert(blob, Cached::Node(node.clone()));
        Ok(node)
    }

    /// Reads a node from the segments, past the cache.
    pub(crate) fn stored_node(&self, blob: &BlobRef, level: u8) -> Result<Node> {
        let node = Node::decode(*blob, self.read(blob)?)?;
        if node.level() == level { Ok(node) } else { Err(node.flawed(Flaw::Level)) }
    }

    /// Returns out-of-line data.
    fn large(&self, blob: &BlobRef, len: usize) -> Result<Bytes> {
        of_length(self.referred(blob)?, blob, len)
    }

    /// Returns a blob whose length nobody says.
    pub(crate) fn referred(&self, blob: &BlobRef) -> Result<Bytes> {
        if let Some(Cached::Large(data)) = self.cache.get(blob) {
            return Ok(data);
        }
        let data = self.read(blob)?;
        self.cache.insert(blob, Cached::Large(data.clone()));
        Ok(data)
    }

    /// Reads out-of-line data from the segments, past the cache.
    fn stored_large(&self, blob: &BlobRef, len: usize) -> Result<Bytes> {
        of_length(self.read(blob)?, blob, len)
    }

    fn read(&self, blob: &BlobRef) -> Result<Bytes> {
        self.segments.read(blob).map_err(|source| Error::Read { blob: *blob, source })
    }

    /// Stores a node and keeps it in the cache: what was written is read next.
    pub(crate) fn put_node(&self, owner: Owner, stored: Bytes) -> Result<BlobRef> {
        let blob = self.segments.append(owner, &stored).map_err(Error::Write)?;
        let node = Node::decode(blob, stored)?;
        self.cache.insert(&blob, Cached::Node(Arc::new(node)));
        Ok(blob)
    }

    /// Stores out-of-line data.
    pub(crate) fn put_large(&self, owner: Owner, data: &[u8]) -> Result<BlobRef> {
        self.segments.append(owner, data).map_err(Error::Write)
    }

    /// Returns the value of a record.
    pub(crate) fn value(&self, node: &Node, record: &Record<'_>) -> Result<Value> {
        let data = match &record.data {
            Data::Inline(data) => node.share(data),
            Data::Large { len, blob } => self.large(blob, *len)?,
        };
        Ok(Value { data, locator: node.share(record.locator), weight: record.weight })
    }

    /// Returns the value of a record, read from the segments past the cache.
    pub(crate) fn stored_value(&self, node: &Node, record: &Record<'_>) -> Result<Value> {
        let data = match &record.data {
            Data::Inline(data) => node.share(data),
            Data::Large { len, blob } => self.stored_large(blob, *len)?,
        };
        Ok(Value { data, locator: node.share(record.locator), weight: record.weight })
    }
}

/// Returns out-of-line data when it has the length that its node says.
fn of_length(data: Bytes, blob: &BlobRef, len: usize) -> Result<Bytes> {
    if data.len() == len { Ok(data) } else { Err(Error::Node { blob: *blob, flaw: Flaw::Length }) }
}
