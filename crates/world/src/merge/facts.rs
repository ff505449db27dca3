//! What must be known of a node to decide on it: where each side has it, as what, and whose content equals whose.

use super::weave::{NodeId, Of, Spot, Weave};
use super::{Combine, Sides};
use crate::diff::{FileIn, Item, same_content, same_start};
use crate::error::Result;
use crate::files::split_key;
use crate::view::View;
use bytes::Bytes;
use mw_model::{FileType, Ino};

/// The facts of one node. Arrays are indexed by [`Of`].
pub(crate) struct Facts {
    pub spots: [Option<Spot>; 3],
    /// None: not there, or an implicit directory.
    pub items: [Option<Item>; 3],
    /// Whose content is whose.
    pub same: SameContent,
    /// Where the fork's own tail begins, when both sides only appended.
    pub grown: Option<u64>,
    /// What both sides' changes of the content come to, when they may be combined.
    pub combined: Option<Bytes>,
    /// Whether a side put a directory in the place of this file, or the reverse.
    pub replaced: [bool; 3],
}

/// Which contents are equal. What does not exist equals nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SameContent {
    pub ours_common: bool,
    pub theirs_common: bool,
    pub ours_theirs: bool,
}

impl Facts {
    pub(crate) fn spot(&self, of: Of) -> Option<&Spot> {
        self.spots[of as usize].as_ref()
    }

    pub(crate) fn item(&self, of: Of) -> Option<&Item> {
        self.items[of as usize].as_ref()
    }

    /// Returns whether the node is a directory, wherever it is one.
    pub(crate) fn directory(&self) -> bool {
        self.spots.iter().flatten().any(|spot| spot.kind == FileType::Directory)
    }

    /// Returns whether two sides have the node in the same place.
    pub(crate) fn same_place(&self, a: Of, b: Of) -> bool {
        self.spot(a).map(|spot| &spot.place) == self.spot(b).map(|spot| &spot.place)
    }

    /// Gathers the facts of a node.
    pub(crate) fn gather(weave: &mut Weave<'_>, sides: &Sides<'_>, node: NodeId, combine: Combine) -> Result<Self> {
        const ALL: [Of; 3] = [Of::Common, Of::Ours, Of::Theirs];
        let mut facts = Self {
            spots: [None, None, None],
            items: [None, None, None],
            same: SameContent::default(),
            grown: None,
            combined: None,
            replaced: [false; 3],
        };
        for of in ALL {
            let spot = weave.spot(node, of)?;
            if let Some(spot) = &spot {
                facts.items[of as usize] = Item::read_party(weave.view(of), spot.ino)?;
            }
            facts.spots[of as usize] = spot;
        }
        let same = |a: Of, b: Of| match (facts.item(a), facts.item(b)) {
            (Some(x), Some(y)) if x.inode.kind == y.inode.kind => {
                same_content(sides.content, (weave.view(a), x), (weave.view(b), y))
            }
            _ => Ok(false),
        };
        let (ours_common, theirs_common) = (same(Of::Ours, Of::Common)?, same(Of::Theirs, Of::Common)?);
        let ours_theirs = same(Of::Ours, Of::Theirs)?;
        facts.same = SameContent { ours_common, theirs_common, ours_theirs };
        if !ours_common && !theirs_common && !ours_theirs {
            facts.grown = facts.growth(weave, sides, node)?;
            if facts.grown.is_none() {
                facts.combined = facts.combine(weave, sides, node, combine)?;
            }
        }
        for of in [Of::Ours, Of::Theirs] {
            if facts.spot(of).is_none() && facts.spot(Of::Common).is_some() {
                facts.replaced[of as usize] = twin(weave, node, of)?;
            }
        }
        Ok(facts)
    }

    /// Combines the contents, where all three are files of a size that this is done for.
    fn combine(&self, weave: &mut Weave<'_>, sides: &Sides<'_>, node: NodeId, how: Combine) -> Result<Option<Bytes>> {
        let [Some(common), Some(ours), Some(theirs)] = &self.items else { return Ok(None) };
        let fits = |item: &Item| item.inode.kind == FileType::File && how.takes(item.inode.size);
        if ![common, ours, theirs].into_iter().all(fits) {
            return Ok(None);
        }
        let read = |of: Of, item: &Item| {
            let size = item.inode.size;
            sides.content.assemble(&weave.view(of).extents(item.ino, 0, size)?, 0, size)
        };
        let (c, o, t) = (read(Of::Common, common)?, read(Of::Ours, ours)?, read(Of::Theirs, theirs)?);
        let name = weave.name_of(node)?;
        Ok(how.combine(&name, &c, &o, &t).map(Bytes::from))
    }

    /// Returns where the fork's tail begins when both files start with the common content. After an earlier promote of this kind
    /// the base has its own tail before the common one: then it must have grown from what that promote made.
    fn growth(&self, weave: &mut Weave<'_>, sides: &Sides<'_>, node: NodeId) -> Result<Option<u64>> {
        let [Some(common), Some(ours), Some(theirs)] = &self.items else { return Ok(None) };
        if [common, ours, theirs].iter().any(|item| item.inode.kind != FileType::File) {
            return Ok(None);
        }
        let start = common.inode.size;
        let (base_side, base, fork_side, fork) =
            if sides.into_base { (Of::Ours, ours, Of::Theirs, theirs) } else { (Of::Theirs, theirs, Of::Ours, ours) };
        let grew = |view: &View, item: &Item, from_view: &View, from: &Item| -> Result<bool> {
            let (new, old) = (FileIn { view, ino: item.ino }, FileIn { view: from_view, ino: from.ino });
            Ok(item.inode.size >= from.inode.size && same_start(sides.content, new, old, from.inode.size)?)
        };
        if !grew(weave.view(fork_side), fork, weave.view(Of::Common), common)? {
            return Ok(None);
        }
        if grew(weave.view(base_side), base, weave.view(Of::Common), common)? {
            return Ok(Some(start));
        }
        let Some(then_view) = sides.base_then else { return Ok(None) };
        let then = match Item::read(then_view, base.ino)? {
            Some(then) => Some(then),
            None => match weave.path(node, base_side)? {
                Some(path) => at_path(then_view, &path)?.map(|ino| Item::read(then_view, ino)).transpose()?.flatten(),
                None => None,
            },
        };
        let Some(then) = then.filter(|then| then.inode.kind == FileType::File) else { return Ok(None) };
        Ok(grew(weave.view(base_side), base, then_view, &then)?.then_some(start))
    }
}

/// Returns whether a side without the node has the other sort of thing, new, under its name.
fn twin(weave: &mut Weave<'_>, node: NodeId, of: Of) -> Result<bool> {
    let Some(spot) = weave.spot(node, Of::Common)? else { return Ok(false) };
    let (parent, name) = spot.place;
    if name.is_empty() {
        return Ok(false);
    }
    let other = match name.strip_suffix(b"/") {
        Some(file) => file.to_vec(),
        None => [&name[..], b"/"].concat(),
    };
    let Some(twin) = weave.at_home(parent, other.into()) else { return Ok(false) };
    Ok(weave.spot(twin, of)?.is_some() && weave.spot(twin, Of::Common)?.is_none())
}

/// Returns the inode under a path of raw names.
fn at_path(view: &View, path: &[u8]) -> Result<Option<Ino>> {
    let (dirs, last) = split_key(path);
    let mut at = Ino::ROOT;
    for name in dirs.iter().chain(std::iter::once(&last)) {
        match view.entry(at, name)? {
            Some(entry) => at = entry.ino,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}
