//! Looks up one key, or many at once. It reads only the nodes on the way.

use crate::Result;
use crate::error::Error;
use crate::node::Node;
use crate::root::Root;
use crate::store::Store;
use crate::value::Value;

pub(crate) fn get(store: &Store, root: &Root, key: &[u8]) -> Result<Option<Value>> {
    let Some(top) = root.top() else { return Ok(None) };
    let mut node = store.node(&top.child.blob, top.level)?;
    while node.level() > 0 {
        let place = node.lower_bound(key);
        if place == node.len() {
            return Ok(None);
        }
        node = store.node(&node.child(place)?.blob, node.level() - 1)?;
    }
    match node.search(key) {
        Ok(place) => store.value(&node, &node.record(place)?).map(Some),
        Err(_) => Ok(None),
    }
}

pub(crate) fn get_many(store: &Store, root: &Root, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
    if !keys.is_sorted_by(|a, b| a.as_ref() < b.as_ref()) {
        return repeated(store, root, keys);
    }
    let mut found = vec![None; keys.len()];
    if let Some(top) = root.top().filter(|_| !keys.is_empty()) {
        gather(store, &*store.node(&top.child.blob, top.level)?, keys, &mut found)?;
    }
    Ok(found)
}

/// Looks up keys of which some are asked for more than once.
fn repeated(store: &Store, root: &Root, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
    let mut distinct: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
    distinct.dedup();
    // What is left in order is in strict order now.
    if !distinct.is_sorted() {
        return Err(Error::Unsorted);
    }
    let found = get_many(store, root, &distinct)?;
    let mut at = 0;
    let each = keys.iter().map(|key| {
        at += usize::from(distinct[at] != key.as_ref());
        found[at].clone()
    });
    Ok(each.collect())
}

/// Looks up `keys`, each after the one before it, beneath `node`, entering each child once.
fn gather<K: AsRef<[u8]>>(store: &Store, node: &Node, mut keys: &[K], mut found: &mut [Option<Value>]) -> Result<()> {
    let mut from = 0;
    while let Some(key) = keys.first().map(AsRef::as_ref) {
        let place = node.search_from(from, key);
        let at = place.unwrap_or_else(|place| place);
        if at == node.len() {
            return Ok(());
        }
        let here = if node.level() == 0 { 1 } else { keys.partition_point(|key| key.as_ref() <= node.key(at)) };
        let (those, others) = found.split_at_mut(here);
        if node.level() > 0 {
            let child = store.node(&node.child(at)?.blob, node.level() - 1)?;
            gather(store, &child, &keys[..here], those)?;
        } else if place.is_ok() {
            those[0] = Some(store.value(node, &node.record(at)?)?);
        }
        (keys, found) = (&keys[here..], others);
        // What was found, or entered, is before all keys that are left.
        from = at + usize::from(node.level() > 0 || place.is_ok());
    }
    Ok(())
}
