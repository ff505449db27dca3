//! Requests as the AWS SDK for Rust signs them are believed; each of many that differ from them in one signed thing is not.
//!
//! For every way to sign that is accepted, at least [`EACH`] mutants are sent. A mutant changes the *meaning* of one element that the signature
//! covers (another escape of the same byte, or another order of the query, would be the same request). All must be refused, and nothing
//! may have changed.

use crate::client::{Answer, Ask, Client, UNSIGNED, Wire};
use crate::house::House;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SessionTokenMode, SignableBody, SignableRequest, SignatureLocation,
    SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use std::time::{Duration, UNIX_EPOCH};

/// How many mutants of each control.
pub const EACH: usize = 500;
const SIGNED: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
const SIGNED_TRAILER: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
const UNSIGNED_TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
/// The CRC32 of `hello wo`, as a trailer.
const CRC: &str = "x-amz-checksum-crc32:";

/// A generator that is the same everywhere (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    pub fn of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

/// Signs as the SDK does for S3: paths encoded once and not normalised, the payload's hash in a header.
fn sdk(key: &Client, ask: &Ask, service: &str, presigned: bool) -> Wire {
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.session_token_mode = SessionTokenMode::Include;
    settings.payload_checksum_kind =
        if presigned || service != "s3" { PayloadChecksumKind::NoHeader } else { PayloadChecksumKind::XAmzSha256 };
    if presigned {
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(Duration::from_secs(600));
    }
    let identity = Credentials::new(&key.id, &key.secret, None, None, "test").into();
    let seconds = mw_env::Env::real().now() / 1_000_000_000;
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region("auto")
        .name(service)
        .time(UNIX_EPOCH + Duration::from_secs(seconds))
        .settings(settings)
        .build()
        .unwrap()
        .into();
    let query: Vec<String> = ask.query.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let target = if query.is_empty() { ask.path.clone() } else { format!("{}?{}", ask.path, query.join("&")) };
    let mut headers = ask.headers.clone();
    headers.push(("host".into(), key.addr.to_string()));
    let body = match &ask.sha {
        Some(sha) if sha == UNSIGNED => SignableBody::UnsignedPayload,
        Some(sha) => SignableBody::Precomputed(sha.clone()),
        None if presigned => SignableBody::UnsignedPayload,
        None => SignableBody::Bytes(&ask.body),
    };
    let uri = format!("http://{}{target}", key.addr);
    let pairs = headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    let signable = SignableRequest::new(ask.method.as_str(), uri.as_str(), pairs, body).unwrap();
    let (instructions, signature) = sign(signable, &params).unwrap().into_parts();
    let (added, params) = instructions.into_parts();
    for header in added {
        headers.push((header.name().to_owned(), header.value().to_owned()));
    }
    let more: Vec<String> = params.iter().map(|(n, v)| format!("{n}={}", escaped(v))).collect();
    let target = match (more.is_empty(), target.contains('?')) {
        (true, _) => target,
        (_, true) => format!("{target}&{}", more.join("&")),
        (_, false) => format!("{target}?{}", more.join("&")),
    };
    let date = headers.iter().find(|(n, _)| n == "x-amz-date").map_or_else(String::new, |(_, v)| v.clone());
    Wire { target, method: ask.method.clone(), headers, body: ask.body.clone(), signature, date }
}

/// Escapes what a query cannot say plainly.
fn escaped(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

pub fn flip(text: &str, dice: &mut Dice) -> String {
    // One letter or digit becomes another: never a byte that would be taken for the same, or for a separator.
    let places: Vec<usize> =
        text.bytes().enumerate().filter(|(_, b)| b.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
    if places.is_empty() {
        return format!("{text}x");
    }
    let mut bytes = text.as_bytes().to_vec();
    let at = places[dice.below(places.len())];
    let letters = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let old = bytes[at];
    loop {
        let new = letters[dice.below(letters.len())];
        // In an escape or in hexadecimal, both cases are one.
        if !new.eq_ignore_ascii_case(&old) {
            bytes[at] = new;
            return String::from_utf8(bytes).unwrap();
        }
    }
}

fn header<'a>(wire: &'a mut Wire, name: &str) -> &'a mut String {
    &mut wire.headers.iter_mut().find(|(n, _)| n == name).unwrap().1
}

/// The headers that the signature covers.
fn covered(wire: &Wire) -> Vec<String> {
    let list = match wire.headers.iter().find(|(n, _)| n == "authorization") {
        Some((_, value)) => value.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap().to_owned(),
        None => {
            let query = wire.target.split_once('?').unwrap().1;
            let pair = query.split('&').find(|p| p.starts_with("X-Amz-SignedHeaders=")).unwrap();
            pair.split_once('=').unwrap().1.replace("%3B", ";")
        }
    };
    list.split(';').map(str::to_owned).collect()
}

/// Changes one thing that every signature covers; says what.
fn mutate(wire: &mut Wire, dice: &mut Dice) -> String {
    let presigned = wire.target.contains("X-Amz-Signature=");
    match dice.below(if presigned { 7 } else { 8 }) {
        0 => {
            let methods: Vec<&str> =
                ["GET", "PUT", "DELETE", "POST", "HEAD"].into_iter().filter(|m| *m != wire.method).collect();
            wire.method = dice.of(&methods).to_owned();
            "the method".into()
        }
        1 => {
            let (path, query) = wire.target.split_once('?').map_or((wire.target.as_str(), None), |(p, q)| (p, Some(q)));
            let path = match dice.below(5) {
                0 => format!("{path}x"),
                1 => format!("{path}/"),
                2 => format!("/x{path}"),
                3 => format!("{path}%2E"),
                _ => flip(path, dice),
            };
            wire.target = query.map_or(path.clone(), |q| format!("{path}?{q}"));
            format!("the path: {}", wire.target)
        }
        2 => {
            let sign = if wire.target.contains('?') { '&' } else { '?' };
            let more = dice.of(&[
                "versionId=null",
                "tagging=",
                "acl=",
                "x=1",
                "uploads=",
                "partNumber=1",
                "response-expires=0",
            ]);
            wire.target = format!("{}{sign}{more}", wire.target);
            format!("the query: {more}")
        }
        3 | 4 => {
            let names = covered(wire);
            let name = names[dice.below(names.len())].clone();
            let value = header(wire, &name);
            *value = flip(value, dice);
            format!("the header {name}")
        }
        5 => {
            let names = covered(wire);
            let name = names[dice.below(names.len())].clone();
            wire.headers.retain(|(n, _)| *n != name);
            format!("without the header {name}")
        }
        6 if presigned => {
            let (path, query) = wire.target.split_once('?').unwrap();
            let mut pairs: Vec<String> = query.split('&').map(str::to_owned).collect();
            let at = dice.below(pairs.len());
            let (name, value) = pairs[at].split_once('=').unwrap();
            let changed = match dice.below(4) {
                0 => None,
                1 => Some(format!("{}={value}", flip(name, dice))),
                _ if value.is_empty() => Some(format!("{name}=1")),
                _ => Some(format!("{name}={}", flip_decoded(value, dice))),
            };
            let what = format!("the parameter {name}: {changed:?}");
            match changed {
                Some(pair) => pairs[at] = pair,
                None => drop(pairs.remove(at)),
            }
            wire.target = format!("{path}?{}", pairs.join("&"));
            what
        }
        _ => {
            let value = header(wire, "authorization").clone();
            let (head, signature) = value.rsplit_once("Signature=").unwrap();
            let (credential, names) = head.split_once("SignedHeaders=").unwrap();
            let changed = match dice.below(4) {
                0 => format!("{head}Signature={}", flip(signature, dice)),
                1 => {
                    let (start, scope) = credential.split_once("Credential=").unwrap();
                    format!("{start}Credential={}SignedHeaders={names}Signature={signature}", flip(scope, dice))
                }
                2 => format!("{credential}SignedHeaders={}Signature={signature}", flip(names, dice)),
                _ => format!("{head}Signature={}", &signature[..dice.below(64)]),
            };
            *header(wire, "authorization") = changed.clone();
            format!("the authorization: {changed}")
        }
    }
}

/// Changes a letter of a value that may hold escapes, but none of an escape's digits, which have two spellings.
fn flip_decoded(value: &str, dice: &mut Dice) -> String {
    match value.rsplit_once('%') {
        Some((head, tail)) if tail.len() > 2 => format!("{head}%{}{}", &tail[..2], flip(&tail[2..], dice)),
        Some(_) => format!("{value}x"),
        None => flip(value, dice),
    }
}

pub fn house() -> House {
    let house = House::new();
    for world in ["base", "other"] {
        house.root.put(&format!("/{world}"), "").ok();
        house.root.put(&format!("/{world}/dir/k"), "kept").ok();
    }
    house
}

/// What the store holds.
pub fn state(house: &House) -> Vec<String> {
    let mut all = house.root.get("/").ok().tags("Name");
    for world in ["base", "other"] {
        let listed = house.root.get(&format!("/{world}?list-type=2")).ok();
        all.extend(listed.tags("Key").into_iter().zip(listed.tags("ETag")).map(|(k, e)| format!("{world}/{k} {e}")));
        all.extend(house.root.get(&format!("/{world}?uploads=")).ok().tags("UploadId"));
    }
    all
}

/// Sends the request as it is, which must be believed, then mutants of it. `spoil` changes one thing of those that this control alone
/// covers, and is asked for every other mutant.
fn control(
    house: &House,
    name: &str,
    make: &dyn Fn() -> Wire,
    spoil: Option<&dyn Fn(&mut Wire, &mut Dice) -> String>,
    believed: &dyn Fn(&Answer) -> bool,
) {
    let fine = house.root.raw(&make());
    assert!(believed(&fine), "{name}: {} {}", fine.status, fine.text());
    let before = state(house);
    let mut dice = Dice(name.len() as u64);
    for n in 0..EACH {
        let mut wire = make();
        let what = match spoil {
            Some(spoil) if n % 2 == 0 => spoil(&mut wire, &mut dice),
            _ => mutate(&mut wire, &mut dice),
        };
        let answer = house.root.raw(&wire);
        let refused = matches!(answer.status, 400 | 403 | 411 | 501);
        assert!(refused, "{name}, mutant {n}, {what}: {} {}", answer.status, answer.text());
    }
    assert_eq!(state(house), before, "{name}: a mutant changed something");
}

fn ok(answer: &Answer) -> bool {
    matches!(answer.status, 200 | 204 | 206)
}

fn body(wire: &mut Wire, dice: &mut Dice) -> String {
    let at = dice.below(wire.body.len());
    match dice.below(3) {
        0 => wire.body[at] ^= 1 << dice.below(8),
        1 => wire.body.insert(at, b'+'),
        _ => drop(wire.body.remove(at)),
    }
    format!("the body at {at}")
}

#[test]
fn headers_over_the_hash_of_the_body() {
    let house = house();
    let put = Ask::new("PUT", "/base/dir/new")
        .header("content-type", "text/plain")
        .header("x-amz-meta-color", "blue")
        .header("x-amz-storage-class", "STANDARD")
        .body("hello world");
    control(&house, "put, hashed", &|| sdk(&house.root, &put, "s3", false), Some(&body), &ok);
    let get =
        Ask::new("GET", "/base/dir/k?response-content-type=text%2Fplain&x-id=GetObject").header("range", "bytes=0-2");
    control(&house, "get", &|| sdk(&house.root, &get, "s3", false), None, &ok);
    let list = Ask::new("GET", "/base?list-type=2&prefix=dir%2F&max-keys=10");
    control(&house, "list", &|| sdk(&house.root, &list, "s3", false), None, &ok);
    let copy = Ask::new("PUT", "/base/dir/copy")
        .header("x-amz-copy-source", "base/dir/k")
        .header("x-amz-metadata-directive", "COPY");
    control(&house, "copy", &|| sdk(&house.root, &copy, "s3", false), None, &ok);
    let delete = Ask::new("POST", "/base?delete=").body("<Delete><Object><Key>none-such</Key></Object></Delete>");
    control(&house, "bulk delete", &|| sdk(&house.root, &delete, "s3", false), Some(&body), &ok);
}

#[test]
fn headers_over_an_unsigned_payload() {
    let house = house();
    let put = Ask::new("PUT", "/base/dir/new").header("x-amz-meta-color", "blue").sha(UNSIGNED).body("hello world");
    control(&house, "put, unsigned payload", &|| sdk(&house.root, &put, "s3", false), None, &ok);
}

#[test]
fn presigned_urls() {
    let house = house();
    let get = Ask::new("GET", "/base/dir/k?response-content-disposition=inline");
    control(&house, "presigned get", &|| sdk(&house.root, &get, "s3", true), None, &ok);
    let put = Ask::new("PUT", "/base/dir/new")
        .header("content-type", "text/plain")
        .header("x-amz-meta-color", "blue")
        .body("hello world");
    control(&house, "presigned put with signed headers", &|| sdk(&house.root, &put, "s3", true), None, &ok);
}

#[test]
fn forms_of_iam_and_sts() {
    let house = house();
    let form = Ask::new("POST", "/")
        .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
        .body("Action=GetCallerIdentity&Version=2011-06-15");
    for service in ["s3", "iam", "sts"] {
        control(
            &house,
            &format!("a form for {service}"),
            &|| sdk(&house.root, &form, service, false),
            Some(&body),
            &ok,
        );
    }
}

/// The places of a chunked body that its signatures cover: sizes, signatures and data; not the line ends.
fn chunked(wire: &mut Wire, dice: &mut Dice) -> String {
    let text = String::from_utf8(wire.body.clone()).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    let mut lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
    let last = lines.iter().position(|l| l.starts_with("0;") || l == "0").unwrap();
    let what = match dice.below(6) {
        0 if last >= 4 => {
            lines.swap(0, 2);
            lines.swap(1, 3);
            "two chunks swapped"
        }
        1 => {
            lines.drain(last..);
            "without the last chunk"
        }
        2 => {
            let (_, signature) = lines[0].split_once("chunk-signature=").unwrap();
            let wrong = lines[0].replace(signature, &flip(signature, dice));
            lines[0] = wrong;
            "a chunk's signature"
        }
        3 => {
            let (_, signature) = lines[last].split_once("chunk-signature=").unwrap();
            let wrong = lines[last].replace(signature, &flip(signature, dice));
            lines[last] = wrong;
            "the last chunk's signature"
        }
        4 => {
            lines.drain(0..2);
            "without the first chunk"
        }
        _ => {
            let at = 1 + 2 * dice.below(last / 2);
            lines[at] = flip(&lines[at], dice);
            "a chunk's data"
        }
    };
    wire.body = lines.join("\r\n").into_bytes();
    what.into()
}

/// As [`chunked`], or the trailer.
fn trailed(wire: &mut Wire, dice: &mut Dice) -> String {
    if dice.below(2) == 0 {
        return chunked(wire, dice);
    }
    let text = String::from_utf8(wire.body.clone()).unwrap();
    let (head, signature) = text.rsplit_once("x-amz-trailer-signature:").unwrap();
    let (start, sum) = head.rsplit_once(CRC).unwrap();
    let (what, text) = match dice.below(4) {
        0 => ("the trailer's signature", format!("{head}x-amz-trailer-signature:{}", flip(signature, dice))),
        1 => ("the trailer's value", format!("{start}{CRC}{}x-amz-trailer-signature:{signature}", flip(sum, dice))),
        2 => ("without the trailer", format!("{start}x-amz-trailer-signature:{signature}")),
        _ => ("without the trailer's signature", format!("{head}\r\n")),
    };
    wire.body = text.into_bytes();
    what.into()
}

/// As the body of an unsigned stream has it: only the checksum in the trailer covers the data.
fn summed(wire: &mut Wire, dice: &mut Dice) -> String {
    let text = String::from_utf8(wire.body.clone()).unwrap();
    let (what, text) = match dice.below(4) {
        0 => ("the data", text.replacen("hello wo", &flip("hello wo", dice), 1)),
        1 => {
            let (start, sum) = text.split_once(CRC).unwrap();
            ("the trailer", format!("{start}{CRC}{}", flip(sum, dice)))
        }
        2 => ("without the trailer", text.split_once(CRC).unwrap().0.to_owned() + "\r\n"),
        _ => ("without the last chunk", text.split_once("0\r\n").unwrap().0.to_owned()),
    };
    wire.body = text.into_bytes();
    what.into()
}

#[test]
fn signed_chunks() {
    let house = house();
    let ask = Ask::new("PUT", "/base/dir/new")
        .header("x-amz-decoded-content-length", "16")
        .header("content-encoding", "aws-chunked")
        .sha(SIGNED);
    // The chunks' signatures follow from that of the head, which this client makes with the same rules.
    let make = || {
        let mut wire = house.root.sign(&ask);
        wire.body = house.root.chunks(&wire, &[b"hello wo", b"rld, all"], None);
        wire
    };
    control(&house, "signed chunks", &make, Some(&chunked), &ok);
}

#[test]
fn signed_chunks_and_a_signed_trailer() {
    let house = house();
    let ask = Ask::new("PUT", "/base/dir/new")
        .header("x-amz-decoded-content-length", "16")
        .header("content-encoding", "aws-chunked")
        .header("x-amz-trailer", "x-amz-checksum-crc32")
        .sha(SIGNED_TRAILER);
    let sum = crc32(b"hello world, all");
    let make = || {
        let mut wire = house.root.sign(&ask);
        wire.body = house.root.chunks(&wire, &[b"hello wo", b"rld, all"], Some(&format!("{CRC}{sum}")));
        wire
    };
    control(&house, "signed chunks and trailer", &make, Some(&trailed), &ok);
}

#[test]
fn unsigned_chunks_and_a_trailer() {
    let house = house();
    let ask = Ask::new("PUT", "/base/dir/new")
        .header("x-amz-decoded-content-length", "8")
        .header("content-encoding", "aws-chunked")
        .header("x-amz-trailer", "x-amz-checksum-crc32")
        .sha(UNSIGNED_TRAILER);
    let sum = crc32(b"hello wo");
    let make = || {
        let mut wire = sdk(&house.root, &ask, "s3", false);
        wire.body = format!("8\r\nhello wo\r\n0\r\n{CRC}{sum}\r\n\r\n").into_bytes();
        wire
    };
    control(&house, "unsigned chunks", &make, Some(&summed), &ok);
}

/// The checksum that S3 calls CRC32, in base64 (RFC 1952, 8; bit by bit).
pub fn crc32(bytes: &[u8]) -> String {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    let word = (!crc).to_be_bytes();
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in word.chunks(3) {
        let n = part.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - part.len()));
        for at in 0..=part.len() {
            text.push(char::from(letters[(n >> (18 - 6 * at) & 63) as usize]));
        }
        text.push_str(&"=".repeat(3 - part.len()));
    }
    text
}

/// A signature for one service is none for another's calls, and a region is anybody's.
#[test]
fn services_belong_where_they_belong() {
    let house = house();
    let form =
        Ask::new("POST", "/").header("content-type", "application/x-www-form-urlencoded").body("Action=ListAccessKeys");
    for service in ["s3", "iam", "sts"] {
        assert!(ok(&house.root.raw(&sdk(&house.root, &form, service, false))), "{service}");
    }
    for service in ["iam", "sts", "ec2", "execute-api"] {
        for ask in [
            Ask::new("GET", "/"),
            Ask::new("GET", "/base/dir/k"),
            Ask::new("PUT", "/base/dir/new").body("x"),
            Ask::new("DELETE", "/base/dir/k"),
            Ask::new("GET", "/users/whoami"),
        ] {
            let answer = house.root.raw(&sdk(&house.root, &ask, service, false));
            assert!(matches!(answer.status, 403 | 501), "{service} {} {}: {}", ask.method, ask.path, answer.text());
        }
    }
    for service in ["ec2", "sso"] {
        let answer = house.root.raw(&sdk(&house.root, &form, service, false));
        assert!(matches!(answer.status, 403 | 501), "{service}: {}", answer.text());
    }
    assert_eq!(house.root.get("/base/dir/k").ok().body, b"kept");
    // What goes wrong before the call is known is said in the words of the call, too.
    let stranger = Client { secret: "wrong".into(), ..house.root.clone() };
    for service in ["s3", "iam", "sts"] {
        let answer = stranger.raw(&sdk(&stranger, &form, service, false));
        assert_eq!(answer.status, 403, "{service}");
        assert!(answer.text().starts_with("<ErrorResponse>"), "{service}: {}", answer.text());
        let json = stranger.raw(&sdk(&stranger, &form.clone().header("accept", "application/json"), service, false));
        assert!(json.text().contains("\"Message\":"), "{service}: {}", json.text());
    }
}
