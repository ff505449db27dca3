//! fsck: proves that every root is whole, every byte verifies, and every name and link count agrees, of a store that is at work too.

mod moving;

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::record::{self, Extent, Inode, Kind, Lists, is_extent};
use crate::snapshot::SnapshotRecord;
use crate::state::{Range, State};
use crate::store::Store;
use crate::versions;
use bytes::Bytes;
use moving::Owned;
use mw_meta::Order;
use mw_model::{FileType, Hash, Ino, Seq, WorldId};
use mw_segments::BlobRef;
use mw_tree::{Value, Visit};
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
    store: &'a Arc<Store>,
    report: Fsck,
    /// How many problems were found again.
    counted: usize,
    owned: Owned,
    read: HashSet<BlobRef>,
    lists: Lists,
    roots: HashSet<BlobRef>,
    nodes: HashSet<BlobRef>,
    /// Log ranges that were found whole.
    ranges: HashSet<Range>,
}

/// What a root holds on to, as the walk over it finds it.
#[derive(Default)]
struct Held {
    nodes: Vec<BlobRef>,
    extents: Vec<(Bytes, Value)>,
}

/// Walks a root past what was walked before.
struct Holds<'a> {
    seen: &'a mut HashSet<BlobRef>,
    /// What was not seen before.
    met: Vec<BlobRef>,
    held: Held,
}

impl Visit for Holds<'_> {
    fn node(&mut self, blob: &BlobRef) -> bool {
        self.held.nodes.push(*blob);
        let new = self.seen.insert(*blob);
        if new {
            self.met.push(*blob);
        }
        new
    }

    fn entry(&mut self, key: &[u8], value: &Value) {
        let key = Bytes::copy_from_slice(key);
        if is_extent(&key) {
            self.held.extents.push((key, value.clone()));
        }
    }

    fn large(&mut self, blob: &BlobRef) {
        self.held.nodes.push(*blob);
    }
}

/// What the names of one inode say about it.
#[derive(Default)]
struct Names {
    entries: u32,
    subdirs: u32,
    parents: u32,
}

/// What the extents of one inode say about it.
#[derive(Default)]
struct Content {
    bytes: u64,
    end: u64,
}

impl Store {
    /// Checks everything. Problems are listed, not repaired.
    ///
    /// # Errors
    /// The metadata store failed; damage to worlds is in the report instead.
    pub fn fsck(self: &Arc<Self>, progress: &mut dyn FnMut(&str)) -> Result<Fsck> {
        let mut check = Check::new(self)?;
        let (start, end) = layout::all(Tag::Name);
        for (key, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let name = String::from_utf8_lossy(layout::rest(&key)).into_owned();
            let id = WorldId(layout::number(&value));
            progress(&name);
            check.report.worlds += 1;
            let mut whole = |check: &mut Check<'_>| {
                // Opening cuts what was never durable; only what is left is to be whole.
                let opened = self.world(id).map(drop);
                if let Err(e) = opened.and_then(|()| check.log(id, &name)).and_then(|()| check.world(id, &name)) {
                    check.problem(format!("world {name}: {e}"));
                }
                Ok(())
            };
            check.judge(&mut whole, &|| Ok(self.meta.get(&key)?.is_some_and(|now| now == value)))?;
        }
        check.alive()?;
        progress("history and snapshots");
        check.judge(&mut |check| check.history(), &|| Ok(true))?;
        check.judge(&mut |check| check.seals(), &|| Ok(true))?;
        self.each_state(&mut |owner, state| {
            let mut whole = |check: &mut Check<'_>| {
                check.root(owner, &state)?;
                check.lean(owner, &state)
            };
            check.judge(&mut whole, &|| moving::is_kept(self, &state))
        })?;
        Ok(check.report)
    }
}

impl<'a> Check<'a> {
    fn new(store: &'a Arc<Store>) -> Result<Self> {
        Ok(Self {
            store,
            report: Fsck::default(),
            counted: 0,
            owned: Owned::read(store)?,
            read: HashSet::new(),
            lists: Lists::new(store.segments.clone()),
            roots: HashSet::new(),
            nodes: HashSet::new(),
            ranges: HashSet::new(),
        })
    }

    /// Every snapshot shows the history that it was taken of.
    fn seals(&mut self) -> Result<()> {
        let (start, end) = layout::all(Tag::Snapshot);
        for (key, value) in self.store.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let world = WorldId(crate::view::number(layout::rest(&key).get(..8).unwrap_or_default()));
            let record = SnapshotRecord::decode(&value)?;
            let version = layout::number(&key);
            let time = record.state.time;
            let next = self.store.meta.get(&layout::log(world, Seq(record.state.seq.0 + 1)))?;
            let next = next.map(|bytes| Entry::decode(&bytes)).transpose()?;
            if time.0 > version || next.is_some_and(|entry| entry.time.0 < version) {
                self.problem(format!("snapshot {version} of world {world}: it shows version {time} instead"));
            }
            if record.seal != self.store.seal(world, &record.state) {
                self.problem(format!("snapshot {version} of world {world}: its signature is not the store's"));
            }
        }
        Ok(())
    }

    fn problem(&mut self, what: String) {
        if self.report.problems.len() < 1000 {
            self.report.problems.push(what);
        }
    }

    /// Every entry follows the one before, the content of each is there, and the log reaches as far as it was durable. Before the
    /// history that is retained there is only what something leans on, and what a sweep that was cut off did not get to.
    fn log(&mut self, id: WorldId, name: &str) -> Result<()> {
        let (from, to) = layout::all_of(Tag::History, id);
        let retained =
            self.store.meta.scan(&from, &to, 1, Order::Up)?.first().map_or(0, |(key, _)| layout::number(key));
        // Before the log, which goes on meanwhile.
        let mark = self.store.meta.get(&layout::of(Tag::Mark, id))?.map_or(0, |v| layout::number(&v));
        let (mut start, end) = layout::all_of(Tag::Log, id);
        let mut before: Option<(Seq, Hash)> = None;
        loop {
            let page = self.store.meta.scan(&start, &end, 512, Order::Up)?;
            let Some((last, _)) = page.last() else { break };
            let mut next = last.to_vec();
            next.push(0);
            for (key, value) in &page {
                let entry = Entry::decode(value)?;
                let follows = match before {
                    Some((seq, chain)) if entry.seq.0 == seq.0 + 1 => entry.previous == chain,
                    Some((seq, _)) => entry.seq > seq && entry.seq.0 <= retained,
                    None => true,
                };
                if !follows || layout::number(key) != entry.seq.0 {
                    self.problem(format!("world {name}: entry {} does not follow the one before", entry.seq));
                }
                self.content(id, name, &entry)?;
                before = Some((entry.seq, entry.chain()));
            }
            start = next.into();
        }
        let last = before.map_or(Seq(0), |(seq, _)| seq);
        if mark > last.0 {
            self.problem(format!("world {name}: entry {mark} was durable, and the log ends with entry {last}"));
        }
        Ok(())
    }

    /// The content that an entry refers to.
    fn content(&mut self, id: WorldId, name: &str, entry: &Entry) -> Result<()> {
        for (key, value) in &entry.changes {
            if let Some(value) = value
                && is_extent(key)
            {
                let (ino, _, _) = record::split(key)?;
                for extent in Extent::decode(value)? {
                    self.extent(id, name, ino, &extent?)?;
                }
            }
        }
        Ok(())
    }

    /// A root, everything in it, and the content that it refers to.
    fn root(&mut self, owner: WorldId, state: &State) -> Result<()> {
        let Some(top) = state.root.blob() else { return Ok(()) };
        if !self.roots.insert(top) {
            return Ok(());
        }
        self.report.roots += 1;
        let what = format!("root {} (entry {} of world {owner})", state.root.hash(), state.seq);
        if let Err(e) = self.store.tree.check(&state.root) {
            self.problem(format!("{what}: {e}"));
            return Ok(());
        }
        let mut holds = Holds { seen: &mut self.nodes, met: Vec::new(), held: Held::default() };
        if let Err(e) = self.store.tree.walk(&state.root, &mut holds) {
            // What is beneath the nodes that it met was not looked at: another root, which lives on, may hold them too.
            for node in holds.met {
                self.nodes.remove(&node);
            }
            self.problem(format!("{what}: {e}"));
            return Ok(());
        }
        let Held { nodes, extents } = holds.held;
        for blob in nodes {
            self.place(owner, &blob, &what)?;
        }
        for (key, value) in extents {
            let read = record::split(&key)
                .and_then(|(ino, _, _)| Ok((ino, Extent::decode(&value)?.collect::<Result<Vec<_>>>()?)));
            match read {
                Ok((ino, extents)) => {
                    for extent in extents {
                        self.extent(owner, &what, ino, &extent)?;
                    }
                }
                Err(e) => self.problem(format!("{what}: {e}")),
            }
        }
        Ok(())
    }

    /// Every state of history stands at its own entry, and is the one that the log has there.
    fn history(&mut self) -> Result<()> {
        let (start, end) = layout::all(Tag::History);
        for (key, value) in self.store.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let (id, at) = (WorldId(layout::number(&key[..key.len().saturating_sub(8)])), Seq(layout::number(&key)));
            let state = State::decode(&value)?;
            let entry = self.store.meta.get(&layout::log(id, at))?.map(|bytes| Entry::decode(&bytes)).transpose()?;
            if state.seq != at || entry.is_some_and(|entry| entry.chain() != state.chain) {
                self.problem(format!("history of world {id} at entry {at} is a state of another entry"));
            }
        }
        Ok(())
    }

    /// The log ranges that a state leans on are there, follow each other and end where the state says.
    fn lean(&mut self, owner: WorldId, state: &State) -> Result<()> {
        for (i, range) in state.lean.iter().enumerate() {
            let end = (i + 1 == state.lean.len()).then_some(state.chain);
            if end.is_none() && self.ranges.contains(range) {
                continue;
            }
            if range.world != owner && !self.has_lent(range.world)? {
                self.problem(format!("world {owner} leans on world {}, which is not known to have lent", range.world));
            }
            match self.range(range) {
                Ok(chain) if end.is_none_or(|end| end == chain) => drop(self.ranges.insert(*range)),
                Ok(_) => {
                    self.problem(format!("world {owner}: entry {} is not the one that a state was made of", state.seq))
                }
                Err(e) => self.problem(format!("world {owner}: what a state leans on: {e}")),
            }
        }
        Ok(())
    }

    /// Returns the chain hash at the end of a log range.
    fn range(&mut self, range: &Range) -> Result<Hash> {
        let (mut at, mut chain) = (range.after, None);
        let name = range.world.to_string();
        while at < range.to {
            let page = self.store.page(range.world, at, range.to)?;
            if page.is_empty() {
                return Err(Error::corrupt(format!("entries after {at} of world {} are missing", range.world)));
            }
            for (entry, _) in page {
                if entry.seq.0 != at.0 + 1 || chain.is_some_and(|chain| chain != entry.previous) {
                    return Err(Error::corrupt(format!(
                        "entry {} of world {} does not follow {at}",
                        entry.seq, range.world
                    )));
                }
                self.content(range.world, &name, &entry)?;
                (at, chain) = (entry.seq, Some(entry.chain()));
            }
        }
        Ok(chain.unwrap_or_default())
    }

    fn world(&mut self, id: WorldId, name: &str) -> Result<()> {
        let store = self.store;
        let bytes = store.meta.get(&layout::of(Tag::State, id))?.ok_or_else(|| Error::corrupt("it has no state"))?;
        let state = State::decode(&bytes)?;
        self.root(id, &state)?;
        // The first entry after a state goes on from it.
        if let Some((next, _)) = store.page(id, state.seq, Seq(state.seq.0 + 1))?.first()
            && next.previous != state.chain
        {
            self.problem(format!("world {name}: entry {} does not go on from the state before it", next.seq));
        }
        let view = store.world(id)?.view();
        let mut inodes: HashMap<Ino, Inode> = HashMap::new();
        let mut names: HashMap<Ino, Names> = HashMap::new();
        let mut content: HashMap<Ino, Content> = HashMap::new();
        let mut orphans: HashSet<Ino> = HashSet::new();
        let mut kept: HashMap<Ino, u32> = HashMap::new();
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
                    let of = content.entry(ino).or_default();
                    let at = crate::view::offset_of(&key)?;
                    if at < of.end {
                        self.report.problems.push(format!("world {name}: inode {ino}: two extents hold byte {at}"));
                    }
                    of.end = at;
                    for extent in Extent::decode(&value)? {
                        let extent = extent?;
                        of.bytes += u64::from(extent.len);
                        of.end += u64::from(extent.len);
                        self.extent(id, name, ino, &extent)?;
                    }
                    if value.weight != of.end - at {
                        self.problem(format!("world {name}: inode {ino}: the length of the extents at {at} is wrong"));
                    }
                }
                Kind::Orphan => {
                    orphans.insert(Ino(crate::view::number(suffix)));
                }
                Kind::Version => {
                    if let (_, versions::Kept { ino: Some(ino), .. }) = versions::read(&key, &value)? {
                        *kept.entry(ino).or_default() += 1;
                    }
                }
                Kind::Object | Kind::Xattr => {}
            }
        }
        for (ino, inode) in &inodes {
            let of = names.remove(ino).unwrap_or_default();
            let versions = kept.remove(ino).unwrap_or_default();
            if versions != u32::from(inode.retained) {
                self.problem(format!("world {name}: inode {ino} is kept as {versions} versions of objects"));
            }
            let nameless = orphans.contains(ino) || inode.retained;
            self.inode(name, *ino, inode, &of, nameless, &content.remove(ino).unwrap_or_default());
        }
        for ino in kept.keys() {
            self.problem(format!("world {name}: a version of an object is inode {ino}, which does not exist"));
        }
        for ino in names.keys().chain(content.keys()) {
            self.problem(format!("world {name}: records of inode {ino}, which does not exist"));
        }
        Ok(())
    }

    fn inode(&mut self, world: &str, ino: Ino, inode: &Inode, names: &Names, orphan: bool, content: &Content) {
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
        if inode.allocated != content.bytes || inode.size < content.end {
            self.problem(format!(
                "world {world}: inode {ino} says {} bytes of {}, its extents hold {} up to {}",
                inode.allocated, inode.size, content.bytes, content.end
            ));
        }
    }

    /// Whoever refers to a blob has it in a claimed segment, of its own or of a world that has lent.
    fn place(&mut self, world: WorldId, blob: &BlobRef, what: &str) -> Result<()> {
        if let Some(flaw) = self.misplaced(world, blob)? {
            self.problem(format!("{what}: its bytes {flaw}"));
        }
        Ok(())
    }

    fn extent(&mut self, id: WorldId, world: &str, ino: Ino, extent: &Extent) -> Result<()> {
        let what = format!("world {world}: inode {ino}");
        let mut blobs = Vec::new();
        if let Err(e) = self.lists.blobs(extent, &mut |blob| blobs.push(*blob)) {
            self.problem(format!("{what}: {e}"));
        }
        for blob in blobs {
            self.place(id, &blob, &what)?;
            if !self.read.insert(blob) {
                continue;
            }
            match self.store.segments.read(&blob) {
                Ok(bytes) => {
                    self.report.blobs += 1;
                    self.report.bytes += bytes.len() as u64;
                }
                Err(e) => self.problem(format!("{what}: {e}")),
            }
        }
        Ok(())
    }
}
