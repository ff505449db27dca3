//! An inode of another view brought into a mutation: under its own number where that is free, with its bytes shared.

use crate::diff::Item;
use crate::error::Result;
use crate::record::{self, Entry, Inode, Kind};
use crate::txn::Txn;
use crate::view::View;
use bytes::Bytes;
use mw_model::{FileType, Ino};
use mw_tree::Value;
use std::collections::{BTreeMap, HashMap};

impl Txn<'_> {
    /// Makes the records of one kind of inode `to` those that `from` has in `source`. Records that are equal stay as they are.
    pub(crate) fn adopt_kind(&mut self, source: &View, from: Ino, to: Ino, kind: Kind) -> Result<()> {
        let mut wanted: BTreeMap<Bytes, Value> = BTreeMap::new();
        for item in source.kind(from, kind) {
            let (key, value) = item?;
            wanted.insert(key.slice(9..), value);
        }
        let there: Vec<(Bytes, Value)> = self.view.kind(to, kind).collect::<Result<_>>()?;
        for (key, value) in there {
            match wanted.get(&key[9..]) {
                Some(new) if new.same(&value) => {
                    wanted.remove(&key[9..]);
                }
                Some(_) => {}
                None => self.remove(key),
            }
        }
        for (suffix, value) in wanted {
            if kind == Kind::Extent {
                self.segments |= record::is_placed(&value);
            }
            self.put(record::key(to, kind, &suffix), value);
        }
        Ok(())
    }

    /// Makes inode `to`, there or not, what `from` is in `source`, with `nlink` names.
    pub(crate) fn adopt(&mut self, source: &View, from: &Item, to: Ino, nlink: u32) -> Result<()> {
        for kind in [Kind::Object, Kind::Xattr, Kind::Extent] {
            self.adopt_kind(source, from.ino, to, kind)?;
        }
        let inode = Inode { nlink, ctime: self.time(), ..from.inode };
        self.put_inode(to, &inode);
        Ok(())
    }

    /// Sets the extended attributes of an inode to just these.
    pub(crate) fn set_xattrs(&mut self, ino: Ino, xattrs: &BTreeMap<Bytes, Bytes>) -> Result<()> {
        let there: Vec<(Bytes, Value)> = self.view.kind(ino, Kind::Xattr).collect::<Result<_>>()?;
        for (key, _) in there {
            if !xattrs.contains_key(&key[9..]) {
                self.remove(key);
            }
        }
        for (name, value) in xattrs {
            let key = record::key(ino, Kind::Xattr, name);
            if self.view.get(&key)?.is_none_or(|old| old.data != *value) {
                self.put(key, record::plain(value.to_vec()));
            }
        }
        Ok(())
    }

    /// Returns whether an inode number is free here.
    pub(crate) fn is_free(&self, ino: Ino) -> Result<bool> {
        Ok(self.view.find_inode(ino)?.is_none())
    }
}

/// Brings `entry` of `source` and all that is beneath it into directory `parent` under `name`, hard links within it kept.
///
/// Inodes keep their numbers where these are free, and get fresh ones where not.
pub(crate) fn adopt_tree(txn: &mut Txn<'_>, source: &View, entry: Entry, parent: Ino, name: &[u8]) -> Result<()> {
    let mut known: HashMap<Ino, Ino> = HashMap::new();
    let mut open = vec![(entry, parent, Bytes::copy_from_slice(name))];
    while let Some((entry, parent, name)) = open.pop() {
        let ino = match known.get(&entry.ino) {
            Some(ino) => *ino,
            None => {
                let Some(item) = Item::read(source, entry.ino)? else { continue };
                let ino = if txn.is_free(entry.ino)? { entry.ino } else { txn.fresh()? };
                let directory = entry.kind == FileType::Directory;
                txn.adopt(source, &item, ino, if directory { 2 } else { 0 })?;
                known.insert(entry.ino, ino);
                if directory {
                    for child in source.entries(entry.ino, &[]) {
                        let (name, child) = child?;
                        open.push((child, ino, name));
                    }
                }
                ino
            }
        };
        txn.attach(parent, &name, Entry { ino, kind: entry.kind })?;
    }
    Ok(())
}

impl Txn<'_> {
    /// Gives an inode a name, and counts it: in the inode, or for a directory in its parent.
    pub(crate) fn attach(&mut self, parent: Ino, name: &[u8], entry: Entry) -> Result<()> {
        self.put_entry(parent, name, entry);
        self.count(parent, entry, 1)
    }

    /// Takes a name from an inode, and counts that. An inode without a name is still there.
    pub(crate) fn detach(&mut self, parent: Ino, name: &[u8], entry: Entry) -> Result<()> {
        self.remove_entry(parent, name, entry.ino);
        self.count(parent, entry, -1)
    }

    fn count(&mut self, parent: Ino, entry: Entry, by: i32) -> Result<()> {
        let counted = if entry.kind == FileType::Directory { parent } else { entry.ino };
        let mut inode = self.view.inode(counted)?;
        inode.nlink = inode.nlink.saturating_add_signed(by);
        inode.ctime = self.time();
        self.put_inode(counted, &inode);
        let mut above = self.view.inode(parent)?;
        above.mtime = self.time();
        above.ctime = self.time();
        self.put_inode(parent, &above);
        Ok(())
    }
}
