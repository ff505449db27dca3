use super::*;

fn batch() -> Batch {
    let mut batch = Batch::new();
    batch.delete("gone").put("key", "value").put("", "").put("key", vec![7; 300]);
    batch
}

fn record(epoch: &Epoch, lsn: u64) -> Bytes {
    Draft::new(&batch()).seal(epoch, lsn, 3, &[9; 16]).0
}

#[test]
fn a_record_reads_back() {
    let draft = Draft::new(&batch());
    let (bytes, changes, chain) = draft.seal(&[1; 32], 5, 3, &[9; 16]);
    let file = Bytes::from([&[0; 16][..], &bytes, &[0xff; 40]].concat());
    let read = Record::read(&file, 16, &[1; 32], 5).unwrap();
    let prefix = Prefix::read(&file, 16, &[1; 32], |lsn| lsn == 5).unwrap();
    assert_eq!((prefix.durable, read.prev, read.sum, &read.bytes), (3, [9; 16], chain, &bytes));
    assert_eq!(read.changes().unwrap(), changes);
    let text: Vec<_> = changes.iter().map(|change| (&bytes[change.key.clone()], change.value.is_some())).collect();
    assert_eq!(text, [(&b"gone"[..], false), (b"key", true), (b"", true), (b"key", true)]);
}

#[test]
fn another_epoch_or_number_does_not_verify() {
    let bytes = record(&[1; 32], 5);
    assert!(Record::read(&bytes, 0, &[2; 32], 5).is_none());
    assert!(Record::read(&bytes, 0, &[1; 32], 6).is_none());
}

#[test]
fn every_flipped_bit_and_every_cut_is_seen() {
    let bytes = record(&[1; 32], 5);
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(Record::read(&Bytes::from(bad), 0, &[1; 32], 5).is_none(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(Record::read(&bytes.slice(..len), 0, &[1; 32], 5).is_none(), "cut at {len}");
    }
}

#[test]
fn a_header_survives_the_loss_of_either_copy() {
    let header = Header { generation: 4, epoch: [5; 32], first: 10, prev: [6; 16], durable: 9 };
    let page = header.encode();
    assert_eq!(Header::decode(&page, "x").unwrap().as_ref(), Some(&header));
    for lost in [0..512, 2048..2560] {
        let mut page = page.clone();
        page[lost].fill(0xaa);
        assert_eq!(Header::decode(&page, "x").unwrap().as_ref(), Some(&header));
    }
    assert_eq!(Header::decode(&[0; 4096], "x").unwrap(), None);
    assert_eq!(Header::decode(&page[..40], "x").unwrap(), None);
}

#[test]
fn a_newer_version_is_named() {
    let mut page = Header { generation: 4, epoch: [5; 32], first: 10, prev: [6; 16], durable: 9 }.encode();
    page[11] = 7;
    let error = Header::decode(&page, "meta-0.wal").unwrap_err();
    assert!(matches!(error, Error::Newer { found: 7, known: VERSION, .. }), "{error:?}");
    assert!(error.to_string().contains("meta-0.wal has format version 7, and this release reads up to 1"), "{error}");
}
