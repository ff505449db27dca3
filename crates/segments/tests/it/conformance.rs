//! The exported suite, run against each engine.

use crate::rig::{SMALL, open};
use mw_env::{Env, LocalDisk};
use mw_segments::conformance::{Rig, run};
use mw_segments::{Local, Memory, SegmentId, Segments};
use mw_sim::SimDisk;
use parking_lot::Mutex;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

struct InMemory(Arc<Memory>);

impl Rig for InMemory {
    fn open(&self) -> Arc<dyn Segments> {
        self.0.clone()
    }

    fn damage(&self, segment: SegmentId, offset: u32, mask: u8) {
        assert!(self.0.damage(segment, offset, mask));
    }
}

#[test]
fn memory_keeps_the_contract() {
    run(&|| Box::new(InMemory(Arc::new(Memory::new()))));
}

struct Simulated(Mutex<SimDisk>);

impl Rig for Simulated {
    fn open(&self) -> Arc<dyn Segments> {
        let mut disk = self.0.lock();
        *disk = disk.kill();
        open(&*disk)
    }

    fn damage(&self, segment: SegmentId, offset: u32, mask: u8) {
        let name = format!("data-{:04}", segment.file());
        let place = segment.offset() + u64::from(offset);
        for bit in (0..8).filter(|bit| mask >> bit & 1 == 1) {
            self.0.lock().flip(&name, place, bit).expect("a byte to flip");
        }
    }
}

#[test]
fn local_keeps_the_contract_on_a_simulated_disk() {
    run(&|| Box::new(Simulated(Mutex::new(SimDisk::new(1)))));
}

struct Real(tempfile::TempDir);

impl Rig for Real {
    fn open(&self) -> Arc<dyn Segments> {
        let disk = LocalDisk::new(self.0.path()).expect("a directory");
        Local::with(Arc::new(disk), Env::real(), SMALL).expect("open")
    }

    fn damage(&self, segment: SegmentId, offset: u32, mask: u8) {
        let path = self.0.path().join(format!("data-{:04}", segment.file()));
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("the file");
        let place = segment.offset() + u64::from(offset);
        let mut byte = [0];
        file.read_exact_at(&mut byte, place).expect("read");
        file.write_all_at(&[byte[0] ^ mask], place).expect("write");
    }
}

#[test]
fn local_keeps_the_contract_on_a_real_directory() {
    run(&|| {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Box::new(Real(dir.expect("a directory")))
    });
}
