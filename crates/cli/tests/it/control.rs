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

/// A client that sends everything before it listens hears why it is refused: nothing of the answer is lost to a reset. One that never
/// ends is cut off.
#[test]
fn a_refusal_reaches_whoever_is_still_sending() {
    let s = Server::start();
    let addr = s.endpoint.strip_prefix("http://").unwrap();
    let form = "--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk\r\n\
                --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
    let length = 20usize << 20;
    let (put, post) = (
        format!("PUT /w/k HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n"),
        format!(
            "POST /w HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: {}\r\n\r\n{form}",
            form.len() + length
        ),
    );
    for head in [put, post] {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![b'x'; length]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.ends_with("</Error>"), "{answer}");
    }
    let mut stream = TcpStream::connect(addr).unwrap();
    let head = format!("PUT /w/k HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 1u64 << 40);
    stream.write_all(head.as_bytes()).unwrap();
    let piece = vec![b'x'; 1 << 20];
    let taken = (0..1024).take_while(|_| stream.write_all(&piece).is_ok()).count();
    assert!(taken < 1024, "what a refused client sends is read without end");
    s.ok(&["world", "list"]);
}
