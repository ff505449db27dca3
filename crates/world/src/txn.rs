//! One mutation being planned: a private view that sees its own changes, and the list of what changed.
//!
//! A plan decides without touching anything shared; nothing of it exists until the world commits it.

use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::listener::Changed;
use crate::names;
use crate::record::{self, Entry, Inode, Kind};
use crate::store::Store;
use crate::versioning::Keep;
use crate::view::{Records, View, each_extent};
use crate::world::World;
use bytes::Bytes;
use mw_model::{ErrorKind, FileType, Ino, Version};
use mw_tree::{Root, Value};

/// A mutation being planned.
pub(crate) struct Txn<'a> {
    /// The world as this mutation sees it; what it changes itself stands in the view's `own`.
    pub view: View,
    /// The entry's time: strictly after every earlier one.
    pub now: Version,
    /// The path or key that history shows.
    pub path: Option<Bytes>,
    /// What history shows beside it.
    pub note: String,
    /// The run that history shows; none: that of the key.
    pub run: Option<String>,
    /// The verb that history shows.
    pub verb: Verb,
    /// "The root becomes this", before the changes.
    pub root: Option<Root>,
    pub notices: Vec<Changed>,
    /// More records for the same commit.
    pub meta: mw_meta::Batch,
    /// Commit even when nothing changed.
    pub force: bool,
    /// Whether a new value refers to bytes in segments.
    pub segments: bool,
    /// Which versions of objects this change keeps.
    pub keep: Keep,
    pub store: &'a Store,
    pub world: &'a World,
}

impl<'a> Txn<'a> {
    pub(crate) fn new(store: &'a Store, world: &'a World, view: View, now: Version, verb: Verb) -> Self {
        Self {
            view,
            now,
            verb,
            path: None,
            note: String::new(),
            run: None,
            root: None,
            notices: Vec::new(),
            meta: mw_meta::Batch::new(),
            force: false,
            segments: false,
            keep: Keep::of(verb),
            store,
            world,
        }
    }

    /// Returns the world as it would be: the view with the plan's own changes in it.
    pub(crate) fn into_view(self) -> View {
        let mut view = self.view;
        view.take_in();
        view
    }

    /// The entry's time as an inode's.
    pub(crate) fn time(&self) -> i64 {
        self.now.0 as i64
    }

    /// Returns a new inode number.
    pub(crate) fn fresh(&self) -> Result<Ino> {
        self.store.fresh_ino()
    }

    /// Returns whether somebody has the inode open.
    pub(crate) fn in_use(&self, ino: Ino) -> bool {
        self.world.in_use(ino)
    }

    /// Sets a record.
    pub(crate) fn put(&mut self, key: Bytes, value: Value) {
        self.view.own.insert(key, Some(value));
    }

    /// Removes a record.
    pub(crate) fn remove(&mut self, key: Bytes) {
        self.view.own.insert(key, None);
    }

    /// Sets an inode and tells the mounts.
    pub(crate) fn put_inode(&mut self, ino: Ino, inode: &Inode) {
        self.put(record::key(ino, Kind::Inode, &[]), inode.encode());
        self.notices.push(Changed::Inode(ino));
    }

    /// Sets an entry and its child's parent record, and tells the mounts. `name` is raw (a directory's ends in `/`).
    pub(crate) fn put_entry(&mut self, parent: Ino, name: &[u8], entry: Entry) {
        self.put(record::key(parent, Kind::Entry, name), entry.encode());
        self.put(record::parent_key(entry.ino, parent, name), record::plain(vec![1]));
        self.notice_entry(parent, name);
    }

    /// Removes an entry and its child's parent record, and tells the mounts.
    pub(crate) fn remove_entry(&mut self, parent: Ino, name: &[u8], child: Ino) {
        self.remove(record::key(parent, Kind::Entry, name));
        self.remove(record::parent_key(child, parent, name));
        self.notice_entry(parent, name);
    }

    fn notice_entry(&mut self, parent: Ino, name: &[u8]) {
        let name = Bytes::copy_from_slice(name.strip_suffix(b"/").unwrap_or(name));
        self.notices.push(Changed::Entry { parent, name });
    }

    /// Moves a directory's times.
    pub(crate) fn touch_dir(&mut self, dir: Ino) -> Result<()> {
        let mut inode = self.view.inode(dir)?;
        inode.mtime = self.time();
        inode.ctime = self.time();
        self.put_inode(dir, &inode);
        Ok(())
    }

    /// Removes every extent, or part of one, in `start..end` of a file; returns the bytes that were not holes.
    pub(crate) fn clear_extents(&mut self, ino: Ino, start: u64, end: u64) -> Result<u64> {
        if start >= end {
            return Ok(0);
        }
        let mut cleared = 0;
        // What a record holds before and after the range stays. An extent that is cut is alone from then on: the next write is mostly
        // beside this one, and would rewrite its row again.
        let (mut removed, mut whole, mut cut) = (Vec::new(), Vec::new(), Vec::new());
        self.view.extent_records(ino, start, end, |at, record| {
            if at >= start {
                removed.push(at);
            }
            each_extent(at, record, |from, extent| {
                let to = from + u64::from(extent.len);
                if from < start {
                    let left = extent.part(0, (to.min(start) - from) as u32);
                    if to <= start { whole.push((from, left)) } else { cut.push((from, left)) }
                }
                if to > end {
                    let at = from.max(end);
                    let left = extent.part((at - from) as u32, (to - at) as u32);
                    if from >= end { whole.push((at, left)) } else { cut.push((at, left)) }
                }
                cleared += to.min(end).saturating_sub(from.max(start));
                Ok(())
            })
        })?;
        for at in removed {
            self.remove(record::extent_key(ino, at));
        }
        let mut left = record::rows(&whole);
        left.extend(cut.iter().map(|(at, extent)| (*at, extent.encode())));
        self.put_extents(ino, left);
        Ok(cleared)
    }

    /// Sets records of extents of a file, each in the place of one that begins there, if any. Their keys share one allocation.
    pub(crate) fn put_extents(&mut self, ino: Ino, extents: Vec<(u64, Value)>) {
        let mut keys = Vec::new();
        for (at, _) in &extents {
            keys.extend_from_slice(&record::extent_key(ino, *at));
        }
        let (keys, each) = (Bytes::from(keys), record::EXTENT_KEY);
        for (i, (_, extent)) in extents.into_iter().enumerate() {
            self.segments |= record::is_placed(&extent);
            self.put(keys.slice(i * each..(i + 1) * each), extent);
        }
    }

    /// Walks all records of an inode; that of the inode itself is the first.
    fn records_of(&self, ino: Ino) -> Records {
        let (start, mut end) = (ino.0.to_be_bytes().to_vec(), ino.0.to_be_bytes().to_vec());
        end.push(u8::MAX);
        self.view.scan(start.into(), end.into())
    }

    /// Removes all records of an inode.
    pub(crate) fn drop_inode(&mut self, ino: Ino) -> Result<()> {
        for item in self.records_of(ino) {
            self.remove(item?.0);
        }
        Ok(())
    }

    /// Takes one name from an inode: without a last name it goes, or becomes an orphan while somebody has it open.
    pub(crate) fn unlink_inode(&mut self, ino: Ino) -> Result<()> {
        let mut records = self.records_of(ino);
        let Some((key, value)) = records.next().transpose()? else { return Ok(()) };
        if record::split(&key)?.1 != Kind::Inode {
            return Ok(());
        }
        let mut inode = Inode::decode(&value)?;
        let names = if inode.kind == FileType::Directory { 0 } else { inode.nlink.saturating_sub(1) };
        // Pipes, sockets and devices are opened, and directories worked in, without a word to the store.
        let unseen = !matches!(inode.kind, FileType::File | FileType::Symlink) && self.world.kept_for_mounts(ino);
        if names > 0 || self.in_use(ino) || unseen {
            inode.nlink = names;
            inode.ctime = self.time();
            self.put_inode(ino, &inode);
            if names == 0 {
                self.put(record::orphan_key(ino), record::plain(vec![1]));
            }
            return Ok(());
        }
        self.remove(key);
        for item in records {
            self.remove(item?.0);
        }
        self.notices.push(Changed::Inode(ino));
        Ok(())
    }

    /// Returns whether a directory has no entry at all.
    pub(crate) fn is_empty_dir(&self, dir: Ino) -> Result<bool> {
        self.view.entries(dir, &[]).next().transpose().map(|e| e.is_none())
    }

    /// Returns the parent of a directory and its raw name there; none for the root.
    pub(crate) fn parent_of(&self, ino: Ino) -> Result<Option<(Ino, Bytes)>> {
        names::parent_of(&self.view, ino)
    }

    /// Removes implicit directories from `dir` upwards that hold no key any more, unless somebody uses them.
    pub(crate) fn prune_implicit(&mut self, mut dir: Ino) -> Result<()> {
        while dir != Ino::ROOT {
            let inode = self.view.inode(dir)?;
            if !inode.implicit || self.world.kept_for_mounts(dir) || !self.is_empty_dir(dir)? {
                break;
            }
            let Some((parent, name)) = self.parent_of(dir)? else { break };
            self.remove_entry(parent, &name, dir);
            self.drop_inode(dir)?;
            self.notices.push(Changed::Inode(dir));
            let mut above = self.view.inode(parent)?;
            above.nlink = above.nlink.saturating_sub(1).max(2);
            above.mtime = self.time();
            above.ctime = self.time();
            self.put_inode(parent, &above);
            dir = parent;
        }
        Ok(())
    }

    /// Makes an implicit directory explicit, because somebody asked for it or changed it.
    pub(crate) fn make_explicit(&mut self, dir: Ino) -> Result<()> {
        let mut inode = self.view.inode(dir)?;
        if inode.implicit {
            inode.implicit = false;
            self.put_inode(dir, &inode);
        }
        Ok(())
    }

    /// Refuses an inode that is not a directory.
    pub(crate) fn need_dir(&self, ino: Ino) -> Result<Inode> {
        let inode = self.view.inode(ino)?;
        if inode.kind != FileType::Directory {
            return Err(Error::new(ErrorKind::NotDirectory, format!("inode {ino} is not a directory")));
        }
        Ok(inode)
    }
}
