//! What a real file does with durable writes and with hints. That they reach the disk is the system's promise; that they are the same
//! bytes is tested here.

use super::*;

#[test]
fn durable_writes_and_hints_leave_the_bytes_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let file = LocalDisk::new(dir.path()).unwrap().open("f").unwrap();
    file.allocate(0, 1 << 20).unwrap();
    file.write_at(&vec![7; 1 << 20], 0).unwrap();
    // More hints than may wait, and beyond the end: none of them is an error.
    (0..1000).for_each(|n| file.settle(n << 12, 4096));
    file.settle(u64::MAX - 1, u64::MAX);
    file.write_durably(&[8; 5000], (1 << 20) - 1000).unwrap();
    file.write_durably(&[], 1 << 30).unwrap();
    assert_eq!(file.len().unwrap(), (1 << 20) + 4000);
    let mut found = vec![0; (1 << 20) + 4000];
    file.read_at(&mut found, 0).unwrap();
    let (kept, new) = found.split_at((1 << 20) - 1000);
    assert!(kept.iter().all(|b| *b == 7) && new.iter().all(|b| *b == 8));
    file.sync().unwrap();
}
