//! Group sync, counted; and what a failed sync leaves.

use crate::rig::{Gate, Gated, noise, open, owner};
use mw_model::ErrorKind;
use mw_segments::Segments;
use mw_sim::SimDisk;
use std::sync::{Arc, Barrier};

#[test]
fn threads_that_wait_together_share_one_sync() {
    let segments = open(&SimDisk::new(1));
    segments.adopt(&[]).unwrap();
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for world in 1..=8 {
            let (segments, barrier) = (&segments, &barrier);
            scope.spawn(move || {
                segments.append(owner(world, 1), &noise(world, 1_000)).unwrap();
                barrier.wait();
                segments.sync().unwrap();
            });
        }
    });
    assert_eq!(segments.syncs(), 1);
}

#[test]
fn those_who_come_during_a_sync_share_the_next() {
    let disk = Gated(SimDisk::new(1), Arc::new(Gate::default()));
    let segments = open(&disk);
    segments.adopt(&[]).unwrap();
    for world in 1..=8 {
        segments.append(owner(world, 1), b"takes the first segment").unwrap();
    }
    disk.1.hold_syncs();
    let barrier = Barrier::new(8);
    let blobs: Vec<_> = std::thread::scope(|scope| {
        let leader = scope.spawn(|| segments.sync().unwrap());
        disk.1.wait_held();
        let followers: Vec<_> = (1..=7)
            .map(|world| {
                let (segments, barrier) = (&segments, &barrier);
                scope.spawn(move || {
                    let blob = segments.append(owner(world, 1), &noise(world, 1_000)).unwrap();
                    barrier.wait();
                    segments.sync().unwrap();
                    blob
                })
            })
            .collect();
        barrier.wait();
        assert_eq!(segments.syncs(), 0, "nobody is answered by a sync that began before its bytes");
        disk.1.release();
        leader.join().unwrap();
        followers.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(segments.syncs(), 2);
    let found = open(&disk.0.crash());
    for (blob, world) in blobs.iter().zip(1..) {
        assert_eq!(found.read(blob).unwrap(), noise(world, 1_000));
    }
}

#[test]
fn after_a_failed_sync_only_reads_go_on() {
    let disk = SimDisk::new(1);
    let segments = open(&disk);
    segments.adopt(&[]).unwrap();
    let own = owner(1, 1);
    let safe = segments.append(own, b"safe").unwrap();
    segments.sync().unwrap();
    let claims = segments.claims(own);
    let doubtful = segments.append(own, b"doubtful").unwrap();
    disk.fail_sync_once();
    let error = segments.sync().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("restart the server so that it reopens from disk"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(segments.sync().unwrap_err().kind(), ErrorKind::Io, "a failed sync is never tried again");
    assert_eq!(segments.append(own, b"more").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(segments.free(&[safe.addr.segment]).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(segments.read(&safe).unwrap().as_ref(), b"safe");
    assert_eq!(segments.read(&doubtful).unwrap().as_ref(), b"doubtful");

    let reopened = open(&disk.crash());
    reopened.adopt(&claims).unwrap();
    assert_eq!(reopened.read(&safe).unwrap().as_ref(), b"safe");
    reopened.append(own, b"more").unwrap();
    reopened.sync().unwrap();
}
