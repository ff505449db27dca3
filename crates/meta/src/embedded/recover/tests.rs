use super::super::wal::{Chain, Draft, Epoch};
use super::*;
use crate::Batch;
use mw_env::LocalDisk;

/// A log file of hand-made records.
struct Made {
    header: Header,
    bytes: Vec<u8>,
}

impl Made {
    fn new(generation: u64, first: u64, prev: Chain) -> Self {
        let header = Header { generation, epoch: [generation as u8; 32], first, prev, durable: 0 };
        Self { bytes: header.encode(), header }
    }

    fn push(&mut self, key: &str, lsn: u64, prev: Chain) -> Chain {
        let epoch: Epoch = self.header.epoch;
        let mut batch = Batch::new();
        batch.put(key.to_owned(), "");
        let (record, _, sum) = Draft::new(&batch).seal(&epoch, lsn, 0, &prev);
        self.bytes.extend_from_slice(&record);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        sum
    }
}

fn replayed(made: &[Made]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let disk = LocalDisk::new(dir.path()).unwrap();
    let live: Vec<_> = made
        .iter()
        .enumerate()
        .map(|(index, made)| {
            let file = disk.open(&name(index)).unwrap();
            file.write_at(&made.bytes, 0).unwrap();
            Live { name: name(index), header: made.header.clone(), file }
        })
        .collect();
    let table = replay(&live, &mut Mark::default()).unwrap();
    table.map.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
}

#[test]
fn files_that_follow_are_replayed_and_one_started_in_vain_is_passed_over() {
    let mut first = Made::new(1, 1, [0; 16]);
    let sum = first.push("a", 1, [0; 16]);
    let vain = Made::new(2, 1, [0; 16]);
    let mut last = Made::new(3, 2, sum);
    last.push("b", 2, sum);
    assert_eq!(replayed(&[first, vain, last]), ["a", "b"]);
}

#[test]
fn a_record_that_followed_another_one_of_the_same_number_is_not_replayed() {
    let mut file = Made::new(1, 1, [0; 16]);
    let mut other = Made::new(1, 1, [0; 16]);
    file.push("a", 1, [0; 16]);
    let sum = other.push("A", 1, [0; 16]);
    file.push("b", 2, sum);
    assert_eq!(replayed(&[file]), ["a"]);
}

#[test]
fn a_file_of_another_history_is_not_replayed() {
    let mut first = Made::new(1, 1, [0; 16]);
    first.push("a", 1, [0; 16]);
    let mut other = Made::new(2, 2, [7; 16]);
    other.push("b", 2, [7; 16]);
    assert_eq!(replayed(&[first, other]), ["a"]);
}
