//! Who may ask at all: negative cases in kind, of headers and of presigned URLs, over several operations.

use crate::client::{Ask, UNSIGNED, Wire};
use crate::house::House;

/// Operations that differ in how they take their body and their resource.
const OPERATIONS: [(&str, &str, &str); 9] = [
    ("GET", "/", ""),
    ("GET", "/base?list-type=2", ""),
    ("GET", "/base/k", ""),
    ("HEAD", "/base/k", ""),
    ("PUT", "/base/n", "new"),
    ("DELETE", "/base/k", ""),
    ("POST", "/base?delete=", "<Delete><Object><Key>k</Key></Object></Delete>"),
    ("POST", "/base/m?uploads=", ""),
    ("PUT", "/made-new", ""),
];

fn house() -> House {
    let house = House::with_base();
    house.root.put("/base/k", "kept").ok();
    house
}

/// Nothing may have happened.
#[track_caller]
fn unharmed(house: &House) {
    assert_eq!(house.root.get("/base/k").ok().body, b"kept");
    assert_eq!(house.root.get("/base/n").status, 404);
    assert_eq!(house.root.ask(&Ask::new("HEAD", "/made-new")).status, 404);
    assert!(house.root.get("/base?uploads=").ok().tags("UploadId").is_empty());
}

fn set(wire: &mut Wire, name: &str, value: &str) {
    wire.headers.retain(|(n, _)| n != name);
    wire.headers.push((name.into(), value.into()));
}

fn change(wire: &mut Wire, name: &str, from: &str, to: &str) {
    for (n, v) in &mut wire.headers {
        if n == name {
            assert!(v.contains(from), "{v}");
            *v = v.replace(from, to);
        }
    }
}

#[test]
fn header_authentication() {
    let house = house();
    type Spoil = fn(&mut Wire);
    let spoils: &[(&str, Spoil, &[u16])] = &[
        ("no authorization", |w| w.headers.retain(|(n, _)| n != "authorization"), &[403]),
        ("empty authorization", |w| set(w, "authorization", ""), &[400, 403]),
        ("other scheme", |w| set(w, "authorization", "Bearer abc"), &[400]),
        ("basic", |w| set(w, "authorization", "Basic Zm9vOmJhcg=="), &[400]),
        ("signature version 2", |w| set(w, "authorization", "AWS id:sig"), &[400]),
        ("no credential", |w| change(w, "authorization", "Credential=", "Kredential="), &[400]),
        ("no signed headers", |w| change(w, "authorization", "SignedHeaders=", "Headers="), &[400, 403]),
        ("no signature", |w| change(w, "authorization", "Signature=", "Sig="), &[400]),
        ("unknown key", |w| change(w, "authorization", "Credential=", "Credential=X"), &[403]),
        ("other region in the scope", |w| change(w, "authorization", "/us-east-1/", "/eu-west-1/"), &[403]),
        ("other service", |w| change(w, "authorization", "/s3/", "/ec2/"), &[501]),
        ("other terminator", |w| change(w, "authorization", "aws4_request", "aws5_request"), &[400, 403]),
        (
            "other date in the scope",
            |w| {
                let day = w.date[..8].to_owned();
                change(w, "authorization", &day, "20130524");
            },
            &[403],
        ),
        ("no date", |w| w.headers.retain(|(n, _)| n != "x-amz-date"), &[400, 403]),
        ("malformed date", |w| set(w, "x-amz-date", "yesterday"), &[400]),
        ("other date", |w| set(w, "x-amz-date", "20130524T000000Z"), &[403]),
        ("no payload hash", |w| w.headers.retain(|(n, _)| n != "x-amz-content-sha256"), &[400]),
        ("malformed payload hash", |w| set(w, "x-amz-content-sha256", "abc"), &[403]),
        ("other payload hash", |w| set(w, "x-amz-content-sha256", &"0".repeat(64)), &[403]),
        ("payload unsigned after signing", |w| set(w, "x-amz-content-sha256", UNSIGNED), &[403]),
        (
            "signature changed",
            |w| {
                let last = w.signature.clone();
                change(w, "authorization", &last, &last.chars().rev().collect::<String>());
            },
            &[403],
        ),
        (
            "signature of another length",
            |w| {
                let last = w.signature.clone();
                change(w, "authorization", &last, &last[1..]);
            },
            &[400, 403],
        ),
        ("an unsigned header of S3", |w| set(w, "x-amz-meta-a", "b"), &[403]),
        ("a copy source added", |w| set(w, "x-amz-copy-source", "base/k"), &[403]),
        ("host not signed", |w| change(w, "authorization", "SignedHeaders=host;", "SignedHeaders="), &[403]),
        ("other host", |w| set(w, "host", "elsewhere"), &[403]),
        (
            "two authorizations",
            |w| {
                let again = w.headers.iter().find(|(n, _)| n == "authorization").unwrap().clone();
                w.headers.push(again);
            },
            &[400],
        ),
        (
            "query changed",
            |w| w.target = format!("{}{}versionId=null", w.target, if w.target.contains('?') { '&' } else { '?' }),
            &[403],
        ),
        ("path changed", |w| w.target = w.target.replacen('/', "/x", 1), &[403]),
        ("method changed", |w| w.method = if w.method == "DELETE" { "GET" } else { "DELETE" }.into(), &[403]),
        (
            "credentials in the query too",
            |w| w.target = format!("{}{}X-Amz-Signature=0", w.target, if w.target.contains('?') { '&' } else { '?' }),
            &[400],
        ),
        ("a session token", |w| set(w, "x-amz-security-token", "t"), &[403]),
    ];
    for (method, path, body) in OPERATIONS {
        for (what, spoil, statuses) in spoils {
            let mut wire = house.root.sign(&Ask::new(method, path).body(body));
            spoil(&mut wire);
            let answer = house.root.raw(&wire);
            assert!(statuses.contains(&answer.status), "{what}: {method} {path}: {} {}", answer.status, answer.text());
            assert!(answer.header("x-amz-request-id").is_some());
        }
        for skew in [-1000, 1000] {
            let answer = house.root.ask(&Ask::new(method, path).body(body).skew(skew));
            assert_eq!(answer.status, 403, "{method} {path} {skew}");
        }
    }
    unharmed(&house);
}

/// A request may be dated by `Date` alone, and is as dead when that is another one than was signed, or long ago.
#[test]
fn a_plain_date_dates_a_request() {
    let house = house();
    let ask = Ask::new("GET", "/base/k").plainly_dated();
    house.root.ask(&ask).ok();
    let mut other = house.root.sign(&ask);
    let later = house.root.sign(&ask.clone().skew(60)).headers;
    let date = later.into_iter().find(|(n, _)| n == "date").unwrap().1;
    set(&mut other, "date", &date);
    assert_eq!(house.root.raw(&other).fault(), (403, "SignatureDoesNotMatch".into()));
    assert_eq!(house.root.ask(&ask.clone().skew(-3600)).fault(), (403, "RequestTimeTooSkewed".into()));
    let mut none = house.root.sign(&ask);
    none.headers.retain(|(n, _)| n != "date");
    assert_eq!(house.root.raw(&none).status, 400);
    set(&mut none, "date", "yesterday");
    assert_eq!(house.root.raw(&none).status, 400);
}

#[test]
fn the_payload_must_be_what_was_signed() {
    let house = house();
    for (method, path, body) in OPERATIONS.into_iter().filter(|(_, _, body)| !body.is_empty()) {
        let mut wire = house.root.sign(&Ask::new(method, path).body(body));
        wire.body[0] ^= 1;
        let answer = house.root.raw(&wire);
        assert_eq!(answer.fault(), (400, "XAmzContentSHA256Mismatch".into()), "{method} {path}");
    }
    unharmed(&house);
}

#[test]
fn presigned_urls() {
    let house = house();
    let ask = Ask::new("GET", "/base/k");
    assert_eq!(house.root.raw(&house.root.presign(&ask, 60)).ok().body, b"kept");
    let put = Ask::new("PUT", "/base/p?x-id=PutObject&x-amz-checksum-crc32=AAAAAA%3D%3D").body("by URL");
    house.root.raw(&house.root.presign(&put, 60)).ok();
    assert_eq!(house.root.get("/base/p").ok().body, b"by URL");
    house.root.delete("/base/p").ok();

    let spoil = |spoil: &dyn Fn(&mut Wire)| {
        let mut wire = house.root.presign(&ask, 60);
        spoil(&mut wire);
        house.root.raw(&wire).status
    };
    for name in
        ["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature"]
    {
        assert_eq!(spoil(&|w| w.target = w.target.replace(name, "X-Other")), 400, "{name} is missing");
        assert_eq!(spoil(&|w| w.target = format!("{}&{name}=1", w.target)), 400, "{name} is there twice");
        let broken = spoil(&|w| w.target = w.target.replace(&format!("{name}="), &format!("{name}=x")));
        assert!([400, 403, 501].contains(&broken), "{name} is malformed: {broken}");
    }
    assert_eq!(spoil(&|w| w.method = "PUT".into()), 403);
    assert_eq!(spoil(&|w| w.method = "DELETE".into()), 403);
    assert_eq!(spoil(&|w| w.target = w.target.replace("/base/k", "/base/n")), 403);
    assert_eq!(spoil(&|w| w.target = format!("{}&versionId=null", w.target)), 403);
    assert_eq!(spoil(&|w| set(w, "x-amz-copy-source", "base/k")), 403);
    assert_eq!(spoil(&|w| set(w, "authorization", "AWS4-HMAC-SHA256 x")), 400);
    let life = |expires, skew| house.root.raw(&house.root.presign(&ask.clone().skew(skew), expires)).status;
    assert_eq!(life(60, -100), 403, "expired");
    assert_eq!(life(3600, 1000), 403, "from the future");
    assert_eq!(life(604_800, -1000), 200);
    assert_eq!(life(604_801, 0), 400);
    assert_eq!(life(0, 0), 400);
    unharmed(&house);
}

#[test]
fn forms_and_foreign_headers() {
    let house = house();
    let form = Ask::new("POST", "/base").header("content-type", "multipart/form-data; boundary=b").body("--b\r\n");
    assert_eq!(house.root.ask(&form).fault(), (400, "InvalidArgument".into()), "a form is signed in its fields alone");
    for (name, fault) in [
        ("x-tigris-made-up", (501, "NotImplemented")),
        ("x-tigris-snapshot", (400, "InvalidArgument")),
        ("x-tigris-enable-snapshot", (400, "InvalidArgument")),
    ] {
        let answer = house.root.ask(&Ask::new("DELETE", "/base").header(name, "1"));
        assert_eq!(answer.fault(), (fault.0, fault.1.into()));
        assert!(answer.text().contains(name), "the header is named");
    }
    unharmed(&house);
}

#[test]
fn a_deleted_key_is_dead_at_once() {
    let house = house();
    let key = house.key(&[("base", mw_world::Role::Editor)]);
    key.get("/base/k").ok();
    house.store.delete_key(&house.root_principal(), &key.id).unwrap();
    assert_eq!(key.get("/base/k").fault(), (403, "InvalidAccessKeyId".into()));
}
