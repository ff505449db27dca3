//! A plan as edits of the changed world.
//!
//! First every name that goes is taken, then every name that comes is given, so that two things can swap places; then what has
//! no name or nothing in it any more goes. Link counts and parent records are kept at every step.

use super::decide::{Blend, Fate, Source, Whose};
use super::settle::{Plan, Planned};
use super::weave::{NodeId, Of, Place, Spot, TOP, Weave};
use super::{Decide, LOOK};
use crate::content::Content;
use crate::diff::Item;
use crate::error::{Error, Result};
use crate::object::{Known, ObjectMeta};
use crate::record::{self, Entry, Extent, Inode, Kind};
use crate::txn::Txn;
use bytes::Bytes;
use mw_model::{ErrorKind, FileType, Ino};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Edits the mutation, which sees ours, as the plan says.
pub(crate) fn apply(
    txn: &mut Txn<'_>,
    weave: &mut Weave<'_>,
    plan: &Plan,
    into_base: bool,
    how: &Decide<'_>,
) -> Result<()> {
    let mut apply = Apply {
        txn,
        weave,
        plan,
        into_base,
        dry_run: how.dry_run,
        split: HashSet::new(),
        made: HashMap::new(),
        brought: HashMap::new(),
        settled: HashSet::new(),
        unnamed: BTreeSet::new(),
        shrunk: BTreeSet::new(),
        detached: HashSet::new(),
    };
    let nodes: Vec<NodeId> = plan.nodes.keys().copied().collect();
    apply.find_splits(&nodes);
    apply.take_names(&nodes)?;
    for node in &nodes {
        apply.directory(*node)?;
    }
    for (i, node) in nodes.iter().enumerate() {
        if i % LOOK == 0 {
            how.watch.at("merging", i, nodes.len())?;
        }
        apply.file(*node)?;
    }
    apply.empty_directories(&nodes)?;
    apply.times(&nodes)?;
    apply.nameless()
}

struct Apply<'a, 't, 'w> {
    txn: &'a mut Txn<'t>,
    weave: &'a mut Weave<'w>,
    plan: &'a Plan,
    into_base: bool,
    dry_run: bool,
    /// Names of one of our files that do not share its fate with the others: they become files of their own.
    split: HashSet<NodeId>,
    /// Directories that were made, by node.
    made: HashMap<NodeId, Ino>,
    /// Their inodes, by their number: ours.
    brought: HashMap<Ino, Ino>,
    /// Our inodes that have their new content.
    settled: HashSet<Ino>,
    /// Files that lost a name.
    unnamed: BTreeSet<Ino>,
    /// Directories that lost an entry.
    shrunk: BTreeSet<Ino>,
    /// Nodes whose old name was taken.
    detached: HashSet<NodeId>,
}

/// Returns where a planned node will be.
fn place(planned: &Planned) -> Option<&Place> {
    let of = if planned.verdict.place == Source::Theirs { Of::Theirs } else { Of::Ours };
    planned.facts.spot(of).map(|spot| &spot.place)
}

/// Returns whether another inode takes the place of ours, rather than new content going into it.
fn replaces(planned: &Planned) -> bool {
    match (&planned.verdict.item, planned.facts.spot(Of::Ours), planned.facts.spot(Of::Theirs)) {
        (Fate::Theirs, Some(ours), Some(theirs)) => ours.ino != theirs.ino,
        _ => false,
    }
}

fn entry(spot: &Spot) -> Entry {
    Entry { ino: spot.ino, kind: spot.kind }
}

impl Apply<'_, '_, '_> {
    /// Finds names of our hard links that are to change while another name of the same file is to stay as it is: under a policy, a
    /// resolution or `only`. A name that only we gave the file follows it.
    fn find_splits(&mut self, nodes: &[NodeId]) {
        let mut changing: BTreeMap<Ino, Vec<NodeId>> = BTreeMap::new();
        let mut staying: HashSet<Ino> = HashSet::new();
        for node in nodes {
            let planned = &self.plan.nodes[node];
            let Some(ours) = planned.facts.spot(Of::Ours) else { continue };
            if ours.kind == FileType::Directory || place(planned).is_none() || replaces(planned) {
                continue;
            }
            if !matches!(planned.verdict.item, Fate::Ours) {
                changing.entry(ours.ino).or_default().push(*node);
            } else if planned.facts.spot(Of::Common).is_some() {
                staying.insert(ours.ino);
            }
        }
        for (_, nodes) in changing.into_iter().filter(|(ino, _)| staying.contains(ino)) {
            self.split.extend(nodes);
        }
    }

    fn take_names(&mut self, nodes: &[NodeId]) -> Result<()> {
        let mut coming: HashSet<Place> = HashSet::new();
        for node in nodes {
            let planned = &self.plan.nodes[node];
            if let Some(place) = place(planned)
                && planned.facts.spot(Of::Ours).is_none_or(|spot| spot.place != *place)
            {
                coming.insert(place.clone());
            }
        }
        for node in nodes.iter().filter(|node| **node != TOP) {
            let planned = &self.plan.nodes[node];
            let Some(ours) = planned.facts.spot(Of::Ours).cloned() else { continue };
            let goes = match place(planned) {
                Some(place) => *place != ours.place || ours.kind != FileType::Directory && replaces(planned),
                // A directory that goes keeps its name until it is known to be empty.
                None => ours.kind != FileType::Directory || coming.contains(&ours.place),
            };
            if goes || self.split.contains(node) {
                self.detach(*node, &ours)?;
            }
        }
        Ok(())
    }

    fn detach(&mut self, node: NodeId, ours: &Spot) -> Result<()> {
        let above = self
            .weave
            .spot(ours.place.0, Of::Ours)?
            .ok_or_else(|| Error::corrupt("a directory of a merge is missing; run `mw fsck`"))?;
        self.txn.detach(above.ino, &ours.place.1, entry(ours))?;
        self.detached.insert(node);
        self.shrunk.insert(above.ino);
        if ours.kind != FileType::Directory {
            self.unnamed.insert(ours.ino);
        }
        Ok(())
    }

    fn attach(&mut self, node: NodeId, place: &Place, entry: Entry) -> Result<()> {
        let above = self.dir(place.0)?;
        self.name(node, above, &place.1, entry)
    }

    /// Gives a name, which the plan has made sure is free.
    fn name(&mut self, node: NodeId, above: Ino, name: &[u8], entry: Entry) -> Result<()> {
        if let Some(other) = self.txn.view.entry(above, name)? {
            let path = self.weave.name_of(node)?;
            return Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "{:?} would take the name of inode {}; decide on it with a resolution",
                    String::from_utf8_lossy(&path),
                    other.ino
                ),
            ));
        }
        self.txn.attach(above, name, entry)
    }

    /// Returns our inode of a directory, making an implicit one where it is missing.
    fn dir(&mut self, node: NodeId) -> Result<Ino> {
        if let Some(ino) = self.made.get(&node) {
            return Ok(*ino);
        }
        let mut missing = Vec::new();
        let mut at = node;
        let mut above = loop {
            if let Some(ino) = self.made.get(&at) {
                break *ino;
            }
            if let Some(spot) = self.weave.spot(at, Of::Ours)? {
                break spot.ino;
            }
            let mut place = self.plan.nodes.get(&at).and_then(place).cloned();
            for of in [Of::Theirs, Of::Common] {
                if place.is_none() {
                    place = self.weave.spot(at, of)?.map(|spot| spot.place);
                }
            }
            let place = place.ok_or_else(|| Error::corrupt("a directory of a merge is missing; run `mw fsck`"))?;
            missing.push((at, place.clone()));
            at = place.0;
        };
        while let Some((node, (_, name))) = missing.pop() {
            let number = match self.weave.spot(node, Of::Theirs)? {
                Some(spot) => Some(spot.ino),
                None => self.weave.spot(node, Of::Common)?.map(|spot| spot.ino),
            };
            let ino = match number {
                Some(ino) if self.txn.is_free(ino)? => ino,
                _ => self.txn.fresh()?,
            };
            let (uid, gid) = self.txn.store.options.owner;
            let mut inode = Inode::new(FileType::Directory, 0o755, uid, gid, self.txn.now);
            inode.implicit = true;
            self.txn.put_inode(ino, &inode);
            self.name(node, above, &name, Entry { ino, kind: FileType::Directory })?;
            self.made.insert(node, ino);
            above = ino;
        }
        Ok(above)
    }

    fn directory(&mut self, node: NodeId) -> Result<()> {
        let plan = self.plan;
        let planned = &plan.nodes[&node];
        let facts = &planned.facts;
        if !facts.directory() {
            return Ok(());
        }
        let Some(place) = place(planned) else { return Ok(()) };
        let wanted = match &planned.verdict.item {
            Fate::Ours => None,
            Fate::Theirs => Some(facts.item(Of::Theirs)),
            Fate::Blend(_) => Some(facts.item(Of::Theirs)),
        };
        if wanted.is_none() && !self.detached.contains(&node) {
            return Ok(());
        }
        let ino = match facts.spot(Of::Ours) {
            Some(ours) => {
                if self.detached.contains(&node) {
                    self.attach(node, place, entry(ours))?;
                }
                ours.ino
            }
            // One that is implicit on their side is made when something in it needs it.
            None if facts.item(Of::Theirs).is_none() => return Ok(()),
            None => self.dir(node)?,
        };
        match (wanted, &planned.verdict.item) {
            (Some(_), Fate::Blend(blend)) => self.blend_dir(ino, blend),
            (Some(Some(theirs)), _) => {
                let mut inode = self.txn.view.inode(ino)?;
                (inode.mode, inode.uid, inode.gid) = (theirs.inode.mode, theirs.inode.uid, theirs.inode.gid);
                (inode.mtime, inode.implicit) = (theirs.inode.mtime, false);
                self.txn.put_inode(ino, &inode);
                self.txn.set_xattrs(ino, &theirs.xattrs)
            }
            (Some(None), _) => {
                self.shrunk.insert(ino);
                self.make_implicit(ino)
            }
            (None, _) => Ok(()),
        }
    }

    fn blend_dir(&mut self, ino: Ino, blend: &Blend) -> Result<()> {
        let mut inode = self.txn.view.inode(ino)?;
        (inode.mode, inode.uid, inode.gid) = (blend.mode, blend.uid, blend.gid);
        inode.ctime = self.txn.time();
        self.txn.put_inode(ino, &inode);
        self.txn.set_xattrs(ino, &blend.xattrs)
    }

    fn make_implicit(&mut self, ino: Ino) -> Result<()> {
        let mut inode = self.txn.view.inode(ino)?;
        (inode.uid, inode.gid) = self.txn.store.options.owner;
        (inode.mode, inode.implicit) = (0o755, true);
        inode.ctime = self.txn.time();
        self.txn.put_inode(ino, &inode);
        self.txn.set_xattrs(ino, &BTreeMap::new())
    }

    fn file(&mut self, node: NodeId) -> Result<()> {
        let plan = self.plan;
        let planned = &plan.nodes[&node];
        let facts = &planned.facts;
        if facts.directory() {
            return Ok(());
        }
        let Some(place) = place(planned) else { return Ok(()) };
        let split = self.split.contains(&node);
        let entry = match (&planned.verdict.item, facts.spot(Of::Ours)) {
            (Fate::Ours, Some(ours)) => entry(ours),
            (Fate::Ours, None) => return Ok(()),
            (Fate::Theirs, ours) => {
                let Some(theirs) = facts.item(Of::Theirs) else { return Ok(()) };
                let kind = theirs.inode.kind;
                let ino = match ours {
                    Some(ours) if ours.ino == theirs.ino && !split => self.renew(theirs)?,
                    _ => self.bring(theirs, split)?,
                };
                Entry { ino, kind }
            }
            (Fate::Blend(blend), Some(ours)) => {
                let (Some(our), Some(their)) = (facts.item(Of::Ours), facts.item(Of::Theirs)) else { return Ok(()) };
                let mut ino = ours.ino;
                if split {
                    ino = self.txn.fresh()?;
                    self.txn.adopt(self.weave.view(Of::Ours), our, ino, 0)?;
                }
                if self.settled.insert(ino) {
                    self.blend(ino, blend, our, their)?;
                }
                Entry { ino, kind: ours.kind }
            }
            (Fate::Blend(_), None) => return Ok(()),
        };
        if self.detached.contains(&node) || facts.spot(Of::Ours).is_none() {
            self.attach(node, place, entry)?;
        }
        Ok(())
    }

    /// Gives our inode what theirs of the same number has.
    fn renew(&mut self, theirs: &Item) -> Result<Ino> {
        let ino = theirs.ino;
        self.brought.insert(ino, ino);
        if self.settled.insert(ino) {
            let nlink = self.txn.view.inode(ino)?.nlink;
            self.txn.adopt(self.weave.view(Of::Theirs), theirs, ino, nlink)?;
        }
        Ok(ino)
    }

    /// Brings an inode of theirs, once for all of its names.
    fn bring(&mut self, theirs: &Item, split: bool) -> Result<Ino> {
        if let Some(ino) = self.brought.get(&theirs.ino).filter(|_| !split) {
            return Ok(*ino);
        }
        let there = self.txn.view.find_inode(theirs.ino)?;
        // What has no name here, and is somebody's all the same: an open file, or a kept version.
        let orphan =
            self.txn.view.get(&record::orphan_key(theirs.ino))?.is_some() || there.is_some_and(|inode| inode.retained);
        let ino = match there {
            None => theirs.ino,
            // All of its names were taken: it is being renamed onto another.
            Some(inode) if inode.nlink == 0 && !orphan && !split => theirs.ino,
            // Theirs gave one of our files another name.
            Some(_) if theirs.inode.nlink > 1 && !orphan && !split => {
                self.brought.insert(theirs.ino, theirs.ino);
                return Ok(theirs.ino);
            }
            Some(_) => self.txn.fresh()?,
        };
        self.txn.adopt(self.weave.view(Of::Theirs), theirs, ino, 0)?;
        self.settled.insert(ino);
        if !split {
            self.brought.insert(theirs.ino, ino);
        }
        Ok(ino)
    }

    fn blend(&mut self, ino: Ino, blend: &Blend, ours: &Item, theirs: &Item) -> Result<()> {
        let (our_view, their_view) = (self.weave.view(Of::Ours), self.weave.view(Of::Theirs));
        let mut known = match &blend.content {
            Whose::Ours => Known::of(our_view, ours.ino, &ours.inode)?,
            Whose::Theirs => Known::of(their_view, theirs.ino, &theirs.inode)?,
            Whose::Joined { .. } | Whose::Combined(_) => Known { content: self.txn.now, ..Known::default() },
        };
        known.meta = blend.meta.clone();
        match &blend.content {
            Whose::Ours => {}
            Whose::Theirs => self.txn.adopt_kind(their_view, theirs.ino, ino, Kind::Extent)?,
            Whose::Joined { from } => self.join(ino, *from, ours, theirs)?,
            Whose::Combined(content) => self.fill(ino, content)?,
        }
        let mut inode = self.txn.view.inode(ino)?;
        (inode.mode, inode.uid, inode.gid) = (blend.mode, blend.uid, blend.gid);
        inode.ctime = self.txn.time();
        match &blend.content {
            Whose::Ours => {}
            Whose::Theirs => {
                let from = &theirs.inode;
                (inode.size, inode.allocated, inode.content) = (from.size, from.allocated, from.content);
                inode.mtime = from.mtime;
            }
            Whose::Joined { .. } | Whose::Combined(_) => {
                inode.content = self.txn.now;
                inode.mtime = ours.inode.mtime.max(theirs.inode.mtime);
            }
        }
        self.txn.put_inode(ino, &inode);
        self.txn.set_xattrs(ino, &blend.xattrs)?;
        let key = record::key(ino, Kind::Object, &[]);
        if known.meta != ObjectMeta::default() || !known.etag.is_empty() || self.txn.view.get(&key)?.is_some() {
            self.txn.put(key, known.encode());
        }
        Ok(())
    }

    /// Makes a file the base's content with the fork's tail behind it. The extents are shared.
    fn join(&mut self, ino: Ino, from: u64, ours: &Item, theirs: &Item) -> Result<()> {
        let (fork_of, fork, base_size) =
            if self.into_base { (Of::Theirs, theirs, ours.inode.size) } else { (Of::Ours, ours, theirs.inode.size) };
        let mut tail = self.weave.view(fork_of).runs(fork.ino, from, fork.inode.size)?;
        let mut allocated = if self.into_base { ours.inode.allocated } else { theirs.inode.allocated };
        if !self.into_base {
            self.txn.adopt_kind(self.weave.view(Of::Theirs), theirs.ino, ino, Kind::Extent)?;
        }
        for (at, extent) in &mut tail {
            allocated += u64::from(extent.len);
            *at = base_size + (*at - from);
        }
        self.txn.put_extents(ino, record::rows(&tail));
        let mut inode = self.txn.view.inode(ino)?;
        (inode.size, inode.allocated) = (base_size + fork.inode.size - from, allocated);
        self.txn.put_inode(ino, &inode);
        Ok(())
    }

    /// Gives a file a new content.
    fn fill(&mut self, ino: Ino, content: &Bytes) -> Result<()> {
        let extents = if content.is_empty() {
            Vec::new()
        } else if self.dry_run {
            vec![(0, Extent::whole(Content::ride(content)))]
        } else {
            self.txn.store.content.extents(self.txn.world.owner, 0, content)?
        };
        self.txn.clear_extents(ino, 0, u64::MAX)?;
        let allocated = extents.iter().map(|(_, extent)| u64::from(extent.len)).sum();
        self.txn.put_extents(ino, record::rows(&extents));
        let mut inode = self.txn.view.inode(ino)?;
        (inode.size, inode.allocated) = (content.len() as u64, allocated);
        self.txn.put_inode(ino, &inode);
        Ok(())
    }

    /// Directories that are to go: those that are empty, deepest first; the others live on as implicit ones.
    fn empty_directories(&mut self, nodes: &[NodeId]) -> Result<()> {
        let mut going = Vec::new();
        for node in nodes {
            let planned = &self.plan.nodes[node];
            if let (Some(ours), None) = (planned.facts.spot(Of::Ours), place(planned))
                && ours.kind == FileType::Directory
            {
                let depth = self.weave.path(*node, Of::Ours)?.map_or(0, |path| path.split(|b| *b == b'/').count());
                going.push((std::cmp::Reverse(depth), *node, ours.clone()));
            }
        }
        going.sort_by_key(|(depth, node, _)| (*depth, *node));
        for (_, node, ours) in going {
            let detached = self.detached.contains(&node);
            if self.txn.is_empty_dir(ours.ino)? {
                if !detached {
                    self.detach(node, &ours)?;
                }
                self.shrunk.remove(&ours.ino);
                self.txn.unlink_inode(ours.ino)?;
                continue;
            }
            self.make_implicit(ours.ino)?;
            if detached {
                self.attach(node, &ours.place, entry(&ours))?;
            }
        }
        for dir in std::mem::take(&mut self.shrunk) {
            if self.txn.view.find_inode(dir)?.is_some() {
                self.txn.prune_implicit(dir)?;
            }
        }
        Ok(())
    }

    /// A modification time that they moved, without the content, travels too: the newer of those that changed.
    fn times(&mut self, nodes: &[NodeId]) -> Result<()> {
        for node in nodes {
            let planned = &self.plan.nodes[node];
            let [Some(common), Some(ours), Some(theirs)] = &planned.facts.items else { continue };
            let kept = planned.wanted && planned.verdict.conflict.is_none();
            let same = planned.facts.same.theirs_common && ours.inode.kind != FileType::Directory;
            if !kept || !same || !matches!(planned.verdict.item, Fate::Ours) || theirs.inode.mtime == common.inode.mtime
            {
                continue;
            }
            let newer = if ours.inode.mtime == common.inode.mtime {
                theirs.inode.mtime
            } else {
                ours.inode.mtime.max(theirs.inode.mtime)
            };
            if let Some(mut inode) = self.txn.view.find_inode(ours.ino)?
                && inode.mtime != newer
            {
                inode.mtime = newer;
                inode.ctime = self.txn.time();
                self.txn.put_inode(ours.ino, &inode);
            }
        }
        Ok(())
    }

    /// Files without a name go, or become orphans while somebody has them open.
    fn nameless(&mut self) -> Result<()> {
        for ino in std::mem::take(&mut self.unnamed) {
            if self.txn.view.find_inode(ino)?.is_some_and(|inode| inode.nlink == 0) {
                self.txn.unlink_inode(ino)?;
            }
        }
        Ok(())
    }
}
