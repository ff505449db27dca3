//! Uploads by browser form: signed by their policy, streamed, and refused whenever a field says what the policy does not.

use crate::client::md5;
use crate::house::House;
use crate::posted::{Form, lay_out};
use mw_world::Role;

#[test]
fn a_signed_form_is_an_upload() {
    let house = House::with_base();
    let root = &house.root;
    let content: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let form = Form::new("user/${filename}", &content)
        .allowed("Content-Type", "image/jpeg")
        .allowed("x-amz-meta-who", "me")
        .allowed("Cache-Control", "max-age=5")
        .field("x-ignore-this", "whatever")
        .condition(r#"["content-length-range", 1, "4000000"]"#);
    let answer = form.post(root);
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(answer.header("etag"), Some(format!("\"{}\"", md5(&content)).as_str()));
    let got = root.get("/base/user/photo.jpg").ok();
    assert!(got.body == content);
    assert_eq!((got.header("content-type"), got.header("x-amz-meta-who")), (Some("image/jpeg"), Some("me")));
    assert_eq!(got.header("cache-control"), Some("max-age=5"));
    assert!(answer.header("location").unwrap().ends_with("/base/user/photo.jpg"));
    // Signed long ago, and still good: only the policy says until when.
    let mut old = Form::new("old", b"x");
    (old.signed, old.expires) = (-6 * 86_400, 60);
    assert_eq!(old.post(root).status, 204);
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
    Form::new("tagged", b"x").field("tagging", tags).condition(r#"["starts-with","$tagging",""]"#).post(root).ok();
    assert_eq!(root.get("/base/tagged?tagging=").ok().tags("Value"), ["1"]);
    Form::new("empty", b"").post(root).ok();
    assert_eq!(root.get("/base/empty").ok().body.len(), 0);
}

#[test]
fn the_answer_is_what_the_form_asks_for() {
    let house = House::with_base();
    let root = &house.root;
    let with = |name: &str, value: &str| Form::new("a b&c", b"x").allowed(name, value).post(root);
    assert_eq!(with("success_action_status", "200").status, 200);
    let made = with("success_action_status", "201");
    assert_eq!((made.status, made.tag("Key"), made.tag("Bucket")), (201, "a b&c".into(), "base".into()));
    assert!(made.tag("Location").ends_with("/base/a%20b%26c") && made.tag("ETag").starts_with('"'));
    for other in ["204", "404", "x"] {
        assert_eq!(with("success_action_status", other).status, 204, "{other}");
    }
    let gone = with("success_action_redirect", "http://site.example/done?x=1");
    assert_eq!(gone.status, 303);
    let etag = md5(b"x");
    assert_eq!(
        gone.header("location"),
        Some(format!("http://site.example/done?x=1&bucket=base&key=a%20b%26c&etag=%22{etag}%22").as_str())
    );
    for no_url in ["javascript:alert(1)", "/relative", "not a url"] {
        assert_eq!(with("success_action_redirect", no_url).status, 204, "{no_url}");
    }
}

#[test]
fn what_the_policy_does_not_say_is_refused_and_nothing_is_put() {
    let house = House::with_base();
    let root = &house.root;
    let form = || Form::new("k", b"0123456789");
    let refused = |form: Form, fault: (u16, &str)| {
        let answer = form.post(root);
        assert_eq!(answer.fault(), (fault.0, fault.1.to_owned()), "{}", answer.text());
    };
    let denied = (403, "AccessDenied");
    refused(form().field("x-amz-meta-extra", "1"), denied);
    refused(form().condition(r#"["eq","$key","other"]"#), denied);
    refused(form().condition(r#"["starts-with","$key","user/"]"#), denied);
    refused(form().condition(r#"{"acl":"public-read"}"#), denied);
    refused(form().condition(r#"{"bucket":"other"}"#), denied);
    refused(form().allowed("Content-Type", "a/b,c/d").condition(r#"["starts-with","$Content-Type","a/"]"#), denied);
    refused(form().condition(r#"["content-length-range",11,20]"#), (400, "EntityTooSmall"));
    refused(form().condition(r#"["content-length-range",0,9]"#), (400, "EntityTooLarge"));
    refused(Form { expires: -1, ..form() }, denied);
    refused(Form { signed: 3600, ..form() }, denied);
    refused(Form { signed: -8 * 86_400, ..form() }, denied);
    refused(form().condition(r#"["content-length-range",0]"#), (400, "InvalidPolicyDocument"));
    refused(form().condition(r#"["matches","$key","k"]"#), (400, "InvalidPolicyDocument"));
    refused(form().condition("7"), (400, "InvalidPolicyDocument"));
    refused(form().field("policy", "%%%"), (403, "SignatureDoesNotMatch"));
    refused(form().field("x-amz-signature", &"0".repeat(64)), (403, "SignatureDoesNotMatch"));
    refused(form().field("x-amz-algorithm", "AWS4-HMAC-SHA1"), (400, "InvalidArgument"));
    refused(form().field("x-amz-credential", "a/b/c"), (400, "InvalidArgument"));
    refused(form().field("x-amz-date", "20200101T000000Z"), (400, "InvalidArgument"));
    refused(form().field("AWSAccessKeyId", &root.id), (400, "InvalidRequest"));
    refused(
        form().allowed("acl", "public-read").allowed("x-amz-acl", "public-read"),
        (400, "AccessControlListNotSupported"),
    );
    refused(form().field("key", "again"), (400, "InvalidArgument"));
    refused(form().allowed("x-amz-meta-big", &"x".repeat(3000)), (400, "MetadataTooLarge"));
    refused(form().allowed("x-amz-meta-big", &"x".repeat(70_000)), (400, "MaxPostPreDataLengthExceededError"));
    refused(Form { bucket: "base/k".into(), ..form() }, (405, "MethodNotAllowed"));
    refused(Form::new("", b"x"), (400, "InvalidArgument"));
    let checksum = form().allowed("x-amz-checksum-crc32", "AAAAAA==");
    refused(checksum, (400, "BadDigest"));
    // A secret that is another's, a key that is not for this bucket, and no signature at all.
    let mut thief = root.clone();
    thief.secret = "x".repeat(40);
    assert_eq!(form().post(&thief).fault(), (403, "SignatureDoesNotMatch".into()));
    house.root.put("/other", "").ok();
    let scoped = house.key(&[("other", Role::Admin)]);
    let own = form().post(&scoped);
    let missing = Form { bucket: "nowhere".into(), conditions: vec![r#"["starts-with","$key",""]"#.into()], ..form() };
    assert_eq!(own.fault(), (403, "AccessDenied".into()));
    assert_eq!(missing.post(&scoped).fault(), own.fault());
    let reader = house.key(&[("base", Role::Reader)]);
    assert_eq!(form().post(&reader).fault(), (403, "AccessDenied".into()));
    let plain = [("key".to_owned(), "k".to_owned())];
    assert_eq!(root.raw(&lay_out(root, "base", &plain, Some(("f", b"x")))).fault(), (403, "AccessDenied".into()));
    assert_eq!(root.raw(&lay_out(root, "base", &plain, None)).fault(), (400, "InvalidArgument".into()));
    let mut twice = form().wire(root);
    twice.headers.push(("authorization".into(), "AWS4-HMAC-SHA256 x".into()));
    assert_eq!(root.raw(&twice).fault(), (400, "InvalidArgument".into()));
    assert!(root.get("/base").ok().tags("Key").is_empty());
}

#[test]
fn a_form_that_breaks_off_puts_nothing() {
    let house = House::with_base();
    let root = &house.root;
    let wire = Form::new("k", &[7; 500_000]).wire(root);
    for sent in [10, 700, 200_000, wire.body.len() - 150] {
        let answer = root.cut(&wire, sent);
        assert!([0, 400].contains(&answer.status), "{sent} {}", answer.text());
    }
    let mut short = wire.clone();
    short.body.truncate(400_000);
    assert_eq!(root.raw(&short).fault(), (400, "IncompleteBody".into()));
    let mut other = wire.clone();
    other.headers[1].1 = "multipart/form-data; boundary=other".into();
    assert_eq!(root.raw(&other).status, 400);
    other.headers[1].1 = "multipart/form-data".into();
    assert_eq!(root.raw(&other).fault(), (400, "MalformedPOSTRequest".into()));
    assert!(root.get("/base").ok().tags("Key").is_empty());
}
