//! A sorted batch of edits makes a new tree, level by level from the leaves up. Invariants: the result is the one tree of
//! its content and salt, whatever the batch was; each new node is written once and none in vain; nodes without a change
//! keep their address.
//!
//! At each level: find the node that an edit touches, and go through its entries and the edits together, ending nodes
//! where the shape says. Where a new node ends at the end of an old one, all that follows is as it was (see `shape`): go
//! on at the next edit. The nodes that went and those that came are the edits of the level above.
//!
//! When no old node of a level was left alone, the level is *whole*: all its nodes are known. One node is then the top of
//! the tree; several are all that the levels above are built of, whatever stood there before.

use crate::Result;
use crate::build::{Builder, Built};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::node::{Child, Data, Node, Record};
use crate::root::{Root, Top};
use crate::shape::{Salt, Shape};
use crate::store::Store;
use crate::value::{MAX_INLINE, MAX_KEY, MAX_LOCATOR, Value};
use batch::{Batch, Put, merge};
use bytes::Bytes;
use mw_model::Hash;
use mw_segments::{BlobRef, MAX_BLOB, Owner};
use std::sync::Arc;

mod batch;

/// Applies `edits` to the tree under `root`.
pub(crate) fn edit(
    store: &Store,
    root: &Root,
    salt: &Salt,
    owner: Owner,
    edits: &[(Bytes, Option<Value>)],
) -> Result<Root> {
    validate(edits)?;
    if root.top().is_some_and(|top| top.salt != *salt) {
        return Err(Error::OtherSalt);
    }
    let shape = Shape::new(salt);
    let mut old = root.top();
    let mut changes: Vec<(Bytes, Option<Child>)> = Vec::new();
    for level in 0.. {
        let batch = if level == 0 { Batch::Values(edits) } else { Batch::Children(&changes) };
        let mut work = Level::new(store, &shape, owner, Cursor::new(store, old, level), level);
        work.run(batch)?;
        let outcome = work.end()?;
        if outcome.gone.is_empty() && outcome.come.is_empty() && outcome.lone.is_none() {
            return Ok(root.clone());
        }
        let mut come = outcome.come;
        let mut whole = outcome.whole;
        if let Some(top) = old.filter(|top| !whole && top.level == level) {
            // Nodes came before or after the top node, which was left alone.
            let node = store.node(&top.child.blob, level)?;
            let place = come.partition_point(|(key, _)| &key[..] < node.last_key());
            come.insert(place, (Bytes::copy_from_slice(node.last_key()), top.child));
            whole = true;
        }
        if let Some(child) = outcome.lone {
            return lower(store, Top { level: level - 1, salt: *salt, child });
        }
        if whole {
            match come.as_slice() {
                [] => return Ok(Root::empty()),
                [(_, child)] => return Ok(Root::new(Top { level, salt: *salt, child: *child })),
                _ => {}
            }
            old = None;
            changes = come.into_iter().map(|(key, child)| (key, Some(child))).collect();
        } else {
            changes = merge(outcome.gone, come);
        }
    }
    unreachable!("each level is smaller than the one beneath")
}

/// Goes down from a node that has one child only: the top is the first level that has a single node.
fn lower(store: &Store, mut top: Top) -> Result<Root> {
    while top.level > 0 {
        let node = store.node(&top.child.blob, top.level)?;
        if node.len() > 1 {
            break;
        }
        top = Top { level: top.level - 1, child: node.child(0)?, ..top };
    }
    Ok(Root::new(top))
}

/// Refuses a batch before anything of it is written.
fn validate(edits: &[(Bytes, Option<Value>)]) -> Result<()> {
    if !edits.is_sorted_by(|(a, _), (b, _)| a < b) {
        return Err(Error::Unsorted);
    }
    for (key, value) in edits {
        if key.len() > MAX_KEY {
            return Err(Error::KeyTooLong(key.len()));
        }
        let Some(value) = value else { continue };
        if value.data.len() > MAX_BLOB {
            return Err(Error::DataTooLarge(value.data.len()));
        }
        if value.locator.len() > MAX_LOCATOR {
            return Err(Error::LocatorTooLong(value.locator.len()));
        }
    }
    Ok(())
}

/// The work on one level.
struct Level<'a> {
    store: &'a Store,
    shape: &'a Shape,
    owner: Owner,
    cursor: Cursor<'a>,
    level: u8,
    builder: Builder,
    /// The first new node, not written yet, when it has one entry only: it may turn out to be a top with one child, which
    /// is none.
    held: Option<Built>,
    /// The last keys of the old nodes that are no more.
    gone: Vec<Bytes>,
    /// The new nodes, by their last keys.
    come: Vec<(Bytes, Child)>,
    /// Whether no old node has been left alone so far.
    whole: bool,
}

/// What became of one level.
struct Outcome {
    gone: Vec<Bytes>,
    come: Vec<(Bytes, Child)>,
    whole: bool,
    /// The only child of what would be the only node of the level.
    lone: Option<Child>,
}

impl<'a> Level<'a> {
    fn new(store: &'a Store, shape: &'a Shape, owner: Owner, cursor: Cursor<'a>, level: u8) -> Self {
        let builder = Builder::new(level);
        let (gone, come) = (Vec::new(), Vec::new());
        Self { store, shape, owner, cursor, level, builder, held: None, gone, come, whole: true }
    }

    fn run(&mut self, mut batch: Batch<'_>) -> Result<()> {
        while let Some((key, put)) = batch.peek() {
            self.whole &= !self.cursor.seek(key)?;
            let Some(node) = self.cursor.node()? else {
                return self.rest(&mut batch);
            };
            let place = node.search(key);
            if unchanged(&node, place, put)? {
                batch.next();
            } else if place == Err(node.len()) && self.closed(&node) {
                // The key is past the last node of the level, and that node takes no more.
                self.whole = false;
                self.cursor.advance();
            } else {
                self.rebuild(node, &mut batch)?;
            }
        }
        Ok(())
    }

    /// Builds anew from `node` on, until a new node ends where an old one does.
    fn rebuild(&mut self, mut node: Arc<Node>, batch: &mut Batch<'_>) -> Result<()> {
        loop {
            // New entries before the node may fill a node of their own; this one is then as it was, or begins afresh.
            if self.add_before(node.key(0), batch)? && self.builder.is_empty() {
                return Ok(());
            }
            self.gone.push(Bytes::copy_from_slice(node.last_key()));
            for i in 0..node.len() {
                let key = node.key(i);
                self.add_before(key, batch)?;
                match batch.next_at(key) {
                    None => self.keep(&node, i)?,
                    Some(None) => {}
                    Some(Some(put @ Put::Value(_))) => self.add(key, put, Some(node.record(i)?))?,
                    Some(Some(put @ Put::Child(_))) => self.add(key, put, None)?,
                }
            }
            self.cursor.advance();
            if self.builder.is_empty() {
                return Ok(());
            }
            match self.cursor.node()? {
                Some(next) => node = next,
                None => return self.rest(batch),
            }
        }
    }

    /// Adds the new entries before `key`. Returns whether there were any edits.
    fn add_before(&mut self, key: &[u8], batch: &mut Batch<'_>) -> Result<bool> {
        let mut any = false;
        while let Some((new, put)) = batch.next_before(key) {
            any = true;
            if let Some(put) = put {
                self.add(new, put, None)?;
            }
        }
        Ok(any)
    }

    /// Adds what comes after the last old node.
    fn rest(&mut self, batch: &mut Batch<'_>) -> Result<()> {
        while let Some((key, put)) = batch.next() {
            if let Some(put) = put {
                self.add(key, put, None)?;
            }
        }
        Ok(())
    }

    /// Takes an old entry over as it is.
    fn keep(&mut self, node: &Node, i: usize) -> Result<()> {
        self.builder.copy(node, i)?;
        // An entry inside an old node does not end one naturally, or it would have.
        let natural = i + 1 == node.len() && self.shape.natural(self.level, node.key(i));
        self.end_node(natural)
    }

    /// Adds a new entry; `old` is what it replaces.
    fn add(&mut self, key: &[u8], put: Put<'_>, old: Option<Record<'_>>) -> Result<()> {
        match put {
            Put::Child(child) => self.builder.child(key, child),
            Put::Value(value) => {
                let data = self.place(&value.data, old)?;
                self.builder.record(key, &Record { data, weight: value.weight, locator: &value.locator });
            }
        }
        self.end_node(self.shape.natural(self.level, key))
    }

    /// Puts data where it belongs. Large data that stands there already is not written again.
    fn place<'b>(&self, data: &'b [u8], old: Option<Record<'_>>) -> Result<Data<'b>> {
        if data.len() <= MAX_INLINE {
            return Ok(Data::Inline(data));
        }
        let len = data.len();
        if let Some(Data::Large { len: old_len, blob }) = old.map(|record| record.data)
            && old_len == len
            && blob.hash == Hash::of(data)
        {
            return Ok(Data::Large { len, blob });
        }
        Ok(Data::Large { len, blob: self.store.put_large(self.owner, data)? })
    }

    fn end_node(&mut self, natural: bool) -> Result<()> {
        if !natural && !Shape::full(self.builder.hashed_len()) {
            return Ok(());
        }
        self.finish_node()
    }

    fn finish_node(&mut self) -> Result<()> {
        let built = self.builder.finish();
        match self.held.take() {
            Some(held) => self.write(held)?,
            None if self.level > 0 && built.count == 1 && self.come.is_empty() => {
                self.held = Some(built);
                return Ok(());
            }
            None => {}
        }
        self.write(built)
    }

    fn write(&mut self, built: Built) -> Result<()> {
        let Built { stored, last_key, hash, entries, weight, .. } = built;
        let blob = self.store.put_node(self.owner, stored)?;
        self.come.push((last_key, Child { blob, hash, entries, weight }));
        Ok(())
    }

    /// Returns whether a node at the end of the level takes no more entries.
    fn closed(&self, node: &Node) -> bool {
        Shape::full(node.hashed().len()) || self.shape.natural(self.level, node.last_key())
    }

    fn end(mut self) -> Result<Outcome> {
        if !self.builder.is_empty() {
            self.finish_node()?;
        }
        let whole = self.whole && self.cursor.is_done();
        let mut lone = None;
        if let Some(held) = self.held.take() {
            if whole && self.come.is_empty() {
                lone = Some(Node::decode(BlobRef::default(), held.stored)?.child(0)?);
            } else {
                self.write(held)?;
            }
        }
        Ok(Outcome { gone: self.gone, come: self.come, whole, lone })
    }
}

/// Returns whether a put changes nothing, not even a locator.
fn unchanged(node: &Node, place: Result<usize, usize>, put: Option<Put<'_>>) -> Result<bool> {
    let Ok(i) = place else { return Ok(put.is_none()) };
    Ok(match put {
        None => false,
        Some(Put::Child(child)) => node.child(i)? == *child,
        Some(Put::Value(value)) => {
            let old = node.record(i)?;
            let rest = old.weight == value.weight && old.locator == &value.locator[..];
            rest && match old.data {
                Data::Inline(data) => data == &value.data[..],
                Data::Large { len, blob } => len == value.data.len() && blob.hash == Hash::of(&value.data),
            }
        }
    })
}

#[cfg(test)]
mod tests;
