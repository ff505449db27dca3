use super::*;
use crate::object::Brief;
use mw_model::FileType;

fn known() -> Known {
    Known {
        content: Version(77),
        etag: "0123".to_owned(),
        checksums: vec![Checksum {
            algorithm: ChecksumAlgorithm::Crc64Nvme,
            value: "AAAA=-2".to_owned(),
            composite: true,
        }],
        parts: vec![5 << 20, 1],
        upload: String::new(),
        sums: None,
        meta: ObjectMeta {
            content_type: Some("text/plain".to_owned()),
            storage_class: Some(String::new()),
            user: vec![("é".to_owned(), String::new())],
            tags: vec![("k".to_owned(), "v".to_owned())],
            ..ObjectMeta::default()
        },
        unversioned: false,
    }
}

#[test]
fn a_record_reads_back_and_a_cut_one_is_refused() {
    let value = known().encode();
    assert_eq!(Known::decode(&value).unwrap(), known());
    let null = Known { unversioned: true, ..known() };
    assert_eq!(Known::decode(&null.encode()).unwrap(), null);
    for end in 0..value.data.len() {
        assert!(Known::decode(&record::plain(value.data[..end].to_vec())).is_err());
    }
}

#[test]
fn an_upload_is_named_with_the_checksums_of_its_parts_in_a_record_of_another_version() {
    let sums = PartSums { algorithm: ChecksumAlgorithm::Sha256, values: vec!["AAAA".to_owned(), "BBBB".to_owned()] };
    let plain = Known { upload: "u".to_owned(), ..known() };
    let summed = Known { sums: Some(sums), ..plain.clone() };
    for uploaded in [plain, summed] {
        let value = uploaded.encode();
        assert_eq!((known().encode().data[0], value.data[0]), (1, 2));
        assert_eq!(Known::decode(&value).unwrap(), uploaded);
        for end in 0..value.data.len() {
            assert!(Known::decode(&record::plain(value.data[..end].to_vec())).is_err());
        }
        let mut newer = value.data.to_vec();
        newer[0] = 3;
        assert!(Known::decode(&record::plain(newer)).unwrap_err().to_string().contains("newer"));
    }
}

#[test]
fn another_content_makes_tag_checksums_and_parts_stale_but_not_the_metadata() {
    let mut inode = Inode::new(FileType::File, 0o644, 0, 0, Version(77));
    let value = known().encode();
    assert_eq!(Known::fresh(Some(&value), &inode).unwrap(), known());
    inode.content = Version(78);
    let fresh = Known::fresh(Some(&value), &inode).unwrap();
    assert_eq!((&fresh.etag[..], fresh.checksums.len(), fresh.parts.len()), ("", 0, 0));
    assert_eq!(fresh.meta, known().meta);
    let tag = fresh.clone().info(Bytes::new(), Ino(5), &inode).etag;
    assert!(tag.ends_with("-0") && tag.len() == 34, "{tag}");
    inode.content = Version(79);
    assert_ne!(tag, fresh.info(Bytes::new(), Ino(5), &inode).etag);
}

/// What a listing says is what the record says, fresh or stale, or without one.
#[test]
fn a_brief_agrees_with_the_record() {
    let part_sums = PartSums { algorithm: ChecksumAlgorithm::Sha256, values: vec!["AA".to_owned(), "BB".to_owned()] };
    let sum = |algorithm, composite| Checksum { algorithm, value: "AA".to_owned(), composite };
    let records = [
        known(),
        Known { etag: String::new(), checksums: Vec::new(), ..known() },
        Known { checksums: vec![sum(ChecksumAlgorithm::Crc32, false), sum(ChecksumAlgorithm::Sha1, true)], ..known() },
        Known { meta: ObjectMeta::default(), unversioned: true, ..known() },
        Known { upload: "u".to_owned(), ..known() },
        Known { upload: "u".to_owned(), sums: Some(part_sums), ..known() },
    ];
    let mut inode = Inode::new(FileType::File, 0o644, 0, 0, Version(77));
    inode.size = 5;
    let (mut sums, ino) = (vec![(ChecksumAlgorithm::Crc32c, true)], Ino(9));
    for content in [77, 78] {
        inode.content = Version(content);
        for record in records.iter().map(|known| Some(known.encode())).chain([None]) {
            let info = Known::fresh(record.as_ref(), &inode).unwrap().info(Bytes::from_static(b"k"), ino, &inode);
            let brief = Brief::of((b"k", ino), &inode, record.as_ref(), &mut sums).unwrap();
            assert_eq!((brief.key, brief.size, brief.modified), (&info.key[..], info.size, info.modified));
            assert_eq!((&brief.etag[..], brief.storage_class), (&info.etag[..], info.meta.storage_class.as_deref()));
            let kinds: Vec<_> = info.checksums.iter().map(|sum| (sum.algorithm, sum.composite)).collect();
            assert_eq!(brief.checksums, kinds);
        }
    }
    let newer = record::plain(vec![3; 40]);
    assert!(Brief::of((b"k", ino), &inode, Some(&newer), &mut sums).unwrap_err().to_string().contains("newer"));
}
