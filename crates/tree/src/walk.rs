//! Visits everything that a tree holds on to, for the sweep and for fsck. What is visited is read as it is stored, past the
//! cache, and verified: a walk is a proof, and it leaves the cache to those who need it.

use crate::Result;
use crate::node::{Child, Data};
use crate::root::Root;
use crate::store::Store;
use crate::value::Value;
use mw_segments::BlobRef;

/// Sees what a walk meets, in the order of keys.
pub trait Visit {
    /// Sees a node, before it is read. Returns whether to go into it; `false` when it was seen before.
    fn node(&mut self, blob: &BlobRef) -> bool;

    /// Sees an entry of a leaf.
    fn entry(&mut self, key: &[u8], value: &Value);

    /// Sees an out-of-line record, before it is read and its entry is seen.
    fn large(&mut self, blob: &BlobRef);
}

pub(crate) fn walk(store: &Store, root: &Root, visit: &mut dyn Visit) -> Result<()> {
    match root.top() {
        Some(top) => node(store, &top.child, top.level, visit),
        None => Ok(()),
    }
}

fn node(store: &Store, child: &Child, level: u8, visit: &mut dyn Visit) -> Result<()> {
    if !visit.node(&child.blob) {
        return Ok(());
    }
    let found = store.stored_node(&child.blob, level)?;
    for i in 0..found.len() {
        if level > 0 {
            node(store, &found.child(i)?, level - 1, visit)?;
            continue;
        }
        let record = found.record(i)?;
        if let Data::Large { blob, .. } = &record.data {
            visit.large(blob);
        }
        visit.entry(found.key(i), &store.stored_value(&found, &record)?);
    }
    Ok(())
}
