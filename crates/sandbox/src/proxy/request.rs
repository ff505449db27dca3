//! The head of one proxy request: where it wants to go, and what to pass on. Bounded; it connects to nothing.

use crate::spec::Destination;
use std::io::{self, Read};

/// The longest head that is read.
const LONGEST: usize = 64 << 10;

/// A request as far as the proxy has to understand it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) destination: Destination,
    pub(super) target: Target,
    /// Bytes that came behind the head.
    pub(super) rest: Vec<u8>,
}

/// What is wanted of the destination.
#[derive(Debug)]
pub(super) enum Target {
    /// A tunnel (`CONNECT`).
    Tunnel,
    /// One plain request; `head` is what the destination is to see.
    Plain { head: Vec<u8> },
}

impl Request {
    /// Reads a head from `from`. The inner error says what is wrong with it.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Result<Self, String>> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
                let rest = bytes.split_off(end + 4);
                return Ok(Self::parse(&bytes, rest));
            }
            if bytes.len() > LONGEST {
                return Ok(Err(String::from("the request's head is too long")));
            }
            match from.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => bytes.extend_from_slice(&chunk[..n]),
            }
        }
    }

    fn parse(head: &[u8], rest: Vec<u8>) -> Result<Self, String> {
        let head = std::str::from_utf8(head).map_err(|_| "the request's head is not text")?;
        let (line, fields) = head.split_once("\r\n").ok_or("no request line")?;
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(String::from("the request line is not METHOD TARGET VERSION"));
        };
        if !version.starts_with("HTTP/1.") {
            return Err(format!("{version} is not HTTP/1"));
        }
        if method == "CONNECT" {
            let destination = target.parse().map_err(|e| format!("{e}"))?;
            return Ok(Self { destination, target: Target::Tunnel, rest });
        }
        let Some(after) = target.strip_prefix("http://") else {
            return Err(String::from("a proxy takes CONNECT, or a target that begins with http://"));
        };
        let (authority, path) = match after.find(['/', '?']) {
            Some(at) if after[at..].starts_with('?') => (&after[..at], format!("/{}", &after[at..])),
            Some(at) => (&after[..at], after[at..].to_owned()),
            None => (after, String::from("/")),
        };
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let full = if has_port { authority.to_owned() } else { format!("{authority}:80") };
        let destination = full.parse().map_err(|e| format!("{e}"))?;
        let head = plain_head(method, &path, version, authority, fields);
        Ok(Self { destination, target: Target::Plain { head }, rest })
    }
}

/// Returns the head in the form for the destination itself. The host is the one that was checked, and the connection serves
/// this request alone, so that no second one slips through unchecked.
fn plain_head(method: &str, path: &str, version: &str, authority: &str, fields: &str) -> Vec<u8> {
    let mut out = format!("{method} {path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
    for field in fields.split("\r\n").filter(|f| !f.is_empty()) {
        let name = field.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !matches!(name.as_str(), "host" | "connection" | "keep-alive") && !name.starts_with("proxy-") {
            out.push_str(field);
            out.push_str("\r\n");
        }
    }
    out.push_str("\r\n");
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    //! Heads good and bad.

    use super::*;

    fn parse(text: &str) -> Result<Request, String> {
        Request::read(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn a_tunnel_names_its_destination_and_keeps_what_follows() {
        let request = parse("CONNECT Example.com:443 HTTP/1.1\r\nHost: other:1\r\n\r\nhello").unwrap();
        assert_eq!(request.destination.to_string(), "example.com:443");
        assert!(matches!(request.target, Target::Tunnel));
        assert_eq!(request.rest, b"hello");
    }

    #[test]
    fn a_plain_request_is_rewritten_for_the_host_that_was_checked() {
        let request = parse(
            "GET http://a.example/x?y HTTP/1.1\r\nHost: b.example\r\nProxy-Authorization: z\r\nAccept: */*\r\n\r\n",
        );
        let request = request.unwrap();
        assert_eq!(request.destination.to_string(), "a.example:80");
        let Target::Plain { head } = request.target else { panic!("not plain") };
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "GET /x?y HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nAccept: */*\r\n\r\n"
        );
        assert_eq!(parse("GET http://[2606::1]?q HTTP/1.1\r\n\r\n").unwrap().destination.to_string(), "[2606::1]:80");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT a.example HTTP/1.1\r\n\r\n",
            "CONNECT a.example:443 HTTP/2\r\n\r\n",
            "CONNECT a.example:443\r\n\r\n",
            "GET http://u@a.example/ HTTP/1.1\r\n\r\n",
            "GET https://a.example/ HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(parse(&"x".repeat(LONGEST + 5000)).is_err());
    }
}
