//! What is written here against what `s3s` writes.

use super::*;
use crate::meta::{algorithm, etag, sum_type};
use crate::owner::owner;
use mw_model::{FileType, Ino, Version};
use mw_world::{Checksum, ChecksumAlgorithm, ObjectMeta};
use s3s::dto::{CommonPrefix, ListObjectsV2Output, ObjectStorageClass};
use s3s::xml::Serialize;

fn object(info: &ObjectInfo, written: Written, owned: bool) -> Object {
    let algorithms: Vec<_> = info.checksums.iter().map(|c| algorithm(c.algorithm)).collect();
    Object {
        key: Some(written.write(&info.key)),
        e_tag: Some(etag(&info.etag)),
        last_modified: Some(stamp(info.modified)),
        size: Some(info.size as i64),
        owner: owned.then(owner),
        storage_class: Some(ObjectStorageClass::from(
            info.meta.storage_class.clone().unwrap_or_else(|| ObjectStorageClass::STANDARD.to_owned()),
        )),
        checksum_type: info.checksums.first().map(|c| sum_type(c.composite)),
        checksum_algorithm: (!algorithms.is_empty()).then_some(algorithms),
        ..Object::default()
    }
}

fn info(key: &[u8]) -> ObjectInfo {
    ObjectInfo {
        key: Bytes::copy_from_slice(key),
        ino: Ino(7),
        size: 0,
        modified: 0,
        version: Version(0),
        unversioned: false,
        etag: "d41d8cd98f00b204e9800998ecf8427e-2".to_owned(),
        meta: ObjectMeta::default(),
        checksums: Vec::new(),
        parts: Vec::new(),
        part_sums: None,
        kind: FileType::File,
        mode: 0,
        uid: 0,
        gid: 0,
        mtime: 0,
    }
}

fn sum(algorithm: ChecksumAlgorithm, composite: bool) -> Checksum {
    Checksum { algorithm, value: "AAAA".to_owned(), composite }
}

/// Keys with everything in them, times at the edges of days and seconds, every field there is.
fn odd() -> Vec<Listed> {
    let mut odd: Vec<ObjectInfo> = (0..=255u8).map(|b| info(&[b'a', b, b'z'])).collect();
    let keys: [&[u8]; 12] = [
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
    odd.extend(keys.map(info));
    let day = DAY * 1_000_000_000;
    for modified in
        [1, 999_999, 1_000_000, 999_999_999, day - 1, day, 951_782_399_999_999_999, 951_782_400 * 1_000_000_000]
    {
        odd.push(ObjectInfo { modified, size: modified, ..info(b"time") });
    }
    odd.push(ObjectInfo { modified: u64::MAX, size: i64::MAX as u64, ..info(b"the end of time") });
    for class in ["STANDARD_IA", "a<b"] {
        let meta = ObjectMeta { storage_class: Some(class.to_owned()), ..ObjectMeta::default() };
        odd.push(ObjectInfo { meta, ..info(b"class") });
    }
    let sums = crate::digest::ALGORITHMS.map(|algorithm| sum(algorithm, false));
    odd.push(ObjectInfo { checksums: sums.to_vec(), ..info(b"sums") });
    odd.push(ObjectInfo { checksums: vec![sum(ChecksumAlgorithm::Sha256, true)], ..info(b"parts") });
    let mut items: Vec<Listed> = odd.into_iter().map(Listed::Object).collect();
    items.insert(3, Listed::Prefix(Bytes::from_static(b"prefix/")));
    items
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
    let items = odd();
    for written in [Written::Url, Written::Xml] {
        for owned in [false, true] {
            let objects = items.iter().filter_map(|item| match item {
                Listed::Object(info) => Some(object(info, written, owned)),
                Listed::Prefix(_) => None,
            });
            let theirs = text(&page(objects.collect()));
            let contents = Contents::of(&items, written, owned).unwrap();
            let ours = contents.fill(Body::from(text(&page(contents.place()))));
            assert_eq!(String::from_utf8_lossy(&ours.bytes().unwrap()), String::from_utf8_lossy(&theirs));
        }
    }
}

#[test]
fn a_page_without_objects_is_left_alone() {
    let contents = Contents::of(&[Listed::Prefix(Bytes::from_static(b"p/"))], Written::Xml, true).unwrap();
    assert!(contents.place().is_empty());
    let theirs = text(&page(Vec::new()));
    assert_eq!(contents.fill(Body::from(theirs.clone())).bytes().unwrap(), theirs);
}
