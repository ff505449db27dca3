use super::*;

fn node(path: &'static [u8], kind: FileType) -> Node {
    Node {
        path: Bytes::from_static(path),
        kind,
        mode: 0o4755,
        uid: 1000,
        gid: u32::MAX,
        rdev: 7,
        size: 1 << 40,
        atime: -1,
        mtime: i64::MAX,
        target: Bytes::from_static(b"../x"),
        xattrs: vec![(Bytes::from_static(b"user.a"), Bytes::from_static(&[0, 255]))],
    }
}

fn all() -> Vec<Record> {
    vec![
        Record::Node(node(b"", FileType::Directory)),
        Record::Node(node(b"a/\xff\n", FileType::File)),
        Record::Data { offset: 3, bytes: Bytes::from_static(b"hello") },
        Record::Done,
        Record::HardLink { path: Bytes::from_static(b"b"), to: Bytes::from_static(b"a/\xff\n") },
        Record::Skipped { path: Bytes::from_static(b"s"), why: "a socket".to_owned() },
        Record::Settle(node(b"", FileType::Directory)),
    ]
}

fn stream(records: &[Record]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    records.iter().for_each(|record| encode(record, &mut out));
    out
}

#[test]
fn records_round_trip() {
    let mut bytes = stream(&all());
    encode(&Record::End, &mut bytes);
    let mut records = Records::new(&bytes[..]);
    for expected in all() {
        assert_eq!(records.next().unwrap(), Some(expected));
    }
    assert_eq!(records.next().unwrap(), None);
    assert_eq!(records.next().unwrap(), None);
}

#[test]
fn a_stream_cut_anywhere_is_an_error() {
    let mut bytes = stream(&all());
    encode(&Record::End, &mut bytes);
    for cut in 0..bytes.len() {
        let mut records = Records::new(&bytes[..cut]);
        let outcome = loop {
            match records.next() {
                Ok(Some(_)) => {}
                other => break other,
            }
        };
        assert!(outcome.is_err(), "cut at {cut}");
    }
}

#[test]
fn paths_that_leave_are_refused() {
    for path in [&b".."[..], b"a/../b", b"/etc", b"a//b", b"a/", b".", b"a\0b", &[b'x'; 256]] {
        assert!(check_path(path).is_err(), "{path:?}");
        let mut evil = node(b"", FileType::File);
        evil.path = Bytes::copy_from_slice(path);
        let bytes = stream(&[Record::Node(evil)]);
        assert!(Records::new(&bytes[..]).next().is_err(), "{path:?}");
    }
    assert!(check_path(b"a/..b/c..").is_ok());
}

#[test]
fn lengths_are_bounded_before_anything_is_allocated() {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[2, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(Records::new(&bytes[..]).next().unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn the_senders_error_arrives_with_its_kind() {
    let bytes = stream(&[Record::Failed { kind: ErrorKind::Corrupt, message: "blob 7".to_owned() }]);
    let error = Records::new(&bytes[..]).next().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, "blob 7"));
}
