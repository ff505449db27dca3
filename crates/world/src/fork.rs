//! Worlds made: born empty, or forked. A fork is one commit, whatever the size of the base or the depth of the chain.
//!
//! Invariant: a fork holds exactly the base's entries up to its fork point; the base's log stays while a state leans on it.

use crate::entry::{Entry, Verb};
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::once::Once;
use crate::power::Place;
use crate::principal::{Principal, Role};
use crate::quota::{Quota, Room};
use crate::record::{self, Inode, Kind};
use crate::session::Session;
use crate::setting;
use crate::state::State;
use crate::store::Store;
use crate::sync::SyncPoints;
use crate::time::At;
use crate::versioning::{Versioning, Versions};
use crate::view::View;
use crate::world::{Borrowers, Head, World, WorldRecord, alive_value};
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::{ErrorKind, FileType, Hash, Ino, Seq, Version, WorldId, WorldName};
use mw_segments::Owner;
use mw_tree::Root;
use parking_lot::MutexGuard;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A fork leans on at most this many log ranges before it is folded at once.
const MAX_LEAN: usize = 4;

/// How a world is made.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    /// Whether it answers S3 with version ids from its first object on.
    pub versioned: bool,
    /// What doors keep with it from the start ([`Session::setting`]): name and value.
    pub settings: Vec<(String, Vec<u8>)>,
    /// Makes a retried call give the same world.
    pub idempotency: Option<String>,
}

/// How a fork is made.
#[derive(Debug, Clone, Default)]
pub struct ForkOptions {
    /// The instant to fork; none: now.
    pub at: Option<At>,
    /// How long the fork lives unless it is promoted or discarded before.
    pub ttl: Option<Duration>,
    /// The run it is made for.
    pub run: Option<String>,
    /// What doors keep with it from the start ([`Session::setting`]): name and value. Those of its base do not come along.
    pub settings: Vec<(String, Vec<u8>)>,
    /// Makes a retried call give the same fork.
    pub idempotency: Option<String>,
}

/// What a world is, from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldInfo {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub id: WorldId,
    /// When it was made, in UNIX nanoseconds.
    pub created: u64,
    /// The version of its last entry.
    pub version: Version,
    /// Its base, when the caller may read that.
    pub parent: Option<Parent>,
    /// When it will be discarded, in UNIX nanoseconds.
    pub expires: Option<u64>,
    /// The run it was made for.
    pub run: Option<String>,
    /// Whether it answers S3 with version ids.
    pub versioned: bool,
    /// Whether it has forks.
    pub has_forks: bool,
}

/// The base of a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its name now.
    pub name: String,
    /// The version that was forked.
    pub version: Version,
}

impl Store {
    /// Makes an empty world.
    ///
    /// # Errors
    /// `Denied` without the root key or a grant of `*:admin`; `Invalid` for a name out of the rules; `AlreadyExists`.
    pub fn create_world(self: &Arc<Self>, who: &Principal, name: &str, options: &CreateOptions) -> Result<WorldInfo> {
        self.need_everything(who)?;
        if who.is_temporary() {
            return Err(Error::new(
                ErrorKind::Denied,
                "access denied: a temporary key owns no worlds; make them with the key that it acts for",
            ));
        }
        let name = WorldName::new(name).map_err(Error::invalid)?;
        let once = Once::new(who, options.idempotency.as_deref(), &format!("create {name}"))?;
        if let Some(info) = self.made_before(who, once.as_ref())? {
            return Ok(info);
        }
        let id = self.fresh_world();
        let now = Version(self.env.now());
        let mut record = self.new_record(&name, who, now.0);
        if options.versioned {
            record.versions = Versions { versioning: Versioning::Enabled, since: now };
        }
        let (uid, gid) = self.options.owner;
        let top = Inode::new(FileType::Directory, 0o755, uid, gid, now);
        let changes = vec![(record::key(Ino::ROOT, Kind::Inode, &[]), Some(top.encode()))];
        let state = State {
            root: Root::empty(),
            lean: Vec::new(),
            seq: Seq(0),
            time: Version(now.0 - 1),
            chain: Hash::default(),
        };
        let first = first_entry(&state, now, who, Verb::Born, changes, name.as_str());
        let view = self.empty_view(&state);
        let mut batch = Batch::new();
        setting::keep(&mut batch, id, &options.settings)?;
        self.make(who, &name, id, record, state, view, first, once.as_ref(), batch)?;
        self.session(who, name.as_str())?.info()
    }

    /// Forks a world: one durable commit, constant time.
    ///
    /// # Errors
    /// `Denied` unless the key is admin on the base, or is reader there and has the right to fork; `Quota` when it owns as many forks as
    /// that right allows; `AlreadyExists`; `NotFound` for an instant that is not retained.
    pub fn fork(self: &Arc<Self>, who: &Principal, base: &str, name: &str, options: &ForkOptions) -> Result<WorldInfo> {
        let session = self.session(who, base)?;
        let _turn = self.may_fork(&session)?;
        let name = WorldName::new(name).map_err(Error::invalid)?;
        let request = format!("fork {} {name} {:?} {:?} {:?}", session.world.id, options.at, options.ttl, options.run);
        let once = Once::new(who, options.idempotency.as_deref(), &request)?;
        if let Some(info) = self.made_before(who, once.as_ref())? {
            return Ok(info);
        }
        let fork = self.fork_of(&session, &name, options, once.as_ref())?;
        if let Some(fork) = fork
            && fork.head.lock().state.lean.len() > MAX_LEAN
        {
            self.fold_soon(&fork);
        }
        self.session(who, name.as_str())?.info()
    }

    /// Refuses a key that may not fork a world. Whoever has the right to fork, and no more, counts the worlds that it owns: one fork of
    /// theirs at a time, so that the count holds.
    fn may_fork(&self, base: &Session) -> Result<Option<MutexGuard<'_, ()>>> {
        let who = &base.who;
        if who.is_temporary() {
            return Err(Error::new(
                ErrorKind::Denied,
                "access denied: a temporary key owns no worlds; fork with the key that it acts for",
            ));
        }
        if base.allows(Role::Admin) {
            return Ok(None);
        }
        if who.key.forks == 0 {
            base.need(Role::Admin)?;
        }
        base.need(Role::Reader)?;
        let turn = self.forking.lock();
        let most = who.key.forks as usize;
        let (start, end) = layout::owned(who.key_id());
        if self.meta.scan(&start, &end, most, Order::Up)?.len() >= most {
            return Err(Error::new(
                ErrorKind::Quota,
                format!("this key owns {most} forks, which is all that it may; delete one that is not needed"),
            ));
        }
        Ok(Some(turn))
    }

    /// Returns `None` when a call with the same idempotency key was quicker.
    fn fork_of(
        self: &Arc<Self>,
        base: &Session,
        name: &WorldName,
        options: &ForkOptions,
        once: Option<&Once>,
    ) -> Result<Option<Arc<World>>> {
        let (world, who) = (&base.world, &base.who);
        let id = self.fresh_world();
        let past = match &options.at {
            Some(at) => {
                let state = self.state_at(world, at)?;
                let (view, _) = self.view_of(world.id, &state, state.seq)?;
                // The instant must still be retained when the fork is committed.
                let kept = base.root_record(&view)?;
                Some((self.version_of(world, at)?, state, view, kept))
            }
            None => None,
        };
        let quiet = world.listeners.quiesce()?;
        let mut head = self.lock_settled(world)?;
        world.need_alive()?;
        let (point, state, view, kept) = match past {
            Some((asked, state, view, kept)) => (asked, state, view, Some(kept)),
            None => {
                let view = world.view();
                (view.time, world.state_now(&head), view, None)
            }
        };
        let now = Version(self.env.now().max(state.time.0 + 1));
        let mut record = self.new_record(name, who, now.0);
        record.parent = Some((world.id, world.record.read().name.clone(), point));
        record.salt = world.salt.0;
        record.expires = options.ttl.map(|ttl| now.0.saturating_add(ttl.as_nanos() as u64));
        if !base.allows(Role::Admin) {
            // What a guest makes of a world that ends does not outlive it.
            let end = world.record.read().expires;
            record.expires = record.expires.into_iter().chain(end).min();
        }
        record.run = options.run.clone();
        record.versions = world.versions();
        let mut batch = Batch::new();
        let alive = layout::of(Tag::Alive, world.id);
        batch.require(alive.clone(), Expect::Value(alive_value(head.shared_out)));
        batch.require(layout::of(Tag::State, world.id), Expect::Value(head.state_bytes.clone()));
        if let Some(kept) = kept {
            batch.require(kept, Expect::Present);
        }
        if !head.shared_out {
            batch.put(alive, alive_value(true));
        }
        batch.put(layout::numbered(Tag::Child, world.id, id.0), Bytes::new());
        batch.put(layout::of(Tag::Sync, id), SyncPoints::at_fork(world.id, &state).encode());
        let first = first_entry(&state, now, who, Verb::Fork, Vec::new(), "");
        let quota = head.room.quota;
        if quota != Quota::default() {
            batch.put(layout::of(Tag::Quota, id), quota.encode());
        }
        self.inherit_retention(world.id, id, &mut batch)?;
        setting::keep(&mut batch, id, &options.settings)?;
        let made = self.make_submit(who, name, id, record, state, view, first, once, quota, batch);
        if made.is_ok() {
            head.shared_out = true;
            head.borrowers.forked(id);
        }
        drop(head);
        drop(quiet);
        let (fork, ticket) = match made {
            Ok(made) => made,
            Err(e) if e.kind() == ErrorKind::Conflict && self.made_before(who, once)?.is_some() => return Ok(None),
            Err(e) => return Err(self.why_not_made(world, who, name, e)?),
        };
        ticket.wait()?;
        let fork = self.keep_open(id, &fork);
        if let Err(e) = self.drop_orphans(&fork) {
            tracing::warn!(fork = name.as_str(), "orphans stay for now: {e}");
        }
        Ok(Some(fork))
    }

    fn why_not_made(&self, base: &World, who: &Principal, name: &WorldName, e: Error) -> Result<Error> {
        if e.kind() != ErrorKind::Conflict {
            return Ok(e);
        }
        if !self.stands(who)? {
            return Ok(Error::new(ErrorKind::Denied, "access denied: this key was revoked or changed"));
        }
        if self.meta.get(&layout::of(Tag::Alive, base.id))?.is_none() {
            return Ok(Error::not_found(format!("world {} was deleted", base.record.read().name)));
        }
        Ok(exists(name))
    }

    /// Commits a new world and opens it.
    #[allow(clippy::too_many_arguments, reason = "the parts of one commit")]
    fn make(
        self: &Arc<Self>,
        who: &Principal,
        name: &WorldName,
        id: WorldId,
        record: WorldRecord,
        state: State,
        view: View,
        first: Entry,
        once: Option<&Once>,
        batch: Batch,
    ) -> Result<()> {
        match self.make_submit(who, name, id, record, state, view, first, once, Quota::default(), batch) {
            Ok((world, ticket)) => {
                ticket.wait()?;
                self.keep_open(id, &world);
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::Conflict => match self.made_before(who, once)? {
                Some(_) => Ok(()),
                None => Err(exists(name)),
            },
            Err(e) => Err(e),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one commit")]
    fn make_submit(
        &self,
        who: &Principal,
        name: &WorldName,
        id: WorldId,
        record: WorldRecord,
        state: State,
        view: View,
        first: Entry,
        once: Option<&Once>,
        quota: Quota,
        mut batch: Batch,
    ) -> Result<(Arc<World>, Box<dyn mw_meta::Ticket>)> {
        let place = layout::raw(Tag::Name, name.as_str().as_bytes());
        let state_bytes = state.encode();
        batch.require(place.clone(), Expect::Absent);
        require_key(&mut batch, Some(who));
        batch.put(place, id.0.to_be_bytes().to_vec());
        batch.put(layout::of(Tag::World, id), record.encode());
        if !record.owner.is_empty() {
            batch.put(layout::owned_by(&record.owner, id), Bytes::new());
        }
        batch.put(layout::of(Tag::Alive, id), alive_value(false));
        batch.put(layout::of(Tag::State, id), state_bytes.clone());
        batch.put(layout::numbered(Tag::History, id, state.seq.0), state_bytes.clone());
        batch.put(layout::log(id, first.seq), first.encode());
        batch.put(layout::of(Tag::Mark, id), first.seq.0.to_be_bytes().to_vec());
        if let Some(once) = once {
            once.record(&mut batch, name.as_str());
        }
        let ticket = self.meta.submit(batch, Durability::Durable)?;
        let mut view = view;
        for (key, value) in &first.changes {
            view.overlay.insert(key.clone(), value.clone());
        }
        view.seq = first.seq;
        view.time = first.time;
        let head = Head {
            seq: first.seq,
            time: first.time,
            state,
            state_bytes,
            chain: first.chain(),
            shared_out: false,
            borrowers: Borrowers::Forks(HashSet::new()),
            floor: Version(0),
            bytes: 0,
            loose: Seq(0),
            durable: first.seq,
            marked: first.seq,
            claims: Vec::new(),
            room: Room::new(quota),
        };
        let owner = Owner { world: id, incarnation: self.incarnation };
        Ok((Arc::new(World::new(id, record, owner, head, view)), ticket))
    }

    fn made_before(self: &Arc<Self>, who: &Principal, once: Option<&Once>) -> Result<Option<WorldInfo>> {
        match once.map(|once| once.before(self)).transpose()?.flatten() {
            Some(name) => Ok(Some(self.session(who, &name)?.info()?)),
            None => Ok(None),
        }
    }

    fn fresh_world(&self) -> WorldId {
        WorldId(self.env.random() >> 1 | 1)
    }

    fn new_record(&self, name: &WorldName, who: &Principal, now: u64) -> WorldRecord {
        let mut salt = [0; 16];
        self.env.fill(&mut salt);
        let owner = if who.is_root() { String::new() } else { who.key_id().to_owned() };
        let name = name.as_str().to_owned();
        WorldRecord {
            name,
            created: now,
            owner,
            parent: None,
            expires: None,
            run: None,
            salt,
            versions: Versions::default(),
        }
    }

    fn empty_view(&self, state: &State) -> View {
        View::of_root(self.tree.clone(), state.root.clone(), state.seq, state.time)
    }

    /// Returns the worlds that the key may read, by name.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn worlds(self: &Arc<Self>, who: &Principal) -> Result<Vec<WorldInfo>> {
        let (start, end) = layout::all(Tag::Name);
        let mut worlds = Vec::new();
        for (key, value) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let id = WorldId(layout::number(&value));
            let Some(record) = self.record_of(id)? else { continue };
            if !who.touches(&Place { world: id, name: &record.name, owner: &record.owner }) {
                continue;
            }
            match self.session(who, &String::from_utf8_lossy(layout::rest(&key))) {
                Ok(session) => worlds.push(session.info()?),
                // Deleted since the scan.
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Denied) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(worlds)
    }
}

impl Session {
    /// Takes a fork's time to live away: it stays until it is deleted.
    ///
    /// # Errors
    /// `Denied` below admin; `NotFound` when the world was deleted.
    pub fn keep(&self) -> Result<()> {
        self.need(Role::Admin)?;
        let mut record = self.world.record.write();
        if record.expires.is_none() {
            return Ok(());
        }
        let kept = WorldRecord { expires: None, ..record.clone() };
        let mut batch = Batch::new();
        batch.require(layout::of(Tag::Alive, self.world.id), Expect::Present);
        batch.require(layout::of(Tag::World, self.world.id), Expect::Value(record.encode()));
        require_key(&mut batch, Some(&self.who));
        batch.put(layout::of(Tag::World, self.world.id), kept.encode());
        self.store.submit_for(&self.world, Some(&self.who), batch, Durability::Durable)?.wait()?;
        *record = kept;
        Ok(())
    }

    /// Returns the names of the world's own forks that the key may read, in order.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn forks(&self) -> Result<Vec<String>> {
        self.need(Role::Reader)?;
        let (start, end) = layout::all_of(Tag::Child, self.world.id);
        let mut names = Vec::new();
        for (key, _) in self.store.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let id = WorldId(layout::number(&key));
            // A fork that is being deleted has no name any more.
            if let Some(record) = self.store.record_of(id)?
                && self.who.touches(&Place { world: id, name: &record.name, owner: &record.owner })
                && self.store.meta.get(&layout::of(Tag::Alive, id))?.is_some()
            {
                names.push(record.name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns what the world is.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn info(&self) -> Result<WorldInfo> {
        let record = self.world.record.read().clone();
        let parent = match &record.parent {
            Some((id, _, version)) => self.store.record_of(*id)?.and_then(|base| {
                let place = Place { world: *id, name: &base.name, owner: &base.owner };
                self.who.touches(&place).then(|| Parent { name: base.name.clone(), version: *version })
            }),
            None => None,
        };
        let (start, end) = layout::all_of(Tag::Child, self.world.id);
        Ok(WorldInfo {
            name: record.name,
            id: self.world.id,
            created: record.created,
            version: self.version().unwrap_or_else(|| self.world.view().time),
            parent,
            expires: record.expires,
            run: record.run,
            versioned: record.versions.versioning == Versioning::Enabled,
            has_forks: !self.store.meta.scan(&start, &end, 1, Order::Up)?.is_empty(),
        })
    }
}

fn exists(name: &WorldName) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("world {name} already exists; choose another name or delete it first"))
}

fn first_entry(
    state: &State,
    now: Version,
    who: &Principal,
    verb: Verb,
    changes: Vec<(Bytes, Option<mw_tree::Value>)>,
    note: &str,
) -> Entry {
    Entry {
        seq: Seq(state.seq.0 + 1),
        time: now,
        key: who.key_id().to_owned(),
        run: who.run().map(str::to_owned),
        verb,
        path: None,
        note: note.to_owned(),
        root: None,
        changes,
        previous: state.chain,
    }
}
