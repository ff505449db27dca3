//! A client of HTTP/1.1 and Signature Version 4 (AWS, "Signature calculations for the Authorization header"), in the open.

use mw_env::Env;
use s3s::crypto::{Checksum, Md5, Sha256};
use s3s::dto::{Timestamp, TimestampFormat};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The payload of whoever does not hash it.
pub const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// The hash of nothing.
pub const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A key and the store that it belongs to.
#[derive(Clone)]
pub struct Client {
    pub addr: SocketAddr,
    pub id: String,
    pub secret: String,
}

/// A request before it is signed. `path` is as it goes over the wire.
#[derive(Clone)]
pub struct Ask {
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// `x-amz-content-sha256`; the hash of the body when absent.
    pub sha: Option<String>,
    /// Seconds by which the clock of the client is wrong.
    pub skew: i64,
    pub host: Option<String>,
    /// The region that it is signed for.
    pub region: &'static str,
    /// Whether it is dated by `Date` alone.
    pub plainly_dated: bool,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query = query
            .split('&')
            .filter(|q| !q.is_empty())
            .map(|q| q.split_once('=').unwrap_or((q, "")))
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .collect();
        Self {
            method: method.into(),
            path: path.into(),
            query,
            headers: Vec::new(),
            body: Vec::new(),
            sha: None,
            skew: 0,
            host: None,
            region: "us-east-1",
            plainly_dated: false,
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn sha(mut self, sha: &str) -> Self {
        self.sha = Some(sha.to_owned());
        self
    }

    pub fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    pub fn region(mut self, region: &'static str) -> Self {
        self.region = region;
        self
    }

    pub fn plainly_dated(mut self) -> Self {
        self.plainly_dated = true;
        self
    }

    pub fn skew(mut self, seconds: i64) -> Self {
        self.skew = seconds;
        self
    }
}

/// A request as it goes over the wire.
#[derive(Clone)]
pub struct Wire {
    pub target: String,
    pub method: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The signature, from which those of chunks follow.
    pub signature: String,
    pub date: String,
}

impl Client {
    fn date(skew: i64) -> String {
        let seconds = (Env::real().now() / 1_000_000_000) as i64 + skew;
        stamp(seconds)
    }

    /// Signs a request in its Authorization header.
    pub fn sign(&self, ask: &Ask) -> Wire {
        let date = Self::date(ask.skew);
        let sha = ask.sha.clone().unwrap_or_else(|| hex(&Sha256::checksum(&ask.body)));
        let mut headers = ask.headers.clone();
        headers.push(("host".into(), ask.host.clone().unwrap_or_else(|| self.addr.to_string())));
        headers.push(match ask.plainly_dated {
            true => ("date".into(), http_date(ask.skew)),
            false => ("x-amz-date".into(), date.clone()),
        });
        headers.push(("x-amz-content-sha256".into(), sha.clone()));
        let query = canonical_query(&ask.query);
        let (names, canonical) = canonical_headers(&headers);
        let request = format!("{}\n{}\n{query}\n{canonical}\n{names}\n{sha}", ask.method, ask.path);
        let scope = format!("{}/{}/s3/aws4_request", &date[..8], ask.region);
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::checksum(request.as_bytes())));
        let signature = hex(&hmac(&self.signing_key(&date, ask.region), text.as_bytes()));
        headers.push((
            "authorization".into(),
            format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", self.id),
        ));
        let target = if query.is_empty() { ask.path.clone() } else { format!("{}?{query}", ask.path) };
        Wire { target, method: ask.method.clone(), headers, body: ask.body.clone(), signature, date }
    }

    /// Signs a request in its query.
    pub fn presign(&self, ask: &Ask, expires: u64) -> Wire {
        let date = Self::date(ask.skew);
        let scope = format!("{}/us-east-1/s3/aws4_request", &date[..8]);
        let host = ask.host.clone().unwrap_or_else(|| self.addr.to_string());
        let mut query = ask.query.clone();
        for (name, value) in [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &encode(&format!("{}/{scope}", self.id))),
            ("X-Amz-Date", &date),
            ("X-Amz-Expires", &expires.to_string()),
            ("X-Amz-SignedHeaders", "host"),
        ] {
            query.push((name.into(), value.into()));
        }
        let canonical = canonical_query(&query);
        let request = format!("{}\n{}\n{canonical}\nhost:{host}\n\nhost\n{UNSIGNED}", ask.method, ask.path);
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::checksum(request.as_bytes())));
        let signature = hex(&hmac(&self.signing_key(&date, "us-east-1"), text.as_bytes()));
        let mut headers = ask.headers.clone();
        headers.push(("host".into(), host));
        let target = format!("{}?{canonical}&X-Amz-Signature={signature}", ask.path);
        Wire { target, method: ask.method.clone(), headers, body: ask.body.clone(), signature, date }
    }

    fn signing_key(&self, date: &str, region: &str) -> Vec<u8> {
        [region, "s3", "aws4_request"]
            .iter()
            .fold(hmac(format!("AWS4{}", self.secret).as_bytes(), &date.as_bytes()[..8]), |key, part| {
                hmac(&key, part.as_bytes())
            })
    }

    /// Signs the chunks of a body, and its trailer.
    pub fn chunks(&self, wire: &Wire, chunks: &[&[u8]], trailer: Option<&str>) -> Vec<u8> {
        let key = self.signing_key(&wire.date, "us-east-1");
        let scope = format!("{}/us-east-1/s3/aws4_request", &wire.date[..8]);
        let (mut body, mut last) = (Vec::new(), wire.signature.clone());
        for chunk in chunks.iter().copied().chain([&b""[..]]) {
            let text = format!(
                "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{scope}\n{last}\n{EMPTY}\n{}",
                wire.date,
                hex(&Sha256::checksum(chunk))
            );
            last = hex(&hmac(&key, text.as_bytes()));
            body.extend_from_slice(format!("{:x};chunk-signature={last}\r\n", chunk.len()).as_bytes());
            if !chunk.is_empty() {
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
        }
        if let Some(trailer) = trailer {
            let hash = hex(&Sha256::checksum(format!("{trailer}\n").as_bytes()));
            let text = format!("AWS4-HMAC-SHA256-TRAILER\n{}\n{scope}\n{last}\n{hash}", wire.date);
            let signature = hex(&hmac(&key, text.as_bytes()));
            body.extend_from_slice(format!("{trailer}\r\nx-amz-trailer-signature:{signature}\r\n").as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        body
    }

    /// Sends a request as it is.
    pub fn raw(&self, wire: &Wire) -> Answer {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.write_all(&head(wire, Some(wire.body.len()))).unwrap();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(&wire.body);
        read(&mut stream, &wire.method)
    }

    /// Sends a request on a connection that the client would keep.
    pub fn keeping(&self, wire: &Wire) -> Answer {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        let head = String::from_utf8(head(wire, Some(wire.body.len()))).unwrap().replace("connection: close\r\n", "");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&wire.body).unwrap();
        read(&mut stream, &wire.method)
    }

    /// Sends the head and a part of the body, then closes the sending side.
    pub fn cut(&self, wire: &Wire, sent: usize) -> Answer {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.write_all(&head(wire, Some(wire.body.len()))).unwrap();
        stream.write_all(&wire.body[..sent]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        read(&mut stream, &wire.method)
    }

    /// Signs and sends.
    pub fn ask(&self, ask: &Ask) -> Answer {
        self.raw(&self.sign(ask))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&Ask::new("GET", path))
    }

    pub fn put(&self, path: &str, body: impl Into<Vec<u8>>) -> Answer {
        self.ask(&Ask::new("PUT", path).body(body))
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.ask(&Ask::new("DELETE", path))
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.ask(&Ask::new("POST", path).body(body))
    }
}

fn head(wire: &Wire, length: Option<usize>) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", wire.method, wire.target);
    if let Some(length) = length.filter(|n| *n > 0 || matches!(wire.method.as_str(), "PUT" | "POST")) {
        head.push_str(&format!("content-length: {length}\r\n"));
    }
    let mut head = head.into_bytes();
    for (name, value) in &wire.headers {
        head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn read(stream: &mut TcpStream, method: &str) -> Answer {
    let mut all = Vec::new();
    // A reset after the answer is how a server tells a client to stop sending.
    let _ = stream.read_to_end(&mut all);
    let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Answer { status: 0, headers: Vec::new(), body: all };
    };
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned()))
        .collect();
    let mut body = all[end + 4..].to_vec();
    if headers.iter().any(|(n, v)| n == "transfer-encoding" && v == "chunked") {
        body = unchunked(&body);
    }
    let length = headers.iter().find(|(n, _)| n == "content-length").map(|(_, v)| v.parse::<usize>().unwrap());
    if let Some(length) = length.filter(|_| method != "HEAD" && status != 304) {
        assert_eq!(body.len(), length, "the answer is cut: {head}");
    }
    Answer { status, headers, body }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = body.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            break;
        }
        all.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
    all
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The error code of an XML answer.
    pub fn code(&self) -> String {
        self.tags("Code").into_iter().next().unwrap_or_default()
    }

    /// Status and error code together.
    pub fn fault(&self) -> (u16, String) {
        (self.status, self.code())
    }

    /// The texts of all elements of one name, with entities resolved.
    pub fn tags(&self, name: &str) -> Vec<String> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let text = self.text();
        let plain = |t: &str| {
            let t = t.replace("&#13;", "\r").replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            t.replace("&apos;", "'").replace("&amp;", "&")
        };
        text.split(&open).skip(1).filter_map(|t| t.split_once(&close)).map(|(t, _)| plain(t)).collect()
    }

    pub fn tag(&self, name: &str) -> String {
        self.tags(name).into_iter().next().unwrap_or_default()
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        self
    }
}

/// Percent-encodes a segment as SigV4 wants it.
pub fn encode(text: &str) -> String {
    text.bytes()
        .map(|b| match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
            b => format!("%{b:02X}"),
        })
        .collect()
}

/// Percent-encodes a key.
pub fn path(bucket: &str, key: &str) -> String {
    let key: Vec<_> = key.split('/').map(encode).collect();
    format!("/{bucket}/{}", key.join("/"))
}

pub fn md5(data: &[u8]) -> String {
    hex(&Md5::checksum(data))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 64];
    if key.len() > 64 {
        block[..32].copy_from_slice(&Sha256::checksum(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let pad = |with: u8| block.map(|b| b ^ with);
    let inner = Sha256::checksum(&[&pad(0x36)[..], data].concat());
    Sha256::checksum(&[&pad(0x5c)[..], &inner].concat()).to_vec()
}

fn canonical_query(query: &[(String, String)]) -> String {
    let mut pairs = query.to_vec();
    pairs.sort();
    let pairs: Vec<_> = pairs.iter().map(|(n, v)| format!("{n}={v}")).collect();
    pairs.join("&")
}

fn canonical_headers(headers: &[(String, String)]) -> (String, String) {
    let mut headers: Vec<_> = headers.iter().map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned())).collect();
    headers.sort();
    let names: Vec<_> = headers.iter().map(|(n, _)| n.clone()).collect();
    let canonical: String = headers.iter().map(|(n, v)| format!("{n}:{v}\n")).collect();
    (names.join(";"), canonical)
}

/// Writes the time of a client as HTTP does.
fn http_date(skew: i64) -> String {
    let seconds = (Env::real().now() / 1_000_000_000).saturating_add_signed(skew);
    let mut text = Vec::new();
    Timestamp::from(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
        .format(TimestampFormat::HttpDate, &mut text)
        .unwrap();
    String::from_utf8(text).unwrap()
}

/// Writes an instant as SigV4 does (days to a date after Howard Hinnant's `civil_from_days`).
pub fn stamp(seconds: i64) -> String {
    let (days, time) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let rest = day - (365 * year + year / 4 - year / 100);
    let moon = (5 * rest + 2) / 153;
    let (date, month) = (rest - (153 * moon + 2) / 5 + 1, if moon < 10 { moon + 3 } else { moon - 9 });
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}{month:02}{date:02}T{:02}{:02}{:02}Z", time / 3600, time / 60 % 60, time % 60)
}
