//! Published holes of other S3 servers, each by its name: what was possible there is refused here.
//!
//! Each test first shows that the honest form of the request works, so that a refusal is not for another reason.

use crate::calls::{tigris, with_policy};
use crate::client::{Answer, Ask, Client, UNSIGNED, Wire, encode, md5};
use crate::house::House;
use mw_world::{Grant, KeyRequest, Role, Verbs};

const UNSIGNED_TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
/// One chunk with an `x`, and its CRC32 as the trailer.
const CHUNKED: &str = "1\r\nx\r\n0\r\nx-amz-checksum-crc32:jNwWgw==\r\n\r\n";

fn house() -> House {
    let house = House::new();
    for world in ["own", "other"] {
        house.root.put(&format!("/{world}"), "").ok();
        house.root.put(&format!("/{world}/k"), "secret").ok();
    }
    house
}

#[track_caller]
fn refused(answer: &Answer) {
    assert!(matches!(answer.status, 400 | 403), "{} {}", answer.status, answer.text());
    assert!(!answer.text().contains("secret"), "{}", answer.text());
}

/// A path with every byte but the slash in one spelling.
fn one_form(path: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), path.as_bytes());
    while let [first, tail @ ..] = rest {
        let hex = |at: usize| tail.get(at).and_then(|b| char::from(*b).to_digit(16));
        match (*first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            (byte, ..) => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    text.split('/').map(encode).collect::<Vec<_>>().join("/")
}

/// CVE-2026-40344 of MinIO: an unsigned trailer was taken as proof in one handler of several, and the signature was only looked at when there
/// was a header for it, while the key was taken from the query.
#[test]
fn minio_cve_2026_40344_unsigned_trailers_prove_nothing() {
    let house = house();
    let root = &house.root;
    let upload = root.post("/own/m?uploads=", "").ok().tag("UploadId");
    let part = format!("/own/m?partNumber=1&uploadId={upload}");
    for target in ["/own/new", &part[..]] {
        let ask = Ask::new("PUT", target)
            .sha(UNSIGNED_TRAILER)
            .header("x-amz-decoded-content-length", "1")
            .header("x-amz-trailer", "x-amz-checksum-crc32")
            .body(CHUNKED);
        let signed = root.sign(&ask);
        root.raw(&signed).ok();
        root.delete("/own/new").ok();
        let scope = format!("{}/{}/us-east-1/s3/aws4_request", root.id, &signed.date[..8]);
        let (sign, credential) = (if target.contains('?') { '&' } else { '?' }, scope.replace('/', "%2F"));
        let bare = |query: &str| {
            let mut wire = signed.clone();
            wire.headers.retain(|(name, _)| name != "authorization");
            if !query.is_empty() {
                wire.target = format!("{}{sign}{query}", wire.target);
            }
            wire
        };
        let all = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={}&X-Amz-Expires=60&\
             X-Amz-SignedHeaders=host&X-Amz-Signature={}",
            signed.date,
            "0".repeat(64)
        );
        for query in ["", &format!("X-Amz-Credential={credential}")[..], &all[..]] {
            refused(&root.raw(&bare(query)));
        }
        let mut both = signed.clone();
        both.target = format!("{}{sign}{all}", both.target);
        refused(&root.raw(&both));
        let forger = Client { secret: "not it".into(), ..root.clone() };
        refused(&forger.ask(&ask));
    }
    assert_eq!(root.get("/own/new").status, 404);
}

/// CVE-2026-39360 of RustFS: a part could be copied from what the key may not read.
#[test]
fn rustfs_cve_2026_39360_a_copy_source_is_a_second_resource() {
    let house = house();
    house.root.put("/own/hidden/k", "secret").ok();
    let grants = ["open/", "copies/"].map(|prefix| Grant {
        world: "own".into(),
        role: Role::Editor,
        verbs: Verbs::ALL,
        prefix: prefix.into(),
    });
    let request = KeyRequest { name: "narrow".into(), grants: grants.to_vec(), ..KeyRequest::default() };
    let made = house.store.create_key(&house.root_principal(), &request).unwrap();
    let key = Client { addr: house.root.addr, id: made.id, secret: made.secret };
    key.put("/own/open/k", "mine").ok();
    let upload = key.ask(&Ask::new("POST", "/own/copies/m?uploads=")).ok().tag("UploadId");
    let targets = ["/own/copies/n".to_owned(), format!("/own/copies/m?partNumber=1&uploadId={upload}")];
    let copy = |target: &str, source: &str| key.ask(&Ask::new("PUT", target).header("x-amz-copy-source", source));
    for target in &targets {
        copy(target, "own/open/k").ok();
        for place in ["other/k", "own/hidden/k", "no-such/k", "own/open/../hidden/k", "own/open%2F..%2Fhidden%2Fk"] {
            for source in [
                place.to_owned(),
                format!("/{place}"),
                place.replace('/', "%2F"),
                format!("%2F{place}"),
                format!("{place}?versionId=17"),
                format!("{place}?versionId=null"),
            ] {
                let answer = copy(target, &source);
                // A key with dots in it is only a key: one that is open to it, and is not there. Nor is that instant of its own world.
                let own = place.contains("..") || (place.starts_with("own/") && source.ends_with("=17"));
                assert!(
                    answer.status == 403 || (own && matches!(answer.status, 400 | 404)),
                    "{target} from {source}: {} {}",
                    answer.status,
                    answer.text()
                );
            }
        }
    }
    assert_eq!(key.get("/own/copies/n").ok().body, b"mine");
}

/// CVE-2026-21862 of RustFS: the address of a condition was taken from what the client says of itself.
#[test]
fn rustfs_cve_2026_21862_the_address_is_that_of_the_socket() {
    let house = house();
    let within = |range: &str| {
        with_policy(
            &house,
            &format!(
                r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::own/*",
                "Condition":{{"IpAddress":{{"aws:SourceIp":"{range}"}}}}}}]}}"#
            ),
        )
    };
    let (near, far) = (within("127.0.0.0/8"), within("10.0.0.0/8"));
    assert_eq!(near.get("/own/k").ok().body, b"secret");
    refused(&far.get("/own/k"));
    for (name, value) in [
        ("x-forwarded-for", "10.0.0.1"),
        ("x-real-ip", "10.0.0.1"),
        ("forwarded", "for=10.0.0.1"),
        ("true-client-ip", "10.0.0.1"),
        ("cf-connecting-ip", "10.0.0.1"),
        ("x-client-ip", "10.0.0.1"),
        ("x-forwarded-for", "10.0.0.1, 127.0.0.1"),
    ] {
        refused(&far.ask(&Ask::new("GET", "/own/k").header(name, value)));
        near.ask(&Ask::new("GET", "/own/k").header(name, value)).ok();
    }
}

/// CVE-2026-42882 of s3-proxy: one form of the path was authorised and another was acted on.
#[test]
fn s3_proxy_cve_2026_42882_what_is_authorised_is_what_is_read() {
    let house = house();
    let grant = Grant { world: "own".into(), role: Role::Editor, verbs: Verbs::ALL, prefix: "open/".into() };
    let request = KeyRequest { name: "narrow".into(), grants: vec![grant], ..KeyRequest::default() };
    let made = house.store.create_key(&house.root_principal(), &request).unwrap();
    let key = Client { addr: house.root.addr, id: made.id, secret: made.secret };
    // The signature is over the path in its one form, whatever form is sent, so that a refusal is not for the signature.
    let send = |method: &str, path: &str, body: &str| {
        let mut wire = key.sign(&Ask::new(method, &one_form(path)).body(body));
        wire.target = path.to_owned();
        key.raw(&wire)
    };
    send("PUT", "/own/open%2Fk", "mine").ok();
    assert_eq!(key.get("/own/open/k").ok().body, b"mine", "an encoded slash is a slash, to both");
    for path in [
        "/own/open/../k",
        "/own/open%2F..%2Fk",
        "/own/open%2f%2e%2e%2fk",
        "/own/open/%2e%2e/k",
        "/own/open/..%2Fk",
        "/own//k",
        "//own/k",
        "/own/%2Fk",
        "/own/./k",
        "/own/k%00open/",
        "/own/%6B",
        "/own%2Fk",
        "/own/open/../../other/k",
        "/own%2F..%2Fother/k",
        "/other%2Fk",
        "/own/open%252F..%252Fk",
    ] {
        for method in ["GET", "DELETE", "PUT"] {
            let body = if method == "PUT" { "spoilt" } else { "" };
            let answer = send(method, path, body);
            assert!(!answer.text().contains("secret"), "{method} {path}");
            assert_ne!(answer.code(), "SignatureDoesNotMatch", "{method} {path}");
            // What begins with `open/` is a key of its own, dots and all, and this key may write it.
            let own = path.to_ascii_lowercase().starts_with("/own/open");
            assert!(own || matches!(answer.status, 400 | 403 | 404), "{method} {path}: {}", answer.status);
        }
    }
    for path in ["/own/k", "/other/k"] {
        assert_eq!(house.root.get(path).ok().body, b"secret", "{path}");
    }
}

/// GHSA-3rh2-v3gr-35p9 of MinIO: headers of a client became metadata of the server's own.
#[test]
fn minio_ghsa_3rh2_v3gr_35p9_what_the_store_knows_is_not_for_clients_to_say() {
    let house = house();
    let said = [
        ("x-minio-internal-server-side-encryption-iv", "AAAA"),
        ("x-minio-internal-actual-size", "1"),
        ("x-amz-replication-status", "REPLICA"),
        ("x-amz-version-id", "17"),
        ("x-amz-mp-parts-count", "7"),
        ("x-amz-delete-marker", "true"),
        ("x-amz-object-size", "1"),
        ("etag", "\"0\""),
        ("last-modified", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("x-amz-meta-etag", "0"),
        ("x-amz-meta-content-length", "1"),
        ("x-amz-meta-x-minio-internal-actual-size", "1"),
        ("x-amz-meta-version", "17"),
    ];
    let ask = said.iter().fold(Ask::new("PUT", "/own/new").body("hello"), |ask, (name, value)| ask.header(name, value));
    house.root.ask(&ask).ok();
    let got = house.root.get("/own/new").ok();
    assert_eq!((&got.body[..], got.header("content-length")), (&b"hello"[..], Some("5")));
    assert_eq!(got.header("etag"), Some(&format!("\"{}\"", md5(b"hello"))[..]));
    for (name, value) in said {
        let kept = name.starts_with("x-amz-meta-");
        assert_eq!(got.header(name) == Some(value), kept, "{name}: {:?}", got.header(name));
    }
}

/// Old MinIO: a resource of a policy was matched by its beginning.
#[test]
fn old_minio_a_resource_is_matched_whole() {
    let house = house();
    house.root.put("/own-2", "").ok();
    for path in ["/own/kk", "/own/k/l", "/own-2/k"] {
        house.root.put(path, "secret").ok();
    }
    let key = with_policy(
        &house,
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::own/k"}]}"#,
    );
    assert_eq!(key.get("/own/k").ok().body, b"secret");
    for path in ["/own/kk", "/own/k/l", "/own/k/", "/own-2/k", "/own/K", "/other/k"] {
        refused(&key.get(path));
    }
}

/// A server that presigned with the key that the body names.
#[test]
fn a_url_is_presigned_with_the_callers_own_key() {
    let house = house();
    let (reader, admin) =
        (house.key(&[("own", Role::Reader)]), house.key(&[("own", Role::Admin), ("other", Role::Admin)]));
    let ask = |who: &Client, id: &str, bucket: &str| {
        let body = format!(r#"{{"bucket":"{bucket}","key":"k","key_id":"{id}","type":"get"}}"#);
        let ask = Ask::new("POST", "/?func=presign").header("accept", "application/json");
        who.ask(&ask.header("content-type", "application/json").body(body))
    };
    ask(&reader, &reader.id, "own").ok();
    for id in [&admin.id, &house.root.id, "no-such-key"] {
        refused(&ask(&reader, id, "own"));
        refused(&ask(&reader, id, "other"));
    }
    refused(&ask(&reader, &reader.id, "other"));
}

/// A server that neglected the header that names a snapshot, and deleted the bucket.
#[test]
fn what_is_not_understood_deletes_no_bucket() {
    let house = House::with_base();
    let root = &house.root;
    for (name, value) in [
        ("x-tigris-snapshot-version", "17"),
        ("x-tigris-snapshot-version", "nonsense"),
        ("x-tigris-snapshot", "1"),
        ("x-tigris-snapshots", "1"),
        ("x-tigris-fork-source-bucket", "base"),
        ("x-tigris-made-up", "1"),
    ] {
        let answer = root.ask(&Ask::new("DELETE", "/base").header(name, value));
        assert!(answer.status >= 400, "{name}: {}", answer.status);
        assert_eq!(root.ask(&Ask::new("HEAD", "/base")).status, 200, "{name}");
    }
    root.delete("/base").ok();
}

/// A key for `run-1` that reached `run-10`, through the wire and through the calls of its kind.
#[test]
fn a_key_for_run_1_does_not_reach_run_10() {
    let house = House::new();
    for world in ["run-1", "run-10", "run", "run-1.2"] {
        house.root.put(&format!("/{world}"), "").ok();
        house.root.put(&format!("/{world}/k"), "secret").ok();
    }
    let key = house.key(&[("run-1", Role::Admin)]);
    assert_eq!(key.get("/run-1/k").ok().body, b"secret");
    assert_eq!(key.get("/").ok().tags("Name"), ["run-1"]);
    for world in ["run-10", "run", "run-1.2", "run-1%30"] {
        refused(&key.get(&format!("/{world}/k")));
        refused(&key.get(&format!("/{world}?list-type=2")));
        refused(&key.put(&format!("/{world}/n"), "x"));
        refused(&key.ask(&Ask::new("PUT", "/run-1/n").header("x-amz-copy-source", &format!("{world}/k"))));
        refused(&key.raw(&key.presign(&Ask::new("GET", &format!("/{world}/k")), 60)));
    }
    let roles = "%5B%7B%22bucket%22%3A%22run-10%22%2C%22role%22%3A%22Editor%22%7D%5D";
    let form = format!("Req=%7B%22name%22%3A%22more%22%2C%22buckets_role%22%3A{roles}%7D");
    refused(&key.ask(&tigris("/?Action=CreateAccessKeyWithBucketsRole", &form)));
    let wire: Wire = key.sign(&Ask::new("GET", "/run-1/k").sha(UNSIGNED));
    let moved = Wire { target: "/run-10/k".into(), ..wire };
    refused(&key.raw(&moved));
}
