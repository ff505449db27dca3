//! One object: put, get, head, ranges, conditions, metadata, copies, deletes.

use crate::client::{Ask, UNSIGNED, md5, path};
use crate::house::House;
use mw_s3::S3Options;
use mw_world::Role;

#[test]
fn what_was_put_comes_back() {
    let house = House::with_base();
    for size in [0usize, 1, 65_537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_000] {
        let data: Vec<u8> = (0..size).map(|n| (n * 31 % 251) as u8).collect();
        let put = house.root.put("/base/k", data.clone()).ok();
        assert_eq!(put.header("etag").unwrap(), format!("\"{}\"", md5(&data)));
        let got = house.root.get("/base/k").ok();
        assert_eq!(got.body, data);
        assert_eq!(got.header("content-length").unwrap(), size.to_string());
        let head = house.root.ask(&Ask::new("HEAD", "/base/k")).ok();
        assert_eq!(
            (head.header("content-length"), head.header("etag")),
            (got.header("content-length"), put.header("etag"))
        );
        assert_eq!(got.header("content-type"), Some("binary/octet-stream"));
    }
}

#[test]
fn absent_things() {
    let house = House::with_base();
    let answer = house.root.get("/base/none");
    assert_eq!(answer.fault(), (404, "NoSuchKey".into()));
    assert_eq!(answer.tag("Message"), "The specified key does not exist.");
    assert_eq!(answer.tag("RequestId"), answer.header("x-amz-request-id").unwrap());
    let answer = house.root.get("/nowhere/none");
    assert_eq!(answer.fault(), (404, "NoSuchBucket".into()));
    assert_eq!(answer.tag("Message"), "NoSuchBucket: the specified bucket does not exist");
    assert_eq!(house.root.ask(&Ask::new("HEAD", "/base/none")).status, 404);
    assert_eq!(house.root.delete("/base/none").status, 204);
    assert_eq!(house.root.put("/base/x", "").ok().status, 200);
    assert_eq!(house.root.put("/UPPER", "").fault(), (400, "InvalidBucketName".into()));
    assert_eq!(house.root.delete("/base").fault(), (409, "BucketNotEmpty".into()));
    house.root.delete("/base/x").ok();
    house.root.delete("/base").ok();
    assert_eq!(house.root.ask(&Ask::new("HEAD", "/base")).status, 404);
}

/// As in AWS: made again, one's own bucket is answered as if it had been made in the oldest region, and refused in every other.
#[test]
fn a_bucket_made_again_is_answered_as_in_its_region() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "kept").ok();
    let again = || Ask::new("PUT", "/base");
    root.ask(&again()).ok();
    let placed = |region: &str| {
        format!(
            "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
        )
    };
    root.ask(&again().body(placed("us-east-1"))).ok();
    assert_eq!(root.get("/base/k").ok().text(), "kept");
    let refused = (409, "BucketAlreadyOwnedByYou".to_owned());
    for region in ["auto", "eu-central-1"] {
        assert_eq!(root.ask(&again().region(region)).fault(), refused, "{region}");
    }
    assert_eq!(root.ask(&again().body(placed("eu-central-1"))).fault(), refused);
    assert_eq!(root.ask(&again().header("x-tigris-enable-snapshot", "true")).fault(), refused);
    assert!(!root.get("/base?versioning=").ok().text().contains("<Status>"));
    let stranger = house.key(&[("base", Role::Admin)]);
    assert_eq!(stranger.put("/base", "").fault(), (403, "AccessDenied".into()));
}

#[test]
fn buckets_say_what_clients_ask() {
    let house = House::new();
    let body = "<CreateBucketConfiguration><LocationConstraint>auto</LocationConstraint></CreateBucketConfiguration>";
    house.root.put("/base/", body).ok();
    let head = house.root.ask(&Ask::new("HEAD", "/base")).ok();
    assert_eq!(head.header("x-amz-bucket-region"), Some("us-east-1"));
    assert!(house.root.get("/base?location=").ok().text().contains("LocationConstraint"));
    assert!(!house.root.get("/base?versioning=").ok().text().contains("<Status>"));
    assert_eq!(house.root.get("/base?lifecycle=").status, 501);
}

/// C24: every edge of a range, of an object with bytes and of an empty one, by GET and HEAD.
#[test]
fn ranges() {
    let house = House::with_base();
    house.root.put("/base/e", "").ok();
    house.root.put("/base/t", "0123456789").ok();
    let table: [(&str, &str, u16, &str, Option<&str>); 22] = [
        ("t", "0-", 206, "0123456789", Some("bytes 0-9/10")),
        ("t", "0-0", 206, "0", Some("bytes 0-0/10")),
        ("t", "5-", 206, "56789", Some("bytes 5-9/10")),
        ("t", "9-99", 206, "9", Some("bytes 9-9/10")),
        ("t", "10-", 416, "", Some("bytes */10")),
        ("t", "99-", 416, "", Some("bytes */10")),
        ("t", "-3", 206, "789", Some("bytes 7-9/10")),
        ("t", "-0", 416, "", Some("bytes */10")),
        ("t", "-99", 206, "0123456789", Some("bytes 0-9/10")),
        ("t", "5-2", 200, "0123456789", None),
        ("t", "abc", 200, "0123456789", None),
        ("t", "0-1,3-4", 200, "0123456789", None),
        ("t", "2-4", 206, "234", Some("bytes 2-4/10")),
        ("t", "0-18446744073709551616", 206, "0123456789", Some("bytes 0-9/10")),
        ("e", "0-", 416, "", Some("bytes */0")),
        ("e", "0-0", 416, "", Some("bytes */0")),
        ("e", "5-", 416, "", Some("bytes */0")),
        ("e", "-3", 200, "", None),
        ("e", "-0", 416, "", Some("bytes */0")),
        ("e", "abc", 200, "", None),
        ("e", "5-2", 200, "", None),
        ("e", "0-1,3-4", 200, "", None),
    ];
    for (key, range, status, body, content_range) in table {
        let ask = Ask::new("GET", &format!("/base/{key}")).header("range", &format!("bytes={range}"));
        let answer = house.root.ask(&ask);
        assert_eq!(answer.status, status, "{key} {range} {}", answer.text());
        assert_eq!(answer.header("content-range"), content_range, "{key} {range}");
        if status == 416 {
            assert_eq!(answer.code(), "InvalidRange");
        } else {
            assert_eq!(answer.text(), body, "{key} {range}");
        }
        let head = house.root.ask(&Ask { method: "HEAD".into(), ..ask });
        assert_eq!((head.status, head.header("content-range")), (status, content_range), "HEAD {key} {range}");
        if status != 416 {
            assert_eq!(head.header("content-length").unwrap(), body.len().to_string());
        }
    }
    let big: Vec<u8> = (0..3_500_000u32).map(|n| (n % 251) as u8).collect();
    house.root.put("/base/b", big.clone()).ok();
    for (first, last) in [(0, 0), (1_048_575, 1_048_576), (1_000_000, 3_400_000), (3_499_999, 3_499_999)] {
        let ask = Ask::new("GET", "/base/b").header("range", &format!("bytes={first}-{last}"));
        assert_eq!(house.root.ask(&ask).ok().body, &big[first..=last]);
    }
}

/// C24: a range under a condition, beside the other conditions.
#[test]
fn conditional_reads() {
    let house = House::with_base();
    let etag = house.root.put("/base/k", "0123456789").ok().header("etag").unwrap().to_owned();
    let ask = |name: &str, value: &str| house.root.ask(&Ask::new("GET", "/base/k").header(name, value));
    for method in ["GET", "HEAD"] {
        let answer = house.root.ask(&Ask::new(method, "/base/k").header("if-none-match", &etag));
        assert_eq!((answer.status, answer.header("etag")), (304, Some(etag.as_str())));
        assert!(
            answer.body.is_empty()
                && answer.header("content-type").is_none()
                && answer.header("last-modified").is_some()
        );
    }
    assert_eq!(ask("if-none-match", "\"a\", \"b\"").status, 200);
    assert_eq!(ask("if-none-match", &format!("\"a\", W/{etag}")).status, 304);
    assert_eq!(ask("if-match", &etag).status, 200);
    assert_eq!(ask("if-match", "\"x\"").fault(), (412, "PreconditionFailed".into()));
    assert_eq!(ask("if-modified-since", "Fri, 02 Jan 1970 00:00:00 GMT").status, 200);
    assert_eq!(ask("if-unmodified-since", "Fri, 02 Jan 1970 00:00:00 GMT").status, 412);
    let modified = house.root.get("/base/k").header("last-modified").unwrap().to_owned();
    assert_eq!(ask("if-modified-since", &modified).status, 304);
    assert_eq!(ask("if-unmodified-since", &modified).status, 200);
    assert_eq!(ask("if-modified-since", "not a date").status, 200);
    let part = |value: &str| {
        house.root.ask(&Ask::new("GET", "/base/k").header("range", "bytes=0-3").header("if-range", value)).status
    };
    assert_eq!((part(&etag), part("\"old\""), part(&modified)), (206, 200, 206));
}

#[test]
fn conditional_writes() {
    let house = House::with_base();
    let put = |name: &str, value: &str, body: &str| {
        house.root.ask(&Ask::new("PUT", "/base/k").header(name, value).body(body))
    };
    assert_eq!(put("if-match", "\"x\"", "a").fault(), (404, "NoSuchKey".into()));
    put("if-none-match", "*", "first").ok();
    assert_eq!(put("if-none-match", "*", "second").fault(), (412, "PreconditionFailed".into()));
    assert_eq!(put("if-match", "\"x\"", "third").fault(), (412, "PreconditionFailed".into()));
    put("if-match", &format!("\"{}\"", md5(b"first")), "fourth").ok();
    assert_eq!(house.root.get("/base/k").ok().text(), "fourth");
    let delete = |value: &str| house.root.ask(&Ask::new("DELETE", "/base/k").header("if-match", value)).status;
    assert_eq!(delete("\"x\""), 412);
    assert_eq!(delete(&format!("\"{}\"", md5(b"fourth"))), 204);
}

#[test]
fn concurrent_creation_has_one_winner() {
    let house = House::with_base();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let put = |n: usize| {
            house.root.ask(&Ask::new("PUT", "/base/k").header("if-none-match", "*").body(format!("{n}"))).status
        };
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || put(n))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|s| **s == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|s| [200, 409, 412].contains(s)), "{statuses:?}");
}

/// C19: what is noted with an object comes back as it was. (What other doors change of it: `world/objects/content`.)
#[test]
fn headers_and_metadata_come_back() {
    let house = House::with_base();
    let given = [
        ("content-type", "text/x-sh"),
        ("cache-control", "max-age=1"),
        ("content-disposition", "attachment; filename=\"a\""),
        ("content-encoding", "gzip"),
        ("content-language", "de"),
        ("expires", "whenever"),
        ("x-amz-meta-owner", "me"),
        ("x-amz-meta-mode", "33188"),
        ("x-amz-storage-class", "STANDARD_IA"),
    ];
    let mut ask = Ask::new("PUT", "/base/k").body("x");
    ask.headers.extend(given.map(|(n, v)| (n.to_owned(), v.to_owned())));
    house.root.ask(&ask.header("x-amz-meta-n", "é").header("x-amz-tagging", "a=1&b=x+y%26")).ok();
    for method in ["GET", "HEAD"] {
        let answer = house.root.ask(&Ask::new(method, "/base/k")).ok();
        for (name, value) in given {
            assert_eq!(answer.header(name), Some(value), "{method} {name}");
        }
        let name = answer.header("x-amz-meta-n").unwrap();
        assert!(name.is_ascii() && name.to_ascii_lowercase().starts_with("=?utf-8?"), "{name}");
    }
    for method in ["GET", "HEAD"] {
        assert_eq!(house.root.ask(&Ask::new(method, "/base/k")).header("x-amz-tagging-count"), Some("2"), "{method}");
    }
    let tags = house.root.get("/base/k?tagging=").ok();
    assert_eq!((tags.tags("Key"), tags.tags("Value")), (vec!["a".into(), "b".into()], vec!["1".into(), "x y&".into()]));
    let overridden = house
        .root
        .get("/base/k?response-content-type=a%2Fb&response-expires=Thu%2C%2001%20Jan%201970%2000%3A00%3A00%20GMT");
    assert_eq!(overridden.header("content-type"), Some("a/b"));
    assert_eq!(overridden.header("expires"), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
    let put =
        |name: &str, value: &str| house.root.ask(&Ask::new("PUT", "/base/n").header(name, value).body("x")).fault();
    assert_eq!(put("x-amz-meta-a", &"v".repeat(2048)), (400, "MetadataTooLarge".into()));
    assert_eq!(put("x-amz-storage-class", "GLACIER"), (400, "InvalidStorageClass".into()));
    assert_eq!(put("x-amz-tagging", "a=1&a=2"), (400, "InvalidTag".into()));
    assert_eq!(put("x-amz-server-side-encryption-customer-algorithm", "AES256").0, 501);
    assert_eq!(put("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="), (400, "BadDigest".into()));
    assert_eq!(put("content-md5", "x"), (400, "InvalidDigest".into()));
    assert_eq!(put("x-amz-checksum-crc32", "AAAAAA=="), (400, "BadDigest".into()));
    assert_eq!(put("x-amz-checksum-crc32", "AAAA"), (400, "InvalidRequest".into()));
    assert_eq!(house.root.get("/base/n").status, 404);
}

#[test]
fn checksums_are_verified_stored_and_answered() {
    let house = House::with_base();
    // Of "hello\n", computed with other tools.
    for (name, value) in [
        ("x-amz-checksum-crc32", "NjowIA=="),
        ("x-amz-checksum-sha1", "9XLTlvrpIGYocU+yzgD3LpTyJY8="),
        ("x-amz-checksum-sha256", "WJG1tSLV3whtD/CxEPvZ0hu0/HFjrzTQgoai6Eb2vgM="),
    ] {
        let put = house.root.ask(&Ask::new("PUT", "/base/k").header(name, value).body("hello\n")).ok();
        assert_eq!(put.header(name), Some(value));
        let got = house.root.ask(&Ask::new("GET", "/base/k").header("x-amz-checksum-mode", "ENABLED")).ok();
        assert_eq!((got.header(name), got.header("x-amz-checksum-type")), (Some(value), Some("FULL_OBJECT")));
        assert_eq!(house.root.get("/base/k").header(name), None);
    }
    house.root.put("/base/d", "hello\n").ok();
    let head = house.root.ask(&Ask::new("HEAD", "/base/d").header("x-amz-checksum-mode", "ENABLED")).ok();
    assert!(head.header("x-amz-checksum-crc64nvme").is_some(), "computed when the client sends none");
    let two = Ask::new("PUT", "/base/n")
        .header("x-amz-checksum-crc32", "NjowIA==")
        .header("x-amz-checksum-crc32c", "AAAAAA==");
    assert_eq!(house.root.ask(&two.body("hello\n")).fault(), (400, "InvalidRequest".into()));
}

#[test]
fn copies() {
    let house = House::with_base();
    let put = Ask::new("PUT", "/base/k").header("x-amz-meta-a", "1").header("x-amz-tagging", "t=1").body("content");
    house.root.ask(&put.header("content-type", "a/b")).ok();
    let copy = |key: &str, more: &[(&str, &str)]| {
        let mut ask = Ask::new("PUT", &format!("/base/{key}")).header("x-amz-copy-source", "base/k");
        ask.headers.extend(more.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        house.root.ask(&ask)
    };
    assert_eq!(copy("c", &[]).ok().tag("ETag").trim_matches('"'), md5(b"content"));
    let got = house.root.get("/base/c").ok();
    assert_eq!(
        (got.text().as_str(), got.header("x-amz-meta-a"), got.header("content-type")),
        ("content", Some("1"), Some("a/b"))
    );
    assert_eq!(got.header("x-amz-tagging-count"), Some("1"));
    copy("r", &[("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-b", "2"), ("content-type", "c/d")]).ok();
    let got = house.root.get("/base/r").ok();
    assert_eq!(
        (got.header("x-amz-meta-a"), got.header("x-amz-meta-b"), got.header("content-type")),
        (None, Some("2"), Some("c/d"))
    );
    assert_eq!(got.header("x-amz-tagging-count"), Some("1"), "tags are copied unless they are replaced");
    copy("t", &[("x-amz-tagging-directive", "REPLACE"), ("x-amz-tagging", "a=1&b=2")]).ok();
    assert_eq!(house.root.get("/base/t").ok().header("x-amz-tagging-count"), Some("2"));
    assert_eq!(copy("k", &[]).fault(), (400, "InvalidRequest".into()));
    copy("k", &[("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-n", "1")]).ok();
    assert_eq!(copy("x", &[("x-amz-metadata-directive", "SOME")]).status, 400);
    assert_eq!(copy("x", &[("x-amz-copy-source-if-match", "\"x\"")]).status, 412);
    assert_eq!(copy("x", &[("x-amz-copy-source-if-none-match", &format!("\"{}\"", md5(b"content")))]).status, 412);
    assert_eq!(copy("c", &[("if-none-match", "*")]).status, 412);
    // The four conditions on the source, and how they go together (AWS, CopyObject).
    let tag = format!("\"{}\"", md5(b"content"));
    let (past, future) = ("Fri, 02 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT");
    let on = |name: &str| format!("x-amz-copy-source-if-{name}");
    for (conditions, status) in [
        (vec![("match", tag.as_str())], 200),
        (vec![("none-match", "\"x\"")], 200),
        (vec![("modified-since", past)], 200),
        (vec![("modified-since", future)], 412),
        (vec![("unmodified-since", future)], 200),
        (vec![("unmodified-since", past)], 412),
        (vec![("match", tag.as_str()), ("unmodified-since", past)], 200),
        (vec![("none-match", tag.as_str()), ("modified-since", past)], 412),
        (vec![("match", "\"x\""), ("unmodified-since", future)], 412),
    ] {
        let named: Vec<(String, &str)> = conditions.iter().map(|(name, value)| (on(name), *value)).collect();
        let given: Vec<(&str, &str)> = named.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(copy("cond", &given).status, status, "{conditions:?}");
    }
    let from = |source: &str| house.root.ask(&Ask::new("PUT", "/base/x").header("x-amz-copy-source", source)).fault();
    assert_eq!(from("base/none"), (404, "NoSuchKey".into()));
    assert_eq!(from("nowhere/k"), (404, "NoSuchBucket".into()));
    assert_eq!(from("base"), (400, "InvalidArgument".into()));
    assert_eq!(house.root.get("/base/x").status, 404);
}

/// Conditions of directory buckets: one that is not looked at would delete what was to be spared.
#[test]
fn a_condition_that_is_not_kept_deletes_nothing() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "kept").ok();
    for (name, value) in
        [("x-amz-if-match-size", "9999"), ("x-amz-if-match-last-modified-time", "Thu, 01 Jan 2015 00:00:00 GMT")]
    {
        for path in ["/base/k", "/base/k?versionId=null"] {
            let answer = root.ask(&Ask::new("DELETE", path).header(name, value));
            assert_eq!(answer.fault(), (501, "NotImplemented".into()));
            assert!(answer.text().contains(name), "the header is named");
        }
    }
    for condition in ["<Size>9999</Size>", "<LastModifiedTime>Thu, 01 Jan 2015 00:00:00 GMT</LastModifiedTime>"] {
        let body = format!("<Delete><Object><Key>k</Key>{condition}</Object></Delete>");
        let answer = root.post("/base?delete=", &body);
        assert!(answer.status == 400 || answer.code() == "NotImplemented", "{condition}: {}", answer.text());
    }
    assert_eq!(root.get("/base/k").ok().text(), "kept");
}

/// C22: a bulk delete needs no Content-MD5 and heeds a wrong one; absent keys count as deleted, each key has its own outcome, a thousand at most.
#[test]
fn bulk_deletes() {
    let house = House::with_base();
    let keys: Vec<String> = (0..1000).map(|n| format!("d/&amp;&lt;&gt;\"{n}")).collect();
    for n in 0..20 {
        house.root.put(&path("base", &format!("d/&<>\"{n}")), "x").ok();
    }
    let body = |keys: &[String], quiet: bool| {
        let objects: String = keys.iter().map(|k| format!("<Object><Key>{k}</Key></Object>")).collect();
        format!("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{objects}<Quiet>{quiet}</Quiet></Delete>")
    };
    let wrong =
        Ask::new("POST", "/base?delete=").header("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==").body(body(&keys, false));
    assert_eq!(house.root.ask(&wrong).fault(), (400, "BadDigest".into()));
    assert_eq!(house.root.get("/base?list-type=2").tag("KeyCount"), "20", "nothing is deleted");
    let answer = house.root.post("/base?delete=", &body(&keys, false)).ok();
    assert_eq!(answer.tags("Deleted").len(), 1000);
    assert!(answer.tags("Error").is_empty());
    assert_eq!(answer.tags("Key")[7], "d/&<>\"7");
    assert_eq!(house.root.get("/base?list-type=2").tag("KeyCount"), "0");
    assert!(house.root.post("/base?delete=", &body(&keys[..3], true)).ok().tags("Deleted").is_empty());
    let over: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
    assert_eq!(house.root.post("/base?delete=", &body(&over, false)).fault(), (400, "MalformedXML".into()));
    assert_eq!(house.root.post("/base?delete=", &body(&[], false)).fault().0, 400);
    assert_eq!(house.root.post("/base?delete=", "<Delete><Object>").fault(), (400, "MalformedXML".into()));
    house.root.put("/base/keep", "x").ok();
    let mixed =
        "<Delete><Object><Key>keep</Key><VersionId>17</VersionId></Object><Object><Key>gone</Key></Object></Delete>";
    let answer = house.root.post("/base?delete=", mixed).ok();
    assert_eq!((answer.tags("Deleted").len(), answer.tags("Error").len()), (2, 0));
    assert_eq!(house.root.get("/base/keep").ok().text(), "x", "it has no such version");
}

#[test]
fn tags_and_attributes() {
    let house = House::with_base();
    house.root.put("/base/k", "12345").ok();
    let set = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    house.root.put("/base/k?tagging=", set).ok();
    assert_eq!(house.root.get("/base/k?tagging=").ok().tags("Value"), ["b"]);
    assert_eq!(house.root.get("/base/k").ok().text(), "12345", "tags are not content");
    house.root.delete("/base/k?tagging=").ok();
    assert!(house.root.get("/base/k?tagging=").ok().tags("Tag").is_empty());
    let attributes = Ask::new("GET", "/base/k?attributes=")
        .header("x-amz-object-attributes", "ETag,ObjectSize,Checksum,StorageClass");
    let answer = house.root.ask(&attributes).ok();
    assert_eq!((answer.tag("ObjectSize"), answer.tag("StorageClass")), ("5".into(), "STANDARD".into()));
    assert!(answer.tag("ChecksumCRC64NVME").len() > 4 && answer.tag("ETag") == md5(b"12345"));
}

/// C08: a body that ends early, however it is sent, leaves the object that was there, and nothing else.
#[test]
fn cut_bodies_never_become_objects() {
    let house = House::with_base();
    let old = vec![b'o'; 100_000];
    house.root.put("/base/o", old.clone()).ok();
    let new = vec![b'n'; 3_000_000];
    for sha in [Some(UNSIGNED), None] {
        for sent in [0, 1, 65_536, 1_500_000, 2_999_999] {
            let mut ask = Ask::new("PUT", "/base/o").body(new.clone());
            ask.sha = sha.map(str::to_owned);
            let answer = house.root.cut(&house.root.sign(&ask), sent);
            assert!(
                answer.status == 0 || answer.fault() == (400, "IncompleteBody".into()),
                "{} {}",
                answer.status,
                answer.text()
            );
            house.root.cut(&house.root.presign(&ask, 60), sent);
            assert_eq!(house.root.get("/base/o").ok().body, old);
        }
    }
    assert_eq!(house.root.get("/base?list-type=2").tag("KeyCount"), "1");
}

#[test]
fn a_length_is_needed_and_bounded() {
    let house = House::with_base();
    let mut wire = house.root.sign(&Ask::new("PUT", "/base/k").sha(UNSIGNED));
    wire.headers.push(("content-length".into(), (6u64 << 30).to_string()));
    wire.method = "PUT".into();
    let answer = house.root.raw(&wire);
    assert!([400, 0].contains(&answer.status), "two lengths, or one too large: {}", answer.status);
    assert_eq!(house.root.get("/base/k").status, 404);
    let long = format!("/base/{}", "k".repeat(1025));
    assert_eq!(house.root.put(&long, "x").fault(), (400, "KeyTooLongError".into()));
    house.root.put(&long[..long.len() - 1], "x").ok();
}

#[test]
fn virtual_hosts() {
    let house = House::with(S3Options { host_suffix: Some("s3.example:9000".into()), ..S3Options::default() });
    house.root.ask(&Ask::new("PUT", "/").host("base.s3.example")).ok();
    house.root.ask(&Ask::new("PUT", "/dir/k").host("base.s3.example:9000").body("x")).ok();
    assert_eq!(house.root.get("/base/dir/k").ok().text(), "x", "path style goes on working");
    assert_eq!(house.root.ask(&Ask::new("GET", "/base/dir/k").host("s3.example")).ok().text(), "x");
    assert_eq!(house.root.ask(&Ask::new("GET", "/dir/k").host("base.S3.example")).ok().text(), "x");
    let delete = Ask::new("POST", "/?delete=")
        .host("base.s3.example")
        .body("<Delete><Object><Key>dir/k</Key></Object></Delete>");
    assert_eq!(house.root.ask(&delete).ok().tags("Deleted").len(), 1);
    let url = house.root.presign(&Ask::new("PUT", "/p").host("base.s3.example").body("y"), 60);
    house.root.raw(&url).ok();
    assert_eq!(house.root.get("/base/p").ok().text(), "y");
}

#[test]
fn whoever_expects_to_be_asked_for_nothing_gets_a_new_connection() {
    let house = House::with_base();
    let answer =
        house.root.keeping(&house.root.sign(&Ask::new("PUT", "/base/e").header("expect", "100-continue"))).ok();
    assert_eq!(answer.header("connection"), Some("close"));
    house.root.get("/base/e").ok();
    let refused = Ask::new("PUT", "/base/e").header("expect", "100-continue").header("if-none-match", "*").body("x");
    let answer = house.root.keeping(&house.root.sign(&refused));
    assert!(
        answer.text().contains("PreconditionFailed") && answer.text().contains("connection: close"),
        "{}",
        answer.text()
    );
}
