//! What a store may rely on after a crash, and what it may not.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use mw_env::{Disk, File};
use mw_sim::SimDisk;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

const SECTOR: usize = 512;

fn file(disk: &SimDisk, name: &str) -> Arc<dyn File> {
    disk.open(name).unwrap()
}

/// A file of `sectors` sectors, synced, all bytes `1`.
fn prepared(seed: u64, sectors: usize) -> (SimDisk, Arc<dyn File>) {
    let disk = SimDisk::new(seed);
    let f = file(&disk, "f");
    f.write_at(&vec![1; sectors * SECTOR], 0).unwrap();
    f.sync().unwrap();
    (disk, f)
}

#[test]
fn what_is_written_is_read_back_at_once() {
    let disk = SimDisk::new(1);
    let f = file(&disk, "f");
    f.write_at(b"hello", 10_000).unwrap();
    let mut out = [9; 8];
    f.read_at(&mut out, 9_997).unwrap();
    assert_eq!(&out, b"\0\0\0hello");
    assert_eq!(f.read_at(&mut out, 9_998).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(f.len().unwrap(), 10_005);
}

#[test]
fn what_is_synced_survives_every_crash() {
    for seed in 0..200 {
        let (disk, f) = prepared(seed, 8);
        f.set_len(8 * SECTOR as u64 - 5).unwrap();
        f.punch(512, 512).unwrap();
        f.sync().unwrap();
        let mut want = vec![1; 8 * SECTOR - 5];
        want[512..1024].fill(0);
        assert_eq!(disk.crash().contents("f").unwrap(), want);
        assert_eq!(disk.crash().crash().contents("f").unwrap(), want);
    }
}

#[test]
fn unsynced_sectors_are_old_or_new_and_every_mixture_comes_up() {
    let mut found = HashSet::new();
    let (disk, f) = prepared(5, 4);
    f.write_at(&[2; 2 * SECTOR], 0).unwrap();
    f.write_at(&[3; 2 * SECTOR], 2 * SECTOR as u64).unwrap();
    for seed in 0..1_000 {
        let bytes = disk.crash_as(seed).contents("f").unwrap();
        assert_eq!(bytes.len(), 4 * SECTOR);
        let sectors: Vec<u8> = bytes.chunks(SECTOR).map(|sector| sector[0]).collect();
        assert!(bytes.chunks(SECTOR).all(|s| s.iter().all(|b| *b == s[0])), "a sector is a mixture");
        found.insert(sectors);
    }
    assert_eq!(found.len(), 16, "every sector is on its own");
    assert!(found.contains(&vec![1, 1, 3, 3]), "a later write survives an earlier one");
}

#[test]
fn a_small_write_in_a_sector_brings_the_earlier_ones_with_it() {
    let (disk, f) = prepared(6, 1);
    f.write_at(&[2; 10], 0).unwrap();
    f.write_at(&[3; 10], 10).unwrap();
    for seed in 0..200 {
        let bytes = disk.crash_as(seed).contents("f").unwrap();
        assert!(bytes[10] == 1 || bytes[0] == 2, "a page cache writes both or the first alone");
    }
}

#[test]
fn growth_may_be_lost_kept_or_found_as_zeros() {
    let (disk, f) = prepared(7, 1);
    f.write_at(&[2; SECTOR], SECTOR as u64).unwrap();
    let found: HashSet<(usize, u8)> = (0..200)
        .map(|seed| {
            let bytes = disk.crash_as(seed).contents("f").unwrap();
            (bytes.len(), bytes.last().copied().unwrap())
        })
        .collect();
    assert_eq!(found, HashSet::from([(SECTOR, 1), (2 * SECTOR, 2), (2 * SECTOR, 0)]));
}

#[test]
fn a_durable_write_is_found_and_what_came_before_it_may_not_be() {
    let (disk, f) = prepared(9, 4);
    f.write_at(&[2; SECTOR], 0).unwrap();
    f.allocate(4 * SECTOR as u64, 4 * SECTOR as u64).unwrap();
    f.write_durably(&[3], 8 * SECTOR as u64 - 1).unwrap();
    let found: HashSet<u8> = (0..100)
        .map(|seed| {
            let bytes = disk.crash_as(seed).contents("f").unwrap();
            assert_eq!(bytes.len(), 8 * SECTOR, "its length is as durable as it is");
            assert_eq!(bytes[8 * SECTOR - 1], 3);
            bytes[0]
        })
        .collect();
    assert_eq!(found, HashSet::from([1, 2]), "nothing is promised of other bytes");
    // Over bytes that are not on disk, and after a cut, all of it is.
    f.write_at(&[4; 2 * SECTOR], 0).unwrap();
    f.write_durably(&[5; SECTOR], 0).unwrap();
    f.set_len(6 * SECTOR as u64).unwrap();
    f.write_durably(&[6], 6 * SECTOR as u64 - 1).unwrap();
    for seed in 0..100 {
        let bytes = disk.crash_as(seed).contents("f").unwrap();
        assert_eq!((bytes.len(), bytes[0], bytes[SECTOR], bytes[6 * SECTOR - 1]), (6 * SECTOR, 5, 4, 6));
    }
}

#[test]
fn cuts_reservations_and_holes_may_be_lost() {
    let (disk, f) = prepared(8, 4);
    f.punch(0, 512).unwrap();
    f.set_len(1024).unwrap();
    let found: HashSet<(usize, u8)> = (0..100)
        .map(|seed| {
            let bytes = disk.crash_as(seed).contents("f").unwrap();
            (bytes.len(), bytes[0])
        })
        .collect();
    assert_eq!(found.len(), 4);
    let (disk, f) = prepared(9, 1);
    f.allocate(0, 4096).unwrap();
    assert_eq!(f.len().unwrap(), 4096);
    let lengths: HashSet<usize> = (0..100).map(|seed| disk.crash_as(seed).contents("f").unwrap().len()).collect();
    assert_eq!(lengths, HashSet::from([512, 4096]));
}

#[test]
fn a_killed_process_loses_nothing_but_the_machine_still_may() {
    let (disk, f) = prepared(10, 1);
    f.write_at(&[2; SECTOR], 0).unwrap();
    let alive = disk.kill();
    assert_eq!(alive.contents("f").unwrap(), vec![2; SECTOR]);
    f.write_at(&[9; SECTOR], 0).unwrap();
    assert_eq!(alive.contents("f").unwrap(), vec![2; SECTOR], "the dead process cannot reach it");
    let found: HashSet<u8> = (0..100).map(|seed| alive.crash_as(seed).contents("f").unwrap()[0]).collect();
    assert_eq!(found, HashSet::from([1, 2]));
}

#[test]
fn one_seed_replays_one_failure() {
    let run = |seed| {
        let (disk, f) = prepared(seed, 16);
        for i in 0..16 {
            f.write_at(&[i as u8; 700], i * 300).unwrap();
        }
        disk.crash().contents("f").unwrap()
    };
    assert_eq!(run(1), run(1));
    assert!((2..10).any(|seed| run(seed) != run(1)));
}

#[test]
fn names_are_durable_at_once_and_open_files_outlive_them() {
    let disk = SimDisk::new(11);
    let a = file(&disk, "a");
    file(&disk, "b");
    assert_eq!(disk.crash().list().unwrap(), ["a", "b"]);
    a.write_at(b"x", 0).unwrap();
    disk.remove("a").unwrap();
    assert_eq!(disk.crash().list().unwrap(), ["b"]);
    a.read_at(&mut [0], 0).unwrap();
    assert_eq!(disk.remove("a").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(file(&disk, "a").len().unwrap(), 0);
}

#[test]
fn the_power_can_go_at_every_step() {
    let work = |disk: &SimDisk| -> io::Result<()> {
        let f = disk.open("f")?;
        f.allocate(0, 8192)?;
        f.write_at(&[1; 1000], 0)?;
        f.sync()?;
        f.write_at(&[2; 1000], 1000)?;
        f.punch(0, 512)?;
        f.set_len(4096)?;
        f.sync()?;
        disk.remove("f")
    };
    let mut steps = 0;
    for step in 0.. {
        let disk = SimDisk::new(step);
        disk.fail_at(step);
        let outcome = work(&disk);
        assert_eq!(outcome.is_err(), disk.is_off());
        if outcome.is_ok() {
            steps = step;
            break;
        }
        assert!(disk.list().is_err() && disk.open("g").is_err(), "everything fails once the power is gone");
        let found = disk.crash();
        if (4..7).contains(&step) {
            assert_eq!(found.contents("f").unwrap()[512..1000], [1; 488]);
        }
        if step < 8 && step > 0 {
            let f = found.open("f").unwrap();
            f.write_at(b"alive again", 0).unwrap();
        }
    }
    assert_eq!(steps, 9);
}

#[test]
fn the_step_in_which_the_power_goes_may_or_may_not_be_found() {
    let mut found = HashSet::new();
    for seed in 0..100 {
        let (disk, f) = prepared(seed, 1);
        disk.fail_at(disk.counts().steps);
        f.write_at(&[2; SECTOR], 0).unwrap_err();
        found.insert(disk.crash().contents("f").unwrap()[0]);
    }
    assert_eq!(found, HashSet::from([1, 2]));
}

#[test]
fn a_full_disk_refuses_and_holes_make_room() {
    let disk = SimDisk::new(12);
    disk.full(8192);
    let f = file(&disk, "f");
    assert_eq!(f.allocate(0, 8193).unwrap_err().kind(), io::ErrorKind::StorageFull);
    f.allocate(0, 4096).unwrap();
    let g = file(&disk, "g");
    assert_eq!(g.write_at(&[1; 5000], 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.contents("g").unwrap(), vec![1; 4096], "the part that fitted is there");
    assert_eq!(disk.used(), 8192);
    f.write_at(&[1; 4096], 0).unwrap();
    assert!(f.write_at(&[1], 4096).is_err());
    g.punch(0, 4096).unwrap();
    f.write_at(&[1], 4096).unwrap();
    disk.roomy();
    f.write_at(&[1; 100_000], 0).unwrap();
}

#[test]
fn a_failed_sync_forgets_and_a_second_one_lies() {
    let mut found = HashSet::new();
    for seed in 0..100 {
        let (disk, f) = prepared(seed, 1);
        f.write_at(&[2; SECTOR], 0).unwrap();
        disk.fail_sync_once();
        f.sync().unwrap_err();
        f.sync().unwrap();
        assert_eq!(disk.contents("f").unwrap(), vec![2; SECTOR]);
        found.insert(disk.crash().contents("f").unwrap()[0]);
    }
    assert_eq!(found, HashSet::from([1, 2]));
}

#[test]
fn a_flipped_bit_stays_flipped() {
    let (disk, _) = prepared(13, 1);
    disk.flip("f", 100, 7).unwrap();
    assert_eq!(disk.contents("f").unwrap()[100], 0x81);
    assert_eq!(disk.crash().contents("f").unwrap()[100], 0x81);
    assert_eq!(disk.flip("f", 512, 0).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(disk.flip("g", 0, 0).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn counts_and_threads() {
    let disk = SimDisk::new(14);
    std::thread::scope(|scope| {
        for t in 0..4u64 {
            let f = file(&disk, "f");
            scope.spawn(move || {
                for i in 0..100 {
                    f.write_at(&[t as u8; 100], (t * 100 + i) * 100).unwrap();
                    f.sync().unwrap();
                }
            });
        }
    });
    let counts = disk.counts();
    assert_eq!((counts.writes, counts.syncs, counts.steps, counts.bytes_written), (400, 400, 801, 40_000));
    assert_eq!(disk.crash().contents("f").unwrap(), disk.contents("f").unwrap());
}
