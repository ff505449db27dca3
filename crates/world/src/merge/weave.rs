//! Three trees woven into one set of nodes. A node is what stands at one name, followed through renames: on each side it has a
//! place and an inode there, or it is not.
//!
//! A node's home is its place in the common state, or the place where it was added; two things added at one place are one
//! node, and so are a thing and what replaced it under its name. So directories unify, and a change beneath a directory that the
//! other side renamed ends up under the new name. What is woven is only what changed, and the directories above.

use super::moves::{Moves, Slot};
use crate::diff::Records;
use crate::error::{Error, Result};
use crate::names::{names_of, parent_of};
use crate::record::{self, Entry, Kind};
use crate::view::View;
use bytes::Bytes;
use mw_model::{FileType, Ino};
use std::collections::{BTreeSet, HashMap};

/// A node, by its place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

/// The root directory.
pub(crate) const TOP: NodeId = NodeId(0);

/// One of the three trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Common = 0,
    Ours = 1,
    Theirs = 2,
}

/// A directory and a raw name in it.
pub(crate) type Place = (NodeId, Bytes);

/// Where a node stands on one side, and as what.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spot {
    pub ino: Ino,
    pub kind: FileType,
    pub place: Place,
}

/// Where a node is at home.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Home {
    parent: NodeId,
    name: Bytes,
    /// Added at a name whose common node was renamed away.
    fresh: bool,
}

/// A spot that may not have been looked for yet.
type Seen = Option<Option<Spot>>;

/// The nodes of three trees.
pub(crate) struct Weave<'a> {
    views: [&'a View; 3],
    moves: [Moves; 3],
    homes: Vec<Home>,
    spots: Vec<[Seen; 3]>,
    index: HashMap<Home, NodeId>,
    dirs: [HashMap<Ino, NodeId>; 3],
    touched: BTreeSet<NodeId>,
}

impl<'a> Weave<'a> {
    /// Weaves the trees; the records are those in which each side differs from the common state.
    pub(crate) fn new(views: [&'a View; 3], ours: &Records, theirs: &Records) -> Result<Self> {
        let [common, our, their] = views;
        let moves = [Moves::default(), Moves::find(common, our, ours)?, Moves::find(common, their, theirs)?];
        let top = Home { parent: TOP, name: Bytes::new(), fresh: false };
        let spot = Some(Some(Spot { ino: Ino::ROOT, kind: FileType::Directory, place: (TOP, Bytes::new()) }));
        let mut weave = Self {
            views,
            moves,
            // The root is in no index: the name beneath it that is empty is the root's marker.
            homes: vec![top],
            spots: vec![[spot.clone(), spot.clone(), spot]],
            index: HashMap::new(),
            dirs: std::array::from_fn(|_| HashMap::from([(Ino::ROOT, TOP)])),
            touched: BTreeSet::new(),
        };
        weave.touch(Of::Ours, ours)?;
        weave.touch(Of::Theirs, theirs)?;
        Ok(weave)
    }

    /// Returns the nodes that some side changed.
    pub(crate) fn touched(&self) -> Vec<NodeId> {
        self.touched.iter().copied().collect()
    }

    pub(crate) fn view(&self, of: Of) -> &'a View {
        self.views[of as usize]
    }

    /// Returns the node at a place, if it was woven.
    pub(crate) fn at_home(&self, parent: NodeId, name: Bytes) -> Option<NodeId> {
        self.index.get(&Home { parent, name, fresh: false }).copied()
    }

    fn touch(&mut self, of: Of, records: &Records) -> Result<()> {
        let mut inodes = BTreeSet::new();
        for (key, (left, right)) in records {
            let (ino, kind, _) = record::split(key)?;
            match kind {
                Kind::Entry => {
                    let name = key.slice(9..);
                    if left.is_some() {
                        self.touch_at(Of::Common, ino, name.clone())?;
                    }
                    if right.is_some() {
                        self.touch_at(of, ino, name)?;
                    }
                }
                Kind::Inode | Kind::Object | Kind::Xattr | Kind::Extent => {
                    inodes.insert(ino);
                }
                Kind::Parent | Kind::Orphan | Kind::Version => {}
            }
        }
        for ino in inodes {
            if ino == Ino::ROOT {
                self.touched.insert(TOP);
                continue;
            }
            for side in [Of::Common, of] {
                for (dir, name) in names_of(self.view(side), ino)? {
                    self.touch_at(side, dir, name)?;
                }
            }
        }
        Ok(())
    }

    fn touch_at(&mut self, of: Of, dir: Ino, name: Bytes) -> Result<()> {
        // Records of a directory without a name are those of an orphan.
        if let Some(node) = self.node_at(of, dir, name)? {
            self.touched.insert(node);
        }
        Ok(())
    }

    fn intern(&mut self, home: Home) -> NodeId {
        if let Some(node) = self.index.get(&home) {
            return *node;
        }
        let node = NodeId(self.homes.len() as u32);
        self.homes.push(home.clone());
        self.spots.push([None, None, None]);
        self.index.insert(home, node);
        node
    }

    /// Returns the node of a directory on one side; none for one that has no name there.
    fn dir(&mut self, of: Of, ino: Ino) -> Result<Option<NodeId>> {
        let mut below = Vec::new();
        let mut at = ino;
        while !self.dirs[of as usize].contains_key(&at) {
            let Some(slot) = parent_of(self.view(of), at)? else { return Ok(None) };
            below.push((at, slot.clone()));
            at = slot.0;
            if below.len() > 65_536 {
                return Err(Error::corrupt(format!("inode {ino} is its own ancestor; run `mw fsck`")));
            }
        }
        while let Some((child, (parent, name))) = below.pop() {
            let above = self.dirs[of as usize][&parent];
            let node = self.node_in(of, above, parent, name)?;
            self.dirs[of as usize].insert(child, node);
        }
        Ok(self.dirs[of as usize].get(&ino).copied())
    }

    /// Returns the node that a side has in a slot.
    fn node_at(&mut self, of: Of, dir: Ino, name: Bytes) -> Result<Option<NodeId>> {
        match self.dir(of, dir)? {
            Some(above) => self.node_in(of, above, dir, name).map(Some),
            None => Ok(None),
        }
    }

    fn node_in(&mut self, of: Of, above: NodeId, dir: Ino, name: Bytes) -> Result<NodeId> {
        let slot: Slot = (dir, name);
        if let Some(home) = self.moves[of as usize].into.get(&slot).cloned() {
            let parent = self.dir(Of::Common, home.0)?.ok_or_else(|| Error::corrupt("a directory has no name"))?;
            return Ok(self.intern(Home { parent, name: home.1, fresh: false }));
        }
        let fresh = match self.common_slot(above, &slot.1)? {
            Some(home) => self.moves[of as usize].from.contains_key(&home),
            None => false,
        };
        Ok(self.intern(Home { parent: above, name: slot.1, fresh }))
    }

    /// Returns the slot of a place in the common state when something stands there.
    fn common_slot(&mut self, parent: NodeId, name: &Bytes) -> Result<Option<Slot>> {
        let Some(dir) = self.spot(parent, Of::Common)?.map(|spot| spot.ino) else { return Ok(None) };
        Ok(self.view(Of::Common).entry(dir, name)?.map(|_| (dir, name.clone())))
    }

    /// Returns where a node stands on one side.
    pub(crate) fn spot(&mut self, node: NodeId, of: Of) -> Result<Option<Spot>> {
        // From the first directory that is known downwards, so that a deep tree needs no deep stack.
        let mut unseen = Vec::new();
        let mut at = node;
        while self.seen(at, of).is_none() || self.seen(at, Of::Common).is_none() {
            unseen.push(at);
            at = self.homes[at.0 as usize].parent;
        }
        while let Some(next) = unseen.pop() {
            for side in [Of::Common, of] {
                if self.seen(next, side).is_none() {
                    let spot = self.find(next, side)?;
                    self.spots[next.0 as usize][side as usize] = Some(spot);
                }
            }
        }
        Ok(self.seen(node, of).cloned().flatten())
    }

    fn seen(&self, node: NodeId, of: Of) -> Option<&Option<Spot>> {
        self.spots[node.0 as usize][of as usize].as_ref()
    }

    fn find(&mut self, node: NodeId, of: Of) -> Result<Option<Spot>> {
        let Home { parent, name, fresh } = self.homes[node.0 as usize].clone();
        if of == Of::Common && fresh {
            return Ok(None);
        }
        if of != Of::Common {
            let home = self.common_slot(parent, &name)?;
            let moved = home.and_then(|home| self.moves[of as usize].from.get(&home).cloned());
            match (moved, fresh) {
                (Some((slot, entry)), false) => {
                    let above = self.dir(of, slot.0)?.ok_or_else(|| Error::corrupt("a directory has no name"))?;
                    return Ok(Some(Spot { ino: entry.ino, kind: entry.kind, place: (above, slot.1) }));
                }
                // Without the common node gone from here, it is the one that stands at the name.
                (None, true) => return Ok(None),
                _ => {}
            }
        }
        let Some(dir) = self.spot(parent, of)?.filter(|spot| spot.kind == FileType::Directory) else {
            return Ok(None);
        };
        if self.moves[of as usize].into.contains_key(&(dir.ino, name.clone())) {
            return Ok(None);
        }
        let entry: Option<Entry> = self.view(of).entry(dir.ino, &name)?;
        Ok(entry.map(|entry| Spot { ino: entry.ino, kind: entry.kind, place: (parent, name) }))
    }

    /// Returns a node's path on one side.
    pub(crate) fn path(&mut self, node: NodeId, of: Of) -> Result<Option<Bytes>> {
        let mut parts = Vec::new();
        let mut at = node;
        while at != TOP {
            let Some(spot) = self.spot(at, of)? else { return Ok(None) };
            parts.push(spot.place.1);
            at = spot.place.0;
            if parts.len() > 65_536 {
                return Err(Error::corrupt("a directory is its own ancestor; run `mw fsck`"));
            }
        }
        Ok(Some(parts.iter().rev().flatten().copied().collect::<Vec<u8>>().into()))
    }

    /// Returns the path by which a node is spoken of: ours, or else theirs, or else the common one.
    pub(crate) fn name_of(&mut self, node: NodeId) -> Result<Bytes> {
        for of in [Of::Ours, Of::Theirs, Of::Common] {
            if let Some(path) = self.path(node, of)? {
                return Ok(path);
            }
        }
        Ok(Bytes::new())
    }
}
