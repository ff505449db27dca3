//! A check of a store that is at work: what was read a moment ago may be history, and that is no damage.
//!
//! What is committed together is read here in several steps. So what a check finds wrong counts when it is found again with fresh eyes, and
//! when what it was found in is still there.

use super::Check;
use crate::error::Result;
use crate::layout::{self, Tag};
use crate::state::State;
use crate::store::{Store, decode_claim};
use crate::world::alive_value;
use mw_meta::Order;
use mw_model::WorldId;
use mw_segments::{BlobRef, Claim, SegmentId};
use std::collections::{HashMap, HashSet};

/// How often something is looked at again before it counts. Found once more, it is hardly chance.
const LOOKS: usize = 3;
/// After so many findings that counted nothing is looked at again: the store is damaged, and each look reads all of a world.
const ENOUGH: usize = 16;

/// Who has which segment, and who has lent bytes of theirs.
pub(super) struct Owned {
    claims: HashMap<SegmentId, Claim>,
    lent: HashSet<WorldId>,
}

impl Owned {
    pub(super) fn read(store: &Store) -> Result<Self> {
        let mut claims = HashMap::new();
        let (start, end) = layout::all(Tag::Segment);
        for (key, value) in store.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let claim = decode_claim(&key, &value)?;
            claims.insert(claim.segment, claim);
        }
        let mut lent = HashSet::new();
        for tag in [Tag::Alive, Tag::Dying] {
            let (start, end) = layout::all(tag);
            let found = store.meta.scan(&start, &end, usize::MAX, Order::Up)?;
            let lenders = found.into_iter().filter(|(_, value)| *value == alive_value(true));
            lent.extend(lenders.map(|(key, _)| WorldId(layout::number(&key))));
        }
        Ok(Self { claims, lent })
    }

    fn misplaced(&self, world: WorldId, blob: &BlobRef) -> Option<String> {
        let Some(claim) = self.claims.get(&blob.addr.segment) else {
            return Some("lie outside every claimed segment".to_owned());
        };
        if blob.addr.offset.saturating_add(blob.addr.len) > claim.used {
            return Some(format!("lie outside what is claimed of segment {}", claim.segment));
        }
        let owner = claim.owner.world;
        let is_lent = owner == world || self.lent.contains(&owner);
        (!is_lent).then(|| format!("are world {owner}'s, which is not known to have lent any"))
    }
}

/// Returns whether something still starts from `state`, or goes back to it.
pub(super) fn is_kept(store: &Store, state: &State) -> Result<bool> {
    let mut kept = false;
    store.each_state(&mut |_, other| {
        kept |= other.seq == state.seq && other.chain == state.chain;
        Ok(())
    })?;
    Ok(kept)
}

impl Check<'_> {
    /// Runs `check`, and again from the start where it found something wrong. `still` tells whether what is checked is still there.
    pub(super) fn judge(
        &mut self,
        check: &mut dyn FnMut(&mut Check<'_>) -> Result<()>,
        still: &dyn Fn() -> Result<bool>,
    ) -> Result<()> {
        let before = self.report.problems.len();
        check(self)?;
        for _ in 1..LOOKS {
            if self.report.problems.len() == before || self.counted >= ENOUGH {
                break;
            }
            self.report.problems.truncate(before);
            if !still()? {
                return Ok(());
            }
            let mut anew = Check::new(self.store)?;
            check(&mut anew)?;
            self.report.problems.append(&mut anew.report.problems);
        }
        self.counted += self.report.problems.len() - before;
        Ok(())
    }

    /// Returns whether a world has lent bytes.
    pub(super) fn has_lent(&mut self, world: WorldId) -> Result<bool> {
        if !self.owned.lent.contains(&world) {
            self.owned = Owned::read(self.store)?;
        }
        Ok(self.owned.lent.contains(&world))
    }

    /// Returns what is wrong with the place of a blob to which `world` refers.
    pub(super) fn misplaced(&mut self, world: WorldId, blob: &BlobRef) -> Result<Option<String>> {
        if self.owned.misplaced(world, blob).is_some() {
            // What was written since is claimed by now: the claim is committed with the first reference.
            self.owned = Owned::read(self.store)?;
        }
        Ok(self.owned.misplaced(world, blob))
    }

    /// A world is alive just when it has a name.
    pub(super) fn alive(&mut self) -> Result<()> {
        // The two are read one after the other: a world that is made in between is wrong once.
        let mut wrong = self.unlike()?;
        for _ in 1..LOOKS {
            if wrong.is_empty() {
                break;
            }
            let again = self.unlike()?;
            wrong.retain(|id, named| again.get(id) == Some(named));
        }
        for (id, named) in wrong {
            self.problem(if named {
                format!("world {id} has a name and is not alive")
            } else {
                format!("world {id} is alive and has no name")
            });
        }
        Ok(())
    }

    /// Returns the worlds that have a name and are not alive, and, as `false`, the other way round.
    fn unlike(&self) -> Result<HashMap<WorldId, bool>> {
        let ids = |tag: Tag| -> Result<HashSet<WorldId>> {
            let (start, end) = layout::all(tag);
            let found = self.store.meta.scan(&start, &end, usize::MAX, Order::Up)?;
            Ok(found
                .into_iter()
                .map(|(key, value)| WorldId(layout::number(if tag == Tag::Name { &value } else { &key })))
                .collect())
        };
        let (alive, named) = (ids(Tag::Alive)?, ids(Tag::Name)?);
        let nameless = alive.difference(&named).map(|id| (*id, false));
        Ok(nameless.chain(named.difference(&alive).map(|id| (*id, true))).collect())
    }
}
