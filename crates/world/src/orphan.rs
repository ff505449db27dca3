//! Orphans: inodes without a name that somebody had open when the process died, or when the world was forked.

use crate::entry::Verb;
use crate::error::Result;
use crate::mutate::Mutation;
use crate::record;
use crate::store::Store;
use crate::world::World;
use mw_meta::Durability;

impl Store {
    /// Drops the orphans that nobody has open.
    pub(crate) fn drop_orphans(&self, world: &World) -> Result<()> {
        let orphans = world.view().orphans()?;
        if orphans.is_empty() {
            return Ok(());
        }
        let what = Mutation { who: None, verb: Verb::Clean, durability: Durability::Soon, origin: 0 };
        self.mutate(world, &what, |txn| {
            for ino in orphans {
                if !txn.in_use(ino) {
                    txn.drop_inode(ino)?;
                    txn.remove(record::orphan_key(ino));
                }
            }
            Ok(())
        })
    }
}
