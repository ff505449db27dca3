//! A full disk refuses new bytes, harms none that are stored, and is forgiven as soon as there is room.

use crate::rig::{Gate, Gated, MIB, noise, open, owner};
use mw_model::ErrorKind;
use mw_segments::local::Options;
use mw_segments::{Local, Segments};
use mw_sim::SimDisk;
use std::sync::Arc;

/// C20: a full disk is an error at once, and what was there stays whole.
#[test]
fn a_full_disk_refuses_and_keeps() {
    let disk = SimDisk::new(1);
    let segments = open(&disk);
    segments.adopt(&[]).unwrap();
    disk.full(5 * MIB + 300_000);
    let (first, second) = (owner(1, 1), owner(2, 1));
    let mut blobs = Vec::new();
    let error = loop {
        let n = blobs.len() as u64;
        let bytes = noise(n, 40_000);
        match segments.append(if n.is_multiple_of(2) { first } else { second }, &bytes) {
            Ok(blob) => blobs.push((blob, bytes)),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(error.to_string().contains("mw gc"), "it says what to do: {error}");
    let left = segments.usage();
    assert!(left.free + left.room.unwrap() < 40_000 + 64 * 1024, "nobody is told of room that there is not: {left:?}");
    assert!(blobs.len() * 40_000 > 4_500_000, "the last 64 KiB are used before that: {}", blobs.len());
    segments.sync().expect("a full disk still syncs");
    let claims = [segments.claims(first), segments.claims(second)].concat();
    for (blob, bytes) in &blobs {
        assert_eq!(segments.read(blob).unwrap(), bytes);
    }

    // Small blobs still fit into what the owners hold; then room is made by freeing, and later by the disk.
    let ids: Vec<_> = claims.iter().filter(|claim| claim.owner == first).map(|claim| claim.segment).collect();
    segments.free(&ids).unwrap();
    let again = noise(1_000, 40_000);
    let blob = segments.append(second, &again).expect("freed space is used again");
    assert_eq!(segments.read(&blob).unwrap(), again);
    disk.roomy();
    assert_eq!(segments.usage().room, None, "a disk without end has no number");
    for n in 0..100 {
        segments.append(first, &noise(n, 100_000)).expect("there is room again");
    }

    let reopened = open(&disk.kill());
    let kept: Vec<_> = claims.into_iter().filter(|claim| claim.owner == second).collect();
    reopened.adopt(&kept).unwrap();
    for (blob, bytes) in blobs.iter().filter(|(blob, _)| kept.iter().any(|claim| claim.segment == blob.addr.segment)) {
        assert_eq!(reopened.read(blob).unwrap(), bytes);
    }
}

#[test]
fn a_large_step_shrinks_to_what_the_disk_has() {
    let disk = SimDisk::new(1);
    disk.full(200_000);
    let segments = Local::with(Arc::new(disk.clone()), mw_env::Env::seeded(1), Options::default()).unwrap();
    segments.adopt(&[]).unwrap();
    let blob = segments.append(owner(1, 1), b"small").expect("one segment fits");
    assert_eq!(segments.read(&blob).unwrap().as_ref(), b"small");
    let error = segments.append(owner(1, 1), &noise(1, 100_000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    segments.append(owner(1, 1), b"the open segment goes on").unwrap();
}

#[test]
fn a_write_that_finds_the_disk_full_gives_its_range_back() {
    let disk = Gated(SimDisk::new(1), Arc::new(Gate::default()));
    let segments = open(&disk);
    segments.adopt(&[]).unwrap();
    let own = owner(1, 1);
    let first = segments.append(own, &noise(1, 1_000)).unwrap();
    let used = segments.claims(own)[0].used;
    disk.1.tear_writes(1);
    let error = segments.append(own, &noise(2, 5_000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(segments.claims(own).is_empty(), "nothing grew");
    let second = segments.append(own, &noise(3, 1_000)).unwrap();
    assert_eq!((second.addr.segment, second.addr.offset), (first.addr.segment, used));
    assert_eq!(segments.read(&first).unwrap(), noise(1, 1_000));
    assert_eq!(segments.read(&second).unwrap(), noise(3, 1_000));
    let claims = segments.claims(own);
    assert!(segments.walk(&claims[0]).unwrap().iter().all(|found| found.whole), "the torn write left no gap");
}
