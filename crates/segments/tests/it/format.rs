//! Files that are refused: damaged, missing, renamed, newer. Nothing is guessed.

use crate::rig::{SMALL, noise, open, owner};
use mw_env::{Disk, Env};
use mw_model::{ErrorKind, Hash};
use mw_segments::{Error, Local, Segments};
use mw_sim::SimDisk;
use std::sync::Arc;

/// Returns a disk with two files, both in use.
fn written() -> SimDisk {
    let disk = SimDisk::new(1);
    let segments = open(&disk);
    segments.adopt(&[]).unwrap();
    for n in 0..12 {
        segments.append(owner(1, 1), &noise(n, 1 << 20)).unwrap();
    }
    segments.sync().unwrap();
    assert!(disk.list().unwrap().contains(&"data-0001".to_owned()));
    disk
}

fn refused(disk: &SimDisk) -> Error {
    Local::with(Arc::new(disk.clone()), Env::seeded(1), SMALL).unwrap_err()
}

/// Writes a header whose checksum fits.
fn header(disk: &SimDisk, name: &str, magic: &[u8; 8], fields: [u32; 3]) {
    let mut bytes = magic.to_vec();
    fields.iter().for_each(|field| bytes.extend_from_slice(&field.to_be_bytes()));
    let sum = Hash::of(&bytes);
    bytes.extend_from_slice(&sum.0[..8]);
    disk.open(name).unwrap().write_at(&bytes, 0).unwrap();
}

#[test]
fn the_header_of_a_file_is_as_described() {
    let disk = written();
    let found = disk.contents("data-0001").unwrap();
    header(&disk, "data-0001", b"MWDATA\r\n", [1, 1, 0]);
    assert_eq!(disk.contents("data-0001").unwrap(), found);
    open(&disk);
}

#[test]
fn a_damaged_header_is_refused_by_name() {
    for offset in 0..28 {
        let disk = written();
        disk.flip("data-0001", offset, 3).unwrap();
        let error = refused(&disk);
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("data-0001"), "{error}");
    }
}

#[test]
fn newer_foreign_and_renamed_files_are_told_apart() {
    let disk = written();
    header(&disk, "data-0001", b"MWDATA\r\n", [2, 1, 0]);
    let error = refused(&disk);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 2") && error.to_string().contains("upgrade"), "{error}");
    header(&disk, "data-0001", b"MWDATA\r\n", [1, 0, 0]);
    assert!(refused(&disk).to_string().contains("renamed"));
    header(&disk, "data-0001", b"GIFDATA\n", [1, 1, 0]);
    assert!(refused(&disk).to_string().contains("not a data file"));
    header(&disk, "data-0001", b"MWDATA\r\n", [1, 1, 9]);
    assert!(refused(&disk).to_string().contains("encrypted"));
}

#[test]
fn a_missing_file_is_refused_and_a_stranger_is_left_alone() {
    let disk = written();
    disk.open("data-1").unwrap().write_at(b"not ours", 0).unwrap();
    disk.open("log").unwrap().write_at(b"not ours", 0).unwrap();
    open(&disk);
    disk.remove("data-0000").unwrap();
    let error = refused(&disk);
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("data-0000") && error.to_string().contains("missing"), "{error}");
}

#[test]
fn appending_waits_for_the_claims_which_come_once() {
    let disk = written();
    let segments = open(&disk);
    let error = segments.append(owner(1, 2), b"early").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("adopted"), "{error}");
    segments.adopt(&[]).unwrap();
    segments.append(owner(1, 2), b"in time").unwrap();
    assert_eq!(segments.adopt(&[]).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn options_without_room_for_a_segment_are_refused() {
    let options = mw_segments::local::Options { file_size: 4 << 20, step: 1 << 20 };
    let error = Local::with(Arc::new(SimDisk::new(1)), Env::seeded(1), options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
