//! Space: reuse before growth, everything back after everything is freed, and no overlap under churn.

use crate::rig::{MIB, noise, open, owner};
use mw_env::{Disk, Env};
use mw_segments::{BlobRef, Dead, Owner, SegmentId, Segments};
use mw_sim::SimDisk;
use std::collections::{BTreeMap, HashMap};

#[test]
fn freed_segments_are_reused_before_a_file_grows() {
    let disk = SimDisk::new(1);
    let segments = open(&disk);
    segments.adopt(&[]).unwrap();
    let mut total = None;
    for round in 0..20 {
        let own = owner(1, round);
        for n in 0..60 {
            segments.append(own, &noise(n, 50_000)).unwrap();
        }
        segments.sync().unwrap();
        let usage = segments.usage();
        assert_eq!(*total.get_or_insert(usage.claimed + usage.free), usage.claimed + usage.free, "round {round}");
        let ids: Vec<SegmentId> = segments.claims(own).iter().map(|claim| claim.segment).collect();
        segments.free(&ids).unwrap();
        assert_eq!(segments.usage().claimed, 0);
    }
    assert!(disk.used() < 2 * MIB, "the space of freed segments went back to the disk: {}", disk.used());
}

#[test]
fn churn_never_overlaps_and_gives_everything_back() {
    for seed in 0..4 {
        let env = Env::seeded(seed);
        let segments = open(&SimDisk::new(seed));
        segments.adopt(&[]).unwrap();
        let mut live: HashMap<Owner, Vec<(BlobRef, u64)>> = HashMap::new();
        let mut owned: BTreeMap<SegmentId, Owner> = BTreeMap::new();
        for n in 0..600 {
            let own = owner(1 + env.random() % 12, 1);
            if env.random().is_multiple_of(20) {
                let ids: Vec<SegmentId> = owned.iter().filter(|(_, o)| **o == own).map(|(id, _)| *id).collect();
                if env.random().is_multiple_of(2) {
                    segments.seal(own);
                }
                segments.free(&ids).unwrap();
                owned.retain(|_, o| *o != own);
                for (blob, _) in live.remove(&own).unwrap_or_default() {
                    assert!(segments.read(&blob).is_err());
                }
                continue;
            }
            let len = 1 + (env.random() % if n % 50 == 0 { 1 << 20 } else { 30_000 }) as usize;
            let blob = segments.append(own, &noise(n, len)).unwrap();
            live.entry(own).or_default().push((blob, n));
            owned.extend(segments.claims(own).iter().map(|claim| (claim.segment, claim.owner)));
            let places: Vec<_> = owned.keys().map(|id| (id.file(), id.offset(), id.offset() + id.size())).collect();
            for pair in places.windows(2) {
                assert!(pair[0].0 < pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?} overlap (seed {seed})");
            }
        }
        assert_eq!(segments.usage().claimed, owned.keys().map(|id| id.size()).sum::<u64>());
        for (blob, n) in live.values().flatten() {
            let bytes = segments.read(blob).unwrap();
            assert_eq!(bytes, noise(*n, bytes.len()));
        }
        segments.free(&owned.keys().copied().collect::<Vec<_>>()).unwrap();
        assert_eq!(segments.usage().claimed, 0);
        // Merged back: large segments come out of it without growth.
        let before = segments.usage().free;
        for world in 0..before / (8 * MIB) {
            segments.append(owner(100 + world, 1), &noise(1, 1 << 20)).unwrap();
        }
        let usage = segments.usage();
        assert_eq!(usage.free + usage.claimed, before);
    }
}

#[test]
fn the_hot_path_makes_no_files() {
    let disk = SimDisk::new(1);
    let segments = open(&disk);
    segments.adopt(&[]).unwrap();
    segments.append(owner(1, 1), b"the first").unwrap();
    let before = disk.counts();
    for n in 0..20 {
        segments.append(owner(1, 1), &noise(n, 1_000)).unwrap();
    }
    segments.sync().unwrap();
    let after = disk.counts();
    assert_eq!(after.writes - before.writes, 20, "one write an append");
    assert_eq!(after.syncs - before.syncs, 1);
    assert_eq!(after.steps - before.steps, 21, "and nothing else");
    assert_eq!(disk.list().unwrap(), ["data-0000"]);
}

#[test]
fn dead_ranges_of_live_segments_go_back_to_the_disk() {
    let disk = SimDisk::new(1);
    let segments = open(&disk);
    segments.adopt(&[]).unwrap();
    let own = owner(1, 1);
    let blobs: Vec<BlobRef> = (0..60).map(|n| segments.append(own, &noise(n, 20_000)).unwrap()).collect();
    segments.seal(own);
    segments.sync().unwrap();
    let before = (disk.used(), segments.footprint().unwrap());
    assert_eq!(before.0, before.1);
    let mut dead: BTreeMap<SegmentId, Vec<(u32, u32)>> = BTreeMap::new();
    for blob in blobs.iter().step_by(2) {
        dead.entry(blob.addr.segment).or_default().push((blob.addr.offset, blob.addr.len.next_multiple_of(8)));
    }
    let dead: Vec<Dead> = dead.into_iter().map(|(segment, ranges)| Dead { segment, ranges }).collect();
    let given = segments.punch(own, &dead).unwrap();
    // Of 20,064 bytes at least three whole blocks of 4 KiB lie behind a header.
    assert!(given >= 30 * 3 * 4096, "{given}");
    assert_eq!(disk.used(), before.0 - given);
    let (writes, syncs) = (disk.counts().writes, disk.counts().syncs);
    assert_eq!(segments.punch(own, &dead).unwrap(), 0);
    assert_eq!((disk.counts().writes, disk.counts().syncs), (writes, syncs), "a second time does nothing");
    for (n, blob) in blobs.iter().enumerate().skip(1).step_by(2) {
        assert_eq!(segments.read(blob).unwrap(), noise(n as u64, 20_000));
    }
}
