//! The disk alone, as the floor beside large objects: one file, written in order and synced once, and read in order from a cold cache.

use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

/// MiB/s of writing and of reading.
pub fn speed(dir: &Path, body: &[u8]) -> (f64, f64) {
    let path = dir.join("disk");
    let mib = body.len() as f64 / 1_048_576.0;
    let start = Instant::now();
    let mut file = File::create(&path).unwrap();
    body.chunks(1 << 20).for_each(|part| file.write_all(part).unwrap());
    file.sync_data().unwrap();
    let write = mib / start.elapsed().as_secs_f64();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let mut file = File::open(&path).unwrap();
    let mut part = vec![0; 1 << 20];
    let start = Instant::now();
    while file.read(&mut part).unwrap() > 0 {}
    let read = mib / start.elapsed().as_secs_f64();
    std::fs::remove_file(&path).unwrap();
    (write, read)
}
