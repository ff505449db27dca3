//! Open inodes: one that is open outlives its last name.

use crate::entry::Verb;
use crate::error::Result;
use crate::mutate::Mutation;
use crate::record;
use crate::session::Session;
use mw_meta::Durability;
use mw_model::{Attr, Ino};

impl Session {
    /// Counts an opener of an inode.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open(&self, ino: Ino) -> Result<Attr> {
        self.may_see(ino)?;
        if self.at.is_some() {
            return self.attr(ino);
        }
        // Under the head's lock, so that no unlink decides between the look and the count.
        let _head = self.world.head.lock();
        let inode = self.world.view().inode(ino)?;
        *self.world.opens.lock().entry(ino).or_default() += 1;
        Ok(inode.attr(ino))
    }

    /// Ends what [`Session::open`] began. The last opener of an inode without a name drops it.
    pub fn release(&self, ino: Ino) {
        if self.at.is_some() {
            return;
        }
        {
            let mut opens = self.world.opens.lock();
            match opens.get_mut(&ino) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    return;
                }
                _ => opens.remove(&ino),
            };
        }
        let view = self.world.view();
        let inode = view.find_inode(ino);
        // What has a name is no orphan, so nearly every close asks no more than this.
        if matches!(&inode, Ok(Some(inode)) if inode.nlink > 0 && !inode.implicit) {
            return;
        }
        let orphan = matches!(view.get(&record::orphan_key(ino)), Ok(Some(_)));
        let idle = matches!(inode, Ok(Some(inode)) if inode.implicit);
        if !orphan && !idle {
            return;
        }
        // The store's own doing: a key that died meanwhile must not leave an orphan behind.
        let what = Mutation { who: None, verb: Verb::Clean, durability: Durability::Soon, origin: self.origin };
        let dropped = self.store.mutate(&self.world, &what, |txn| {
            if orphan && !txn.in_use(ino) && txn.view.get(&record::orphan_key(ino))?.is_some() {
                txn.drop_inode(ino)?;
                txn.remove(record::orphan_key(ino));
            } else if idle && txn.view.find_inode(ino)?.is_some() {
                txn.prune_implicit(ino)?;
            }
            Ok(())
        });
        if let Err(e) = dropped {
            tracing::debug!(world = self.name.as_str(), "an orphan stays until the world is opened again: {e}");
        }
    }
}
