//! Bytes that one world lends to another, or to an upload: found under a root, they may be referred to while that root stands.
//!
//! Invariant: whoever refers to lent bytes requires, in the same commit, the record of the root under which they were found, and that
//! the lender is known to have lent (`shared_out`, which goes back only when nothing is left of those who borrowed). So a sweep that saw no such reference frees nothing that
//! has one now. A root that moved meanwhile is no failure: the bytes are found again under the new one.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::session::Session;
use crate::snapshot::SnapshotRecord;
use crate::view::View;
use crate::world::alive_value;
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::ErrorKind;
use std::sync::Arc;

/// A world to copy from, as it was when the look began.
pub(crate) struct Lent {
    pub view: View,
    requires: Vec<(Bytes, Expect)>,
}

/// How often a root that keeps moving is looked for again.
const TRIES: usize = 64;

impl Lent {
    /// Adds what a batch requires that refers to lent extents; inline content is copied, not borrowed.
    pub(crate) fn require(&self, refers: bool, batch: &mut Batch) {
        if refers {
            batch.requires.extend(self.requires.iter().cloned());
        }
    }
}

impl Session {
    /// Does `work` with the world of `from`, again when its root moved before the commit.
    pub(crate) fn borrowing<T>(&self, from: &Session, mut work: impl FnMut(&Lent) -> Result<T>) -> Result<T> {
        if !Arc::ptr_eq(&self.store, &from.store) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the two worlds are in different stores; export and import",
            ));
        }
        for _ in 1..TRIES {
            match work(&from.lend(self)?) {
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                done => return done,
            }
        }
        work(&from.lend(self)?)
    }

    fn lend(&self, to: &Session) -> Result<Lent> {
        let world = &self.world;
        let mut head = world.head.lock();
        world.need_alive()?;
        let mut requires = Vec::new();
        if world.id != to.world.id {
            let alive = layout::of(Tag::Alive, world.id);
            if !head.shared_out {
                let mut batch = Batch::new();
                batch.require(alive.clone(), Expect::Value(alive_value(false)));
                require_key(&mut batch, Some(&to.who));
                batch.put(alive.clone(), alive_value(true));
                // In order before the commit that borrows, so `soon` is enough.
                self.store.submit_for(world, Some(&to.who), batch, Durability::Soon)?.wait()?;
            }
            head.lent();
            requires.push((alive, Expect::Value(alive_value(true))));
        }
        let view = match &self.at {
            None => {
                requires.push((layout::of(Tag::State, world.id), Expect::Value(head.state_bytes.clone())));
                world.view()
            }
            Some(view) => {
                requires.push((self.root_record(view)?, Expect::Present));
                View::clone(view)
            }
        };
        Ok(Lent { view, requires })
    }

    /// Returns the key of the record that keeps a past instant.
    pub(crate) fn root_record(&self, view: &View) -> Result<Bytes> {
        let (meta, id) = (&self.store.meta, self.world.id);
        let (start, _) = layout::all_of(Tag::History, id);
        let end = layout::numbered(Tag::History, id, view.seq.0 + 1);
        if let Some((key, _)) = meta.scan(&start, &end, 1, Order::Down)?.pop() {
            return Ok(key);
        }
        let (start, end) = layout::all_of(Tag::Snapshot, id);
        for (key, value) in meta.scan(&start, &end, usize::MAX, Order::Up)? {
            if SnapshotRecord::decode(&value)?.state.seq == view.seq {
                return Ok(key);
            }
        }
        Err(Error::not_found(format!("version {} of world {} is not retained any more", view.time, self.name)))
    }
}
