//! `aws-chunked` bodies: what is whole is stored without its framing, and everything else is refused and leaves the old object.

use crate::client::{Answer, Ask, Client, Wire, path};
use crate::house::House;

const SIGNED: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
const SIGNED_TRAILER: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
const UNSIGNED_TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
/// The CRC32 of "hello\n".
const CRC: &str = "x-amz-checksum-crc32:NjowIA==";

fn wire(client: &Client, sha: &str, length: &str, more: &[(&str, &str)]) -> Wire {
    let mut ask = Ask::new("PUT", "/base/t").sha(sha).header("x-amz-decoded-content-length", length);
    ask.headers.extend(more.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    client.sign(&ask)
}

fn send(client: &Client, mut wire: Wire, body: impl Into<Vec<u8>>) -> Answer {
    wire.body = body.into();
    client.raw(&wire)
}

fn house() -> House {
    let house = House::with_base();
    house.root.put("/base/t", "old").ok();
    house
}

#[track_caller]
fn old(house: &House) {
    assert_eq!(house.root.get("/base/t").ok().text(), "old");
}

/// C07: the trailer is read and its checksum verified, the declared length is enforced, and no framing is stored.
#[test]
fn unsigned_chunks_with_a_trailer() {
    let house = house();
    let trailer = [("x-amz-trailer", "x-amz-checksum-crc32")];
    let put = |length: &str, headers: &[(&str, &str)], body: &str| {
        send(&house.root, wire(&house.root, UNSIGNED_TRAILER, length, headers), body).fault()
    };
    let good = format!("6\r\nhello\n\r\n0\r\n{CRC}\r\n\r\n");
    assert_eq!(put("6", &trailer, &good.replace("NjowIA==", "AAAAAA==")), (400, "BadDigest".into()));
    assert_eq!(put("6", &trailer, &good.replace("NjowIA==", "?")).0, 400);
    assert_eq!(put("5", &trailer, &good), (400, "IncompleteBody".into()));
    assert_eq!(put("7", &trailer, &good), (400, "IncompleteBody".into()));
    assert_eq!(put("6", &trailer, "6\r\nhello\n\r\n0\r\n\r\n"), (400, "MalformedTrailerError".into()));
    assert_eq!(
        put("6", &trailer, "6\r\nhello\n\r\n0\r\nx-amz-checksum-crc32c:NjowIA==\r\n\r\n"),
        (400, "MalformedTrailerError".into())
    );
    assert_eq!(put("6", &trailer, "6\r\nhello\n\r\n0\r\nnonsense\r\n\r\n").0, 400);
    assert_eq!(put("6", &trailer, "6\r\nhello\n\r\n"), (400, "IncompleteBody".into()), "no final chunk");
    assert_eq!(put("6", &trailer, "6\r\nhel"), (400, "IncompleteBody".into()));
    assert_eq!(put("6", &trailer, "zz\r\nhello\n\r\n0\r\n\r\n"), (400, "InvalidRequest".into()));
    assert_eq!(put("6", &trailer, &good.replacen('6', "+6", 1)), (400, "InvalidRequest".into()), "a size with a sign");
    assert_eq!(put("6", &trailer, "hello\n").0, 400);
    assert_eq!(put("6", &[], &good).0, 400, "no trailer announced");
    assert_eq!(put("6", &[("x-amz-trailer", "x-other")], &good).0, 400);
    old(&house);
    let encoded = [("x-amz-trailer", "x-amz-checksum-crc32"), ("content-encoding", "aws-chunked,gzip")];
    let answer = send(&house.root, wire(&house.root, UNSIGNED_TRAILER, "6", &encoded), good).ok();
    assert_eq!(answer.header("x-amz-checksum-crc32"), Some("NjowIA=="));
    let got = house.root.ask(&Ask::new("GET", "/base/t").header("x-amz-checksum-mode", "ENABLED")).ok();
    assert_eq!((got.text().as_str(), got.header("content-encoding")), ("hello\n", Some("gzip")));
    assert_eq!(got.header("x-amz-checksum-crc32"), Some("NjowIA=="));
}

#[test]
fn one_long_unsigned_chunk_streams() {
    let house = house();
    let data: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut body = format!("{:x}\r\n", data.len()).into_bytes();
    body.extend_from_slice(&data);
    body.extend_from_slice(b"\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n");
    let trailer = [("x-amz-trailer", "x-amz-checksum-crc32")];
    let refused = send(&house.root, wire(&house.root, UNSIGNED_TRAILER, "3000000", &trailer), body);
    assert_eq!(refused.fault(), (400, "BadDigest".into()), "the checksum is of all bytes");
    old(&house);
}

#[test]
fn signed_chunks() {
    let house = house();
    let start = || wire(&house.root, SIGNED, "8", &[("content-encoding", "aws-chunked")]);
    let first = start();
    let body = house.root.chunks(&first, &[b"hel", b"lo wo"], None);
    assert_eq!(send(&house.root, first, body).ok().status, 200);
    let got = house.root.get("/base/t").ok();
    assert_eq!((got.text().as_str(), got.header("content-encoding")), ("hello wo", None));

    house.root.put("/base/t", "old").ok();
    let spoiled = |spoil: &dyn Fn(&mut Vec<u8>)| {
        let first = start();
        let mut body = house.root.chunks(&first, &[b"hel", b"lo wo"], None);
        spoil(&mut body);
        send(&house.root, first, body).fault()
    };
    let find = |body: &[u8], what: &[u8]| body.windows(what.len()).position(|w| w == what).unwrap();
    let flipped = spoiled(&|b| {
        let at = find(b, b"lo wo");
        b[at] ^= 1;
    });
    assert_eq!(flipped, (403, "SignatureDoesNotMatch".into()), "a bit of the second chunk");
    let last = spoiled(&|b| {
        let at = b.len() - 6;
        b[at] = if b[at] == b'0' { b'1' } else { b'0' };
    });
    assert_eq!(last, (403, "SignatureDoesNotMatch".into()), "the signature of the final chunk");
    let without_final = spoiled(&|b| b.truncate(find(b, b"0;chunk-signature=")));
    assert_eq!(without_final, (400, "IncompleteBody".into()));
    let swapped = spoiled(&|b| {
        let second = find(b, b"5;chunk-signature=");
        let end = find(b, b"0;chunk-signature=");
        b[..end].rotate_left(second);
    });
    assert_eq!(swapped, (403, "SignatureDoesNotMatch".into()), "chunks in another order");
    let unsigned = spoiled(&|b| *b = b"8\r\nhello wo\r\n0\r\n\r\n".to_vec());
    assert_eq!(unsigned.0, 400);
    for length in ["7", "9"] {
        let first = wire(&house.root, SIGNED, length, &[]);
        let body = house.root.chunks(&first, &[b"hello wo"], None);
        assert_eq!(send(&house.root, first, body).fault(), (400, "IncompleteBody".into()));
    }
    let mut first = house.root.sign(&Ask::new("PUT", "/base/t").sha(SIGNED));
    first.body = house.root.chunks(&first, &[b"hello wo"], None);
    assert_eq!(house.root.raw(&first).fault(), (411, "MissingContentLength".into()));
    old(&house);
}

/// C07: the same where chunks and trailer are signed.
#[test]
fn signed_chunks_with_a_signed_trailer() {
    let house = house();
    let trailer = [("x-amz-trailer", "x-amz-checksum-crc32")];
    let put = |line: Option<&str>, spoil: &dyn Fn(&mut Vec<u8>)| {
        let first = wire(&house.root, SIGNED_TRAILER, "6", &trailer);
        let mut body = house.root.chunks(&first, &[b"hello\n"], line);
        spoil(&mut body);
        send(&house.root, first, body).fault()
    };
    assert_eq!(put(Some(&CRC.replace("NjowIA==", "AAAAAA==")), &|_| {}), (400, "BadDigest".into()));
    assert_eq!(put(None, &|_| {}), (400, "MalformedTrailerError".into()));
    let forged = put(Some(CRC), &|b| {
        let at = b.len() - 6;
        b[at] = if b[at] == b'0' { b'1' } else { b'0' };
    });
    assert_eq!(forged, (403, "SignatureDoesNotMatch".into()));
    let unsigned = put(Some(CRC), &|b| {
        let at = b.windows(24).position(|w| w == b"x-amz-trailer-signature:").unwrap();
        b.truncate(at);
        b.extend_from_slice(b"\r\n");
    });
    assert_eq!(unsigned.0, 400);
    old(&house);
    assert_eq!(put(Some(CRC), &|_| {}).0, 200);
    assert_eq!(house.root.get("/base/t").ok().text(), "hello\n");
}

#[test]
fn framing_must_be_declared_and_cut_frames_are_refused() {
    let house = house();
    let chunked = |body: &str| Ask::new("PUT", "/base/t").header("content-encoding", "gzip, aws-chunked").body(body);
    let frames = chunked("6\r\nhello\n\r\n0\r\n\r\n").header("x-amz-decoded-content-length", "6");
    assert_eq!(house.root.ask(&frames).fault(), (400, "InvalidRequest".into()));
    old(&house);
    // The word by itself is no property of the object, and no framing either.
    house.root.ask(&chunked("plain")).ok();
    let got = house.root.get("/base/t").ok();
    assert_eq!((got.text().as_str(), got.header("content-encoding")), ("plain", Some("gzip")));
    // What names no framing is answered as it was given.
    house.root.ask(&Ask::new("PUT", "/base/t").header("content-encoding", "deflate, gzip").body("plain")).ok();
    assert_eq!(house.root.get("/base/t").ok().header("content-encoding"), Some("deflate, gzip"));
    house.root.put("/base/t", "old").ok();
    let first = wire(&house.root, SIGNED, "200000", &[]);
    let data = vec![b'x'; 100_000];
    let mut first = first.clone();
    first.body = house.root.chunks(&first, &[&data, &data], None);
    for sent in [10, 50_000, 100_089, 150_000, first.body.len() - 1] {
        let answer = house.root.cut(&first, sent);
        assert!([0, 400].contains(&answer.status), "{sent}: {}", answer.status);
        old(&house);
    }
    assert_eq!(house.root.raw(&first).status, 200);
}

#[test]
fn parts_and_small_bodies_come_in_chunks_too() {
    let house = house();
    let id = house.root.post("/base/m?uploads=", "").ok().tag("UploadId");
    let ask = Ask::new("PUT", &format!("/base/m?partNumber=1&uploadId={id}")).sha(UNSIGNED_TRAILER);
    let ask = ask.header("x-amz-decoded-content-length", "6").header("x-amz-trailer", "x-amz-checksum-crc32");
    let body = format!("6\r\nhello\n\r\n0\r\n{CRC}\r\n\r\n");
    let bad = house.root.ask(&ask.clone().body(body.replace("NjowIA==", "AAAAAA==")));
    assert_eq!(bad.fault(), (400, "BadDigest".into()));
    house.root.ask(&ask.body(body)).ok();
    let delete = "<Delete><Object><Key>t</Key></Object></Delete>";
    let ask =
        Ask::new("POST", "/base?delete=").sha(SIGNED).header("x-amz-decoded-content-length", &delete.len().to_string());
    let mut first = house.root.sign(&ask);
    first.body = house.root.chunks(&first, &[delete.as_bytes()], None);
    let mut forged = first.clone();
    let at = forged.body.windows(3).position(|w| w == b"Key").unwrap();
    forged.body[at] ^= 1;
    assert_eq!(house.root.raw(&forged).fault(), (403, "SignatureDoesNotMatch".into()));
    old(&house);
    house.root.raw(&first).ok();
    assert_eq!(house.root.get(&path("base", "t")).status, 404);
}
