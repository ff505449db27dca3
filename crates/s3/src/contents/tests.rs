//! What is written here against what `s3s` writes.

use super::*;
use crate::meta::{algorithm, etag, sum_type};
use crate::owner::owner;
use mw_world::{ChecksumAlgorithm, SumKind};
use s3s::dto::{CommonPrefix, ListObjectsV2Output, ObjectStorageClass};
use s3s::xml::Serialize;

fn object(brief: &Brief<'_>, written: Written, owned: bool) -> Object {
    let algorithms: Vec<_> = brief.checksums.iter().map(|(kind, _)| algorithm(*kind)).collect();
    Object {
        key: Some(written.write(brief.key)),
        e_tag: Some(etag(&brief.etag)),
        last_modified: Some(stamp(brief.modified)),
        size: Some(brief.size as i64),
        owner: owned.then(owner),
        storage_class: Some(ObjectStorageClass::from(
            brief.storage_class.unwrap_or(ObjectStorageClass::STANDARD).to_owned(),
        )),
        checksum_type: brief.checksums.first().map(|(_, composite)| sum_type(*composite)),
        checksum_algorithm: (!algorithms.is_empty()).then_some(algorithms),
        ..Object::default()
    }
}

fn brief(key: &[u8]) -> Brief<'_> {
    let etag = "d41d8cd98f00b204e9800998ecf8427e-2".into();
    Brief { key, size: 0, modified: 0, etag, checksums: &[], storage_class: None }
}

const SUMS: [SumKind; 5] = [
    (ChecksumAlgorithm::Crc32, false),
    (ChecksumAlgorithm::Crc32c, false),
    (ChecksumAlgorithm::Crc64Nvme, false),
    (ChecksumAlgorithm::Sha1, false),
    (ChecksumAlgorithm::Sha256, false),
];

/// Keys with every byte and everything else that is odd in them.
fn keys() -> Vec<Vec<u8>> {
    let odd: [&[u8]; 12] = [
        b"plain/key-1_2.3~4",
        b" leading and trailing ",
        b"a<b>c&d'e\"f",
        b"<Contents></Contents>",
        b"]]>&amp;&lt;%41+",
        "\u{e9}\u{20ac}\u{10348}\u{fffe}\u{f741}".as_bytes(),
        b"\xff\xfe not text \xc3",
        b"line\nline\rline\ttab\0",
        b"marker/",
        b"\x7f",
        b"",
        &[b'k'; 1100],
    ];
    (0..=255u8).map(|b| vec![b'a', b, b'z']).chain(odd.map(<[u8]>::to_vec)).collect()
}

/// Objects under these keys, at the edges of days and seconds, with every field there is.
fn odd(keys: &[Vec<u8>]) -> Vec<Brief<'_>> {
    let mut odd: Vec<Brief<'_>> = keys.iter().map(|key| brief(key)).collect();
    let day = DAY * 1_000_000_000;
    for modified in
        [1, 999_999, 1_000_000, 999_999_999, day - 1, day, 951_782_399_999_999_999, 951_782_400 * 1_000_000_000]
    {
        odd.push(Brief { modified, size: modified, ..brief(b"time") });
    }
    odd.push(Brief { modified: u64::MAX, size: i64::MAX as u64, ..brief(b"the end of time") });
    for class in ["STANDARD_IA", "a<b"] {
        odd.push(Brief { storage_class: Some(class), ..brief(b"class") });
    }
    odd.push(Brief { checksums: &SUMS, ..brief(b"sums") });
    odd.push(Brief { checksums: &[(ChecksumAlgorithm::Sha256, true)], ..brief(b"parts") });
    odd
}

fn written(objects: &[Brief<'_>], written: Written, owned: bool) -> Contents {
    let mut writer = Writer::new(objects.len(), written, owned);
    objects.iter().for_each(|brief| writer.add(brief));
    writer.finish().unwrap()
}

fn text(output: &ListObjectsV2Output) -> Vec<u8> {
    let mut out = Vec::new();
    let mut serializer = Serializer::new(&mut out);
    serializer.decl().unwrap();
    output.serialize(&mut serializer).unwrap();
    out
}

fn page(contents: Vec<Object>) -> ListObjectsV2Output {
    ListObjectsV2Output {
        name: Some("bench".to_owned()),
        prefix: Some("<Contents></Contents>".to_owned()),
        contents: Some(contents),
        common_prefixes: Some(vec![CommonPrefix { prefix: Some("<Contents></Contents>".to_owned()) }]),
        ..ListObjectsV2Output::default()
    }
}

#[test]
fn every_byte_is_as_s3s_would_write_it() {
    let keys = keys();
    let items = odd(&keys);
    for form in [Written::Url, Written::Xml] {
        for owned in [false, true] {
            let theirs = text(&page(items.iter().map(|brief| object(brief, form, owned)).collect()));
            let contents = written(&items, form, owned);
            let ours = contents.fill(Body::from(text(&page(contents.place()))));
            assert_eq!(String::from_utf8_lossy(&ours.bytes().unwrap()), String::from_utf8_lossy(&theirs));
        }
    }
}

#[test]
fn a_page_without_objects_is_left_alone() {
    let contents = written(&[], Written::Xml, true);
    assert!(contents.place().is_empty());
    let theirs = text(&page(Vec::new()));
    assert_eq!(contents.fill(Body::from(theirs.clone())).bytes().unwrap(), theirs);
}
