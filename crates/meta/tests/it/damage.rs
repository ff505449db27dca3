//! Bytes that are not what the store wrote last: stale ones, torn ones, rotten ones, and those of a newer release.

use mw_env::{Disk, Env};
use mw_meta::embedded::Options;
use mw_meta::{Batch, Durability, Embedded, Error, Meta, Order};
use mw_model::ErrorKind;
use mw_sim::SimDisk;
use std::sync::Arc;

fn options() -> Options {
    Options { wal_bytes: 16 << 10, table_bytes: usize::MAX, cache_bytes: 1 << 20, background: false }
}

fn try_open(disk: &SimDisk) -> mw_meta::Result<Arc<Embedded>> {
    Embedded::open_with(Arc::new(disk.clone()), Env::seeded(1), options())
}

fn open(disk: &SimDisk) -> Arc<Embedded> {
    try_open(disk).unwrap()
}

fn put(store: &dyn Meta, key: &str, len: usize, durability: Durability) {
    let mut batch = Batch::new();
    batch.put(key.to_owned(), vec![b'v'; len]);
    store.commit(batch, durability).unwrap();
}

fn keys(store: &dyn Meta) -> Vec<String> {
    let pairs = store.scan(b"", b"z", usize::MAX, Order::Up).unwrap();
    pairs.into_iter().map(|(key, _)| String::from_utf8_lossy(&key).into_owned()).collect()
}

/// Where `text` stands in `file`.
fn find(disk: &SimDisk, file: &str, text: &str) -> Option<u64> {
    let bytes = disk.contents(file).unwrap();
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).map(|at| at as u64)
}

fn file_of(disk: &SimDisk, text: &str) -> (&'static str, u64) {
    ["meta-0.wal", "meta-1.wal"].into_iter().find_map(|file| Some((file, find(disk, file, text)?))).unwrap()
}

#[test]
fn stale_records_of_a_used_file_are_not_replayed() {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    // Records of one size, so that those of an earlier round lie exactly where the next of this round would.
    for n in 0..200 {
        put(&*store, &format!("k{n:04}"), 500, Durability::Soon);
    }
    let expected = keys(&*store);
    assert_eq!(expected.len(), 200);
    let killed = disk.kill();
    let names = killed.list().unwrap();
    assert_eq!(names.len(), 3, "two log files are used in turn: {names:?}");
    assert_eq!(keys(&*open(&killed)), expected);
}

#[test]
fn a_torn_record_at_the_end_is_cut_off() {
    let disk = SimDisk::new(2);
    let store = open(&disk);
    put(&*store, "first", 100, Durability::Durable);
    put(&*store, "second", 100, Durability::Durable);
    let (file, at) = file_of(&disk, "second");
    disk.flip(file, at + 50, 3).unwrap();
    let found = open(&disk.kill());
    assert_eq!(keys(&*found), ["first"]);
    put(&*found, "third", 100, Durability::Durable);
}

#[test]
fn a_record_past_a_gap_is_not_replayed() {
    let disk = SimDisk::new(3);
    let store = open(&disk);
    put(&*store, "first", 100, Durability::Durable);
    for key in ["second", "third", "fourth"] {
        put(&*store, key, 100, Durability::Soon);
    }
    let (file, at) = file_of(&disk, "third");
    disk.flip(file, at + 50, 3).unwrap();
    let second_life = disk.kill();
    let found = open(&second_life);
    assert_eq!(keys(&*found), ["first", "second"]);
    // The number of the lost one is given again, to a record of the same size; the old fourth must not follow it.
    put(&*found, "THIRD", 100, Durability::Durable);
    assert_eq!(keys(&*open(&second_life.kill())), ["THIRD", "first", "second"]);
}

#[test]
fn a_gap_between_two_files_ends_the_log() {
    let disk = SimDisk::new(4);
    let store = open(&disk);
    let mut n = 0;
    // Until the second file is in use, with the first one's table still frozen: moving it is what is cut off here.
    let first = loop {
        put(&*store, &format!("k{n:02}"), 700, Durability::Soon);
        n += 1;
        let last = format!("k{:02}", n - 1);
        if file_of(&disk, &last).0 == "meta-1.wal" {
            break n - 1;
        }
    };
    let (file, at) = file_of(&disk, &format!("k{:02}", first - 2));
    assert_eq!(file, "meta-0.wal");
    disk.flip(file, at + 50, 3).unwrap();
    let found = keys(&*open(&disk.kill()));
    assert_eq!(found.len(), first - 2, "{found:?}");
}

#[test]
fn a_lost_record_that_was_acknowledged_is_reported() {
    let disk = SimDisk::new(5);
    let store = open(&disk);
    for key in ["first", "second", "third"] {
        put(&*store, key, 100, Durability::Durable);
    }
    let (file, at) = file_of(&disk, "second");
    disk.flip(file, at + 50, 3).unwrap();
    let error = try_open(&disk.kill()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("record 2 of the log was on disk"), "{error}");
}

#[test]
fn a_rotten_value_in_the_tree_is_reported() {
    let disk = SimDisk::new(6);
    let store = open(&disk);
    put(&*store, "rotten", 300, Durability::Durable);
    put(&*store, "sound", 300, Durability::Durable);
    drop(store);
    // Opened and closed once more, so that the pairs are in the tree and the log is behind its mark.
    drop(open(&disk));
    let at = find(&disk, "meta.redb", "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv").unwrap();
    disk.flip("meta.redb", at + 16, 0).unwrap();
    let store = open(&disk);
    let results = ["rotten", "sound"].map(|key| store.get(key.as_bytes()));
    let bad: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].kind(), ErrorKind::Corrupt);
    assert!(store.scan(b"", b"z", 9, Order::Up).is_err());
}

/// Content may look like records with any number and length; opening must not hash its way through it.
#[test]
fn content_that_looks_like_records_does_not_slow_opening() {
    let disk = SimDisk::new(8);
    let options = || Options { wal_bytes: 4 << 20, ..options() };
    let open = |disk: &SimDisk| Embedded::open_with(Arc::new(disk.clone()), Env::seeded(1), options()).unwrap();
    let store = open(&disk);
    let mut batch = Batch::new();
    batch.put("first", vec![0; 8]).put("other", [[0, 0, 0, 1, 0, 16, 0, 0]; 250_000].concat());
    store.commit(batch, Durability::Durable).unwrap();
    // The record is torn, so that all of its content lies behind the end of the log.
    let (file, at) = file_of(&disk, "first");
    disk.flip(file, at, 0).unwrap();
    let reads = disk.kill();
    assert!(keys(&*open(&reads)).is_empty());
}

#[test]
fn a_newer_log_is_refused_by_name_and_number() {
    let disk = SimDisk::new(7);
    drop(open(&disk));
    disk.open("meta-0.wal").unwrap().write_at(&9u32.to_be_bytes(), 8).unwrap();
    let error = try_open(&disk).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 9, known: 1, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("meta-0.wal has format version 9, and this release reads up to 1"), "{error}");
}

#[test]
fn a_newer_tree_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let disk = || Arc::new(mw_env::LocalDisk::new(dir.path()).unwrap());
    drop(Embedded::open_with(disk(), Env::seeded(1), options()).unwrap());
    let db = redb::Database::open(dir.path().join("meta.redb")).unwrap();
    let write = db.begin_write().unwrap();
    let about = redb::TableDefinition::<&str, &[u8]>::new("about");
    write.open_table(about).unwrap().insert("format", &2u32.to_be_bytes()[..]).unwrap();
    write.commit().unwrap();
    drop(db);
    let error = Embedded::open_with(disk(), Env::seeded(1), options()).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 2, known: 1, .. }), "{error}");
}
