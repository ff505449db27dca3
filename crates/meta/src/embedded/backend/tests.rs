use super::*;
use mw_env::{Disk, LocalDisk};

#[test]
fn a_shadow_reads_through_and_never_writes() {
    let dir = tempfile::tempdir().unwrap();
    let file = LocalDisk::new(dir.path()).unwrap().open("f").unwrap();
    file.write_at(&[1; 10_000], 0).unwrap();
    let shadow = Backend::shadowed(file.clone(), Arc::default()).unwrap();
    shadow.write(4090, &[2; 20]).unwrap();
    shadow.set_len(20_000).unwrap();
    shadow.write(9_990, &[3; 20]).unwrap();
    shadow.sync_data().unwrap();

    let mut expected = vec![1; 10_000];
    expected.resize(20_000, 0);
    expected[4090..4110].fill(2);
    expected[9_990..10_010].fill(3);
    let mut got = vec![9; 20_000];
    shadow.read(0, &mut got).unwrap();
    assert!(got == expected);
    assert!(shadow.read(19_999, &mut [0; 2]).is_err());

    shadow.set_len(8192).unwrap();
    shadow.set_len(12_288).unwrap();
    let mut got = vec![9; 4096];
    shadow.read(8192, &mut got).unwrap();
    assert!(got.iter().all(|byte| *byte == 0), "what was cut off reads as zeros");

    let mut own = vec![0; 10_000];
    file.read_at(&mut own, 0).unwrap();
    assert!(own == [1; 10_000] && file.len().unwrap() == 10_000, "the file is untouched");
}

#[test]
fn a_fenced_backend_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = LocalDisk::new(dir.path()).unwrap().open("f").unwrap();
    let link = Arc::new(Link::default());
    let backend = Backend::new(file.clone(), link.clone());
    backend.write(0, b"before").unwrap();
    link.fence();
    assert!(backend.write(0, b"after!").is_err() && backend.set_len(0).is_err() && backend.sync_data().is_err());
    let mut got = [0; 6];
    backend.read(0, &mut got).unwrap();
    assert_eq!(&got, b"before");
}
