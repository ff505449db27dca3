mod broken;
mod vectors;

use super::*;

const S3: Taken<'static> = Taken { services: &["s3"], body: None };

/// The key of the examples in the AWS reference.
const ID: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
/// 2013-05-24T00:00:00Z, the date of those examples.
const NOW: u64 = 1_369_353_600_000_000_000;
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn credentials() -> Credentials {
    Credentials { id: ID.to_owned(), secret: SECRET.to_owned(), token: None }
}

fn signature(request: Request<'_>, headers: &[(&str, &str)], payload: &str) -> String {
    let headers = sign(&credentials(), "us-east-1", request, headers, payload, NOW).unwrap();
    headers[2].1.rsplit_once("Signature=").unwrap().1.to_owned()
}

// The four vectors: AWS reference, "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".

#[test]
fn vector_get_object() {
    let request = Request { method: "GET", path: "/test.txt", query: "" };
    let headers = [("host", "examplebucket.s3.amazonaws.com"), ("range", "bytes=0-9")];
    assert_eq!(signature(request, &headers, EMPTY), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

#[test]
fn vector_put_object() {
    let request = Request { method: "PUT", path: "/test%24file.text", query: "" };
    let headers = [
        ("Date", "Fri, 24 May 2013 00:00:00 GMT"),
        ("host", "examplebucket.s3.amazonaws.com"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    let payload = sha256_hex(b"Welcome to Amazon S3.");
    assert_eq!(
        signature(request, &headers, &payload),
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
    );
}

#[test]
fn vector_get_lifecycle() {
    let request = Request { method: "GET", path: "/", query: "lifecycle" };
    let headers = [("host", "examplebucket.s3.amazonaws.com")];
    assert_eq!(signature(request, &headers, EMPTY), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

#[test]
fn vector_list_objects() {
    let request = Request { method: "GET", path: "/", query: "max-keys=2&prefix=J" };
    let headers = [("host", "examplebucket.s3.amazonaws.com")];
    assert_eq!(signature(request, &headers, EMPTY), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/// A signed request as a server sees it.
fn signed(request: Request<'_>, payload: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert("host", "127.0.0.1:9700".parse().unwrap());
    for (name, value) in sign(&credentials(), "auto", request, &[("host", "127.0.0.1:9700")], payload, NOW).unwrap() {
        map.insert(name, value.parse().unwrap());
    }
    map
}

const GET: Request<'static> = Request { method: "GET", path: "/-/v1/worlds", query: "a=b%2Fc&limit=1" };

fn check(request: Request<'_>, headers: &HeaderMap, now: u64) -> Result<Verified> {
    verify(request, headers, now, S3, |id| Ok::<_, Error>((id == ID).then(|| SECRET.to_owned())))
}

#[test]
fn what_was_signed_verifies() {
    let verified = check(GET, &signed(GET, EMPTY), NOW).unwrap();
    assert_eq!(verified.key, ID);
    assert!(verified.payload.check(b"").is_ok());
    assert_eq!(verified.payload.check(b"x").unwrap_err().kind(), ErrorKind::Invalid);
    let stream = check(GET, &signed(GET, UNSIGNED), NOW).unwrap();
    assert_eq!(stream.payload, Payload::Unsigned);
    assert_eq!(stream.payload.check(b"x").unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn the_clock_may_be_off_by_a_quarter_of_an_hour() {
    let headers = signed(GET, EMPTY);
    for (seconds, fine) in [(0_i64, true), (SKEW, true), (-SKEW, true), (SKEW + 1, false), (-SKEW - 1, false)] {
        let now = NOW.wrapping_add_signed(seconds * 1_000_000_000);
        assert_eq!(check(GET, &headers, now).is_ok(), fine, "{seconds}");
    }
}

#[test]
fn a_change_of_any_signed_part_is_refused() {
    let headers = signed(GET, EMPTY);
    for request in [
        Request { method: "DELETE", ..GET },
        Request { path: "/-/v1/world", ..GET },
        Request { query: "a=b%2Fd&limit=1", ..GET },
        Request { query: "", ..GET },
    ] {
        assert_eq!(check(request, &headers, NOW).unwrap_err().kind(), ErrorKind::Denied, "{request:?}");
    }
    for name in ["host", "x-amz-content-sha256"] {
        let mut changed = headers.clone();
        changed.insert(name, UNSIGNED.parse().unwrap());
        assert_eq!(check(GET, &changed, NOW).unwrap_err().kind(), ErrorKind::Denied, "{name}");
    }
    // The order of the query and its escapes are canonicalised.
    assert!(check(Request { query: "limit=1&a=b/c", ..GET }, &headers, NOW).is_ok());
}

#[test]
fn malformed_authorization_is_refused() {
    let good = signed(GET, EMPTY);
    let text = good["authorization"].to_str().unwrap().to_owned();
    let cases = [
        String::new(),
        "Basic Zm9v".to_owned(),
        "AWS AKIAIOSFODNN7EXAMPLE:c2ln".to_owned(),
        text.replace("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512"),
        text.replace("/s3/", "/iam/"),
        text.replace("/aws4_request", "/aws4"),
        text.replace("20130524/", "20130525/"),
        text.replace(";x-amz-date", ""),
        text.replace("host;", ""),
        text.replace("host;x-amz-content-sha256;", "x-amz-content-sha256;host;"),
        text.replace("SignedHeaders=host", "SignedHeaders=absent;host"),
        text.replace("Signature=", "Signature=0"),
        text.replace("Signature=", "Signature=zz"),
        text.split(",Signature").next().unwrap().to_owned(),
        format!("{text},Signature=00"),
        text.replace(ID, "AKIAOTHER"),
        text.replace(&format!("{ID}/"), ""),
    ];
    for case in cases {
        let mut headers = good.clone();
        headers.insert("authorization", case.parse().unwrap());
        assert_eq!(check(GET, &headers, NOW).unwrap_err().kind(), ErrorKind::Denied, "{case}");
    }
    for missing in ["authorization", "host", "x-amz-date", "x-amz-content-sha256"] {
        let mut headers = good.clone();
        headers.remove(missing);
        assert_eq!(check(GET, &headers, NOW).unwrap_err().kind(), ErrorKind::Denied, "{missing}");
    }
    let mut twice = good.clone();
    twice.append("x-amz-date", "20130524T000000Z".parse().unwrap());
    assert!(check(GET, &twice, NOW).is_err());
}

#[test]
fn an_unknown_key_and_a_wrong_signature_look_alike() {
    let good = signed(GET, EMPTY);
    let unknown = verify(GET, &good, NOW, S3, |_| Ok::<_, Error>(None)).unwrap_err();
    let wrong = verify(GET, &good, NOW, S3, |_| Ok::<_, Error>(Some("other".to_owned()))).unwrap_err();
    assert_eq!(unknown.to_string(), wrong.to_string());
}

#[test]
fn credentials_in_the_query_are_refused() {
    let request = Request { query: "X-Amz-Signature=00", ..GET };
    assert!(check(request, &signed(request, EMPTY), NOW).is_err());
}
