//! From single decisions to a merge that holds together: no name without a directory, no two things at one name, no directory
//! within itself. What does not fit is a conflict too. It reads names, and writes nothing.

use super::decide::{Fate, Source, Verdict, Whose, decide};
use super::facts::Facts;
use super::weave::{NodeId, Of, Place, TOP, Weave};
use super::{Conflict, ConflictKind, Decide, Policy, Side, Sides};
use crate::error::{Error, Result};
use bytes::Bytes;
use mw_model::ErrorKind;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A node of the plan.
pub(crate) struct Planned {
    pub facts: Facts,
    pub verdict: Verdict,
    /// The path by which it is spoken of.
    pub path: Bytes,
    /// Whether the merge is to look at it at all (`only`).
    pub wanted: bool,
}

/// A merge decided.
pub(crate) struct Plan {
    pub nodes: BTreeMap<NodeId, Planned>,
    /// What nobody decided.
    pub conflicts: Vec<Conflict>,
}

/// How often the places are gone through: each time one thing yields.
const ROUNDS: usize = 64;

/// Decides on every node that some side changed.
pub(crate) fn settle(weave: &mut Weave<'_>, sides: &Sides<'_>, how: &Decide<'_>) -> Result<Plan> {
    let mut nodes = BTreeMap::new();
    for node in weave.touched() {
        let facts = Facts::gather(weave, sides, node, how.combine)?;
        let wanted = how.only.is_empty() || {
            let mut under = false;
            for of in [Of::Theirs, Of::Common, Of::Ours] {
                under |= weave.path(node, of)?.is_some_and(|path| path.starts_with(how.only));
            }
            under
        };
        let verdict = if wanted { decide(&facts) } else { Verdict::OURS };
        nodes.insert(node, Planned { facts, verdict, path: weave.name_of(node)?, wanted });
    }
    let mut settling = Settling {
        weave,
        how,
        into_base: sides.into_base,
        plan: Plan { nodes, conflicts: Vec::new() },
        conflicted: HashSet::new(),
    };
    settling.single()?;
    settling.parents()?;
    for _ in 0..ROUNDS {
        settling.cycles()?;
        if !settling.collisions()? {
            break;
        }
    }
    settling.fits()?;
    let mut plan = settling.plan;
    plan.conflicts.sort();
    // A directory and its marker share a path: one conflict says both.
    plan.conflicts.dedup_by(|b, a| a.path == b.path);
    Ok(plan)
}

struct Settling<'a, 'w> {
    weave: &'a mut Weave<'w>,
    how: &'a Decide<'a>,
    into_base: bool,
    plan: Plan,
    conflicted: HashSet<NodeId>,
}

impl Settling<'_, '_> {
    fn verdict(&self, node: NodeId) -> Option<&Verdict> {
        self.plan.nodes.get(&node).map(|planned| &planned.verdict)
    }

    fn set(&mut self, node: NodeId, verdict: Verdict) {
        if let Some(planned) = self.plan.nodes.get_mut(&node) {
            planned.verdict = verdict;
        }
    }

    /// Notes a conflict; returns the side that was decided on, which is ours while nobody decided.
    fn conflict(&mut self, node: NodeId, kind: ConflictKind) -> Result<Side> {
        self.conflicted.insert(node);
        let path = match self.plan.nodes.get(&node) {
            Some(planned) => planned.path.clone(),
            None => self.weave.name_of(node)?,
        };
        let short = path.strip_suffix(b"/").unwrap_or(&path);
        if let Some(side) = self.how.resolve.get(&path).or_else(|| self.how.resolve.get(short)) {
            return Ok(*side);
        }
        match self.how.policy {
            Policy::Ours => return Ok(Side::Ours),
            Policy::Theirs => return Ok(Side::Theirs),
            Policy::Fail => {}
        }
        let detail = self.detail(node, kind)?;
        self.plan.conflicts.push(Conflict { path, kind, detail });
        Ok(Side::Ours)
    }

    fn detail(&mut self, node: NodeId, kind: ConflictKind) -> Result<String> {
        let (ours, theirs) = if self.into_base { ("the base", "the fork") } else { ("the fork", "the base") };
        let path = |weave: &mut Weave<'_>, of| -> Result<String> {
            Ok(weave.path(node, of)?.map_or_else(String::new, |p| String::from_utf8_lossy(&p).into_owned()))
        };
        let (here, there) = (path(self.weave, Of::Ours)?, path(self.weave, Of::Theirs)?);
        Ok(match kind {
            ConflictKind::BothModified => format!("{ours} and {theirs} changed the content"),
            ConflictKind::BothAdded => format!("{ours} and {theirs} added it, with a difference"),
            ConflictKind::ModifyDelete => format!("{ours} changed or renamed it, {theirs} deleted it"),
            ConflictKind::DeleteModify => format!("{ours} deleted it, {theirs} changed or renamed it"),
            ConflictKind::RenameRename if here == there || here.is_empty() || there.is_empty() => {
                format!("{ours} and {theirs} put different things under this name")
            }
            ConflictKind::RenameRename => format!("{ours} calls it {here:?}, {theirs} calls it {there:?}"),
            ConflictKind::RenameCycle => format!("{ours} and {theirs} moved directories into each other"),
            ConflictKind::ParentDeleted => "one side put it in a directory that the other deleted".to_owned(),
            ConflictKind::TypeChanged => format!("{ours} or {theirs} made it another type, and both changed it"),
            ConflictKind::Attributes => format!("{ours} and {theirs} changed the same attribute"),
        })
    }

    fn take(&mut self, node: NodeId, side: Side) {
        self.set(node, if side == Side::Ours { Verdict::OURS } else { Verdict::THEIRS });
    }

    /// Conflicts of single nodes.
    fn single(&mut self) -> Result<()> {
        let found: Vec<(NodeId, ConflictKind)> =
            self.plan.nodes.iter().filter_map(|(node, p)| Some((*node, p.verdict.conflict?))).collect();
        for (node, kind) in found {
            let side = self.conflict(node, kind)?;
            self.take(node, side);
            if matches!(kind, ConflictKind::ModifyDelete | ConflictKind::DeleteModify) {
                self.whole(node, side)?;
            }
        }
        Ok(())
    }

    /// A directory that one side renamed and the other deleted stays or goes with what is in it.
    fn whole(&mut self, dir: NodeId, side: Side) -> Result<()> {
        let of = if side == Side::Ours { Of::Ours } else { Of::Theirs };
        let other = if side == Side::Ours { Of::Theirs } else { Of::Ours };
        let Some(planned) = self.plan.nodes.get(&dir) else { return Ok(()) };
        let facts = &planned.facts;
        let kept = facts.spot(of).is_some() && facts.spot(other).is_none();
        if !facts.directory() || !kept || facts.same_place(of, Of::Common) {
            return Ok(());
        }
        let all: Vec<NodeId> = self.plan.nodes.keys().copied().collect();
        for node in all {
            let below = self.chain(node, of)?.contains(&dir);
            let facts = &self.plan.nodes[&node].facts;
            if below && facts.spot(other).is_none() && facts.spot(Of::Common).is_some() {
                self.take(node, side);
            }
        }
        Ok(())
    }

    /// Returns the directories above a node on one side.
    fn chain(&mut self, node: NodeId, of: Of) -> Result<Vec<NodeId>> {
        let mut above = Vec::new();
        let mut at = node;
        while at != TOP {
            let Some(spot) = self.weave.spot(at, of)? else { break };
            at = spot.place.0;
            above.push(at);
        }
        Ok(above)
    }

    /// Things that one side put into a directory that the other deleted.
    fn parents(&mut self) -> Result<()> {
        let mut order: Vec<(Bytes, NodeId)> = self.plan.nodes.iter().map(|(n, p)| (p.path.clone(), *n)).collect();
        order.sort();
        for (_, node) in order {
            let Some(planned) = self.plan.nodes.get(&node).filter(|p| p.wanted) else { continue };
            if self.conflicted.contains(&node) {
                continue;
            }
            let facts = &planned.facts;
            let new = facts.spot(Of::Common).is_none();
            let both = facts.spot(Of::Ours).is_some() && facts.spot(Of::Theirs).is_some();
            let theirs = facts.item(Of::Theirs).is_some()
                && (new && facts.spot(Of::Ours).is_none()
                    || both && planned.verdict.place == Source::Theirs && !facts.same_place(Of::Ours, Of::Theirs));
            let ours = facts.item(Of::Ours).is_some()
                && (new && facts.spot(Of::Theirs).is_none()
                    || both && !facts.same_place(Of::Ours, Of::Common) && planned.verdict.place == Source::Ours);
            let (of, other) = match (theirs, ours) {
                (true, _) => (Of::Theirs, Of::Ours),
                (_, true) => (Of::Ours, Of::Theirs),
                _ => continue,
            };
            let lost = self.lost(node, of, other)?;
            if lost.is_empty() {
                continue;
            }
            let side = self.conflict(node, ConflictKind::ParentDeleted)?;
            let keeps = (side == Side::Ours) == (of == Of::Ours);
            if !keeps {
                self.take(node, side);
                continue;
            }
            for dir in lost {
                if self.plan.nodes.get(&dir).is_some_and(|p| p.facts.item(of).is_some()) {
                    self.take(dir, side);
                }
            }
        }
        Ok(())
    }

    /// Returns the explicit directories above a node that the other side removed. One that lives on as an implicit directory was not.
    fn lost(&mut self, node: NodeId, of: Of, other: Of) -> Result<Vec<NodeId>> {
        let mut lost = Vec::new();
        for dir in self.chain(node, of)? {
            let explicit = self.plan.nodes.get(&dir).is_some_and(|p| p.facts.item(Of::Common).is_some());
            if explicit && self.weave.spot(dir, other)?.is_none() {
                lost.push(dir);
            }
        }
        Ok(lost)
    }

    /// Returns where a node will be.
    fn place(&mut self, node: NodeId) -> Result<Option<Place>> {
        let of = match self.verdict(node).map(|verdict| verdict.place) {
            Some(Source::Theirs) => Of::Theirs,
            _ => Of::Ours,
        };
        Ok(self.weave.spot(node, of)?.map(|spot| spot.place))
    }

    /// Returns where a directory will be that must be there for what is in it.
    fn place_of_dir(&mut self, dir: NodeId) -> Result<Option<Place>> {
        if let Some(place) = self.place(dir)? {
            return Ok(Some(place));
        }
        for of in [Of::Ours, Of::Theirs, Of::Common] {
            if let Some(spot) = self.weave.spot(dir, of)? {
                return Ok(Some(spot.place));
            }
        }
        Ok(None)
    }

    /// Directories that both sides moved such that each would lie in the other.
    fn cycles(&mut self) -> Result<()> {
        let moved: Vec<NodeId> = self
            .plan
            .nodes
            .iter()
            .filter(|(_, p)| p.facts.directory() && p.verdict.place == Source::Theirs)
            .filter(|(_, p)| !p.facts.same_place(Of::Ours, Of::Theirs))
            .map(|(node, _)| *node)
            .collect();
        for node in moved {
            let Some(cycle) = self.cycle(node)? else { continue };
            let known = self.conflicted.contains(&node);
            match if known { Side::Ours } else { self.conflict(node, ConflictKind::RenameCycle)? } {
                Side::Ours => self.take(node, Side::Ours),
                Side::Theirs => {
                    for dir in cycle {
                        self.take(dir, Side::Theirs);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the directories of the circle that a node is in.
    fn cycle(&mut self, node: NodeId) -> Result<Option<Vec<NodeId>>> {
        let mut circle = Vec::new();
        let mut seen = HashSet::new();
        let mut at = node;
        while at != TOP && seen.insert(at) {
            circle.push(at);
            let Some(place) = self.place_of_dir(at)? else { return Ok(None) };
            at = place.0;
        }
        Ok((at == node).then_some(circle))
    }

    /// Two things that would have one name. Returns whether there were any.
    fn collisions(&mut self) -> Result<bool> {
        for round in 0..ROUNDS {
            let Some((place, nodes)) = self.collision()? else { return Ok(round > 0) };
            let mut incoming = None;
            let mut resident = None;
            for node in nodes {
                let here = self.weave.spot(node, Of::Ours)?.is_some_and(|spot| spot.place == place);
                *(if here { &mut resident } else { &mut incoming }) = Some(node);
            }
            let Some(incoming) = incoming.or(resident) else { return Ok(true) };
            let mut moved = false;
            for node in [Some(incoming), resident].into_iter().flatten() {
                moved |= self.weave.spot(node, Of::Common)?.is_some();
            }
            let kind = if moved { ConflictKind::RenameRename } else { ConflictKind::BothAdded };
            // What yielded once and still does not fit yields to ours.
            let known = self.conflicted.contains(&incoming);
            match (if known { Side::Ours } else { self.conflict(incoming, kind)? }, resident) {
                (Side::Theirs, Some(resident)) => self.give_way(resident, Side::Theirs)?,
                _ => self.give_way(incoming, Side::Ours)?,
            }
        }
        Ok(true)
    }

    /// Has a node take its place on one side; a directory that is there only for what is in it goes with that.
    fn give_way(&mut self, node: NodeId, side: Side) -> Result<()> {
        self.take(node, side);
        if self.place(node)?.is_some() {
            return Ok(());
        }
        let all: Vec<NodeId> = self.plan.nodes.keys().copied().collect();
        for below in all {
            let mut at = below;
            let mut depth = 0;
            while at != TOP && at != node && depth < 65_536 {
                depth += 1;
                match if at == below { self.place(at)? } else { self.place_of_dir(at)? } {
                    Some(place) => at = place.0,
                    None => break,
                }
            }
            if at == node && below != node {
                self.take(below, side);
            }
        }
        Ok(())
    }

    /// Refuses decisions that cannot be brought together, which no policy should lead to.
    fn fits(&mut self) -> Result<()> {
        let mut broken = self.collision()?.map(|(_, nodes)| nodes[0]);
        let dirs = self.plan.nodes.iter().filter(|(node, p)| **node != TOP && p.facts.directory());
        let all: Vec<NodeId> = dirs.map(|(node, _)| *node).collect();
        for node in all {
            if broken.is_none() && self.place(node)?.is_some() && self.cycle(node)?.is_some() {
                broken = Some(node);
            }
        }
        let Some(node) = broken.filter(|_| self.plan.conflicts.is_empty()) else { return Ok(()) };
        let path = self.weave.name_of(node)?;
        Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "{:?} does not fit with what was decided elsewhere; decide on it with a resolution",
                String::from_utf8_lossy(&path)
            ),
        ))
    }

    fn collision(&mut self) -> Result<Option<(Place, Vec<NodeId>)>> {
        let mut places: HashMap<Place, Vec<NodeId>> = HashMap::new();
        let mut needed = BTreeSet::new();
        let all: Vec<NodeId> = self.plan.nodes.keys().copied().filter(|node| *node != TOP).collect();
        for node in &all {
            let Some(place) = self.place(*node)? else { continue };
            let mut above = place.0;
            places.entry(place).or_default().push(*node);
            while above != TOP && self.place(above)?.is_none() && needed.insert(above) {
                match self.place_of_dir(above)? {
                    Some(place) => above = place.0,
                    None => break,
                }
            }
        }
        for dir in needed {
            if let Some(place) = self.place_of_dir(dir)? {
                places.entry(place).or_default().push(dir);
            }
        }
        let mut found: Vec<_> = places.into_iter().filter(|(_, nodes)| nodes.len() > 1).collect();
        found.sort();
        Ok(found.into_iter().next())
    }
}

impl Plan {
    /// Returns the files whose content is made of both sides'.
    pub(crate) fn merged(&self) -> Vec<Bytes> {
        let joined = |planned: &&Planned| {
            matches!(&planned.verdict.item, Fate::Blend(blend)
                if matches!(blend.content, Whose::Joined { .. } | Whose::Combined(_)))
        };
        let mut merged: Vec<Bytes> = self.nodes.values().filter(joined).map(|planned| planned.path.clone()).collect();
        merged.sort();
        merged
    }
}
