//! Whether a world has versions, and how a version is named.

use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::Mutation;
use crate::objects::ObjectInfo;
use crate::session::Session;
use crate::world::{World, WorldRecord};
use mw_meta::{Durability, Expect};
use mw_model::policy::Action;
use mw_model::{ErrorKind, Version};

/// Whether a world answers S3 with versions (AWS, *Using versioning in S3 buckets*). One that ever did never goes back to `Never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versioning {
    /// Nobody asked for versions.
    #[default]
    Never,
    /// Every change through S3 makes a version; what it replaces stays.
    Enabled,
    /// What was kept stays; new objects are the one version `null` of their key.
    Suspended,
}

/// A world's versions: whether it has any, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Versions {
    pub versioning: Versioning,
    /// Content that is not newer than this is the version `null`: it is older than the world's versions.
    pub since: Version,
}

/// The name of one version of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionId {
    /// The version that was made while the world had no versions.
    Null,
    /// The version made at this time of the world.
    At(Version),
}

impl std::fmt::Display for VersionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::At(version) => version.fmt(f),
        }
    }
}

impl std::str::FromStr for VersionId {
    type Err = Error;

    /// Reads `null` or UNIX nanoseconds in decimal, as they are written and in no other way.
    fn from_str(text: &str) -> Result<Self> {
        if text == "null" {
            return Ok(Self::Null);
        }
        let number = text.parse().ok().filter(|n: &u64| n.to_string() == text);
        number.map(|n| Self::At(Version(n))).ok_or_else(|| {
            Error::invalid(format!("{text:?} is no version id; use `null` or UNIX nanoseconds as they were answered"))
        })
    }
}

impl World {
    /// Returns whether the world has versions, and since when.
    pub(crate) fn versions(&self) -> Versions {
        self.record.read().versions
    }
}

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
        let loose = head.loose > head.durable;
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

impl Versions {
    /// Returns the version that content of this time is; none in a world without versions.
    pub(crate) fn id_of(self, content: Version, unversioned: bool) -> Option<VersionId> {
        match self.versioning {
            Versioning::Never => None,
            _ if unversioned || content <= self.since => Some(VersionId::Null),
            _ => Some(VersionId::At(content)),
        }
    }
}
