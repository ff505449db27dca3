//! Snapshots: named instants that stay readable until they are deleted. Taking one is one entry.

use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::Mutation;
use crate::once::Once;
use crate::principal::Role;
use crate::record;
use crate::session::Session;
use crate::state::State;
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::codec::{Reader, Writer};
use mw_model::{ErrorKind, Version};

/// A snapshot as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotRecord {
    pub label: Option<String>,
    pub key: String,
    pub state: State,
    /// The store's signature over the world and this point of its history: whoever can write records, but has not the signing
    /// key, cannot put another history under a snapshot.
    pub seal: [u8; 32],
}

impl SnapshotRecord {
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).str(self.label.as_deref().unwrap_or("")).str(&self.key).raw(&self.seal).raw(&self.state.encode());
        w.0.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        record::version(&mut r)?;
        let label = Some(r.str()?.to_owned()).filter(|l| !l.is_empty());
        let key = r.str()?.to_owned();
        let mut seal = [0; 32];
        seal.copy_from_slice(r.take(32)?);
        let state = State::read(&mut r)?;
        r.end()?;
        Ok(Self { label, key, state, seal })
    }
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its version: the time of its entry.
    pub version: Version,
    /// What its maker called it.
    pub label: Option<String>,
    /// When it was taken, in UNIX nanoseconds.
    pub created: u64,
    /// The bytes of content it shows, as of the last fold before it.
    pub bytes: u64,
}

/// The longest label, in bytes.
const MAX_LABEL: usize = 255;

impl Session {
    /// Takes a snapshot: durable on return, holding every operation acknowledged before.
    ///
    /// # Errors
    /// `Denied` below editor; `Invalid` for a label over 255 bytes or with control characters.
    pub fn snapshot(&self, label: Option<&str>, idempotency: Option<&str>) -> Result<Snapshot> {
        self.need_writable()?;
        let label = label.filter(|l| !l.is_empty());
        if let Some(label) = label
            && (label.len() > MAX_LABEL || label.chars().any(char::is_control))
        {
            return Err(Error::invalid(format!("a label has at most {MAX_LABEL} bytes and no control characters")));
        }
        let request = format!("snapshot {} {}", self.world.id, label.unwrap_or(""));
        let once = Once::new(&self.who, idempotency, &request)?;
        if let Some(once) = &once
            && let Some(before) = once.before(&self.store)?
        {
            let version = before.parse().map(Version).map_err(|_| Error::corrupt("an idempotency record is broken"))?;
            return self.find_snapshot(version);
        }
        let quiet = self.world.listeners.quiesce()?;
        let taken = self.take(label, once.as_ref());
        drop(quiet);
        match taken {
            // Somebody with the same idempotency key was quicker.
            Err(e) if e.kind() == ErrorKind::Conflict && once.is_some() => self.snapshot(label, idempotency),
            other => other,
        }
    }

    fn take(&self, label: Option<&str>, once: Option<&Once>) -> Result<Snapshot> {
        let world = &self.world;
        let what = Mutation {
            who: Some(&self.who),
            verb: Verb::Snapshot,
            durability: Durability::Durable,
            origin: self.origin,
        };
        let mut head = self.store.lock_settled(world)?;
        let state = world.state_now(&head);
        let seal = self.store.seal(world.id, &state);
        let record = SnapshotRecord { label: label.map(str::to_owned), key: self.who.key_id().to_owned(), state, seal };
        let (version, done) = self.store.mutate_locked(world, &mut head, &what, |txn| {
            txn.force = true;
            txn.note = label.unwrap_or("").to_owned();
            txn.meta.put(layout::snapshot(world.id, txn.now), record.encode());
            if let Some(once) = once {
                once.record(&mut txn.meta, &txn.now.to_string());
            }
            Ok(txn.now)
        })?;
        let loose = head.is_loose();
        drop(head);
        if let Some(done) = done {
            self.store.finish(world, done.ticket, Durability::Durable, loose, done.seq)?;
        }
        Ok(describe(version, record))
    }

    fn find_snapshot(&self, version: Version) -> Result<Snapshot> {
        let bytes = self.store.meta.get(&layout::snapshot(self.world.id, version))?;
        let bytes = bytes.ok_or_else(|| Error::not_found(format!("world {} has no snapshot {version}", self.name)))?;
        Ok(describe(version, SnapshotRecord::decode(&bytes)?))
    }

    /// Returns the snapshots, oldest first.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>> {
        self.need(Role::Reader)?;
        let (start, end) = layout::all_of(Tag::Snapshot, self.world.id);
        let found = self.store.meta.scan(&start, &end, usize::MAX, Order::Up)?;
        found.iter().map(|(k, v)| Ok(describe(Version(layout::number(k)), SnapshotRecord::decode(v)?))).collect()
    }

    /// Deletes a snapshot; its instant stays readable while history retains it.
    ///
    /// # Errors
    /// `NotFound` when there is none of that version.
    pub fn delete_snapshot(&self, version: Version) -> Result<()> {
        self.need_writable()?;
        let place = layout::snapshot(self.world.id, version);
        let mut batch = Batch::new();
        batch.require(place.clone(), Expect::Present);
        batch.require(layout::of(Tag::Alive, self.world.id), Expect::Present);
        crate::mutate::require_key(&mut batch, Some(&self.who));
        batch.delete(place.clone());
        if self.store.meta.get(&place)?.is_none() {
            return Err(Error::not_found(format!(
                "world {} has no snapshot {version}; `mw snapshot list {}` shows them",
                self.name, self.name
            )));
        }
        self.store.submit_for(&self.world, Some(&self.who), batch, Durability::Durable)?.wait()?;
        Ok(())
    }
}

fn describe(version: Version, record: SnapshotRecord) -> Snapshot {
    Snapshot { version, label: record.label, created: version.0, bytes: record.state.root.weight() }
}
