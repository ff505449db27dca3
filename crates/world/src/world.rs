//! An open world: the head of its log and the view that readers see.
//!
//! Invariant: an entry is in `meta` (in order, all or nothing) before any reader sees it. Writers of one world take turns;
//! readers take a view and are never blocked by a writer.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::listener::Listeners;
use crate::locks::Locks;
use crate::quota::{Left, Room};
use crate::record;
use crate::state::State;
use crate::versioning::{Versioning, Versions};
use crate::view::View;
use bytes::Bytes;
use mw_meta::Batch;
use mw_model::codec::{Reader, Writer};
use mw_model::{ErrorKind, Hash, Ino, Seq, Version, WorldId};
use mw_segments::{Claim, Owner, Segments};
use mw_tree::Salt;
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A world as it is stored: what does not change with its content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorldRecord {
    pub name: String,
    pub created: u64,
    /// The key that made it, which has the role of admin in it.
    pub owner: String,
    /// The base: its id, its name then, and the version of the fork point.
    pub parent: Option<(WorldId, String, Version)>,
    pub expires: Option<u64>,
    pub run: Option<String>,
    pub salt: [u8; 16],
    pub versions: Versions,
}

impl WorldRecord {
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        // A program that knows no versions must not write to a world that has some: it refuses the second form.
        let versioned = self.versions.versioning != Versioning::Never;
        w.u8(if versioned { 2 } else { 1 }).str(&self.name).var(self.created).str(&self.owner);
        match &self.parent {
            Some((id, name, at)) => w.u8(1).u64(id.0).str(name).var(at.0),
            None => w.u8(0),
        };
        w.var(self.expires.unwrap_or(0)).str(self.run.as_deref().unwrap_or("")).raw(&self.salt);
        match self.versions.versioning {
            Versioning::Never => w.u8(0),
            Versioning::Enabled => w.u8(1).var(self.versions.since.0),
            Versioning::Suspended => w.u8(2).var(self.versions.since.0),
        };
        w.0.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let form = match r.u8()? {
            form @ 1..=2 => form,
            n => return Err(record::newer(n)),
        };
        let (name, created, owner) = (r.str()?.to_owned(), r.var()?, r.str()?.to_owned());
        let parent =
            if r.u8()? == 1 { Some((WorldId(r.u64()?), r.str()?.to_owned(), Version(r.var()?))) } else { None };
        let expires = Some(r.var()?).filter(|t| *t != 0);
        let run = Some(r.str()?.to_owned()).filter(|t| !t.is_empty());
        let mut salt = [0; 16];
        salt.copy_from_slice(r.take(16)?);
        let versions = match (form, r.u8()?) {
            (1, _) => Versions::default(),
            (_, 1) => Versions { versioning: Versioning::Enabled, since: Version(r.var()?) },
            (_, 2) => Versions { versioning: Versioning::Suspended, since: Version(r.var()?) },
            (_, n) => return Err(Error::corrupt(format!("world {name} says {n} of its versions; run `mw fsck`"))),
        };
        r.end()?;
        Ok(Self { name, created, owner, parent, expires, run, salt, versions })
    }
}

/// The value of the `Alive` record.
pub(crate) fn alive_value(shared_out: bool) -> Bytes {
    Bytes::from_static(if shared_out { &[1, 1] } else { &[1, 0] })
}

/// An open world.
pub(crate) struct World {
    pub id: WorldId,
    pub salt: Salt,
    /// Who owns what this process appends for the world.
    pub owner: Owner,
    pub record: RwLock<WorldRecord>,
    pub head: Mutex<Head>,
    /// What readers see. Changed under the head's lock alone, and in place: nothing is copied but what a reader still holds.
    shown: RwLock<View>,
    /// The states that what was shown before starts from: somebody may still read it.
    before: Mutex<Vec<Weak<Seq>>>,
    /// How often each inode is open.
    pub opens: Mutex<HashMap<Ino, u32>>,
    pub listeners: Arc<Listeners>,
    /// The advisory locks of those who have its files open.
    pub locks: Arc<Locks>,
    /// One fold, promote, rebase or revert at a time. Taken before `head`.
    pub folding: Mutex<()>,
    pub dead: AtomicBool,
    /// The bytes that its quota leaves.
    pub left: Left,
    /// How many calls have bytes in segments that no entry refers to yet.
    pub staging: AtomicUsize,
    /// How often its merges were asked to stop: one that sees this change ends.
    pub stops: AtomicU64,
}

/// A call that has bytes in segments which no entry refers to yet: the sweep leaves the world's open segments alone.
pub(crate) struct Staging(Arc<World>);

impl Staging {
    pub(crate) fn begin(world: &Arc<World>) -> Self {
        world.staging.fetch_add(1, Ordering::SeqCst);
        Self(world.clone())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.0.staging.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The end of a world's log, and what the next entry needs to know.
pub(crate) struct Head {
    /// The last entry.
    pub seq: Seq,
    /// Its time.
    pub time: Version,
    pub state: State,
    /// The state's bytes as they are in `meta`: a new state requires them unchanged.
    pub state_bytes: Bytes,
    /// The chain hash of the last entry.
    pub chain: Hash,
    /// Whether another world may refer to this one's bytes.
    pub shared_out: bool,
    /// Which worlds those are, as far as that is known.
    pub borrowers: Borrowers,
    /// No entry may be at or before this time.
    pub floor: Version,
    /// The weight of the overlay, in bytes.
    pub bytes: usize,
    /// The last entry that refers to bytes in segments which may not be synced.
    pub loose: Seq,
    /// Everything up to here is durable.
    pub durable: Seq,
    /// The mark that `meta` holds.
    pub marked: Seq,
    /// Claims of a batch that failed: they go into the next one.
    pub claims: Vec<Claim>,
    pub room: Room,
}

/// The worlds that may refer to another's bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Borrowers {
    /// Its forks alone, these, since it lent for the first time; none yet: it has not lent.
    Forks(HashSet<WorldId>),
    /// Not known: it lent before this process opened it, or to more than forks.
    #[default]
    Any,
}

impl Borrowers {
    /// Notes a new fork.
    pub(crate) fn forked(&mut self, fork: WorldId) {
        if let Self::Forks(forks) = self {
            forks.insert(fork);
        }
    }

    /// Notes that nothing of a fork is left, and that it never lent what it had. Returns whether nobody borrows any more.
    pub(crate) fn gone(&mut self, fork: WorldId) -> bool {
        match self {
            Self::Forks(forks) => forks.remove(&fork) && forks.is_empty(),
            Self::Any => false,
        }
    }
}

impl World {
    pub(crate) fn new(id: WorldId, record: WorldRecord, owner: Owner, head: Head, view: View) -> Self {
        Self {
            id,
            salt: Salt(record.salt),
            owner,
            record: RwLock::new(record),
            shown: RwLock::new(view),
            before: Mutex::default(),
            opens: Mutex::new(HashMap::new()),
            listeners: Arc::new(Listeners::default()),
            locks: Arc::default(),
            folding: Mutex::new(()),
            dead: AtomicBool::new(false),
            left: Left::new(head.room.quota),
            head: Mutex::new(head),
            staging: AtomicUsize::new(0),
            stops: AtomicU64::new(0),
        }
    }

    /// Returns the world as it is now. Under the head's lock, as it stays until that is let go.
    pub(crate) fn view(&self) -> View {
        self.shown.read().clone()
    }

    /// Changes what readers see, who never see half of it. Who has the head is the only one to do so.
    pub(crate) fn show<T>(&self, _: &mut Head, change: impl FnOnce(&mut View) -> T) -> T {
        let mut shown = self.shown.write();
        let since = shown.since.clone();
        let done = change(&mut shown);
        if !Arc::ptr_eq(&since, &shown.since) {
            let mut before = self.before.lock();
            before.retain(|state| state.strong_count() > 0);
            before.push(Arc::downgrade(&since));
        }
        done
    }

    /// Returns the oldest state that somebody reads what came after, if it is not the one that is shown.
    pub(crate) fn oldest_read(&self) -> Option<Seq> {
        self.before.lock().iter().filter_map(Weak::upgrade).map(|state| *state).min()
    }

    /// Returns whether somebody reads the world.
    pub(crate) fn is_read(&self) -> bool {
        Arc::strong_count(&self.shown.read().since) > 1 || self.oldest_read().is_some()
    }

    /// Makes known how much room its quota leaves, before content comes.
    pub(crate) fn count_left(&self) -> Result<()> {
        if self.left.is_unknown() {
            self.head.lock().count(self)?;
        }
        Ok(())
    }

    /// Refuses content that its quota has no room for.
    pub(crate) fn need_room(&self, bytes: u64) -> Result<()> {
        self.left.need(bytes, || self.record.read().name.clone())
    }

    /// Refuses a world that was deleted while this handle was open.
    pub(crate) fn need_alive(&self) -> Result<()> {
        if self.dead.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::NotFound, format!("world {} was deleted", self.record.read().name)));
        }
        Ok(())
    }

    /// Returns whether somebody has the inode open, or a mount uses it.
    pub(crate) fn in_use(&self, ino: Ino) -> bool {
        self.opens.lock().contains_key(&ino)
    }

    /// Returns whether an inode must stay for the sake of a mount that may use it without having opened it here: an implicit
    /// directory, a pipe.
    pub(crate) fn kept_for_mounts(&self, ino: Ino) -> bool {
        self.in_use(ino) || (self.listeners.any() && self.listeners.uses(ino))
    }

    /// Returns the state of this world at its head.
    pub(crate) fn state_now(&self, head: &Head) -> State {
        head.state.upto(self.id, head.seq, head.time, head.chain)
    }
}

impl World {
    /// Returns whether the world has versions, and since when.
    pub(crate) fn versions(&self) -> Versions {
        self.record.read().versions
    }
}

impl Head {
    /// Notes that another world than a fork may refer to this one's bytes.
    pub(crate) fn lent(&mut self) {
        self.shared_out = true;
        self.borrowers = Borrowers::Any;
    }

    /// Counts a world under a quota, so that the room it leaves is known.
    pub(crate) fn count(&mut self, world: &World) -> Result<()> {
        if !self.room.quota.is_none() {
            let held = self.room.count(&world.view())?;
            world.left.set(self.room.quota, held);
        }
        Ok(())
    }

    /// Returns whether an entry refers to bytes in segments that may not be synced.
    pub(crate) fn is_loose(&self) -> bool {
        self.loose > self.durable
    }

    /// Returns how many entries nobody has waited for to be durable.
    pub(crate) fn unsynced(&self) -> u64 {
        self.seq.0.saturating_sub(self.durable.0)
    }

    /// Returns the time of the next entry.
    pub(crate) fn next_time(&self, now: u64) -> Version {
        Version(now.max(self.time.0 + 1).max(self.floor.0 + 1))
    }

    /// Adds the claims that this world's new bytes need.
    pub(crate) fn claim(&mut self, segments: &dyn Segments, owner: Owner, batch: &mut Batch) {
        self.claims.extend(segments.claims(owner));
        for claim in &self.claims {
            batch.put(layout::segment(claim.owner.world, claim.segment), encode_claim(claim));
        }
    }

    /// Adds the mark when it has moved.
    pub(crate) fn mark(&mut self, world: WorldId, upto: Seq, batch: &mut Batch) {
        if upto > self.marked {
            batch.put(layout::of(Tag::Mark, world), upto.0.to_be_bytes().to_vec());
            self.marked = upto;
        }
    }
}

pub(crate) fn encode_claim(claim: &Claim) -> Bytes {
    let mut w = Writer::new();
    w.u8(1).u64(claim.owner.world.0).u64(claim.owner.incarnation.0).var(u64::from(claim.used));
    w.0.into()
}

#[cfg(test)]
mod tests;
