//! Bad input: the AWS error code, nothing stored, and no memory for it. What is wrong with signatures stands in `auth`, with frames in
//! `streaming`, with forms in `form`.

use crate::client::{Answer, Ask, UNSIGNED, encode};
use crate::house::House;

fn nothing_stored(house: &House) {
    assert!(house.root.get("/base").ok().tags("Key").is_empty());
}

#[test]
fn xml_that_grows_nests_or_ends_early_is_malformed() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "x").ok();
    let entity = "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>\
        <Delete><Object><Key>&b;</Key></Object></Delete>";
    let outside =
        "<!DOCTYPE d [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><Delete><Object><Key>&f;</Key></Object></Delete>";
    let deep = format!("<Delete>{}", "<Object>".repeat(200_000));
    let many = format!("<Delete>{}</Delete>", "<Object><Key>k</Key></Object>".repeat(1001));
    for (name, body) in [
        ("entity", entity),
        ("outside", outside),
        ("deep", &deep[..]),
        ("many", &many[..]),
        ("none", "<Delete></Delete>"),
        ("cut", "<Delete><Object><Key>k</Key></Obj"),
        ("other", "<Tagging/>"),
        ("text", "k"),
        ("empty", ""),
        ("no utf-8", "<Delete><Object><Key>\u{0}</Key></Object>"),
    ] {
        let answer = root.post("/base?delete=", body);
        assert_eq!(answer.status, 400, "{name} {}", answer.text());
        assert!(!answer.text().contains("root:"), "{name}");
    }
    let twice = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><PartNumber>2</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>";
    let id = root.post("/base/m?uploads=", "").ok().tag("UploadId");
    assert_eq!(root.post(&format!("/base/m?uploadId={id}"), twice).status, 400);
    assert_eq!(root.get("/base/k").ok().text(), "x");
}

#[test]
fn a_small_document_is_bounded() {
    let house = House::with_base();
    let huge = vec![b'x'; (16 << 20) + 1];
    for path in ["/base?delete=", "/base/k?tagging=", "/base?cors="] {
        let method = if path.ends_with("delete=") { "POST" } else { "PUT" };
        let answer = house.root.ask(&Ask::new(method, path).sha(UNSIGNED).body(huge.clone()));
        assert_eq!(answer.fault(), (400, "MaxMessageLengthExceeded".into()), "{path}");
    }
}

#[test]
fn an_upload_has_at_most_ten_thousand_parts() {
    let house = House::with_base();
    let root = &house.root;
    let id = root.post("/base/m?uploads=", "").ok().tag("UploadId");
    let etag = root.put(&format!("/base/m?partNumber=1&uploadId={id}"), "x").ok().header("etag").unwrap().to_owned();
    let list = |last: u32| {
        let parts: String = (1..=last)
            .map(|n| format!("<Part><PartNumber>{n}</PartNumber><ETag>{}</ETag></Part>", etag.trim_matches('"')))
            .collect();
        format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
    };
    let complete = |last: u32| root.post(&format!("/base/m?uploadId={id}"), &list(last)).fault();
    assert_eq!(complete(10_001), (400, "InvalidArgument".into()));
    assert_eq!(complete(10_000), (400, "InvalidPart".into()));
    for number in ["0", "10001", "99999999999999999999", "x", ""] {
        let answer = root.put(&format!("/base/m?partNumber={number}&uploadId={id}"), "x");
        assert!(answer.status == 400, "{number:?} {}", answer.text());
    }
    nothing_stored(&house);
    root.post(&format!("/base/m?uploadId={id}"), &list(1)).ok();
    assert_eq!(root.get("/base/m").ok().text(), "x");
}

#[test]
fn keys_that_cannot_be_are_refused_by_every_verb_that_would_make_them() {
    let house = House::with_base();
    let root = &house.root;
    let long = "k".repeat(1025);
    let fits = format!("/base/{}", "k".repeat(1024));
    root.put(&fits, "x").ok();
    root.delete(&fits).ok();
    let over = |answer: Answer| assert_eq!(answer.fault(), (400, "KeyTooLongError".into()), "{}", answer.text());
    over(root.put(&format!("/base/{long}"), "x"));
    over(root.post(&format!("/base/{long}?uploads="), ""));
    root.put("/base/s", "x").ok();
    over(root.ask(&Ask::new("PUT", &format!("/base/{long}")).header("x-amz-copy-source", "/base/s")));
    root.delete("/base/s").ok();
    let body = format!("<Delete><Object><Key>{long}</Key></Object><Object><Key>ok</Key></Object></Delete>");
    let answer = root.post("/base?delete=", &body).ok();
    assert_eq!((answer.tags("Code"), answer.tags("Deleted").len()), (vec!["KeyTooLongError".to_owned()], 1));
    // Bytes that are not UTF-8 are no key, in any position.
    for path in ["/base/%FF", "/base/a%C3", "/base/%ED%A0%80"] {
        let answer = root.put(path, "x");
        assert_eq!(answer.status, 400, "{path} {}", answer.text());
    }
    nothing_stored(&house);
}

#[test]
fn numbers_that_are_none_are_refused() {
    let house = House::with_base();
    for query in [
        "max-keys=-1",
        "max-keys=x",
        "list-type=2&max-keys=-1",
        "list-type=2&continuation-token=%2A",
        "encoding-type=base64",
        "versions=&max-keys=-1",
        "versions=&encoding-type=x",
        "versions=&key-marker=a&version-id-marker=x",
        "uploads=&max-uploads=-1",
    ] {
        let answer = house.root.get(&format!("/base?{query}"));
        assert_eq!(answer.status, 400, "{query} {}", answer.text());
    }
    assert_eq!(house.root.get(&format!("/base/k?versionId={}", encode("../x"))).status, 400);
}

#[test]
fn a_promise_that_is_not_kept_is_refused_by_name() {
    let house = House::with_base();
    let root = &house.root;
    for (name, value) in [
        ("x-amz-server-side-encryption", "aws:kms"),
        ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
        ("x-amz-object-lock-mode", "GOVERNANCE"),
        ("x-amz-object-lock-event-hold", "ON"),
        ("x-amz-checksum-sha512", "AAAA"),
        ("x-amz-checksum-xxhash64", "AAAA"),
        ("x-amz-website-redirect-location", "/x"),
        ("x-amz-write-offset-bytes", "0"),
    ] {
        let answer = root.ask(&Ask::new("PUT", "/base/k").header(name, value).body("x"));
        assert_eq!(answer.fault(), (501, "NotImplemented".into()), "{name}");
        assert!(answer.text().contains(name), "{}", answer.text());
    }
    root.put("/base/plain", "x").ok();
    let upload = root.post("/base/m?uploads=", "").ok().tag("UploadId");
    let part = format!("/base/m?partNumber=1&uploadId={upload}");
    for (method, path) in [("GET", "/base/plain"), ("PUT", part.as_str()), ("GET", "/base/plain?attributes=")] {
        let name = "x-amz-server-side-encryption-customer-key";
        let answer = root.ask(&Ask::new(method, path).header(name, "a2V5"));
        assert_eq!(answer.fault(), (501, "NotImplemented".into()), "{method} {path}");
        assert!(answer.text().contains(name), "{}", answer.text());
    }
    root.delete(&format!("/base/m?uploadId={upload}")).ok();
    root.delete("/base/plain").ok();
    for owner in ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"] {
        let other = root.ask(&Ask::new("PUT", "/base/k").header(owner, "123456789012").body("x"));
        assert_eq!(other.fault(), (403, "AccessDenied".into()), "{owner}");
    }
    nothing_stored(&house);
    root.ask(&Ask::new("PUT", "/base/k").header("x-amz-expected-bucket-owner", "manyworlds").body("x")).ok();
}

/// All that README says is not offered, by every method that there is for it, with documents that are right.
#[test]
fn what_is_not_offered_is_refused_by_name_and_changes_nothing() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "kept").ok();
    let refused = |method: &str, path: &str, body: &str, name: &str| {
        let answer = root.ask(&Ask::new(method, path).body(body));
        assert_eq!(answer.fault(), (501, "NotImplemented".into()), "{method} {path}: {}", answer.text());
        let message = answer.tag("Message").to_ascii_lowercase();
        assert!(message.contains(name), "{method} {path}: {message}");
    };
    for (parameter, document) in [
        ("accelerate", "<AccelerateConfiguration><Status>Enabled</Status></AccelerateConfiguration>"),
        ("encryption", "<ServerSideEncryptionConfiguration><Rule/></ServerSideEncryptionConfiguration>"),
        (
            "lifecycle",
            "<LifecycleConfiguration><Rule><ID>a</ID><Prefix/><Status>Enabled</Status></Rule></LifecycleConfiguration>",
        ),
        ("logging", "<BucketLoggingStatus/>"),
        ("notification", "<NotificationConfiguration/>"),
        ("object-lock", "<ObjectLockConfiguration/>"),
        ("policy", "{}"),
        (
            "replication",
            "<ReplicationConfiguration><Role>r</Role><Rule><Status>Enabled</Status><Destination><Bucket>b</Bucket>\
             </Destination></Rule></ReplicationConfiguration>",
        ),
        ("website", "<WebsiteConfiguration/>"),
    ] {
        let (path, name) = (format!("/base?{parameter}="), parameter.replace('-', ""));
        refused("GET", &path, "", &name);
        refused("PUT", &path, document, &name);
        if !["accelerate", "logging", "notification", "object-lock"].contains(&parameter) {
            refused("DELETE", &path, "", &name);
        }
    }
    for parameter in ["analytics", "intelligent-tiering", "inventory", "metrics"] {
        for path in [format!("/base?{parameter}="), format!("/base?{parameter}=&id=a")] {
            refused("GET", &path, "", &parameter.replace('-', ""));
        }
        refused("DELETE", &format!("/base?{parameter}=&id=a"), "", &parameter.replace('-', ""));
    }
    refused("GET", "/base?policyStatus=", "", "policystatus");
    let payer = "<RequestPaymentConfiguration><Payer>Requester</Payer></RequestPaymentConfiguration>";
    refused("PUT", "/base?requestPayment=", payer, "requestpayment");
    let select = "<SelectObjectContentRequest><Expression>s</Expression><ExpressionType>SQL</ExpressionType>\
                  <InputSerialization/><OutputSerialization/></SelectObjectContentRequest>";
    for (method, parameter, document, name) in [
        ("GET", "legal-hold=", "", "legalhold"),
        ("PUT", "legal-hold=", "<LegalHold/>", "legalhold"),
        ("GET", "retention=", "", "retention"),
        ("PUT", "retention=", "<Retention/>", "retention"),
        ("GET", "torrent=", "", "torrent"),
        ("POST", "restore=", "<RestoreRequest><Days>1</Days></RestoreRequest>", "restore"),
        ("POST", "select=&select-type=2", select, "select"),
    ] {
        refused(method, &format!("/base/k?{parameter}"), document, name);
    }
    assert_eq!(root.get("/base/k").ok().text(), "kept");
    assert_eq!(root.get("/base").ok().tags("Key"), ["k"]);
}

/// Operations that came after the router would be taken for the plain ones of their method, which overwrite and delete.
#[test]
fn a_parameter_that_is_not_known_changes_nothing() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "kept").ok();
    root.put("/empty", "").ok();
    for (method, path, name) in [
        ("PUT", "/base/k?renameObject=", "renameObject"),
        ("PUT", "/base/k?encryption=", "encryption"),
        ("PUT", "/base/k?annotation=", "annotation"),
        ("PUT", "/base/k?append=&position=0", "append"),
        ("DELETE", "/base/k?annotation=", "annotation"),
        ("DELETE", "/base/k?acl=", "acl"),
        ("GET", "/base/k?annotation=", "annotation"),
        ("GET", "/base?abac=", "abac"),
        ("PUT", "/new?abac=", "abac"),
        ("DELETE", "/empty?metadataConfiguration=", "metadataConfiguration"),
        ("POST", "/base/k?unknown=", "unknown"),
    ] {
        let answer = root.ask(&Ask::new(method, path).body(if method == "PUT" { "<x/>" } else { "" }));
        assert_eq!(answer.fault(), (501, "NotImplemented".into()), "{method} {path}");
        assert!(answer.text().contains(name), "{}", answer.text());
    }
    assert_eq!(root.get("/base/k?x-mine=1&page=2").ok().text(), "kept", "AWS reads past what it does not know");
    assert_eq!(root.ask(&Ask::new("HEAD", "/new")).status, 404);
    root.ask(&Ask::new("HEAD", "/empty")).ok();
    let own = root.ask(&Ask::new("PUT", "/new").header("x-amz-bucket-namespace", "account-regional"));
    assert_eq!(own.fault(), (501, "NotImplemented".into()));
    let directory = "<CreateBucketConfiguration><Bucket><Type>Directory</Type></Bucket></CreateBucketConfiguration>";
    assert_eq!(root.put("/new", directory).fault(), (501, "NotImplemented".into()));
    assert_eq!(root.ask(&Ask::new("HEAD", "/new")).status, 404);
}

#[test]
fn a_bucket_is_made_with_its_tags_or_not_at_all() {
    let house = House::with_base();
    let root = &house.root;
    let new = |inside: &str| format!("<CreateBucketConfiguration>{inside}</CreateBucketConfiguration>");
    let tag = |key: &str| format!("<Tag><Key>{key}</Key><Value>b&amp;c</Value></Tag>");
    let tags = |keys: &[&str]| format!("<Tags>{}</Tags>", keys.iter().map(|key| tag(key)).collect::<String>());
    for (inside, fault) in [
        (tags(&["a", "a"]), "InvalidTag"),
        (tags(&[""]), "InvalidTag"),
        (tags(&["a"]) + &tags(&["b"]), "MalformedXML"),
        ("<Tags><Tag><Key>a</Key>".to_owned(), "MalformedXML"),
    ] {
        assert_eq!(root.put("/new", new(&inside)).fault(), (400, fault.into()), "{inside}");
        assert_eq!(root.ask(&Ask::new("HEAD", "/new")).status, 404, "{inside}");
    }
    let place = "<LocationConstraint>eu-west-1</LocationConstraint><Later><Deeper>x</Deeper></Later>";
    root.put("/new", new(&format!("{place}{}", tags(&["a", "d"])))).ok();
    let got = root.get("/new?tagging=").ok();
    assert_eq!(got.tags("Key"), ["a", "d"]);
    assert_eq!(got.tag("Value"), "b&c");
    assert_eq!(root.put("/new", new(&tags(&["e"]))).fault(), (409, "BucketAlreadyOwnedByYou".into()));
    assert_eq!(root.get("/new?tagging=").ok().tags("Key"), ["a", "d"], "what is asked of a new one is not done to it");
    root.put("/plain", new(&tags(&[]))).ok();
    assert_eq!(root.get("/plain?tagging=").fault(), (404, "NoSuchTagSet".into()));
    let fork = |name: &str, inside: &str| {
        root.ask(&Ask::new("PUT", name).header("x-tigris-fork-source-bucket", "new").body(new(inside))).ok();
    };
    fork("/tagged-fork", &tags(&["f"]));
    assert_eq!(root.get("/tagged-fork?tagging=").ok().tags("Key"), ["f"]);
    fork("/bare-fork", "");
    assert_eq!(root.get("/bare-fork?tagging=").fault(), (404, "NoSuchTagSet".into()), "tags do not come along");
}

#[test]
fn small_settings_of_a_bucket_come_back() {
    let house = House::with_base();
    let root = &house.root;
    assert_eq!(root.get("/base?tagging=").fault(), (404, "NoSuchTagSet".into()));
    let tags = "<Tagging><TagSet><Tag><Key>Hello</Key><Value>World</Value></Tag></TagSet></Tagging>";
    root.put("/base?tagging=", tags).ok();
    let got = root.get("/base?tagging=").ok();
    assert_eq!((got.tag("Key"), got.tag("Value")), ("Hello".into(), "World".into()));
    assert_eq!(root.delete("/base?tagging=").status, 204);
    assert_eq!(root.get("/base?tagging=").fault(), (404, "NoSuchTagSet".into()));
    assert_eq!(root.get("/base?requestPayment=").ok().tag("Payer"), "BucketOwner");
    let rule = |kind: &str| {
        format!("<OwnershipControls><Rule><ObjectOwnership>{kind}</ObjectOwnership></Rule></OwnershipControls>")
    };
    root.put("/base?ownershipControls=", rule("BucketOwnerEnforced")).ok();
    assert_eq!(root.put("/base?ownershipControls=", rule("ObjectWriter")).fault(), (501, "NotImplemented".into()));
}
