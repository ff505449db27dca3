//! The verbs about a world's quota.

use crate::error::Result;
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::quota::{Held, Quota};
use crate::role::Role;
use crate::session::Session;
use mw_meta::{Batch, Durability, Expect};

impl Session {
    /// Returns the world's quota and what counts against it; the count is 0 without a quota.
    ///
    /// # Errors
    /// `Denied` below reader.
    pub fn quota(&self) -> Result<(Quota, Held)> {
        self.need(Role::Reader)?;
        let mut head = self.world.head.lock();
        head.count(&self.world)?;
        Ok((head.room.quota, head.room.held()))
    }

    /// Sets the world's quota; durable on return. A world that holds more already keeps it, and takes in no more.
    ///
    /// # Errors
    /// `Denied` unless the key has everything: a quota binds the world's admins too.
    pub fn set_quota(&self, quota: Quota) -> Result<()> {
        self.need_writable()?;
        self.store.need_everything(&self.who)?;
        let mut head = self.world.head.lock();
        self.world.need_alive()?;
        let mut batch = Batch::new();
        batch.require(layout::of(Tag::Alive, self.world.id), Expect::Present);
        require_key(&mut batch, Some(&self.who));
        let place = layout::of(Tag::Quota, self.world.id);
        if quota.is_none() {
            batch.delete(place);
        } else {
            batch.put(place, quota.encode());
        }
        self.store.submit_for(&self.world, Some(&self.who), batch, Durability::Durable)?.wait()?;
        head.room.bound(quota);
        self.world.left.reset(quota);
        head.count(&self.world)
    }
}
