//! A world at one instant: a root and the records changed after it. Immutable and cheap to clone.
//!
//! A read asks the overlay first, then the frozen overlay (which a fold is writing into the tree), then the tree. While a mutation
//! is planned, what it changed itself comes before all of them.

use crate::error::{Error, Result};
use crate::record::{self, Entry, Extent, Inode, Kind, Locator};
use bytes::{Buf, Bytes};
use mw_model::{ErrorKind, Ino, Seq, Version};
use mw_tree::{Root, Scan, Tree, Value};
use std::collections::{BTreeSet, VecDeque};
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

/// Changed records: a value, or a tombstone.
pub(crate) type Overlay = imbl::OrdMap<Bytes, Option<Value>>;

/// A world at one instant.
#[derive(Clone)]
pub(crate) struct View {
    pub tree: Tree,
    pub root: Root,
    pub frozen: Option<Overlay>,
    pub overlay: Overlay,
    /// What a mutation that is being planned has changed itself; empty in every other view. Apart from the overlay, so that nothing
    /// of that is copied for a plan.
    pub own: Overlay,
    /// The state of history that the view starts from. As long as a view holds it, a sweep keeps that state and what follows it.
    pub since: Arc<Seq>,
    /// The last entry that the view holds.
    pub seq: Seq,
    /// That entry's time.
    pub time: Version,
}

impl View {
    /// Makes the view of a root and nothing after it.
    pub(crate) fn of_root(tree: Tree, root: Root, seq: Seq, time: Version) -> Self {
        Self { tree, root, frozen: None, overlay: Overlay::new(), own: Overlay::new(), since: Arc::new(seq), seq, time }
    }

    /// The changed records over the tree, newest first.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &Overlay> {
        // Most views have nothing in one of them, and asking costs more than knowing.
        [Some(&self.own), Some(&self.overlay), self.frozen.as_ref()].into_iter().flatten().filter(|o| !o.is_empty())
    }

    /// Returns what the changed records say of a key: nothing, a tombstone or a value.
    pub(crate) fn changed(&self, key: &[u8]) -> Option<&Option<Value>> {
        self.layers().find_map(|layer| layer.get(key))
    }

    /// Returns whether the changed records say anything of a key from `first` to `last`.
    fn changes_between(&self, first: &[u8], last: &[u8]) -> bool {
        let range = (Bound::Included(first), Bound::Included(last));
        first <= last && self.layers().any(|layer| layer.range::<_, [u8]>(range).next().is_some())
    }

    /// Makes the view's own changes a part of its overlay.
    pub(crate) fn take_in(&mut self) {
        for (key, value) in std::mem::take(&mut self.own) {
            self.overlay.insert(key, value);
        }
    }

    /// Returns a record.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        match self.changed(key) {
            Some(value) => Ok(value.clone()),
            None => Ok(self.tree.get(&self.root, key)?),
        }
    }

    /// Returns the records of sorted keys: from the overlays where they are, and the rest from the tree in one go.
    pub(crate) fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
        // What changed lately is mostly somewhere else, and one look tells.
        let ends = keys.first().zip(keys.last());
        if !ends.is_some_and(|(first, last)| self.changes_between(first.as_ref(), last.as_ref())) {
            return Ok(self.tree.get_many(&self.root, keys)?);
        }
        let changed: Vec<_> = keys.iter().map(|key| self.changed(key.as_ref())).collect();
        let deeper: Vec<_> =
            keys.iter().zip(&changed).filter(|(_, changed)| changed.is_none()).map(|(key, _)| key).collect();
        let mut stored = self.tree.get_many(&self.root, &deeper)?.into_iter();
        Ok(changed.into_iter().map(|changed| changed.map_or_else(|| stored.next().flatten(), Clone::clone)).collect())
    }

    /// Returns the last record of `start <= key < end`.
    pub(crate) fn last(&self, start: Bytes, mut end: Bytes) -> Result<Option<(Bytes, Value)>> {
        while start < end {
            let range = (Bound::Included(start.clone()), Bound::Excluded(end.clone()));
            let mut best: Option<(Bytes, Option<Value>)> = None;
            for overlay in self.layers() {
                if let Some((key, value)) = overlay.range::<_, Bytes>(range.clone()).next_back()
                    && best.as_ref().is_none_or(|(b, _)| key > b)
                {
                    best = Some((key.clone(), value.clone()));
                }
            }
            if let Some(item) = self.tree.scan(&self.root, range).next_back() {
                let (key, value) = item?;
                if best.as_ref().is_none_or(|(b, _)| key > *b) {
                    best = Some((key, Some(value)));
                }
            }
            match best {
                Some((key, Some(value))) => return Ok(Some((key, value))),
                Some((key, None)) => end = key,
                None => break,
            }
        }
        Ok(None)
    }

    /// Walks the records of `start <= key < end`.
    pub(crate) fn scan(&self, start: Bytes, end: Bytes) -> Records {
        self.range((Bound::Included(start), Bound::Excluded(end)))
    }

    /// Walks the records of a range.
    pub(crate) fn range(&self, range: (Bound<Bytes>, Bound<Bytes>)) -> Records {
        let empty = match (&range.0, &range.1) {
            (Bound::Included(a), Bound::Excluded(b)) | (Bound::Excluded(a), Bound::Included(b)) => a >= b,
            (Bound::Included(a), Bound::Included(b)) => a > b,
            (Bound::Excluded(a), Bound::Excluded(b)) => a >= b,
            _ => false,
        };
        let layer = |overlay: &Overlay| Layer {
            overlay: overlay.clone(),
            rest: Some(range.clone()),
            taken: VecDeque::new(),
            step: 1,
        };
        // What changed lately is mostly somewhere else.
        let near = |overlay: &&Overlay| !empty && overlay.range::<_, Bytes>(range.clone()).next().is_some();
        let layers = self.layers().filter(near).map(|o| layer(o).peekable()).collect();
        let tree = (!empty).then(|| self.tree.scan(&self.root, range.clone()).peekable());
        Records { layers, tree }
    }

    /// Returns an inode, if it is there.
    pub(crate) fn find_inode(&self, ino: Ino) -> Result<Option<Inode>> {
        self.get(&record::key(ino, Kind::Inode, &[]))?.map(|v| Inode::decode(&v)).transpose()
    }

    /// Returns an inode.
    pub(crate) fn inode(&self, ino: Ino) -> Result<Inode> {
        self.find_inode(ino)?.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("inode {ino} does not exist")))
    }

    /// Returns the entry with the raw name `name` (a directory's has a trailing `/`).
    pub(crate) fn entry(&self, parent: Ino, name: &[u8]) -> Result<Option<Entry>> {
        self.get(&record::key(parent, Kind::Entry, name))?.map(|v| Entry::decode(&v)).transpose()
    }

    /// Returns what a mount shows under `name`, the directory or else the other entry, with its raw name.
    pub(crate) fn entry_shown(&self, parent: Ino, name: &[u8]) -> Result<Option<(Bytes, Entry)>> {
        let (other, directory) = record::entry_keys(parent, name);
        let keys = [other, directory];
        let values = self.get_many(&keys)?;
        let found = keys.into_iter().zip(values).rev().find_map(|(key, value)| Some((key, value?)));
        found.map(|(key, value)| Ok((key.slice(9..), Entry::decode(&value)?))).transpose()
    }

    /// Walks the entries of a directory whose raw names are at or after `from`.
    pub(crate) fn entries(&self, parent: Ino, from: &[u8]) -> impl Iterator<Item = Result<(Bytes, Entry)>> + use<> {
        self.scan(record::key(parent, Kind::Entry, from), record::key_after(parent, Kind::Entry))
            .map(|item| item.and_then(|(key, value)| Ok((name_of(key), Entry::decode(&value)?))))
    }

    /// Returns the extents that overlap `start..end` of a file, in order.
    pub(crate) fn extents(&self, ino: Ino, start: u64, end: u64) -> Result<Vec<(u64, Extent)>> {
        let mut found = Vec::new();
        self.extent_records(ino, start, end, |at, record| {
            each_extent(at, record, |from, extent| {
                let to = from + u64::from(extent.len);
                if to <= start || from >= end {
                    return Ok(());
                }
                if !extent.is_list() {
                    found.push((from, extent));
                    return Ok(());
                }
                // Like others, pieces are not cut to the range.
                self.pieces(&extent, |at, piece| {
                    let at = from + u64::from(at);
                    if at + u64::from(piece.len) > start && at < end {
                        found.push((at, piece));
                    }
                })
            })
        })?;
        Ok(found)
    }

    /// Returns what the records say of `start..end` of a file, cut to it: extents of pieces and of lists, in order.
    pub(crate) fn runs(&self, ino: Ino, start: u64, end: u64) -> Result<Vec<(u64, Extent)>> {
        let mut found = Vec::new();
        self.extent_records(ino, start, end, |at, record| {
            each_extent(at, record, |from, extent| {
                let (first, last) = (from.max(start), (from + u64::from(extent.len)).min(end));
                if first < last {
                    found.push((first, extent.part((first - from) as u32, (last - first) as u32)));
                }
                Ok(())
            })
        })?;
        Ok(found)
    }

    /// Shows the extents of pieces that an extent of a list stands for, with their offsets from its start.
    fn pieces(&self, list: &Extent, show: impl FnMut(u32, Extent)) -> Result<()> {
        let Locator::List(blob) = &list.piece.locator else { return Ok(()) };
        record::pieces(list, &self.tree.referred(blob)?, show)
    }

    /// Shows the records of extents that overlap `start..end` of a file, in order, with the offset of each.
    pub(crate) fn extent_records(
        &self,
        ino: Ino,
        start: u64,
        end: u64,
        mut visit: impl FnMut(u64, &Value) -> Result<()>,
    ) -> Result<()> {
        // The record that begins before `start` may reach into the range.
        if let Some((key, value)) = self.last(record::extent_key(ino, 0), record::extent_key(ino, start))? {
            let at = offset_of(&key)?;
            if at + value.weight > start {
                visit(at, &value)?;
            }
        }
        for item in self.scan(record::extent_key(ino, start), record::extent_key(ino, end)) {
            let (key, value) = item?;
            visit(offset_of(&key)?, &value)?;
        }
        Ok(())
    }

    /// Returns the inodes without a name. What was an orphan once and is not any more costs next to nothing, as there may be many:
    /// content that is put in under no name first leaves a tombstone for each.
    pub(crate) fn orphans(&self) -> Result<Vec<Ino>> {
        let (start, end) = (record::key(Ino(0), Kind::Orphan, &[]), record::key_after(Ino(0), Kind::Orphan));
        let range = (Bound::Included(start), Bound::Excluded(end));
        let mut keys = BTreeSet::new();
        for layer in self.layers() {
            let found = layer.range::<_, Bytes>(range.clone()).filter(|(_, value)| value.is_some());
            keys.extend(found.map(|(key, _)| key.clone()));
        }
        for item in self.tree.scan(&self.root, range) {
            keys.insert(item?.0);
        }
        let mut orphans = Vec::new();
        for key in keys {
            if self.get(&key)?.is_some() {
                let number = key.get(9..17).ok_or_else(|| Error::corrupt("an orphan record is short"))?;
                orphans.push(Ino(self::number(number)));
            }
        }
        Ok(orphans)
    }

    /// Walks all records of one kind of an inode.
    pub(crate) fn kind(&self, ino: Ino, kind: Kind) -> Records {
        self.scan(record::key(ino, kind, &[]), record::key_after(ino, kind))
    }
}

/// Shows the extents of a record at `at` with the offset of each.
pub(crate) fn each_extent(mut at: u64, record: &Value, mut show: impl FnMut(u64, Extent) -> Result<()>) -> Result<()> {
    for extent in Extent::decode(record)? {
        let extent = extent?;
        let from = at;
        at += u64::from(extent.len);
        show(from, extent)?;
    }
    Ok(())
}

/// Returns the raw name in an entry's key.
fn name_of(mut key: Bytes) -> Bytes {
    key.advance(9);
    key
}

/// Returns the file offset in an extent's key.
pub(crate) fn offset_of(key: &[u8]) -> Result<u64> {
    let (_, _, suffix) = record::split(key)?;
    let eight: [u8; 8] = suffix.try_into().map_err(|_| Error::corrupt("an extent's key has the wrong length"))?;
    Ok(u64::from_be_bytes(eight))
}

/// How many records of an overlay are taken at once, at most.
const AHEAD: usize = 32;

/// One overlay, walked lazily: each step seeks and takes some records, more each time, so that the walk owns its map and needs no
/// lifetime, and one that ends soon costs little.
struct Layer {
    overlay: Overlay,
    /// What is left to be walked.
    rest: Option<(Bound<Bytes>, Bound<Bytes>)>,
    taken: VecDeque<(Bytes, Option<Value>)>,
    step: usize,
}

impl Layer {
    fn take(&mut self) {
        let Some(range) = self.rest.take() else { return };
        let found = self.overlay.range::<_, Bytes>(range.clone()).take(self.step);
        self.taken.extend(found.map(|(key, value)| (key.clone(), value.clone())));
        if self.taken.len() == self.step
            && let Some((last, _)) = self.taken.back()
        {
            self.rest = shrink(Bound::Excluded(last.clone()), range.1);
        }
        self.step = (2 * self.step).min(AHEAD);
    }
}

impl Iterator for Layer {
    type Item = (Bytes, Option<Value>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.taken.is_empty() {
            self.take();
        }
        self.taken.pop_front()
    }
}

/// Returns the range unless it is empty (a map panics when asked for an inverted range).
fn shrink(start: Bound<Bytes>, end: Bound<Bytes>) -> Option<(Bound<Bytes>, Bound<Bytes>)> {
    let open = match (&start, &end) {
        (Bound::Excluded(a), Bound::Excluded(b) | Bound::Included(b)) | (Bound::Included(a), Bound::Excluded(b)) => {
            a < b
        }
        (Bound::Included(a), Bound::Included(b)) => a <= b,
        _ => true,
    };
    open.then_some((start, end))
}

/// The records of a range, merged from all layers; tombstones are left out.
pub(crate) struct Records {
    /// Newest first.
    layers: Vec<Peekable<Layer>>,
    tree: Option<Peekable<Scan>>,
}

impl Iterator for Records {
    type Item = Result<(Bytes, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.layers.is_empty() {
            return self.tree.as_mut()?.next().map(|item| item.map_err(Error::from));
        }
        loop {
            let mut least: Option<Bytes> = None;
            for layer in &mut self.layers {
                if let Some((key, _)) = layer.peek()
                    && least.as_ref().is_none_or(|l| key < l)
                {
                    least = Some(key.clone());
                }
            }
            match self.tree.as_mut().and_then(Peekable::peek) {
                Some(Ok((key, _))) if least.as_ref().is_none_or(|l| key < l) => {
                    return self.tree.as_mut()?.next().map(|r| r.map_err(Error::from));
                }
                Some(Err(_)) => return self.tree.take()?.next().map(|r| r.map_err(Error::from)),
                _ => {}
            }
            let key = least?;
            let mut winner: Option<Option<Value>> = None;
            for layer in &mut self.layers {
                if let Some((_, value)) = layer.next_if(|(k, _)| *k == key) {
                    winner.get_or_insert(value);
                }
            }
            if let Some(tree) = &mut self.tree {
                tree.next_if(|r| r.as_ref().is_ok_and(|(k, _)| *k == key));
            }
            if let Some(Some(value)) = winner {
                return Some(Ok((key, value)));
            }
        }
    }
}

/// Reads eight bytes as a number.
pub(crate) fn number(eight: &[u8]) -> u64 {
    eight.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}
