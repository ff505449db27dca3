//! What the proxy allows, resolves and pins, without a sandbox.

use super::*;
use std::io::Read;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
struct Map {
    names: HashMap<String, Vec<IpAddr>>,
    turns: HashMap<String, Vec<IpAddr>>,
    asked: AtomicUsize,
    permit: Option<IpAddr>,
}

impl Resolve for Map {
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let before = self.asked.fetch_add(1, Ordering::Relaxed);
        let later = (before > 0).then(|| self.turns.get(host)).flatten();
        later.or_else(|| self.names.get(host)).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn permits(&self, address: IpAddr) -> bool {
        self.permit == Some(address) || address::is_public(address)
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn refusal(proxy: &Proxy, wanted: &str) -> &'static str {
    proxy.address_of(&wanted.parse().unwrap()).unwrap_err().status
}

fn proxy(allow: &[&str], map: Map) -> Proxy {
    Proxy::new(allow.iter().map(|d| d.parse().unwrap()).collect(), Arc::new(map))
}

#[test]
fn only_the_exact_host_and_port_are_allowed() {
    let names = HashMap::from([("a.example".into(), vec![ip("1.1.1.1")]), ("b.example".into(), vec![ip("1.1.1.1")])]);
    let proxy = proxy(&["a.example:443"], Map { names, ..Map::default() });
    assert_eq!(proxy.address_of(&"A.Example.:443".parse().unwrap()).unwrap().to_string(), "1.1.1.1:443");
    for other in ["a.example:80", "b.example:443", "x.a.example:443", "1.1.1.1:443"] {
        assert_eq!(refusal(&proxy, other), "403 Forbidden", "{other}");
    }
}

#[test]
fn a_name_that_leads_inside_is_refused() {
    let names = HashMap::from([
        ("meta.example".into(), vec![ip("169.254.169.254")]),
        ("mixed.example".into(), vec![ip("1.1.1.1"), ip("10.0.0.1")]),
        ("mapped.example".into(), vec![ip("::ffff:127.0.0.1")]),
        ("empty.example".into(), vec![]),
    ]);
    let all = ["meta.example:80", "mixed.example:80", "mapped.example:80", "empty.example:80", "none.example:80"];
    let proxy = proxy(&all, Map { names, ..Map::default() });
    let got: Vec<_> = all.iter().map(|d| &refusal(&proxy, d)[..3]).collect();
    assert_eq!(got, ["403", "403", "403", "502", "502"]);
}

#[test]
fn a_name_that_turns_stays_where_it_was() {
    let names = HashMap::from([("a.example".into(), vec![ip("1.1.1.1")])]);
    let turns = HashMap::from([("a.example".into(), vec![ip("127.0.0.1")])]);
    let proxy = proxy(&["a.example:443"], Map { names, turns, ..Map::default() });
    for _ in 0..3 {
        assert_eq!(proxy.address_of(&"a.example:443".parse().unwrap()).unwrap().ip(), ip("1.1.1.1"));
    }
}

#[test]
fn a_plain_request_is_carried_and_answered() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let names = HashMap::from([("local.example".into(), vec![ip("127.0.0.1")])]);
    let map = Map { names, permit: Some(ip("127.0.0.1")), ..Map::default() };
    let proxy = Arc::new(proxy(&[&format!("local.example:{port}")], map));

    let front = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(front.local_addr().unwrap()).unwrap();
    write!(client, "POST http://local.example:{port}/p HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody").unwrap();
    let (inside, _) = front.accept().unwrap();
    let serving = std::thread::spawn(move || proxy.answer(&inside, &Arc::new(Open::default())));

    let (mut seen, _) = server.accept().unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"body") {
        let mut byte = [0];
        seen.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("POST /p HTTP/1.1\r\nHost: local.example:"), "{head}");
    seen.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    drop(seen);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    drop(client);
    serving.join().unwrap().unwrap();
}
