//! Measures the engines side by side: `cargo run --release -p mw-meta --example engines -- [DIR] [SECONDS]`.
//!
//! DIR must be on the disk that is of interest; a fresh folder is made in it and removed again. A commit is what a world's
//! append is: two requirements, a log entry of 300 bytes under a new key, and a head of 100 bytes that is written over.

#![allow(clippy::unwrap_used, reason = "a measurement that fails has nothing to clean up")]

use mw_env::{Env, LocalDisk};
use mw_meta::{Batch, Durability, Embedded, Expect, Meta, Order};
use redb::{ReadableDatabase, ReadableTable};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PAIRS: redb::TableDefinition<'static, &[u8], &[u8]> = redb::TableDefinition::new("pairs");

fn head(world: u64) -> Vec<u8> {
    format!("{world:08}/head").into_bytes()
}

fn entry(world: u64, seq: u64) -> Vec<u8> {
    format!("{world:08}/log/{seq:016}").into_bytes()
}

/// What is measured.
trait Engine: Send + Sync {
    fn name(&self) -> &'static str;
    fn append(&self, world: u64, seq: u64, durable: bool);
    fn get(&self, key: &[u8]) -> Option<usize>;
    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> usize;
    fn syncs(&self) -> u64;
}

impl Engine for Arc<Embedded> {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn append(&self, world: u64, seq: u64, durable: bool) {
        let mut batch = Batch::new();
        batch.require(entry(world, seq), Expect::Absent);
        batch.require(head(world), if seq == 0 { Expect::Absent } else { Expect::Present });
        batch.put(entry(world, seq), vec![seq as u8; 300]).put(head(world), vec![seq as u8; 100]);
        self.commit(batch, if durable { Durability::Durable } else { Durability::Soon }).unwrap();
    }

    fn get(&self, key: &[u8]) -> Option<usize> {
        Meta::get(&**self, key).unwrap().map(|value| value.len())
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> usize {
        Meta::scan(&**self, start, end, limit, Order::Up).unwrap().len()
    }

    fn syncs(&self) -> u64 {
        Meta::syncs(&**self)
    }
}

/// redb alone. Its commit that is not durable is lost with the process, so that row is more than it may be compared to.
struct Redb(redb::Database);

impl Redb {
    fn open(dir: &Path) -> Self {
        let db = redb::Database::builder().set_cache_size(64 << 20).create(dir.join("peer.redb")).unwrap();
        let write = db.begin_write().unwrap();
        write.open_table(PAIRS).unwrap();
        write.commit().unwrap();
        Self(db)
    }
}

impl Engine for Redb {
    fn name(&self) -> &'static str {
        "redb alone"
    }

    fn append(&self, world: u64, seq: u64, durable: bool) {
        let mut write = self.0.begin_write().unwrap();
        write.set_durability(if durable { redb::Durability::Immediate } else { redb::Durability::None }).unwrap();
        {
            let mut pairs = write.open_table(PAIRS).unwrap();
            assert!(pairs.get(&*entry(world, seq)).unwrap().is_none());
            assert!(pairs.get(&*head(world)).unwrap().is_some() == (seq > 0));
            pairs.insert(&*entry(world, seq), &[seq as u8; 300][..]).unwrap();
            pairs.insert(&*head(world), &[seq as u8; 100][..]).unwrap();
        }
        write.commit().unwrap();
    }

    fn get(&self, key: &[u8]) -> Option<usize> {
        let pairs = self.0.begin_read().unwrap().open_table(PAIRS).unwrap();
        pairs.get(key).unwrap().map(|value| value.value().len())
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> usize {
        let pairs = self.0.begin_read().unwrap().open_table(PAIRS).unwrap();
        let mut copies = Vec::new();
        for pair in pairs.range(start..end).unwrap().take(limit) {
            let (key, value) = pair.unwrap();
            copies.push((key.value().to_vec(), value.value().to_vec()));
        }
        copies.len()
    }

    fn syncs(&self) -> u64 {
        0
    }
}

/// Seconds by the clock, of the processors for the whole process, and for the threads that called.
#[derive(Clone, Copy)]
struct Took {
    seconds: f64,
    cpu: f64,
    own: f64,
}

fn cpu(clock: rustix::time::ClockId) -> f64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn timed<T>(env: &Env, run: impl FnOnce() -> T) -> (T, Took) {
    use rustix::time::ClockId::{ProcessCPUTime, ThreadCPUTime};
    let (start, all, own) = (env.monotonic(), cpu(ProcessCPUTime), cpu(ThreadCPUTime));
    let value = run();
    let seconds = (env.monotonic() - start) as f64 / 1e9;
    (value, Took { seconds, cpu: cpu(ProcessCPUTime) - all, own: cpu(ThreadCPUTime) - own })
}

/// Runs `step(thread, n)` on `threads` threads for some time and returns steps and seconds.
fn rate(env: &Env, threads: u64, seconds: f64, step: impl Fn(u64, u64) + Sync) -> (u64, Took) {
    let (count, own, start) = (AtomicU64::new(0), AtomicU64::new(0), env.monotonic());
    let ((), mut took) = timed(env, || {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (count, own, step) = (&count, &own, &step);
                scope.spawn(move || {
                    let mut n = 0;
                    while n % 16 != 0 || ((env.monotonic() - start) as f64) < seconds * 1e9 {
                        step(thread, n);
                        n += 1;
                    }
                    count.fetch_add(n, Ordering::Relaxed);
                    own.fetch_add((cpu(rustix::time::ClockId::ThreadCPUTime) * 1e9) as u64, Ordering::Relaxed);
                });
            }
        });
    });
    took.own = own.into_inner() as f64 / 1e9;
    (count.into_inner(), took)
}

fn row(engine: &str, what: &str, steps: u64, took: Took, note: &str) {
    let each = |seconds: f64| seconds * 1e6 / steps.max(1) as f64;
    let (rate, each, own, cpu) = (steps as f64 / took.seconds, each(took.seconds), each(took.own), each(took.cpu));
    println!("| {engine:<10} | {what:<28} | {rate:>9.0} | {each:>9.2} | {own:>9.2} | {cpu:>9.2} | {note:<22} |");
}

fn size(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
}

fn commits(env: &Env, engine: &dyn Engine, seconds: f64) -> u64 {
    let mut worlds = 0;
    for (durable, what) in [(true, "durable"), (false, "soon")] {
        for threads in [1, 16, 256] {
            let syncs = engine.syncs();
            let first = worlds;
            let (steps, took) = rate(env, threads, seconds, |thread, n| engine.append(first + thread, n, durable));
            worlds += threads;
            let syncs = engine.syncs() - syncs;
            let note =
                if syncs > 0 { format!("{:.1} commits a sync", steps as f64 / syncs as f64) } else { String::new() };
            row(engine.name(), &format!("{what} commits, {threads} writers"), steps, took, &note);
        }
    }
    worlds
}

/// Reads what the commits left: the log of every world is known to be at least 16 long.
fn reads(env: &Env, engine: &dyn Engine, worlds: u64, seconds: f64) {
    let spread = |thread: u64, n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ thread) >> 7;
    for threads in [1, 16] {
        let (steps, took) = rate(env, threads, seconds, |thread, n| {
            let place = spread(thread, n);
            assert!(engine.get(&entry(place % worlds, place / worlds % 16)).is_some());
        });
        row(engine.name(), &format!("get, {threads} readers"), steps, took, "");
    }
    let (steps, took) = rate(env, 1, seconds, |thread, n| {
        assert!(engine.scan(&entry(spread(thread, n) % worlds, 0), b"z", 100) > 0);
    });
    row(engine.name(), "scan of 100, 1 reader", steps, took, "");
}

/// Appends to 20,000 worlds in turn, so that every head is written over and over; returns the bytes that live at the end.
fn churn(env: &Env, engine: &dyn Engine) -> u64 {
    const WORLDS: u64 = 20_000;
    const ROUNDS: u64 = 10;
    let ((), took) = timed(env, || {
        for step in 0..WORLDS * ROUNDS {
            engine.append(1_000_000 + step % WORLDS, step / WORLDS, false);
        }
    });
    row(engine.name(), "churn: commits", WORLDS * ROUNDS, took, "");
    WORLDS * (113 + ROUNDS * 329)
}

fn measure<E: Engine>(env: &Env, dir: &Path, seconds: f64, open: impl Fn(&Path) -> E) {
    let dir = tempfile::tempdir_in(dir).unwrap();
    let opening = |what: &str| {
        let (engine, took) = timed(env, || open(dir.path()));
        row(engine.name(), what, 1, took, "");
        engine
    };
    let engine = opening("open, new");
    let worlds = commits(env, &engine, seconds);
    reads(env, &engine, worlds, seconds);
    drop(engine);
    let before = size(dir.path());
    let engine = opening("open again");
    let live = churn(env, &engine);
    drop(engine);
    let engine = opening("open again");
    let grown = size(dir.path()) - before;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let (live, grown, all) = (mib(live), mib(grown), mib(size(dir.path())));
    println!(
        "| {:<10} | space after churn            | {live:.0} MiB live took {grown:.0} MiB more; {all:.0} MiB in all",
        engine.name()
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().unwrap_or_else(|| ".".to_owned());
    let seconds = arguments.next().map_or(3.0, |text| text.parse().unwrap());
    let env = Env::real();
    println!(
        "| engine     | what                         | a second  | µs each   | own CPU   | all CPU   | note                   |"
    );
    println!(
        "|------------|------------------------------|-----------|-----------|-----------|-----------|------------------------|"
    );
    measure(&env, Path::new(&dir), seconds, |dir| {
        Embedded::open(Arc::new(LocalDisk::new(dir).unwrap()), env.clone()).unwrap()
    });
    measure(&env, Path::new(&dir), seconds, Redb::open);
}
