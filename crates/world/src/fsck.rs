//! fsck: proves that every root is whole, every byte verifies, and every name and link count agrees.

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::record::{self, Extent, Inode, Kind};
use crate::state::State;
use crate::store::{Store, decode_claim};
use crate::view::View;
use bytes::Bytes;
use mw_meta::Order;
use mw_model::{FileType, Hash, Ino, Seq, WorldId};
use mw_segments::{BlobRef, SegmentId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What fsck found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fsck {
    /// Worlds checked.
    pub worlds: u64,
    /// Roots checked.
    pub roots: u64,
    /// Blobs of content read and verified.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is wrong, by name. Empty: clean.
    pub problems: Vec<String>,
}

/// A check in progress.
struct Check<'a> {
    store: &'a Store,
    report: Fsck,
    claims: HashMap<SegmentId, u32>,
    read: HashSet<BlobRef>,
    roots: HashSet<Hash>,
}

/// What the names of one inode say about it.
#[derive(Default)]
struct Names {
    entries: u32,
    subdirs: u32,
    parents: u32,
}

impl Store {
    /// Checks everything. Problems are listed, not repaired.
    ///
    /// # Errors
    /// The metadata store failed; damage to worlds is in the report instead.
    pub fn fsck(self: &Arc<Self>, progress: &mut dyn FnMut(&str)) -> Result<Fsck> {
        let mut claims = HashMap::new();
        let (start, end) = layout::all(Tag::Segment);
        for (key, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let claim = decode_claim(&key, &value)?;
            claims.insert(claim.segment, claim.used);
        }
        let mut check =
            Check { store: self, report: Fsck::default(), claims, read: HashSet::new(), roots: HashSet::new() };
        let (start, end) = layout::all(Tag::Name);
        for (key, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let name = String::from_utf8_lossy(layout::rest(&key)).into_owned();
            let id = WorldId(layout::number(&value));
            progress(&name);
            check.report.worlds += 1;
            if let Err(e) = check.log(id, &name).and_then(|()| check.world(self, id, &name)) {
                check.report.problems.push(format!("world {name}: {e}"));
            }
        }
        progress("history and snapshots");
        self.each_state(&mut |_, state| {
            check.root(&state);
            Ok(())
        })?;
        Ok(check.report)
    }
}

impl Check<'_> {
    fn problem(&mut self, what: String) {
        if self.report.problems.len() < 1000 {
            self.report.problems.push(what);
        }
    }

    /// Every entry follows the one before.
    fn log(&mut self, id: WorldId, name: &str) -> Result<()> {
        let (mut start, end) = layout::all_of(Tag::Log, id);
        let mut before: Option<(Seq, Hash)> = None;
        loop {
            let page = self.store.meta.scan(&start, &end, 512, Order::Up)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            let mut next = last.to_vec();
            next.push(0);
            for (_, value) in &page {
                let entry = Entry::decode(value)?;
                if let Some((seq, chain)) = before
                    && (entry.seq.0 != seq.0 + 1 || entry.previous != chain)
                {
                    self.problem(format!("world {name}: entry {} does not follow entry {seq}", entry.seq));
                }
                before = Some((entry.seq, entry.chain()));
            }
            start = next.into();
        }
    }

    fn root(&mut self, state: &State) {
        if !self.roots.insert(state.root.hash()) {
            return;
        }
        self.report.roots += 1;
        if let Err(e) = self.store.tree.check(&state.root) {
            self.problem(format!("root {} (entry {}): {e}", state.root.hash(), state.seq));
        }
    }

    fn world(&mut self, store: &Arc<Store>, id: WorldId, name: &str) -> Result<()> {
        let bytes = store.meta.get(&layout::of(Tag::State, id))?.ok_or_else(|| Error::corrupt("it has no state"))?;
        self.root(&State::decode(&bytes)?);
        let view = store.world(id)?.view();
        let mut inodes: HashMap<Ino, Inode> = HashMap::new();
        let mut names: HashMap<Ino, Names> = HashMap::new();
        let mut content: HashMap<Ino, u64> = HashMap::new();
        let mut orphans: HashSet<Ino> = HashSet::new();
        for item in view.scan(Bytes::from_static(&[0; 8]), Bytes::from(vec![u8::MAX; 10])) {
            let (key, value) = item?;
            let (ino, kind, suffix) = record::split(&key)?;
            match kind {
                Kind::Inode => {
                    inodes.insert(ino, Inode::decode(&value)?);
                }
                Kind::Entry => {
                    let entry = record::Entry::decode(&value)?;
                    names.entry(entry.ino).or_default().entries += 1;
                    if entry.kind == FileType::Directory {
                        names.entry(ino).or_default().subdirs += 1;
                    }
                    if suffix.ends_with(b"/") != (entry.kind == FileType::Directory) {
                        self.problem(format!("world {name}: inode {ino}: an entry's name and type disagree"));
                    }
                    if view.get(&record::parent_key(entry.ino, ino, suffix))?.is_none() {
                        self.problem(format!("world {name}: inode {} lacks a parent record", entry.ino));
                    }
                }
                Kind::Parent => names.entry(ino).or_default().parents += 1,
                Kind::Extent => {
                    let extent = Extent::decode(&value)?;
                    *content.entry(ino).or_default() += u64::from(extent.len);
                    self.extent(name, &view, ino, &extent);
                }
                Kind::Orphan => {
                    orphans.insert(Ino(crate::view::number(suffix)));
                }
                Kind::Object | Kind::Xattr => {}
            }
        }
        for (ino, inode) in &inodes {
            let of = names.remove(ino).unwrap_or_default();
            self.inode(name, *ino, inode, &of, orphans.contains(ino), content.remove(ino).unwrap_or(0));
        }
        for ino in names.keys().chain(content.keys()) {
            self.problem(format!("world {name}: records of inode {ino}, which does not exist"));
        }
        Ok(())
    }

    fn inode(&mut self, world: &str, ino: Ino, inode: &Inode, names: &Names, orphan: bool, content: u64) {
        let directory = inode.kind == FileType::Directory;
        let nlink = if directory { 2 + names.subdirs } else { names.entries };
        let named = names.entries > 0 || ino == Ino::ROOT;
        if !named && !orphan {
            self.problem(format!("world {world}: inode {ino} has no name"));
        }
        if named && inode.nlink != nlink {
            self.problem(format!("world {world}: inode {ino} says {} links, its names say {nlink}", inode.nlink));
        }
        if names.parents != names.entries {
            self.problem(format!(
                "world {world}: inode {ino} has {} names and {} parent records",
                names.entries, names.parents
            ));
        }
        if inode.allocated != content {
            self.problem(format!(
                "world {world}: inode {ino} says {} bytes, its extents hold {content}",
                inode.allocated
            ));
        }
    }

    fn extent(&mut self, world: &str, _view: &View, ino: Ino, extent: &Extent) {
        let Some(blob) = extent.piece.blob() else { return };
        if !self.read.insert(blob) {
            return;
        }
        match self.claims.get(&blob.addr.segment) {
            Some(used) if blob.addr.offset.saturating_add(blob.addr.len) <= *used => {}
            _ => self.problem(format!("world {world}: inode {ino}: its bytes lie outside every claimed segment")),
        }
        match self.store.segments.read(&blob) {
            Ok(bytes) => {
                self.report.blobs += 1;
                self.report.bytes += bytes.len() as u64;
            }
            Err(e) => self.problem(format!("world {world}: inode {ino}: {e}")),
        }
    }
}
