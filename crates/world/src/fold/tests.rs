//! A fold beside a writer.

use super::*;
use crate::session::Session;
use crate::{CreateOptions, Make, Options, WriteAt};
use mw_env::Env;
use mw_model::FileType;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn session() -> Session {
    let options = Options { background: false, ..Options::default() };
    let (meta, segments) = (Arc::new(mw_meta::Memory::new()), Arc::new(mw_segments::Memory::new()));
    let store = Store::open(meta, segments, Env::seeded(7), options).unwrap();
    let root = store.principal(&store.root_key().unwrap().id).unwrap();
    store.create_world(&root, "base", &CreateOptions::default()).unwrap();
    store.session(&root, "base").unwrap()
}

/// Parts of riding extents, of a file that changes while they are joined, go to segments: a locator has no room for them.
#[test]
fn a_fold_beside_a_writer_places_parts_of_riding_extents() {
    let session = session();
    let make = Make { kind: FileType::File, mode: 0o644, uid: 0, gid: 0, rdev: 0, target: Bytes::new() };
    let file = session.make(Ino::ROOT, b"f", &make).unwrap().ino;
    let stop = AtomicBool::new(false);
    let write =
        |at: u64, byte: u8, len: usize| session.write(file, WriteAt::Offset(at), &vec![byte; len]).map(drop).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for at in (0..40).map(|n| n * 3000) {
                    write(at, 1, 4000);
                    write(at + 1000, 2, 50);
                }
            }
        });
        for _ in 0..200 {
            session.store.fold(&session.world).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    for at in (0..40).map(|n| n * 3000) {
        write(at, 1, 4000);
        write(at + 1000, 2, 50);
    }
    session.store.fold(&session.world).unwrap();
    let bytes = session.read(file, 0, 1 << 20).unwrap();
    assert_eq!(bytes.len(), 39 * 3000 + 4000);
    for (i, byte) in bytes.iter().enumerate() {
        let in_step = i.min(39 * 3000) % 3000 + i.saturating_sub(39 * 3000);
        let wanted = if (1000..1050).contains(&in_step) { 2 } else { 1 };
        assert_eq!(*byte, wanted, "{i}");
    }
}

/// A copy of a large object writes a record for many of its pieces, and so does its fold.
#[test]
fn a_large_object_costs_a_record_for_many_pieces() {
    let session = session();
    let mut staged = session.stage().unwrap();
    let mut bytes = vec![0; 64 << 20];
    Env::seeded(1).fill(&mut bytes);
    staged.push(&bytes).unwrap();
    session.put(b"from", staged, &crate::PutOptions::default()).unwrap();
    session.copy(&session, b"from", b"to", &crate::CopyOptions::default()).unwrap();
    session.store.flush().unwrap();
    let view = session.view();
    let ino = session.resolve(b"to").unwrap().ino;
    let pieces = view.extents(ino, 0, u64::MAX).unwrap().len();
    let records = view.kind(ino, Kind::Extent).count();
    assert!(pieces >= 64 && records <= 4, "{records} records of {pieces} pieces");
}
