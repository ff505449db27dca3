//! Orphans: inodes without a name that somebody had open when the process died, or when the world was forked.
//!
//! A server that takes mounts over from another one takes over what is open in them, too, which it knows only after the worlds were opened:
//! until then orphans stay.

use crate::entry::Verb;
use crate::error::Result;
use crate::mutate::Mutation;
use crate::record;
use crate::store::Store;
use crate::world::World;
use mw_meta::Durability;
use std::sync::atomic::Ordering;

impl Store {
    /// Ends what [`crate::Options::keep_orphans`] began: who takes mounts over has said which inodes are open. The others go.
    pub fn settle_orphans(&self) {
        self.keep_orphans.store(false, Ordering::SeqCst);
        let worlds: Vec<_> = self.open.lock().values().cloned().collect();
        for world in worlds {
            self.drop_orphans_soon(&world);
        }
    }

    /// Drops the orphans of a world, unless they are to be kept for now.
    pub(crate) fn drop_orphans_soon(&self, world: &World) {
        if !self.keep_orphans.load(Ordering::SeqCst)
            && let Err(e) = self.drop_orphans(world)
        {
            tracing::warn!(world = world.record.read().name, "orphans stay for now: {e}");
        }
    }

    /// Drops the orphans that nobody has open, and no mount knows.
    pub(crate) fn drop_orphans(&self, world: &World) -> Result<()> {
        let orphans = world.view().orphans()?;
        if orphans.is_empty() {
            return Ok(());
        }
        let what = Mutation { who: None, verb: Verb::Clean, durability: Durability::Soon, origin: 0 };
        self.mutate(world, &what, |txn| {
            for ino in orphans {
                if !world.kept_for_mounts(ino) {
                    txn.drop_inode(ino)?;
                    txn.remove(record::orphan_key(ino));
                }
            }
            Ok(())
        })
    }
}
