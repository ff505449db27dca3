//! What one side renamed since the common state: inode numbers tell, and they tell nothing else in a merge.
//!
//! A directory is followed wherever it went. A file is followed when its old name is vacant and its new one was: a file that was
//! replaced by another under its name (an S3 put, an editor's save, a rotated log) has changed its content instead.

use crate::diff::Records;
use crate::error::Result;
use crate::names::{names_of, parent_of};
use crate::record::{self, Entry, Kind};
use crate::view::View;
use bytes::Bytes;
use mw_model::{FileType, Ino};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A directory's number in some view, and a raw name in it.
pub(crate) type Slot = (Ino, Bytes);

/// The renames of one side.
#[derive(Default)]
pub(crate) struct Moves {
    /// By the slot in the common state: the slot here.
    pub from: HashMap<Slot, (Slot, Entry)>,
    /// By the slot here: the slot in the common state.
    pub into: HashMap<Slot, Slot>,
}

impl Moves {
    /// Finds what `here` renamed, from the records in which it differs from `common`.
    pub(crate) fn find(common: &View, here: &View, records: &Records) -> Result<Self> {
        let mut arrivals: BTreeMap<Ino, (FileType, BTreeSet<Slot>)> = BTreeMap::new();
        for (key, (left, right)) in records {
            let (dir, kind, _) = record::split(key)?;
            let (Kind::Entry, Some(right)) = (kind, right) else { continue };
            let entry = Entry::decode(right)?;
            let was = left.as_ref().map(Entry::decode).transpose()?;
            if was.is_none_or(|was| was.ino != entry.ino) {
                let slots = arrivals.entry(entry.ino).or_insert_with(|| (entry.kind, BTreeSet::new()));
                slots.1.insert((dir, key.slice(9..)));
            }
        }
        let mut moves = Self::default();
        for (ino, (kind, slots)) in arrivals {
            if common.find_inode(ino)?.is_none_or(|inode| inode.kind != kind) {
                continue;
            }
            if kind == FileType::Directory {
                if let (Some(home), Some(slot)) = (parent_of(common, ino)?, slots.into_iter().next()) {
                    moves.add(home, slot, Entry { ino, kind });
                }
                continue;
            }
            let mut left = BTreeSet::new();
            for (dir, name) in names_of(common, ino)? {
                if here.entry(dir, &name)?.is_none() {
                    left.insert((dir, name));
                }
            }
            let mut left = left.into_iter();
            for slot in slots {
                if common.entry(slot.0, &slot.1)?.is_some() {
                    continue;
                }
                let Some(home) = left.next() else { break };
                moves.add(home, slot, Entry { ino, kind });
            }
        }
        Ok(moves)
    }

    fn add(&mut self, home: Slot, slot: Slot, entry: Entry) {
        self.into.insert(slot.clone(), home.clone());
        self.from.insert(home, (slot, entry));
    }
}
