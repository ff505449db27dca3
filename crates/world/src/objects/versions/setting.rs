//! Versions switched on and suspended.

use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::Mutation;
use crate::object::ObjectInfo;
use crate::session::Session;
use crate::versioning::{VersionId, Versioning, Versions};
use crate::world::WorldRecord;
use mw_meta::{Durability, Expect};
use mw_model::ErrorKind;
use mw_model::policy::Action;

/// How often a setting is tried again when another setting of the world came first.
const TRIES: usize = 16;

impl Session {
    /// Returns whether the world answers S3 with versions.
    pub fn versioning(&self) -> Versioning {
        self.world.versions().versioning
    }

    /// Returns the same for a door that answers with it.
    ///
    /// # Errors
    /// `Denied`.
    pub fn ask_versioning(&self) -> Result<Versioning> {
        self.may_list(Action::GetBucketVersioning, b"")?;
        Ok(self.versioning())
    }

    /// Switches versions on, or suspends them; durable on return. Objects that are there become the version `null` of their key.
    ///
    /// # Errors
    /// `Denied` below admin; `ReadOnly` for a version; `Invalid` for `Never`, to which there is no way back.
    pub fn set_versioning(&self, to: Versioning) -> Result<()> {
        self.need_now()?;
        self.may_list(Action::PutBucketVersioning, b"")?;
        let note = match to {
            Versioning::Never => {
                return Err(Error::invalid("versions cannot be switched off again; suspend them"));
            }
            Versioning::Enabled => "versioning enabled",
            Versioning::Suspended => "versioning suspended",
        };
        for _ in 1..TRIES {
            match self.try_versioning(to, note) {
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                done => return done,
            }
        }
        self.try_versioning(to, note)
    }

    fn try_versioning(&self, to: Versioning, note: &str) -> Result<()> {
        let (store, world) = (&self.store, &self.world);
        let what = Mutation {
            who: Some(&self.who),
            verb: Verb::Attributes,
            durability: Durability::Durable,
            origin: self.origin,
        };
        let place = layout::of(Tag::World, world.id);
        let mut head = world.head.lock();
        let old = world.record.read().clone();
        if old.versions.versioning == to {
            return Ok(());
        }
        let (versions, done) = store.mutate_locked(world, &mut head, &what, |txn| {
            let since = if old.versions.versioning == Versioning::Never { txn.now } else { old.versions.since };
            let versions = Versions { versioning: to, since };
            txn.force = true;
            txn.note = note.to_owned();
            txn.meta.require(place.clone(), Expect::Value(old.encode()));
            txn.meta.put(place, WorldRecord { versions, ..old.clone() }.encode());
            Ok(versions)
        })?;
        world.record.write().versions = versions;
        let loose = head.is_loose();
        drop(head);
        if let Some(done) = done {
            store.finish(world, done.ticket, Durability::Durable, loose, done.seq)?;
        }
        Ok(())
    }

    /// Returns the version that an object is; none in a world without versions.
    pub fn version_id(&self, info: &ObjectInfo) -> Option<VersionId> {
        self.world.versions().id_of(info.version, info.unversioned)
    }
}
