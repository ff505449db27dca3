//! A server under test, and a plain blocking client that signs every request: one connection a client, kept alive.

use mw_http::frames::{self, Node, Record};
use mw_http::sigv4::{self, Credentials, Request, UNSIGNED, sha256_hex};
use mw_model::FileType;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub struct Server {
    child: Child,
    pub data: PathBuf,
    pub address: String,
    pub credentials: Credentials,
    pub binary: PathBuf,
}

impl Server {
    pub fn start(data: &Path) -> Self {
        let binary = PathBuf::from(std::env::var_os("MW").expect("MW names the binary"));
        let mut child = Command::new(&binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("ready http://").expect("the server is ready").to_owned();
        let key: Value = serde_json::from_slice(&std::fs::read(data.join("root-key.json")).unwrap()).unwrap();
        let text = |name: &str| key[name].as_str().unwrap().to_owned();
        let credentials = Credentials { id: text("id"), secret: text("secret"), token: None };
        Self { child, data: data.to_owned(), address, credentials, binary }
    }

    /// Ends the server in good order and starts it again: every cache is cold.
    pub fn restart(&mut self) {
        self.stop();
        let again = Self::start(&self.data.clone());
        *self = again;
    }

    fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }

    pub fn client(&self) -> Client {
        Client::to(&self.address, &self.credentials)
    }

    pub fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
        line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) / 1024
    }

    /// The time that the server's threads have spent on a processor.
    pub fn cpu(&self) -> Duration {
        spent(&self.child.id().to_string())
    }

    pub fn command(&self, args: &[&str]) -> bool {
        Command::new(&self.binary)
            .args(args)
            .env("MW_ENDPOINT", format!("http://{}", self.address))
            .env("AWS_ACCESS_KEY_ID", &self.credentials.id)
            .env("AWS_SECRET_ACCESS_KEY", &self.credentials.secret)
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The time that the threads of a process have spent on a processor.
pub fn spent(pid: &str) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |task: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    Duration::from_nanos(tasks.filter_map(of).sum())
}

/// Bodies up to this length go out together with their head, in bytes.
const SMALL: usize = 64 << 10;

pub struct Client {
    stream: BufReader<TcpStream>,
    host: String,
    credentials: Credentials,
}

impl Client {
    /// Connects to any server of S3.
    pub fn to(address: &str, credentials: &Credentials) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), host: address.to_owned(), credentials: credentials.clone() }
    }

    pub fn call(&mut self, method: &str, target: &str, body: &[u8], unsigned: bool) -> (u16, Vec<u8>) {
        self.call_with(method, target, &[], body, unsigned)
    }

    /// Calls with other headers, which are signed too.
    pub fn call_with(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        unsigned: bool,
    ) -> (u16, Vec<u8>) {
        self.send(method, target, headers, body, unsigned);
        self.reply(method == "HEAD")
    }

    fn send(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8], unsigned: bool) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let payload = if unsigned { UNSIGNED.to_owned() } else { sha256_hex(body) };
        let signed = sigv4::sign(
            &self.credentials,
            "auto",
            Request { method, path, query },
            &[&[("host", self.host.as_str())], headers].concat(),
            &payload,
            now,
        )
        .unwrap();
        let mut head =
            format!("{method} {target} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n", self.host, body.len());
        if target.starts_with("/-/") && !unsigned {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in signed {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        // Small requests in one packet.
        let (now, later) = body.split_at(if body.len() > SMALL { 0 } else { body.len() });
        let stream = self.stream.get_mut();
        stream.write_all(&[head.as_bytes(), now].concat()).unwrap();
        stream.write_all(later).unwrap();
        self.acknowledge();
    }

    /// Acknowledges what comes next at once. A server that sends the head of an answer before its body, and leaves Nagle's algorithm
    /// on, sends the body only when the head was acknowledged, which the system likes to put off for 40 ms on a connection that
    /// asks and answers in turns. The system forgets what it was told here, so that it is told again and again.
    fn acknowledge(&self) {
        rustix::net::sockopt::set_tcp_quickack(self.stream.get_ref(), true).unwrap();
    }

    /// Gets an object that must be there and hands what arrives to `each`, without keeping it; returns how much it was.
    #[allow(dead_code, reason = "`bench_s3` shares this file")]
    pub fn pull(&mut self, target: &str, mut each: impl FnMut(&[u8])) -> usize {
        self.send("GET", target, &[], b"", false);
        let mut total = 0;
        let status = self.receive(false, &mut |part| {
            total += part.len();
            each(part);
        });
        assert_eq!(status, 200, "GET {target}");
        total
    }

    fn reply(&mut self, bare: bool) -> (u16, Vec<u8>) {
        let mut body = Vec::new();
        let status = self.receive(bare, &mut |part| body.extend_from_slice(part));
        (status, body)
    }

    fn receive(&mut self, bare: bool, each: &mut dyn FnMut(&[u8])) -> u16 {
        let mut status = 0;
        let (mut length, mut chunked) = (0usize, false);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().unwrap();
            }
            let lower = line.to_ascii_lowercase();
            if let Some(n) = lower.strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
            chunked |= lower.starts_with("transfer-encoding:") && lower.contains("chunked");
        }
        if bare {
            return status;
        }
        self.acknowledge();
        if !chunked {
            self.part(length, each);
            return status;
        }
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let n = usize::from_str_radix(line.trim().split(';').next().unwrap(), 16).unwrap();
            self.part(n, each);
            self.stream.read_line(&mut String::new()).unwrap();
            if n == 0 {
                return status;
            }
        }
    }

    fn part(&mut self, mut length: usize, each: &mut dyn FnMut(&[u8])) {
        let mut part = vec![0; length.min(256 << 10)];
        while length > 0 {
            let most = length.min(part.len());
            let got = self.stream.read(&mut part[..most]).unwrap();
            assert!(got > 0, "the connection ended with {length} bytes still to come");
            each(&part[..got]);
            length -= got;
        }
    }

    /// One call that must succeed; returns how long it took and what came back.
    pub fn ok(&mut self, method: &str, target: &str, body: &[u8]) -> (Duration, Vec<u8>) {
        let start = Instant::now();
        let (status, reply) = self.call(method, target, body, false);
        let took = start.elapsed();
        assert!((200..300).contains(&status), "{method} {target}: {status} {}", String::from_utf8_lossy(&reply));
        (took, reply)
    }

    pub fn json(&mut self, method: &str, target: &str, body: Value) -> (Duration, Value) {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let (took, reply) = self.ok(method, target, &bytes);
        (took, serde_json::from_slice(&reply).unwrap_or(Value::Null))
    }

    pub fn create(&mut self, world: &str) {
        self.json("POST", "/-/v1/worlds", serde_json::json!({ "name": world }));
    }

    pub fn fork(&mut self, base: &str, name: &str) -> Duration {
        self.json("POST", &format!("/-/v1/worlds/{base}/forks"), serde_json::json!({ "name": name })).0
    }

    pub fn put(&mut self, world: &str, key: &str, body: &[u8]) -> Duration {
        self.ok("PUT", &format!("/{world}/{key}"), body).0
    }

    pub fn get(&mut self, world: &str, key: &str) -> Duration {
        self.ok("GET", &format!("/{world}/{key}"), b"").0
    }

    /// Writes the small files of a range through the bulk door, 1,000 a directory.
    pub fn fill(&mut self, world: &str, files: Range<usize>) {
        let mut body = frames::MAGIC.to_vec();
        frames::encode(&Record::Node(node("", FileType::Directory, 0)), &mut body);
        for i in files.clone() {
            if i % 1000 == 0 || i == files.start {
                frames::encode(&Record::Node(node(&format!("d{:04}", i / 1000), FileType::Directory, 0)), &mut body);
            }
            let text = format!("file {i}\n");
            let path = format!("d{:04}/f{:06}", i / 1000, i);
            frames::encode(&Record::Node(node(&path, FileType::File, text.len() as u64)), &mut body);
            frames::encode(&Record::Data { offset: 0, bytes: text.into() }, &mut body);
            frames::encode(&Record::Done, &mut body);
        }
        frames::encode(&Record::End, &mut body);
        let target = format!("/-/v1/worlds/{world}/tree?path=");
        let (status, reply) = self.call("PUT", &target, &body, true);
        assert!((200..300).contains(&status), "fill: {status} {}", String::from_utf8_lossy(&reply));
    }
}

fn node(path: &str, kind: FileType, size: u64) -> Node {
    Node {
        path: path.to_owned().into(),
        kind,
        mode: if kind == FileType::Directory { 0o755 } else { 0o644 },
        uid: 0,
        gid: 0,
        rdev: 0,
        size,
        atime: 1,
        mtime: 1,
        target: Default::default(),
        xattrs: Vec::new(),
    }
}
