use super::*;

#[test]
fn records_sort_as_keys_do_and_newest_first() {
    let keys: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"\x01", b"\x01\0", b"a", b"a\0b", b"a/b", b"b\xff"];
    let mut records = Vec::new();
    for name in keys {
        for time in [9, 5, 1] {
            records.push(key(name, Version(time)).unwrap());
        }
    }
    assert!(records.is_sorted());
    let kept = Kept { time: Version(5), null: true, ino: None };
    for name in keys {
        let read = read(&key(name, Version(5)).unwrap(), &kept.encode()).unwrap();
        assert_eq!(read, (Bytes::copy_from_slice(name), kept));
    }
}

#[test]
fn a_key_that_does_not_fit_has_no_versions() {
    assert!(key(&[b'a'; 1024], Version(1)).is_some());
    assert!(key(&[0; 576], Version(1)).is_none());
    assert!(key(&[b'a'; 1151], Version(1)).is_none());
}
