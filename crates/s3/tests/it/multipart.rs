//! Multipart uploads: parts, order, checksums of the whole, and what is refused.

use crate::client::{Answer, Ask, Client, encode, md5};
use crate::house::House;
use s3s::crypto::{Checksum, Crc32, Crc64Nvme, Sha256};

/// The smallest part that is not the last (AWS: 5 MiB).
const MIN: usize = 5 << 20;

fn base64(bytes: &[u8]) -> String {
    const ABC: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let n = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        (0..4)
            .map(|i| if i <= chunk.len() { char::from(ABC[(n >> (18 - 6 * i) & 63) as usize]) } else { '=' })
            .collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

fn start(client: &Client, key: &str, headers: &[(&str, &str)]) -> String {
    let mut ask = Ask::new("POST", &format!("/base/{key}?uploads="));
    ask.headers.extend(headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    client.ask(&ask).ok().tag("UploadId")
}

fn part(client: &Client, key: &str, id: &str, number: u32, body: &[u8]) -> Answer {
    client.put(&format!("/base/{key}?partNumber={number}&uploadId={id}"), body)
}

fn list(parts: &[(u32, String)]) -> String {
    let parts: String = parts
        .iter()
        .map(|(n, e)| format!("<Part><PartNumber>{n}</PartNumber><ETag>&quot;{e}&quot;</ETag></Part>"))
        .collect();
    format!(
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{parts}</CompleteMultipartUpload>"
    )
}

fn complete(client: &Client, key: &str, id: &str, parts: &[(u32, String)], headers: &[(&str, &str)]) -> Answer {
    let mut ask = Ask::new("POST", &format!("/base/{key}?uploadId={id}")).body(list(parts));
    ask.headers.extend(headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    client.ask(&ask)
}

fn data(size: usize, seed: usize) -> Vec<u8> {
    (0..size).map(|n| ((n * 31 + seed) % 251) as u8).collect()
}

#[test]
fn parts_become_one_object() {
    let house = House::with_base();
    let (one, two, three) = (data(MIN, 1), data(MIN + 17, 2), data(99, 3));
    let id = start(&house.root, "m", &[("content-type", "a/b"), ("x-amz-meta-a", "1")]);
    for (number, body) in [(7, &two), (2, &one), (9, &three)] {
        assert_eq!(
            part(&house.root, "m", &id, number, body).ok().header("etag").unwrap(),
            format!("\"{}\"", md5(body))
        );
    }
    assert_eq!(house.root.get("/base/m").status, 404, "parts are not seen");
    let parts = [(2, md5(&one)), (7, md5(&two)), (9, md5(&three))];
    let done = complete(&house.root, "m", &id, &parts, &[]).ok();
    let whole = [one.clone(), two.clone(), three.clone()].concat();
    let got = house.root.ask(&Ask::new("GET", "/base/m").header("x-amz-checksum-mode", "ENABLED")).ok();
    assert!(got.body == whole);
    assert!(got.header("etag").unwrap().ends_with("-3\""));
    assert_eq!(done.tag("ETag"), got.header("etag").unwrap());
    assert_eq!((got.header("content-type"), got.header("x-amz-meta-a")), (Some("a/b"), Some("1")));
    assert_eq!(got.header("x-amz-checksum-crc64nvme"), Some(base64(&Crc64Nvme::checksum(&whole)).as_str()));
    assert_eq!(got.header("x-amz-checksum-type"), Some("FULL_OBJECT"));
    let second = house.root.get("/base/m?partNumber=2");
    assert_eq!((second.status, second.header("x-amz-mp-parts-count")), (206, Some("3")));
    assert!(second.body == two);
    assert_eq!(house.root.get("/base/m?partNumber=4").status, 416);
    assert!(house.root.get("/base?uploads=").ok().tags("UploadId").is_empty());
    // Who lost the answer asks again, and hears it again: until something else stands under the key, and never for other parts.
    let etag = house.root.ask(&Ask::new("HEAD", "/base/m")).ok().header("etag").unwrap().to_owned();
    assert_eq!(complete(&house.root, "m", &id, &parts, &[("if-none-match", "*")]).ok().tag("ETag"), etag);
    let other = |fault: Answer| assert_eq!(fault.fault(), (404, "NoSuchUpload".into()));
    other(complete(&house.root, "m", &id, &parts[..1], &[]));
    other(complete(&house.root, "n", &id, &parts, &[]));
    other(complete(&house.root, "m", "0", &parts, &[]));
    house.root.put("/base/m", "another").ok();
    other(complete(&house.root, "m", &id, &parts, &[]));
    assert_eq!(house.root.get("/base/m").ok().text(), "another");
}

/// C15: CRC64NVME is of the whole object, the CRC32s may be either, the SHAs are composite; a wrong one makes no object.
#[test]
fn checksums_of_the_whole() {
    let house = House::with_base();
    let (one, two) = (data(MIN, 4), data(1000, 5));
    let whole = [one.clone(), two.clone()].concat();
    let parts = [(1, md5(&one)), (2, md5(&two))];
    let composite = |a: &[u8], b: &[u8], all: fn(&[u8]) -> Vec<u8>| format!("{}-2", base64(&all(&[a, b].concat())));
    let crc = |d: &[u8]| Crc32::checksum(d).to_vec();
    let sha = |d: &[u8]| Sha256::checksum(d).to_vec();
    let cases = [
        ("CRC32", "FULL_OBJECT", "crc32", base64(&crc(&whole))),
        ("CRC32", "COMPOSITE", "crc32", composite(&crc(&one), &crc(&two), crc)),
        ("SHA256", "COMPOSITE", "sha256", composite(&sha(&one), &sha(&two), sha)),
        ("CRC64NVME", "FULL_OBJECT", "crc64nvme", base64(&Crc64Nvme::checksum(&whole))),
    ];
    for (algorithm, kind, name, expected) in cases {
        let id = start(&house.root, "c", &[("x-amz-checksum-algorithm", algorithm), ("x-amz-checksum-type", kind)]);
        let header = format!("x-amz-checksum-{name}");
        for (number, body) in [(1, &one), (2, &two)] {
            assert!(part(&house.root, "c", &id, number, body).ok().header(&header).is_some());
        }
        let wrong = base64(&vec![
            0;
            if name == "sha256" {
                32
            } else if name == "crc32" {
                4
            } else {
                8
            }
        ]);
        let refused = complete(&house.root, "c", &id, &parts, &[(&header, &wrong), ("x-amz-checksum-type", kind)]);
        assert_eq!(refused.fault(), (400, "BadDigest".into()), "{algorithm} {kind}");
        assert_eq!(house.root.get("/base/c").status, 404);
        complete(&house.root, "c", &id, &parts, &[(&header, &expected), ("x-amz-checksum-type", kind)]).ok();
        let head = house.root.ask(&Ask::new("HEAD", "/base/c").header("x-amz-checksum-mode", "ENABLED")).ok();
        assert_eq!((head.header(&header), head.header("x-amz-checksum-type")), (Some(expected.as_str()), Some(kind)));
        house.root.delete("/base/c").ok();
    }
    for (algorithm, kind) in
        [("SHA1", "FULL_OBJECT"), ("CRC64NVME", "COMPOSITE"), ("MD5", "COMPOSITE"), ("CRC32", "SOME")]
    {
        let ask = Ask::new("POST", "/base/c?uploads=")
            .header("x-amz-checksum-algorithm", algorithm)
            .header("x-amz-checksum-type", kind);
        assert_eq!(house.root.ask(&ask).fault(), (400, "InvalidRequest".into()), "{algorithm} {kind}");
    }
}

/// Each part can be read with its own checksum, and the attributes list them: whatever the algorithm and the kind of the whole.
#[test]
fn parts_keep_their_checksums() {
    let house = House::with_base();
    let root = &house.root;
    let (one, two) = (data(MIN, 4), data(33, 5));
    let sha = |data: &[u8]| base64(&Sha256::checksum(data));
    let crc = |data: &[u8]| base64(&Crc32::checksum(data));
    type Sum<'s> = &'s dyn Fn(&[u8]) -> String;
    let kinds: [(&str, &str, &str, Sum<'_>); 3] = [
        ("SHA256", "COMPOSITE", "sha256", &sha),
        ("CRC32", "COMPOSITE", "crc32", &crc),
        ("CRC32", "FULL_OBJECT", "crc32", &crc),
    ];
    for (algorithm, kind, name, sum) in kinds {
        let declared = [("x-amz-checksum-algorithm", algorithm), ("x-amz-checksum-type", kind)];
        let id = start(root, "m", &declared);
        let header = format!("x-amz-checksum-{name}");
        let put = |number: u32, body: &[u8]| {
            let at = format!("/base/m?partNumber={number}&uploadId={id}");
            (
                number,
                root.ask(&Ask::new("PUT", &at).header(&header, &sum(body)).body(body))
                    .ok()
                    .header("etag")
                    .unwrap()
                    .to_owned(),
            )
        };
        let parts = [put(1, &one), put(2, &two)].map(|(n, e)| (n, e.trim_matches('"').to_owned()));
        complete(root, "m", &id, &parts, &[]).ok();
        for method in ["GET", "HEAD"] {
            for (number, body) in [(1, &one), (2, &two)] {
                let ask = Ask::new(method, &format!("/base/m?partNumber={number}"));
                let got = root.ask(&ask.clone().header("x-amz-checksum-mode", "ENABLED")).ok();
                assert_eq!(got.header(&header), Some(&sum(body)[..]), "{algorithm} {kind} {method} {number}");
                assert_eq!(got.header("x-amz-checksum-type"), Some(kind));
                assert!(method == "HEAD" || got.body == *body);
                assert_eq!(root.ask(&ask).ok().header(&header), None, "nobody asked");
            }
        }
        let ask = Ask::new("GET", "/base/m?attributes=").header("x-amz-object-attributes", "ObjectParts");
        let shown = root.ask(&ask).ok();
        let tag = format!("Checksum{algorithm}");
        assert_eq!(shown.tags(&tag), [sum(&one), sum(&two)], "{}", shown.text());
        let page = root.ask(&ask.header("x-amz-max-parts", "1").header("x-amz-part-number-marker", "1")).ok();
        assert_eq!((page.tags(&tag), page.tag("IsTruncated")), (vec![sum(&two)], "false".to_owned()));
    }
    // What is known of a part is not said of other bytes, nor of those that another door wrote since.
    let range = Ask::new("GET", "/base/m").header("range", "bytes=0-9").header("x-amz-checksum-mode", "ENABLED");
    assert_eq!(root.ask(&range).ok().header("x-amz-checksum-crc32"), None);
    let plain = start(root, "p", &[]);
    let tag = part(root, "p", &plain, 1, &two).ok().header("etag").unwrap().trim_matches('"').to_owned();
    complete(root, "p", &plain, &[(1, tag)], &[]).ok();
    let ask = Ask::new("GET", "/base/p?attributes=").header("x-amz-object-attributes", "ObjectParts");
    assert!(root.ask(&ask).ok().tags("Part").is_empty(), "an upload without an algorithm has no parts to list");
}

#[test]
fn refusals() {
    let house = House::with_base();
    house.root.put("/base/m", "old").ok();
    let id = start(&house.root, "m", &[]);
    let (one, two) = (data(MIN, 1), data(10, 2));
    part(&house.root, "m", &id, 1, &one).ok();
    part(&house.root, "m", &id, 2, &two).ok();
    part(&house.root, "m", &id, 3, &two).ok();
    let done =
        |parts: &[(u32, String)], headers: &[(&str, &str)]| complete(&house.root, "m", &id, parts, headers).fault();
    let (a, b) = (md5(&one), md5(&two));
    assert_eq!(done(&[(2, b.clone()), (1, a.clone())], &[]), (400, "InvalidPartOrder".into()));
    assert_eq!(done(&[(1, a.clone()), (1, a.clone())], &[]), (400, "InvalidPartOrder".into()));
    assert_eq!(done(&[(1, b.clone())], &[]), (400, "InvalidPart".into()));
    assert_eq!(done(&[(1, a.clone()), (4, b.clone())], &[]), (400, "InvalidPart".into()));
    assert_eq!(done(&[(2, b.clone()), (3, b.clone())], &[]), (400, "EntityTooSmall".into()));
    assert_eq!(done(&[], &[]), (400, "MalformedXML".into()));
    assert_eq!(done(&[(0, a.clone())], &[]).0, 400);
    assert_eq!(done(&[(1, a.clone()), (2, b.clone())], &[("x-amz-mp-object-size", "1")]).0, 400);
    assert_eq!(done(&[(1, a.clone()), (2, b.clone())], &[("if-none-match", "*")]), (412, "PreconditionFailed".into()));
    assert_eq!(house.root.get("/base/m").ok().text(), "old");
    // A condition on what is not there is about the key; the upload is there, and stays.
    let absent = start(&house.root, "absent", &[]);
    part(&house.root, "absent", &absent, 1, &two).ok();
    let complete_absent =
        |headers: &[(&str, &str)]| complete(&house.root, "absent", &absent, &[(1, b.clone())], headers);
    assert_eq!(complete_absent(&[("if-match", "*")]).fault(), (404, "NoSuchKey".into()));
    complete_absent(&[]).ok();
    for number in ["0", "10001", "-1"] {
        let answer = house.root.put(&format!("/base/m?partNumber={number}&uploadId={id}"), "x");
        assert_eq!(answer.fault(), (400, "InvalidArgument".into()), "{number}");
    }
    let other = "made-up";
    assert_eq!(part(&house.root, "m", other, 1, b"x").fault(), (404, "NoSuchUpload".into()));
    assert_eq!(part(&house.root, "other", &id, 1, b"x").fault(), (404, "NoSuchUpload".into()));
    assert_eq!(house.root.get(&format!("/base/m?uploadId={other}")).fault(), (404, "NoSuchUpload".into()));
    assert_eq!(house.root.delete(&format!("/base/m?uploadId={other}")).fault(), (404, "NoSuchUpload".into()));
    assert_eq!(complete(&house.root, "m", other, &[(1, a)], &[]).fault(), (404, "NoSuchUpload".into()));
    let cut = house.root.sign(&Ask::new("PUT", &format!("/base/m?partNumber=5&uploadId={id}")).body(one));
    house.root.cut(&cut, 1_000_000);
    assert_eq!(house.root.get(&format!("/base/m?uploadId={id}")).ok().tags("PartNumber"), ["1", "2", "3"]);
    house.root.delete(&format!("/base/m?uploadId={id}")).ok();
    assert_eq!(part(&house.root, "m", &id, 1, b"x").fault(), (404, "NoSuchUpload".into()));
}

#[test]
fn parts_and_uploads_are_listed_in_pages() {
    let house = House::with_base();
    let id = start(&house.root, "m", &[("x-amz-checksum-algorithm", "CRC32")]);
    for number in [1, 3, 5] {
        part(&house.root, "m", &id, number, b"12345").ok();
    }
    let page =
        |marker: u32| house.root.get(&format!("/base/m?uploadId={id}&max-parts=2&part-number-marker={marker}")).ok();
    let first = page(0);
    assert_eq!((first.tags("PartNumber"), first.tag("IsTruncated")), (vec!["1".into(), "3".into()], "true".into()));
    assert_eq!((first.tag("Size"), first.tags("ChecksumCRC32").len()), ("5".into(), 2));
    assert_eq!(first.tags("Initiator").len(), 1, "{}", first.text());
    let second = page(first.tag("NextPartNumberMarker").parse().unwrap());
    assert_eq!((second.tags("PartNumber"), second.tag("IsTruncated")), (vec!["5".into()], "false".into()));

    house.root.delete(&format!("/base/m?uploadId={id}")).ok();
    for key in ["a", "d/x", "d/y", "d/y", "e/z", "f"] {
        start(&house.root, key, &[]);
    }
    for delimiter in ["", "/"] {
        let expected: &[&str] =
            if delimiter.is_empty() { &["a", "d/x", "d/y", "d/y", "e/z", "f"] } else { &["a", "d/", "e/", "f"] };
        for size in [1, 2, 3, 10] {
            let (mut all, mut marker) = (Vec::new(), String::new());
            loop {
                let answer = house
                    .root
                    .get(&format!("/base?uploads=&max-uploads={size}&delimiter={}{marker}", encode(delimiter)))
                    .ok();
                let prefixes: Vec<_> =
                    answer.tags("CommonPrefixes").iter().map(|p| p[8..p.len() - 9].to_owned()).collect();
                let mut page: Vec<String> = answer.tags("Key").into_iter().chain(prefixes).collect();
                page.sort();
                assert!(page.len() <= size);
                all.extend(page);
                if answer.tag("IsTruncated") != "true" {
                    break;
                }
                marker = format!("&key-marker={}", encode(&answer.tag("NextKeyMarker")));
                let id = answer.tag("NextUploadIdMarker");
                if !id.is_empty() {
                    marker += &format!("&upload-id-marker={}", encode(&id));
                }
                assert!(all.len() <= 6, "the listing goes in circles");
            }
            assert_eq!(all, expected, "{delimiter:?} {size}");
        }
    }
    assert_eq!(house.root.get("/base?uploads=&prefix=d%2F").ok().tags("Key"), ["d/x", "d/y", "d/y"]);
}

#[test]
fn parts_can_be_copied() {
    let house = House::with_base();
    let source = data(MIN + 1000, 6);
    house.root.put("/base/s", source.clone()).ok();
    let id = start(&house.root, "m", &[]);
    let copy = |number: u32, range: Option<&str>| {
        let mut ask = Ask::new("PUT", &format!("/base/m?partNumber={number}&uploadId={id}"))
            .header("x-amz-copy-source", "/base/s");
        if let Some(range) = range {
            ask = ask.header("x-amz-copy-source-range", range);
        }
        house.root.ask(&ask)
    };
    let first = copy(1, None).ok().tag("ETag").trim_matches('"').to_owned();
    let second = copy(2, Some("bytes=10-19")).ok().tag("ETag").trim_matches('"').to_owned();
    for bad in ["bytes=0-99999999", "bytes=5-", "bytes=-5", "bytes=5-2", "x"] {
        assert_eq!(copy(3, Some(bad)).fault(), (400, "InvalidArgument".into()), "{bad}");
    }
    complete(&house.root, "m", &id, &[(1, first), (2, second)], &[]).ok();
    let whole = [&source[..], &source[10..20]].concat();
    assert!(house.root.get("/base/m").ok().body == whole);
}

#[test]
fn a_copied_part_has_the_checksum_that_the_upload_wants() {
    let house = House::with_base();
    let source = data(MIN + 1000, 6);
    house.root.put("/base/s", source.clone()).ok();
    let whole = [&source[..], &source[10..20]].concat();
    house.root.put("/base/plain", whole.clone()).ok();
    let sum_of = |key: &str, name: &str| {
        let head = Ask::new("HEAD", &format!("/base/{key}")).header("x-amz-checksum-mode", "ENABLED");
        house.root.ask(&head).ok().header(name).map(str::to_owned)
    };
    for (algorithm, kind) in [("CRC64NVME", "FULL_OBJECT"), ("SHA256", "COMPOSITE"), ("CRC32C", "FULL_OBJECT")] {
        let id = start(&house.root, "m", &[("x-amz-checksum-algorithm", algorithm), ("x-amz-checksum-type", kind)]);
        let copy = |number: u32, range: Option<&str>| {
            let mut ask = Ask::new("PUT", &format!("/base/m?partNumber={number}&uploadId={id}"))
                .header("x-amz-copy-source", "/base/s");
            if let Some(range) = range {
                ask = ask.header("x-amz-copy-source-range", range);
            }
            let answer = house.root.ask(&ask).ok();
            assert!(!answer.tag(&format!("Checksum{algorithm}")).is_empty(), "{}", answer.text());
            answer.tag("ETag").trim_matches('"').to_owned()
        };
        let (first, second) = (copy(1, None), copy(2, Some("bytes=10-19")));
        assert_eq!((first.clone(), second.clone()), (md5(&source), md5(&source[10..20])));
        complete(&house.root, "m", &id, &[(1, first), (2, second)], &[]).ok();
        let name = format!("x-amz-checksum-{}", algorithm.to_ascii_lowercase());
        let made = sum_of("m", &name).expect("a checksum");
        assert_eq!(made.ends_with("-2"), kind == "COMPOSITE");
        if algorithm == "CRC64NVME" {
            assert_eq!(Some(made), sum_of("plain", &name));
        }
    }
}
