//! Proves that a tree is whole: that it is the one tree of its content and salt. Everything is read as it is stored, past
//! the cache, and everything that a parent says of a child is computed again and compared.

use crate::Result;
use crate::error::{Error, Fault};
use crate::node::{Child, Node};
use crate::root::{Root, Top};
use crate::shape::Shape;
use crate::store::Store;
use bytes::Bytes;
use mw_model::Hash;

pub(crate) fn check(store: &Store, root: &Root) -> Result<()> {
    let Some(Top { level, salt, child }) = root.top() else { return Ok(()) };
    let check = Check { store, shape: Shape::new(salt) };
    check.node(child, &Place { level: *level, after: None, upto: None, last: true, top: true })
}

struct Check<'a> {
    store: &'a Store,
    shape: Shape,
}

/// What is known of a node before it is read.
struct Place {
    level: u8,
    /// The last key before the node.
    after: Option<Bytes>,
    /// The last key of the node; the top's is not known.
    upto: Option<Bytes>,
    /// Whether it is the last of its level, and may so end anywhere.
    last: bool,
    top: bool,
}

impl Check<'_> {
    fn node(&self, child: &Child, place: &Place) -> Result<()> {
        let fail = |fault| {
            let (after, upto) = (place.after.clone(), place.upto.clone());
            Err(Error::Check { after, upto, level: place.level, fault })
        };
        let unreadable = |error: Error| fail(Fault::Unreadable(Box::new(error)));
        let node = match self.store.stored_node(&child.blob, place.level) {
            Ok(node) => node,
            Err(error) => return unreadable(error),
        };
        let (entries, weight) = match totals(&node) {
            Ok(totals) => totals,
            Err(error) => return unreadable(error),
        };
        if place.after.as_deref().is_some_and(|after| node.key(0) <= after) {
            return fail(Fault::Overlap);
        }
        if place.upto.as_deref().is_some_and(|upto| node.last_key() != upto) {
            return fail(Fault::LastKey);
        }
        if Hash::of(node.hashed()) != child.hash {
            return fail(Fault::Hash);
        }
        if entries != child.entries {
            return fail(Fault::Entries);
        }
        if weight != child.weight {
            return fail(Fault::Weight);
        }
        if place.top && place.level > 0 && node.len() == 1 {
            return fail(Fault::Chain);
        }
        if let Some(fault) = self.ends(&node, place.last) {
            return fail(fault);
        }
        for i in 0..node.len() {
            if place.level == 0 {
                // Reading an out-of-line record verifies it.
                let value = node.record(i).and_then(|record| self.store.stored_value(&node, &record));
                if let Err(error) = value {
                    return unreadable(error);
                }
                continue;
            }
            let beneath = Place {
                level: place.level - 1,
                after: if i == 0 { place.after.clone() } else { Some(node.key_bytes(i - 1)) },
                upto: Some(node.key_bytes(i)),
                last: place.last && i + 1 == node.len(),
                top: false,
            };
            let child = match node.child(i) {
                Ok(child) => child,
                Err(error) => return unreadable(error),
            };
            self.node(&child, &beneath)?;
        }
        Ok(())
    }

    /// Returns what is wrong with where the node ends.
    fn ends(&self, node: &Node, last: bool) -> Option<Fault> {
        // The level stands before the first entry.
        let mut hashed = 1;
        for i in 0..node.len() {
            hashed += node.raw(i).0.len();
            let ends = Shape::full(hashed) || self.shape.natural(node.level(), node.key(i));
            match (ends, i + 1 == node.len()) {
                (true, false) => return Some(Fault::Long),
                (false, true) if !last => return Some(Fault::Cut),
                _ => {}
            }
        }
        None
    }
}

fn totals(node: &Node) -> Result<(u64, u64)> {
    (0..node.len()).try_fold((0u64, 0u64), |(entries, weight), i| {
        let (n, w) = node.totals(i)?;
        Ok((entries.saturating_add(n), weight.saturating_add(w)))
    })
}

#[cfg(test)]
mod tests;
