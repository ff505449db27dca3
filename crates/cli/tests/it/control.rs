//! The control plane without the command line: what it answers to requests that no client of ours would send.

use crate::bench::Server;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends a request as it stands, and nothing after it when `last`.
fn raw(s: &Server, request: &str, last: bool) -> String {
    let mut stream = TcpStream::connect(s.endpoint.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    if last {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(s: &Server, path: &str, more: &str) -> String {
    raw(s, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{more}\r\n"), false)
}

#[test]
fn health_and_schema_need_no_key_and_nothing_else_goes_without() {
    let s = Server::start();
    assert!(get(&s, "/-/healthz", "").contains(r#""ok":true"#));
    assert!(get(&s, "/-/v1/schema", "").contains("$defs"));
    for path in ["/-/v1/worlds", "/-/v1/status", "/-/v1/keys", "/-/v1/worlds/w/content?path=f"] {
        let answer = get(&s, path, "");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
        assert!(answer.contains(r#""kind":"denied""#), "{path}: {answer}");
        let answer = get(&s, path, "authorization: AWS4-HMAC-SHA256 nonsense\r\n");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
    }
    assert!(get(&s, "/-/v1/nothing", "").starts_with("HTTP/1.1 404 "));
    assert!(get(&s, "/-/anything", "").starts_with("HTTP/1.1 404 "));
}

#[test]
fn nonsense_on_the_wire_is_refused_and_the_server_goes_on() {
    let s = Server::start();
    for request in ["\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n"] {
        raw(&s, request, true);
    }
    let large = format!("x-large: {}\r\n", "a".repeat(2 << 20));
    let mut stream = TcpStream::connect(s.endpoint.strip_prefix("http://").unwrap()).unwrap();
    // The server may stop reading before all of it is sent.
    let _ = stream.write_all(format!("GET /-/healthz HTTP/1.1\r\nhost: x\r\n{large}\r\n").as_bytes());
    drop(stream);
    s.ok(&["world", "list"]);
}
