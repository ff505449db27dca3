//! The store: all worlds of one process, over one `meta` and one `segments`.

use crate::content::Content;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::principal::{KeyRecord, Presented, Principal, Role};
use crate::state::State;
use crate::world::{World, WorldRecord};
use bytes::Bytes;
use mw_env::Env;
use mw_meta::{Batch, Durability, Expect, Meta, Order};
use mw_model::codec::{Reader, Writer};
use mw_model::{ErrorKind, Incarnation, Ino, WorldId, WorldName};
use mw_segments::{Claim, Owner, Segments};
use mw_tree::{Cache, Tree};
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How a store behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long history stays readable.
    pub retention: Duration,
    /// The budget of the caches, in bytes.
    pub memory: usize,
    /// A world is folded when its overlay weighs this much, in bytes.
    pub fold_bytes: usize,
    /// The user and group that own what no mount made.
    pub owner: (u32, u32),
    /// Whether folds run on a thread of the store's; without it they run in the call that needs them.
    pub background: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            retention: Duration::from_secs(7 * 86_400),
            memory: 1 << 30,
            fold_bytes: 1 << 20,
            owner: (0, 0),
            background: true,
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
    /// One world at a time is opened.
    loading: Mutex<()>,
    /// Deleted worlds that somebody may still be reading.
    pub(crate) graves: Mutex<HashMap<WorldId, Weak<World>>>,
    folds: Arc<Folds>,
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
    /// Opens the store over its two engines, making it when they are empty.
    ///
    /// # Errors
    /// An engine failed, or its records do not decode.
    pub fn open(meta: Arc<dyn Meta>, segments: Arc<dyn Segments>, env: Env, options: Options) -> Result<Arc<Self>> {
        let settings = Self::settings(&*meta, &env)?;
        segments.adopt(&Self::claims(&*meta)?)?;
        let cache = Cache::new(options.memory / 4);
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
            loading: Mutex::new(()),
            graves: Mutex::new(HashMap::new()),
            folds: folds.clone(),
            meta,
            segments,
            env,
            options,
        });
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

    fn settings(meta: &dyn Meta, env: &Env) -> Result<Settings> {
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
            secret: env.token(40),
            root: true,
            grants: Vec::new(),
            created: env.now(),
            expires: None,
            run: None,
            maker: String::new(),
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
        let worlds: Vec<_> = self.open.lock().values().cloned().collect();
        for world in worlds {
            if let Err(e) = self.fold(&world) {
                tracing::debug!(world = world.record.read().name, "no last fold: {e}");
            }
        }
        if let Err(e) = self.segments.sync().map_err(Error::from).and_then(|()| Ok(self.meta.sync()?)) {
            tracing::error!("closing the store: {e}");
        }
    }

    /// Returns the root key, made when the store was.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn root_key(&self) -> Result<Secret> {
        let settings = Self::settings(&*self.meta, &self.env)?;
        let secret = self.secret(&settings.root_key)?.ok_or_else(|| Error::corrupt("the root key is missing"))?;
        Ok(Secret { id: settings.root_key, secret })
    }

    /// Returns the secret of a live key.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn secret(&self, key_id: &str) -> Result<Option<String>> {
        Ok(self.live_key(key_id)?.map(|(record, _)| record.secret))
    }

    /// Returns who presents a live key.
    ///
    /// # Errors
    /// `Denied` when the key is unknown, expired or deleted.
    pub fn principal(&self, key_id: &str) -> Result<Principal> {
        let (record, bytes) = self
            .live_key(key_id)?
            .ok_or_else(|| Error::new(ErrorKind::Denied, "access denied: this key is unknown, expired or revoked"))?;
        Ok(Principal(Arc::new(Presented { id: key_id.to_owned(), record, bytes })))
    }

    fn live_key(&self, key_id: &str) -> Result<Option<(KeyRecord, Bytes)>> {
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
        if let Err(e) = self.drop_orphans(&world) {
            tracing::warn!(world = world.record.read().name, "orphans stay for now: {e}");
        }
        Ok(world)
    }

    /// Keeps a world open. When many are, those that nobody holds are closed: an idle world is a record only, and its log
    /// has all that its overlay had.
    pub(crate) fn keep_open(&self, id: WorldId, world: &Arc<World>) {
        let mut open = self.open.lock();
        if open.len() >= MAX_OPEN {
            open.retain(|_, world| {
                Arc::strong_count(world) > 1 || world.listeners.any() || !world.opens.lock().is_empty()
            });
        }
        open.insert(id, world.clone());
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
        let loose = open.iter().any(|world| {
            let head = world.head.lock();
            head.loose > head.durable
        });
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
