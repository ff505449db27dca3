//! The disk refuses: what is told, what goes on, and what is found afterwards.

use mw_env::{Disk, Env, File};
use mw_meta::embedded::Options;
use mw_meta::{Batch, Durability, Embedded, Error, Meta};
use mw_model::ErrorKind;
use mw_sim::SimDisk;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn options() -> Options {
    Options { wal_bytes: 16 << 10, table_bytes: 4 << 10, cache_bytes: 1 << 20, background: false }
}

fn open(disk: &SimDisk, background: bool) -> Arc<Embedded> {
    Embedded::open_with(Arc::new(disk.clone()), Env::seeded(1), Options { background, ..options() }).unwrap()
}

fn put(key: &str, len: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(key.to_owned(), vec![b'v'; len]);
    batch
}

fn there(store: &dyn Meta, key: &str) -> bool {
    store.get(key.as_bytes()).unwrap().is_some()
}

#[test]
fn a_failed_sync_ends_writing_and_not_reading() {
    let disk = SimDisk::new(1);
    let store = open(&disk, false);
    store.commit(put("safe", 10), Durability::Durable).unwrap();
    let one = store.submit(put("one", 10), Durability::Durable).unwrap();
    let two = store.submit(put("two", 10), Durability::Durable).unwrap();
    disk.fail_sync_once();
    for ticket in [one, two] {
        let error = ticket.wait().unwrap_err();
        assert!(matches!(error, Error::ReadOnly { .. }) && error.kind() == ErrorKind::Io, "{error:?}");
        assert!(error.to_string().contains("restart"), "the remedy is named: {error}");
    }
    let syncs = disk.counts().syncs;
    assert!(store.commit(put("three", 10), Durability::Soon).is_err());
    assert!(store.sync().is_err());
    assert_eq!(disk.counts().syncs, syncs, "a failed sync is never tried again");
    assert!(there(&*store, "safe") && there(&*store, "one"), "reads go on");
    drop(store);
    let found = open(&disk.crash(), false);
    assert!(there(&*found, "safe"));
    assert!(!there(&*found, "two") || there(&*found, "one"), "a prefix");
    assert!(!there(&*found, "three"));
}

/// A sync of the tree fails while a table moves into it. redb refuses even reads after that; the store must not.
#[test]
fn a_failed_move_into_the_tree_ends_writing_and_not_reading() {
    for seed in 0..6 {
        let disk = SimDisk::new(seed);
        let store = open(&disk, false);
        let mut kept = Vec::new();
        let error = (0..)
            .map(|n| format!("k{n:04}"))
            .find_map(|key| {
                // Nothing is asked of the log, so the next sync is the tree's.
                if kept.len() == 100 {
                    disk.fail_sync_once();
                }
                let done = store.commit(put(&key, 500), Durability::Soon);
                kept.push(key);
                done.err()
            })
            .unwrap();
        // The refused one was not kept.
        kept.pop();
        assert!(matches!(error, Error::ReadOnly { .. }) && kept.len() > 100, "{error:?}");
        let (writes, syncs) = (disk.counts().writes, disk.counts().syncs);
        assert!(kept.iter().all(|key| there(&*store, key)), "seed {seed}");
        assert_eq!(store.scan(b"", b"z", usize::MAX, mw_meta::Order::Down).unwrap().len(), kept.len());
        drop(store);
        assert_eq!((disk.counts().writes, disk.counts().syncs), (writes, syncs), "the disk is not touched any more");
        // The log was never synced, so only what had moved into the tree before is owed; but it is a prefix.
        let found = open(&disk.crash(), false);
        let survived = kept.iter().take_while(|key| there(&*found, key)).count();
        assert!(survived > 0 && !kept[survived..].iter().any(|key| there(&*found, key)), "seed {seed}");
    }
}

#[test]
fn every_waiting_thread_hears_of_a_failed_sync() {
    let disk = SimDisk::new(2);
    let store = open(&disk, false);
    disk.fail_sync_once();
    std::thread::scope(|scope| {
        let wait = |n: usize| store.submit(put(&n.to_string(), 9), Durability::Durable).and_then(mw_meta::Ticket::wait);
        let waits: Vec<_> = (0..8).map(|n| scope.spawn(move || wait(n))).collect();
        assert!(waits.into_iter().all(|wait| wait.join().unwrap().is_err()));
    });
}

/// The disk fills up while tables move into the tree, more than once; room comes back; nothing is lost, nothing wrong appears.
#[test]
fn a_full_disk_passes() {
    for background in [false, true] {
        for slack in (0..200_000).step_by(20_000) {
            let disk = SimDisk::new(slack);
            let store = open(&disk, background);
            let mut kept = Vec::new();
            let mut refused = Vec::new();
            disk.full(disk.used() + slack);
            for n in 0..400 {
                let key = format!("k{n}");
                match store.commit(put(&key, 900), Durability::Durable) {
                    Ok(()) => kept.push(key),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                        assert!(!matches!(error, Error::ReadOnly { .. }), "slack {slack}: {error}");
                        refused.push(key);
                        if refused.len() > 3 {
                            disk.roomy();
                        }
                    }
                }
                assert!(kept.iter().rev().take(9).all(|key| there(&*store, key)), "reads go on");
            }
            assert!(!refused.is_empty(), "slack {slack} was never used up");
            assert!(store.commit(put("after", 9), Durability::Durable).is_ok());
            drop(store);
            let found = open(&disk.crash(), false);
            assert!(kept.iter().all(|key| there(&*found, key)), "slack {slack}");
            assert!(!refused.iter().any(|key| there(&*found, key)), "slack {slack}: a refused batch appeared");
        }
    }
}

#[test]
fn a_batch_that_finds_no_room_to_grow_leaves_the_store_usable() {
    let disk = SimDisk::new(5);
    let store = open(&disk, false);
    store.commit(put("before", 10), Durability::Durable).unwrap();
    disk.full(disk.used() + 100_000);
    let error = store.commit(put("huge", 1 << 20), Durability::Durable).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    store.commit(put("small", 10), Durability::Durable).unwrap();
    disk.roomy();
    store.commit(put("huge", 1 << 20), Durability::Durable).unwrap();
    let found = open(&disk.crash(), false);
    assert!(there(&*found, "before") && there(&*found, "small") && there(&*found, "huge"));
}

/// A disk whose next write to a log file is refused for want of room after some of it, or all of it, was written.
#[derive(Debug)]
struct Tearing {
    disk: SimDisk,
    /// How much of the next write arrives; `u64::MAX` means that all goes well.
    tear: Arc<AtomicU64>,
}

#[derive(Debug)]
struct TearingFile(Arc<dyn File>, Arc<AtomicU64>);

impl Disk for Tearing {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(name)?;
        Ok(if name.ends_with(".wal") { Arc::new(TearingFile(file, self.tear.clone())) } else { file })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
}

impl File for TearingFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.1.swap(u64::MAX, Ordering::Relaxed) {
            u64::MAX => self.0.write_at(bytes, offset),
            arrives => {
                self.0.write_at(&bytes[..bytes.len().min(arrives as usize)], offset)?;
                Err(io::ErrorKind::StorageFull.into())
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.punch(offset, len)
    }

    fn held(&self, offset: u64, len: u64) -> io::Result<u64> {
        self.0.held(offset, len)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.0.allocated()
    }
}

#[test]
fn the_place_of_a_torn_record_is_used_again() {
    for arrives in [0, 1, 60, 500, 1 << 20] {
        let (disk, tear) = (SimDisk::new(arrives), Arc::new(AtomicU64::new(u64::MAX)));
        let tearing = Arc::new(Tearing { disk: disk.clone(), tear: tear.clone() });
        let store = Embedded::open_with(tearing, Env::seeded(1), options()).unwrap();
        store.commit(put("before", 10), Durability::Durable).unwrap();
        tear.store(arrives, Ordering::Relaxed);
        let error = store.commit(put("torn", 1000), Durability::Durable).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(!there(&*store, "torn"));
        // What is found now must not hold the refused batch, whole as it may lie in the file.
        assert!(!there(&*open(&disk.kill(), false), "torn"), "{arrives} bytes arrived");
        store.commit(put("after", 10), Durability::Durable).unwrap();
        for found in [disk.kill(), disk.crash()] {
            let found = open(&found, false);
            assert!(there(&*found, "before") && there(&*found, "after") && !there(&*found, "torn"));
        }
    }
}
