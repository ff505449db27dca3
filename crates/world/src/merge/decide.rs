//! The decision on one node. A pure function of its facts.
//!
//! What only one side changed travels; what both made equal is no conflict; attributes merge one by one; files to which both
//! sides only appended keep both tails. An implicit directory is never a party.

use super::ConflictKind;
use super::facts::Facts;
use super::weave::Of;
use crate::diff::Item;
use crate::object::ObjectMeta;
use bytes::Bytes;
use mw_model::FileType;
use std::collections::BTreeMap;

/// Whose part is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Ours,
    Theirs,
}

/// Whose content is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    Theirs,
    /// The base's, then the fork's from this offset on.
    Joined {
        from: u64,
    },
    /// Made of both.
    Combined(Bytes),
}

/// An item made of parts of both sides.
#[derive(Debug, Clone)]
pub(crate) struct Blend {
    pub content: Whose,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub meta: ObjectMeta,
    pub xattrs: BTreeMap<Bytes, Bytes>,
}

/// What becomes of a node's content and attributes.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// As ours: there or not.
    Ours,
    /// As theirs: there or not.
    Theirs,
    Blend(Box<Blend>),
}

/// What becomes of a node.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// Whose place it has.
    pub place: Source,
    pub item: Fate,
    pub conflict: Option<ConflictKind>,
}

impl Verdict {
    pub(crate) const OURS: Self = Self { place: Source::Ours, item: Fate::Ours, conflict: None };
    pub(crate) const THEIRS: Self = Self { place: Source::Theirs, item: Fate::Theirs, conflict: None };

    fn conflict(kind: ConflictKind) -> Self {
        Self { conflict: Some(kind), ..Self::OURS }
    }
}

/// Decides on a node.
pub(crate) fn decide(facts: &Facts) -> Verdict {
    let item = match item(facts) {
        Ok(item) => item,
        Err(kind) => return Verdict::conflict(kind),
    };
    match place(facts, &item) {
        Ok(place) => Verdict { place, item, conflict: None },
        Err(kind) => Verdict::conflict(kind),
    }
}

fn item(facts: &Facts) -> Result<Fate, ConflictKind> {
    let (common, ours, theirs) = (facts.item(Of::Common), facts.item(Of::Ours), facts.item(Of::Theirs));
    if same(theirs, common, facts.same.theirs_common) || same(ours, theirs, facts.same.ours_theirs) {
        // A directory or file that we removed and they moved is a change of theirs, though it is the same item.
        return match removed_but_moved(facts, Of::Ours, Of::Theirs) {
            true => Err(gone(facts, Of::Ours, ConflictKind::DeleteModify)),
            false => Ok(Fate::Ours),
        };
    }
    if same(ours, common, facts.same.ours_common) {
        return match removed_but_moved(facts, Of::Theirs, Of::Ours) {
            true => Err(gone(facts, Of::Theirs, ConflictKind::ModifyDelete)),
            false => Ok(Fate::Theirs),
        };
    }
    match (common, ours, theirs) {
        (Some(common), Some(ours), Some(theirs)) => fields(facts, common, ours, theirs),
        // Directories added on both sides unify; the changed world's attributes stay.
        (None, Some(ours), Some(_)) if ours.inode.kind == FileType::Directory => Ok(Fate::Ours),
        (None, Some(_), Some(_)) => Err(ConflictKind::BothAdded),
        (_, None, _) => Err(gone(facts, Of::Ours, ConflictKind::DeleteModify)),
        (_, _, None) => Err(gone(facts, Of::Theirs, ConflictKind::ModifyDelete)),
    }
}

/// Returns whether one side removed what the other renamed.
fn removed_but_moved(facts: &Facts, removed: Of, moved: Of) -> bool {
    facts.item(Of::Common).is_some()
        && facts.spot(removed).is_none()
        && facts.spot(moved).is_some()
        && !facts.same_place(moved, Of::Common)
}

fn gone(facts: &Facts, side: Of, kind: ConflictKind) -> ConflictKind {
    if facts.replaced[side as usize] { ConflictKind::TypeChanged } else { kind }
}

fn same(a: Option<&Item>, b: Option<&Item>, content: bool) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.inode.kind == b.inode.kind && content && a.same_attributes(b),
        _ => false,
    }
}

fn fields(facts: &Facts, common: &Item, ours: &Item, theirs: &Item) -> Result<Fate, ConflictKind> {
    let (c, o, t) = (&common.inode, &ours.inode, &theirs.inode);
    if o.kind != c.kind || t.kind != c.kind {
        return Err(ConflictKind::TypeChanged);
    }
    let content = if facts.same.theirs_common || facts.same.ours_theirs {
        Whose::Ours
    } else if facts.same.ours_common {
        Whose::Theirs
    } else {
        match (facts.grown, &facts.combined) {
            (Some(from), _) => Whose::Joined { from },
            (None, Some(content)) => Whose::Combined(content.clone()),
            (None, None) => return Err(ConflictKind::BothModified),
        }
    };
    pick(&c.rdev, &o.rdev, &t.rdev)?;
    let mut xattrs = BTreeMap::new();
    for name in common.xattrs.keys().chain(ours.xattrs.keys()).chain(theirs.xattrs.keys()) {
        let value = pick(&common.xattrs.get(name), &ours.xattrs.get(name), &theirs.xattrs.get(name))?;
        if let Some(value) = value {
            xattrs.insert(name.clone(), value.clone());
        }
    }
    Ok(Fate::Blend(Box::new(Blend {
        content,
        mode: pick(&c.mode, &o.mode, &t.mode)?,
        uid: pick(&c.uid, &o.uid, &t.uid)?,
        gid: pick(&c.gid, &o.gid, &t.gid)?,
        meta: pick(&common.meta, &ours.meta, &theirs.meta)?,
        xattrs,
    })))
}

/// The three-way choice: the side that changed, either if both agree, a conflict if they do not.
fn pick<T: Clone + PartialEq>(common: &T, ours: &T, theirs: &T) -> Result<T, ConflictKind> {
    if theirs == common || theirs == ours {
        Ok(ours.clone())
    } else if ours == common {
        Ok(theirs.clone())
    } else {
        Err(ConflictKind::Attributes)
    }
}

fn place(facts: &Facts, item: &Fate) -> Result<Source, ConflictKind> {
    match (facts.spot(Of::Ours), facts.spot(Of::Theirs)) {
        (Some(_), Some(_)) => {
            if facts.same_place(Of::Theirs, Of::Common) || facts.same_place(Of::Theirs, Of::Ours) {
                Ok(Source::Ours)
            } else if facts.same_place(Of::Ours, Of::Common) || facts.spot(Of::Common).is_none() {
                Ok(Source::Theirs)
            } else {
                Err(ConflictKind::RenameRename)
            }
        }
        // An implicit directory that they removed goes when nothing is left in it.
        (Some(ours), None) if ours.kind == FileType::Directory && facts.item(Of::Ours).is_none() => {
            Ok(if facts.same_place(Of::Ours, Of::Common) { Source::Theirs } else { Source::Ours })
        }
        _ => Ok(match item {
            Fate::Theirs => Source::Theirs,
            Fate::Ours | Fate::Blend(_) => Source::Ours,
        }),
    }
}
