//! The one way to change a world: plan, commit one entry, publish, tell.
//!
//! Invariant: an entry is in `meta`, in order, before any reader sees it; a plan that fails leaves nothing behind.

use crate::entry::{Entry, Verb};
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::listener::{Changed, tell_content};
use crate::principal::Principal;
use crate::state::State;
use crate::store::Store;
use crate::txn::Txn;
use crate::versions;
use crate::view::View;
use crate::world::{Head, World};
use mw_meta::{Batch, Durability, Expect};
use mw_model::{ErrorKind, Seq};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Requires the key as it was presented, its policies and the key above it; the store's own doings have none.
pub(crate) fn require_key(batch: &mut Batch, who: Option<&Principal>) {
    if let Some(who) = who {
        for (place, value) in &who.key.stands_on {
            batch.require(place.clone(), Expect::Value(value.clone()));
        }
    }
}

/// What a mutation is, beside its plan.
pub(crate) struct Mutation<'a> {
    pub who: Option<&'a Principal>,
    pub verb: Verb,
    pub durability: Durability,
    pub origin: u64,
}

impl Store {
    /// Plans and commits one entry. The plan runs alone; if it fails, or changes nothing, nothing is committed.
    pub(crate) fn mutate<T>(
        &self,
        world: &World,
        what: &Mutation<'_>,
        plan: impl FnOnce(&mut Txn<'_>) -> Result<T>,
    ) -> Result<T> {
        let _changing = self.changing();
        let mut head = world.head.lock();
        let before = world.listeners.minds_content(what.origin).then(|| world.view());
        let (out, done) = self.mutate_locked(world, &mut head, what, plan)?;
        let Some(mut done) = done else { return Ok(out) };
        if let Some(before) = before {
            tell_content(&before, &world.view(), &mut done.notices)?;
        }
        let heavy = head.bytes >= self.options.fold_bytes;
        let loose = head.is_loose();
        drop(head);
        self.finish(world, done.ticket, what.durability, loose, done.seq)?;
        world.listeners.tell(what.origin, &done.notices);
        if heavy {
            self.fold_soon(world);
        }
        Ok(out)
    }

    /// Counts a change until its mounts have heard of it.
    pub(crate) fn changing(&self) -> Changing<'_> {
        self.changes.fetch_add(1, Ordering::SeqCst);
        Changing(self)
    }

    /// Returns whether a change is under way: committed, perhaps, while not all mounts have heard of it.
    pub fn is_changing(&self) -> bool {
        self.changes.load(Ordering::SeqCst) > 0
    }

    /// Waits until entry `seq` is as durable as was asked: content first, then the log.
    pub(crate) fn finish(
        &self,
        world: &World,
        ticket: Box<dyn mw_meta::Ticket>,
        durability: Durability,
        loose: bool,
        seq: Seq,
    ) -> Result<()> {
        if durability == Durability::Soon {
            return Ok(());
        }
        if loose {
            self.segments.sync()?;
        }
        ticket.wait()?;
        let mut head = world.head.lock();
        head.durable = head.durable.max(seq);
        Ok(())
    }

    /// Locks the head with all content on disk that its entries refer to.
    ///
    /// Whatever a commit makes lean on the log from outside (a fork, a snapshot) needs this before the commit: the log is cut at
    /// content that a power cut lost, and what leans on it would be left without the entries it was made of.
    pub(crate) fn lock_settled<'a>(&self, world: &'a World) -> Result<MutexGuard<'a, Head>> {
        let loose = |head: &Head| head.is_loose().then_some(head.loose);
        let seen = loose(&world.head.lock());
        if seen.is_some() {
            self.segments.sync()?;
        }
        let head = world.head.lock();
        // Writers went on during that sync; what they added since is little.
        if loose(&head) > seen {
            self.segments.sync()?;
        }
        Ok(head)
    }

    /// Plans and submits one entry under the head's lock.
    pub(crate) fn mutate_locked<T>(
        &self,
        world: &World,
        head: &mut Head,
        what: &Mutation<'_>,
        plan: impl FnOnce(&mut Txn<'_>) -> Result<T>,
    ) -> Result<(T, Option<Done>)> {
        self.mutate_with(world, head, what, plan, None::<fn(&mut Batch, &State) -> Result<()>>)
    }

    /// Does what [`Store::mutate_locked`] does; `more` adds records to the same commit, knowing the state that it makes.
    pub(crate) fn mutate_with<T>(
        &self,
        world: &World,
        head: &mut Head,
        what: &Mutation<'_>,
        plan: impl FnOnce(&mut Txn<'_>) -> Result<T>,
        more: Option<impl FnOnce(&mut Batch, &State) -> Result<()>>,
    ) -> Result<(T, Option<Done>)> {
        world.need_alive()?;
        let now = head.next_time(self.env.now());
        let mut txn = Txn::new(self, world, world.view(), now, what.verb);
        let out = plan(&mut txn)?;
        versions::keep(&mut txn, world.versions())?;
        let growth =
            head.room.charge(|| world.view(), &txn.view, txn.root.is_some(), || world.record.read().name.clone())?;
        let Txn { mut view, path, note, run, verb, root, notices, meta, force, segments, .. } = txn;
        let (changes, swaps) = (std::mem::take(&mut view.own), root.is_some());
        // Let go before the changes go in: what is shown is then changed in place, and a record is copied only while a reader
        // holds a view that has it. A plan that swaps the root has made its view anew.
        let view = swaps.then_some(view);
        if changes.is_empty() && root.is_none() && !force {
            return Ok((out, None));
        }
        let seq = Seq(head.seq.0 + 1);
        let weight: usize =
            changes.iter().map(|(k, v)| k.len() + 96 + v.as_ref().map_or(0, |v| v.data.len() + v.locator.len())).sum();
        let entry = Entry {
            seq,
            time: now,
            key: what.who.map_or_else(String::new, |w| w.key_id().to_owned()),
            run: run.or_else(|| what.who.and_then(|w| w.run().map(str::to_owned))),
            verb,
            path,
            note,
            root,
            changes: changes.into_iter().collect(),
            previous: head.chain,
        };
        let chain = entry.chain();
        let mut batch = meta;
        batch.require(layout::of(Tag::Alive, world.id), Expect::Present);
        let place = layout::log(world.id, seq);
        batch.require(place.clone(), Expect::Absent);
        require_key(&mut batch, what.who);
        batch.put(place, entry.encode());
        let state = swapped(&entry);
        if let Some(state) = &state {
            batch.require(layout::of(Tag::State, world.id), Expect::Value(head.state_bytes.clone()));
            batch.put(layout::of(Tag::State, world.id), state.encode());
            batch.put(layout::numbered(Tag::History, world.id, seq.0), state.encode());
        }
        if let Some(more) = more {
            let made = state.clone().unwrap_or_else(|| head.state.upto(world.id, seq, now, chain));
            more(&mut batch, &made)?;
        }
        if segments {
            head.claim(&*self.segments, world.owner, &mut batch);
        }
        // Nothing before this entry waits for a sync of segments, and neither does it: once it is durable, all of it is.
        let whole = what.durability == Durability::Durable && !segments && !head.is_loose();
        let mark = if whole { seq } else { head.durable };
        head.mark(world.id, mark, &mut batch);
        let ticket = self.submit_for(world, what.who, batch, what.durability)?;
        if segments {
            head.claims.clear();
            head.loose = seq;
        }
        head.chain = chain;
        (head.seq, head.time) = (seq, now);
        let old = world.show(head, |shown| {
            let old = view.map(|view| {
                let since = Arc::new(seq);
                std::mem::replace(shown, View { since, ..view })
            });
            for (key, value) in entry.changes {
                shown.overlay.insert(key, value);
            }
            (shown.seq, shown.time) = (seq, now);
            old
        });
        drop(old);
        head.bytes += weight;
        if let Some(state) = state {
            (head.bytes, head.state_bytes) = (0, state.encode());
            head.state = state;
        }
        head.room.add(growth, &world.left);
        Ok((out, Some(Done { ticket, seq, notices })))
    }

    /// Submits a batch and says, when it is refused, which of its requirements fell.
    pub(crate) fn submit_for(
        &self,
        world: &World,
        who: Option<&Principal>,
        batch: Batch,
        durability: Durability,
    ) -> Result<Box<dyn mw_meta::Ticket>> {
        match self.meta.submit(batch, durability) {
            Ok(ticket) => Ok(ticket),
            Err(e) if e.kind() == ErrorKind::Conflict => {
                if let Some(who) = who
                    && !self.stands(who)?
                {
                    return Err(Error::new(ErrorKind::Denied, "access denied: this key was revoked or changed"));
                }
                if self.meta.get(&layout::of(Tag::Alive, world.id))?.is_none() {
                    world.dead.store(true, Ordering::Release);
                    world.need_alive()?;
                }
                Err(Error::caused(ErrorKind::Conflict, "another change came first; try again", e))
            }
            Err(e) => Err(e.into()),
        }
    }
}

/// An entry that makes another root the world's, and changes nothing on top, is a state that history can start from.
fn swapped(entry: &Entry) -> Option<State> {
    let root = entry.root.clone().filter(|_| entry.changes.is_empty())?;
    Some(State { root, lean: Vec::new(), seq: entry.seq, time: entry.time, chain: entry.chain() })
}

/// A change under way.
pub(crate) struct Changing<'a>(&'a Store);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.changes.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A submitted entry.
pub(crate) struct Done {
    pub ticket: Box<dyn mw_meta::Ticket>,
    pub seq: Seq,
    pub notices: Vec<Changed>,
}
