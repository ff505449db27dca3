//! Where a sandbox can connect: to the store, to allowed destinations, and nowhere else.

use crate::acts::{inside, inside_with};
use crate::{backend, command, possible, run, shell};
use mw_sandbox::{Backend, Discard, Exit, Resolve, Spec, is_public};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A server that answers every connection with its name and what it read until the end of the stream.
fn server(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = stream.read_to_string(&mut text);
                let _ = write!(stream, "{name}:{text}");
            });
        }
    });
    address
}

/// A server that answers any HTTP request with its name.
fn http(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
                head.push(byte[0]);
            }
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
        }
    });
    address
}

#[test]
fn the_internet_and_the_hosts_ports_are_out_of_reach() {
    if !possible() {
        return;
    }
    let other = server("other");
    assert!(TcpStream::connect(other).is_ok());
    assert_eq!(inside("connect 1.1.1.1:80"), libc::ENETUNREACH);
    assert_eq!(inside("connect [2606:4700::1111]:80"), libc::ENETUNREACH);
    assert_eq!(inside("connect 169.254.169.254:80"), libc::ENETUNREACH);
    assert_eq!(inside(&format!("connect {other}")), libc::ECONNREFUSED);
    let store = server("store");
    let with_store = |spec: &mut Spec| spec.endpoint = Some(store);
    assert_eq!(inside_with(&format!("connect {other}"), with_store), libc::ECONNREFUSED);
    assert_eq!(inside_with("connect 127.0.0.1:9000", with_store), 0);
    assert_eq!(inside("connect 127.0.0.1:9000"), libc::ECONNREFUSED);
}

#[test]
fn the_store_is_reached_both_ways_with_ends_of_stream() {
    if !possible() {
        return;
    }
    let script = "exec 3<>/dev/tcp/127.0.0.1/8333; echo hello >&3; echo -n; cat <&3";
    // `/dev/tcp` has no half-close; the answer comes from an HTTP server, which does not wait for one.
    let mut spec = command(&["/bin/bash", "-c", &script.replace("echo hello", "printf 'GET / HTTP/1.1\\r\\n\\r\\n'")]);
    spec.endpoint = Some(http("store"));
    spec.inside_port = 8333;
    let outcome = run(&spec);
    assert!(outcome.out.to_text().ends_with("\r\n\r\nstore"), "{outcome:?}");
}

#[test]
fn many_connections_and_bytes_pass() {
    if !possible() || !std::path::Path::new("/usr/bin/curl").exists() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    const SIZE: usize = 4 << 20;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
                    head.push(byte[0]);
                }
                let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
                let _ = stream.write_all(&vec![b'x'; SIZE]);
            });
        }
    });
    let mut spec = shell("for i in 1 2 3 4 5 6 7 8; do curl -s http://127.0.0.1:9000/ | wc -c & done; wait");
    spec.endpoint = Some(address);
    let outcome = run(&spec);
    assert_eq!(outcome.out.to_text(), format!("{SIZE}\n").repeat(8), "{outcome:?}");
}

#[test]
fn a_connection_does_not_outlive_the_sandbox() {
    if !possible() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = command(&["/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9000; echo hi >&3; sleep 600"]);
    spec.endpoint = Some(listener.local_addr().unwrap());
    let running = backend().start(&spec, Arc::new(Discard)).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut word = [0; 3];
    stream.read_exact(&mut word).unwrap();
    running.kill();
    assert_eq!(running.wait().exit, Exit::Cancelled);
    // Ends, by end of stream or reset, although this side never closes.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[derive(Debug)]
struct Map(HashMap<&'static str, IpAddr>, Vec<IpAddr>);

impl Resolve for Map {
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = self.0.get(host).copied().or_else(|| host.parse().ok());
        found.map(|a| vec![a]).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn permits(&self, address: IpAddr) -> bool {
        self.1.contains(&address) || is_public(address)
    }
}

#[test]
fn the_proxy_goes_to_what_is_allowed_alone() {
    if !possible() || !std::path::Path::new("/usr/bin/curl").exists() {
        return;
    }
    let (good, other) = (http("good"), http("other"));
    // Two addresses of the loopback network: the test opens one of them, as if it were public.
    let names = HashMap::from([
        ("good.example", good.ip()),
        ("metadata.example", "169.254.169.254".parse().unwrap()),
        ("inner.example", "127.0.0.2".parse().unwrap()),
    ]);
    let backend = backend().with_resolver(Arc::new(Map(names, vec![good.ip()])));
    let (port, wrong) = (good.port(), other.port());
    let allow = [
        format!("good.example:{port}"),
        "metadata.example:80".into(),
        format!("inner.example:{port}"),
        "none.example:80".into(),
        "10.0.0.1:80".into(),
        "[::ffff:127.0.0.1]:80".into(),
    ];
    let script = format!(
        "t() {{ curl -s -m 20 -o /tmp/out -w '%{{http_code}} %{{http_connect}} ' \"$@\"; cat /tmp/out 2>/dev/null; echo; rm -f /tmp/out; }}
         t -p http://good.example:{port}/; t http://good.example:{port}/;
         t -p http://good.example:{wrong}/; t -p http://other.example:{port}/; t -p http://127.0.0.1:{wrong}/ --noproxy ''
         t -p http://metadata.example/; t -p http://inner.example:{port}/; t -p http://10.0.0.1/; t http://10.0.0.1/
         t -p http://none.example/; t -p 'http://[::ffff:127.0.0.1]/'
         curl -s --noproxy '*' http://good.example:{port}/ || echo direct $?"
    );
    let mut spec = shell(&script);
    spec.allow = allow.iter().map(|a| a.parse().unwrap()).collect();
    let outcome = backend.start(&spec, Arc::new(Discard)).unwrap().wait();
    let text = outcome.out.to_text();
    let got: Vec<_> = text.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit() || c == 'd')).collect();
    assert_eq!(&got[..2], ["200 200 good", "200 000 good"], "{outcome:?}");
    for line in &got[2..7] {
        assert!(line.starts_with("000 403"), "{line} in {text}");
    }
    assert_eq!(got[7].trim(), "000 403", "{text}");
    assert!(got[8].starts_with("403 000"), "{text}");
    assert!(got[9].starts_with("000 502") && got[10].starts_with("000 403"), "{text}");
    assert_eq!(got[11], "direct 6", "{text}");
}

#[test]
fn without_allowed_destinations_there_is_no_proxy() {
    if !possible() {
        return;
    }
    let outcome = run(&shell("env | grep -ci proxy; ss -tln 2>/dev/null | grep -c LISTEN"));
    assert_eq!(outcome.out.to_text().lines().next(), Some("0"));
}
