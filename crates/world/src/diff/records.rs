//! Which records differ between two views, whatever parts of them lie in trees and in overlays. Nothing is written for it.

use crate::error::Result;
use crate::view::View;
use bytes::Bytes;
use mw_tree::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The records that differ, by key: what the first view has, and the second.
pub(crate) type Records = BTreeMap<Bytes, (Option<Value>, Option<Value>)>;

/// Returns the records that differ, in O(changes and overlays): subtrees of equal content are passed over.
pub(crate) fn records(a: &View, b: &View) -> Result<Records> {
    let mut found = Records::new();
    let same_root = a.root == b.root;
    if same_root && same_overlays(a, b) {
        return Ok(found);
    }
    if !same_root {
        for change in a.tree.diff(&a.root, &b.root) {
            let change = change?;
            found.insert(change.key, (change.left, change.right));
        }
    }
    let late: BTreeSet<&Bytes> = a.layers().chain(b.layers()).flat_map(|overlay| overlay.keys()).collect();
    for key in late {
        let (left, right) = (a.get(key)?, b.get(key)?);
        if same(left.as_ref(), right.as_ref()) {
            found.remove(key);
        } else {
            found.insert(key.clone(), (left, right));
        }
    }
    Ok(found)
}

/// Returns whether two views share their overlays, as a fresh fork and its base do.
fn same_overlays(a: &View, b: &View) -> bool {
    let frozen = match (&a.frozen, &b.frozen) {
        (None, None) => true,
        (Some(a), Some(b)) => a.ptr_eq(b),
        _ => false,
    };
    let planned = !a.own.is_empty() || !b.own.is_empty();
    frozen && !planned && (a.overlay.ptr_eq(&b.overlay) || (a.overlay.is_empty() && b.overlay.is_empty()))
}

fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.same(b),
        _ => false,
    }
}
