//! Orphans: inodes without a name that somebody had open when the process died, or when the world was forked.

use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::mutate::Mutation;
use crate::record::{self, Kind};
use crate::store::Store;
use crate::view;
use crate::world::World;
use mw_meta::Durability;
use mw_model::Ino;

impl Store {
    /// Drops the orphans that nobody has open.
    pub(crate) fn drop_orphans(&self, world: &World) -> Result<()> {
        let mut orphans = Vec::new();
        for item in world.view().kind(Ino(0), Kind::Orphan) {
            let (key, _) = item?;
            let number = key.get(9..17).ok_or_else(|| Error::corrupt("an orphan record is short"))?;
            orphans.push(Ino(view::number(number)));
        }
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
