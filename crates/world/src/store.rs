//! The store: all worlds of one process, over one `meta` and one `segments`.

use crate::content::Content;
use crate::error::{Error, Result};
use crate::key_record::{Acting, KeyRecord, seal_secrets};
use crate::layout::{self, Tag};
use crate::policy;
use crate::policy_record;
use crate::power::Power;
use crate::principal::{Presented, Principal, Role};
use crate::root_file::RootFile;
use crate::sealing::{Kept, SealingKey};
use crate::state::State;
use crate::world::{World, WorldRecord};
use bytes::Bytes;
use mw_env::Env;
use mw_meta::{Batch, Durability, Expect, Meta, Order};
use mw_model::codec::{Reader, Writer};
use mw_model::{ErrorKind, Hash, Incarnation, Ino, WorldId, WorldName};
use mw_segments::{Claim, Owner, Segments};
use mw_tree::{Cache, Tree};
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How a store behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long history stays readable.
    pub retention: Duration,
    /// How long an upload that nobody ends is kept.
    pub uploads: Duration,
    /// The memory that the store may use, in bytes; its caches take half of it.
    pub memory: usize,
    /// A world is folded when its overlay weighs this much, in bytes.
    pub fold_bytes: usize,
    /// A merge is committed by its records when they, and those that are in no tree yet, are at most this many; by a root otherwise.
    pub little: usize,
    /// The user and group that own what no mount made.
    pub owner: (u32, u32),
    /// What secrets of keys are sealed with. Without it they stand readable in `meta`: for stores in memory.
    pub sealing: Option<SealingKey>,
    /// Whether folds run on a thread of the store's; without it they run in the call that needs them.
    pub background: bool,
    /// Whether files without a name, which a former process had open, stay until [`Store::settle_orphans`].
    pub keep_orphans: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            retention: Duration::from_secs(7 * 86_400),
            uploads: Duration::from_secs(7 * 86_400),
            memory: 1 << 30,
            fold_bytes: 1 << 20,
            little: 2048,
            owner: (0, 0),
            sealing: None,
            background: true,
            keep_orphans: false,
        }
    }
}

/// A key id and its secret. The secret is never printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The id that a client sends.
    pub id: String,
    /// The secret that a client signs with.
    pub secret: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret {{ id: {:?}, secret: … }}", self.id)
    }
}

/// All worlds of one process.
pub struct Store {
    pub(crate) meta: Arc<dyn Meta>,
    pub(crate) segments: Arc<dyn Segments>,
    pub(crate) tree: Tree,
    pub(crate) cache: Arc<Cache>,
    pub(crate) content: Content,
    pub(crate) env: Env,
    pub(crate) options: Options,
    pub(crate) incarnation: Incarnation,
    /// Signs cut points of history.
    pub(crate) signing: [u8; 32],
    prefix: u64,
    inos: Mutex<std::ops::Range<u64>>,
    pub(crate) open: Mutex<HashMap<WorldId, Arc<World>>>,
    /// One fork at a time by those whose forks are counted.
    pub(crate) forking: Mutex<()>,
    /// One world at a time is opened.
    loading: Mutex<()>,
    /// One new secret of the root key at a time, so that its file has the newest.
    pub(crate) rotating: Mutex<()>,
    /// Where the root key is kept for programs of this machine.
    pub(crate) root_file: OnceLock<Arc<dyn RootFile>>,
    /// One sweep at a time.
    pub(crate) sweeping: Mutex<()>,
    /// Bytes that sweeps have given back since the start.
    pub(crate) swept: AtomicU64,
    /// Deleted worlds that somebody may still be reading.
    pub(crate) graves: Mutex<HashMap<WorldId, Weak<World>>>,
    folds: Arc<Folds>,
    /// How many changes are under way.
    pub(crate) changes: AtomicUsize,
    /// What has no name is not dropped for now.
    pub(crate) keep_orphans: AtomicBool,
}

/// Worlds that wait for a fold.
#[derive(Default)]
struct Folds {
    queue: Mutex<Queue>,
    wake: Condvar,
    ticks: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<WorldId>,
    queued: HashSet<WorldId>,
    stop: bool,
}

/// How long content may wait for a sync that nobody asked for.
const FLUSH: Duration = Duration::from_millis(400);
/// How many worlds stay open, as long as nobody needs more.
const MAX_OPEN: usize = 4096;
/// How many inode numbers are leased at a time.
const LEASE: u64 = 1 << 16;

/// What the store knows of itself.
struct Settings {
    prefix: u64,
    signing: [u8; 32],
    root_key: String,
}

impl Settings {
    fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.u8(1).u64(self.prefix).raw(&self.signing).str(&self.root_key);
        w.0.into()
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        crate::record::version(&mut r)?;
        let prefix = r.u64()?;
        let mut signing = [0; 32];
        signing.copy_from_slice(r.take(32)?);
        let root_key = r.str()?.to_owned();
        r.end()?;
        Ok(Self { prefix, signing, root_key })
    }
}

impl Store {
    /// Returns the user and group that own what no mount made.
    pub fn owner(&self) -> (u32, u32) {
        self.options.owner
    }

    /// Opens the store over its two engines, making it when they are empty.
    ///
    /// # Errors
    /// An engine failed, or its records do not decode.
    pub fn open(meta: Arc<dyn Meta>, segments: Arc<dyn Segments>, env: Env, options: Options) -> Result<Arc<Self>> {
        let settings = Self::settings(&*meta, &env, options.sealing.as_ref())?;
        segments.adopt(&Self::claims(&*meta)?)?;
        let cache = Cache::new(options.memory / 8 * 3);
        let folds = Arc::new(Folds::default());
        let store = Arc::new(Self {
            tree: Tree::new(segments.clone(), cache.clone()),
            content: Content::new(segments.clone(), options.memory / 8),
            cache,
            incarnation: Incarnation(env.random() >> 1 | 1),
            signing: settings.signing,
            prefix: settings.prefix,
            inos: Mutex::new(0..0),
            open: Mutex::new(HashMap::new()),
            forking: Mutex::new(()),
            rotating: Mutex::new(()),
            root_file: OnceLock::new(),
            loading: Mutex::new(()),
            sweeping: Mutex::new(()),
            swept: AtomicU64::new(0),
            graves: Mutex::new(HashMap::new()),
            folds: folds.clone(),
            changes: AtomicUsize::new(0),
            keep_orphans: AtomicBool::new(options.keep_orphans),
            meta,
            segments,
            env,
            options,
        });
        if let Some(key) = &store.options.sealing {
            seal_secrets(&*store.meta, &store.env, key)?;
        }
        if store.options.background {
            let weak = Arc::downgrade(&store);
            let bell = folds.clone();
            std::thread::Builder::new()
                .name("flush".to_owned())
                .spawn(move || flush_loop(&weak, &bell))
                .map_err(|e| Error::caused(ErrorKind::Io, "the flush thread could not be started", e))?;
            let weak = Arc::downgrade(&store);
            std::thread::Builder::new()
                .name("fold".to_owned())
                .spawn(move || fold_loop(&weak, &folds))
                .map_err(|e| Error::caused(ErrorKind::Io, "the fold thread could not be started", e))?;
        }
        Ok(store)
    }

    fn settings(meta: &dyn Meta, env: &Env, sealing: Option<&SealingKey>) -> Result<Settings> {
        let place = layout::raw(Tag::Store, b"settings");
        if let Some(bytes) = meta.get(&place)? {
            return Settings::decode(&bytes);
        }
        let mut signing = [0; 32];
        env.fill(&mut signing);
        let root_key = format!("mwk{}", env.token(17));
        let settings = Settings { prefix: env.random() >> 41, signing, root_key };
        let key = KeyRecord {
            name: "root".to_owned(),
            secret: Kept::keep(sealing, env, &settings.root_key, &env.token(40))?,
            root: true,
            grants: Vec::new(),
            created: env.now(),
            expires: None,
            run: None,
            maker: String::new(),
            generation: 0,
            forks: 0,
            policies: Vec::new(),
            policy: None,
            acting: None,
        };
        let mut batch = Batch::new();
        batch.require(place.clone(), Expect::Absent);
        batch.put(place, settings.encode());
        batch.put(layout::raw(Tag::Key, settings.root_key.as_bytes()), key.encode());
        meta.commit(batch, Durability::Durable)?;
        Ok(settings)
    }

    /// Returns every committed claim.
    fn claims(meta: &dyn Meta) -> Result<Vec<Claim>> {
        let (mut start, end) = layout::all(Tag::Segment);
        let mut claims = Vec::new();
        loop {
            let page = meta.scan(&start, &end, 4096, Order::Up)?;
            let Some((last, _)) = page.last() else { return Ok(claims) };
            let mut next = last.to_vec();
            next.push(0);
            for (key, value) in &page {
                claims.push(decode_claim(key, value)?);
            }
            start = next.into();
        }
    }

    /// Returns the clock and randomness of the store.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Returns the metadata store, for the crates above that keep records of their own (runs).
    pub fn meta(&self) -> &Arc<dyn Meta> {
        &self.meta
    }

    /// Makes everything durable and stops the store's thread. Later calls still work, without a background.
    pub fn close(&self) {
        {
            let mut queue = self.folds.queue.lock();
            queue.stop = true;
            self.folds.wake.notify_all();
            self.folds.ticks.notify_all();
        }
        if let Err(e) = self.flush() {
            tracing::error!("closing the store: {e}");
        }
    }

    /// Folds every open world and makes everything durable.
    ///
    /// # Errors
    /// A sync failed: the store is read-only from now on.
    pub fn flush(&self) -> Result<()> {
        let worlds: Vec<_> = self.open.lock().values().cloned().collect();
        for world in worlds {
            if let Err(e) = self.fold(&world) {
                tracing::debug!(world = world.record.read().name, "no fold: {e}");
            }
        }
        self.segments.sync().map_err(Error::from).and_then(|()| Ok(self.meta.sync()?))
    }

    /// Returns the root key, made when the store was.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn root_key(&self) -> Result<Secret> {
        let settings = Self::settings(&*self.meta, &self.env, self.options.sealing.as_ref())?;
        let secret = self.secret(&settings.root_key)?.ok_or_else(|| Error::corrupt("the root key is missing"))?;
        Ok(Secret { id: settings.root_key, secret })
    }

    /// Returns the secret of a live key.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn secret(&self, key_id: &str) -> Result<Option<String>> {
        let Some((record, _)) = self.live_key(key_id)? else { return Ok(None) };
        if let Some(acting) = &record.acting
            && self.acts_for(acting)?.is_none()
        {
            return Ok(None);
        }
        Ok(Some(record.secret.reveal(self.options.sealing.as_ref(), key_id)?))
    }

    /// Returns who presents a live key.
    ///
    /// # Errors
    /// `Denied` when the key is unknown, expired or deleted, or the key that it acts for is.
    pub fn principal(&self, key_id: &str) -> Result<Principal> {
        let dead = || Error::new(ErrorKind::Denied, "access denied: this key is unknown, expired or revoked");
        let (record, bytes) = self.live_key(key_id)?.ok_or_else(dead)?;
        let mut stands_on = vec![(layout::raw(Tag::Key, key_id.as_bytes()), bytes)];
        let power = match &record.acting {
            None => self.power_of(key_id, &record, &mut stands_on)?,
            Some(acting) => {
                let (parent, bytes) = self.acts_for(acting)?.ok_or_else(dead)?;
                stands_on.push((layout::raw(Tag::Key, acting.parent.as_bytes()), bytes));
                let above = self.power_of(&acting.parent, &parent, &mut stands_on)?;
                bounded(&record, above)?
            }
        };
        let parent = record.acting.map(|acting| acting.parent);
        let KeyRecord { run, forks, .. } = record;
        Ok(Principal::new(Presented { id: key_id.to_owned(), run, parent, forks, power, stands_on }))
    }

    /// Returns whether a session token is the one that must come with a key; a key that is not temporary has none.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn token_fits(&self, key_id: &str, token: Option<&str>) -> Result<bool> {
        let acting = self.live_key(key_id)?.and_then(|(record, _)| record.acting);
        Ok(match (acting, token) {
            (None, None) => true,
            (Some(acting), Some(token)) => acting.token == Hash::of(token.as_bytes()),
            _ => false,
        })
    }

    /// Returns the record of the key that a temporary one acts for, as long as both may live.
    fn acts_for(&self, acting: &Acting) -> Result<Option<(KeyRecord, Bytes)>> {
        Ok(self.live_key(&acting.parent)?.filter(|(parent, _)| parent.generation == acting.generation))
    }

    /// Reads what a key may do, and notes the policies that say so.
    fn power_of(&self, id: &str, record: &KeyRecord, stands_on: &mut Vec<(Bytes, Bytes)>) -> Result<Power> {
        let mut policies = Vec::new();
        for name in &record.policies {
            // A policy that is not there may have forbidden something.
            let place = policy_record::place(name);
            let bytes = self.meta.get(&place)?.ok_or_else(Error::denied)?;
            policies.push(policy_record::document(&bytes)?);
            stands_on.push((place, bytes));
        }
        if let Some(json) = &record.policy {
            policies.push(policy::parse(json)?);
        }
        let owner = if record.root { String::new() } else { id.to_owned() };
        Ok(Power { root: record.root, owner, grants: record.grants.clone(), policies, above: None })
    }

    /// Returns whether all that a principal stands on is still as it was.
    pub(crate) fn stands(&self, who: &Principal) -> Result<bool> {
        for (place, value) in &who.key.stands_on {
            if self.meta.get(place)?.as_ref() != Some(value) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn live_key(&self, key_id: &str) -> Result<Option<(KeyRecord, Bytes)>> {
        if key_id.is_empty() || key_id.len() > 128 {
            return Ok(None);
        }
        let Some(bytes) = self.meta.get(&layout::raw(Tag::Key, key_id.as_bytes()))? else { return Ok(None) };
        let record = KeyRecord::decode(&bytes)?;
        let live = record.expires.is_none_or(|at| self.env.now() < at);
        Ok(live.then_some((record, bytes)))
    }

    /// Finds a world by name.
    pub(crate) fn find(self: &Arc<Self>, name: &WorldName) -> Result<Arc<World>> {
        let missing = || Error::not_found(format!("world {name} does not exist; `mw world list` shows what does"));
        let id = self.meta.get(&layout::raw(Tag::Name, name.as_str().as_bytes()))?.ok_or_else(missing)?;
        self.world(WorldId(layout::number(&id)))
    }

    /// Returns an open world, opening it when it is not.
    pub(crate) fn world(self: &Arc<Self>, id: WorldId) -> Result<Arc<World>> {
        if let Some(world) = self.open.lock().get(&id) {
            world.need_alive()?;
            return Ok(world.clone());
        }
        // Loading reads the log: it is done outside the lock on the table, and by one thread at a time.
        let _one = self.loading.lock();
        if let Some(world) = self.open.lock().get(&id) {
            return Ok(world.clone());
        }
        let world = Arc::new(self.load(id)?);
        self.keep_open(id, &world);
        self.drop_orphans_soon(&world);
        Ok(world)
    }

    /// Keeps a world open. When many are, those that nobody holds are closed: an idle world is a record only, and its log
    /// has all that its overlay had.
    ///
    /// Returns the one that is open from now on: somebody may have found a new world and opened it before its maker came here.
    pub(crate) fn keep_open(&self, id: WorldId, world: &Arc<World>) -> Arc<World> {
        let mut open = self.open.lock();
        if open.len() >= MAX_OPEN {
            open.retain(|_, world| {
                Arc::strong_count(world) > 1
                    || world.is_read()
                    || world.listeners.any()
                    || !world.opens.lock().is_empty()
            });
        }
        open.entry(id).or_insert_with(|| world.clone()).clone()
    }

    /// Returns a new inode number.
    pub(crate) fn fresh_ino(&self) -> Result<Ino> {
        let mut lease = self.inos.lock();
        if lease.is_empty() {
            let place = layout::raw(Tag::Counter, b"ino");
            let old = self.meta.get(&place)?;
            let start = old.as_ref().map_or(16, |v| layout::number(v));
            let mut batch = Batch::new();
            batch.require(place.clone(), old.map_or(Expect::Absent, Expect::Value));
            batch.put(place, (start + LEASE).to_be_bytes().to_vec());
            // In order before every entry that uses a number of the block, so `soon` is enough.
            self.meta.commit(batch, Durability::Soon)?;
            *lease = start..start + LEASE;
        }
        let n = lease.start;
        lease.start += 1;
        Ok(Ino((self.prefix & 0x3f_ffff) << 40 | n))
    }

    /// Asks for a fold. Without a background it runs now.
    pub(crate) fn fold_soon(&self, world: &World) {
        if !self.options.background {
            if let Err(e) = self.fold(world) {
                tracing::warn!(world = world.record.read().name, "fold failed: {e}");
            }
            return;
        }
        let bytes = world.head.lock().bytes;
        if bytes > 32 * self.options.fold_bytes {
            // The folds cannot keep up: the writer pays, so that memory and replay stay bounded.
            if let Err(e) = self.fold(world) {
                tracing::warn!(world = world.record.read().name, "fold failed: {e}");
            }
            return;
        }
        let mut queue = self.folds.queue.lock();
        if queue.queued.insert(world.id) {
            queue.waiting.push(world.id);
            self.folds.wake.notify_one();
        }
    }

    /// Returns whether a role allows making worlds and keys of any scope.
    pub(crate) fn need_everything(&self, who: &Principal) -> Result<()> {
        match who.everything() {
            Some(Role::Admin) => Ok(()),
            _ => Err(Error::denied()),
        }
    }

    /// Signs a point of a world's history: its place in the log, its time and its chain hash.
    pub(crate) fn seal(&self, world: WorldId, state: &State) -> [u8; 32] {
        let mut w = Writer::new();
        w.u64(world.0).var(state.seq.0).var(state.time.0).hash(&state.chain);
        *blake3::keyed_hash(&self.signing, &w.0).as_bytes()
    }

    /// Returns a world's record by id, alive or not.
    pub(crate) fn record_of(&self, id: WorldId) -> Result<Option<WorldRecord>> {
        self.meta.get(&layout::of(Tag::World, id))?.map(|b| WorldRecord::decode(&b)).transpose()
    }
}

/// Returns what a temporary key may do: no more than its grants, than its policy, than the key it acts for. Without grants and
/// without a policy it may do nothing.
fn bounded(record: &KeyRecord, parent: Power) -> Result<Power> {
    let mut power = parent;
    if !record.grants.is_empty() {
        power = Power { grants: record.grants.clone(), above: Some(Arc::new(power)), ..Power::default() };
    }
    if let Some(json) = &record.policy {
        power = Power { policies: vec![policy::parse(json)?], above: Some(Arc::new(power)), ..Power::default() };
    }
    if record.grants.is_empty() && record.policy.is_none() {
        power = Power { above: Some(Arc::new(power)), ..Power::default() };
    }
    Ok(power)
}

pub(crate) fn decode_claim(key: &[u8], value: &[u8]) -> Result<Claim> {
    let mut r = Reader::new(value);
    crate::record::version(&mut r)?;
    let owner = Owner { world: WorldId(r.u64()?), incarnation: Incarnation(r.u64()?) };
    let used = r.var32()?;
    r.end()?;
    Ok(Claim { segment: mw_segments::SegmentId(layout::number(key)), owner, used })
}

/// Folds worlds as they are asked for, until the store is closed or dropped.
fn fold_loop(store: &Weak<Store>, folds: &Folds) {
    loop {
        let id = {
            let mut queue = folds.queue.lock();
            loop {
                if queue.stop {
                    return;
                }
                if let Some(id) = queue.waiting.pop() {
                    queue.queued.remove(&id);
                    break id;
                }
                folds.wake.wait(&mut queue);
            }
        };
        let Some(store) = store.upgrade() else { return };
        let world = store.open.lock().get(&id).cloned();
        if let Some(world) = world
            && let Err(e) = store.fold(&world)
        {
            tracing::warn!(world = world.record.read().name, "fold failed, its log stays longer: {e}");
        }
    }
}

/// Makes content in segments durable within a second of the entry that refers to it, as `meta` does with the entry itself.
fn flush_loop(store: &Weak<Store>, folds: &Folds) {
    loop {
        {
            let mut queue = folds.queue.lock();
            if !queue.stop {
                folds.ticks.wait_for(&mut queue, FLUSH);
            }
            if queue.stop {
                return;
            }
        }
        let Some(store) = store.upgrade() else { return };
        let open: Vec<_> = store.open.lock().values().cloned().collect();
        let loose = open.iter().any(|world| world.head.lock().is_loose());
        if loose && let Err(e) = store.segments.sync() {
            tracing::error!("content could not be made durable: {e}");
            return;
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.folds.queue.lock().stop = true;
        self.folds.wake.notify_all();
        self.folds.ticks.notify_all();
    }
}
