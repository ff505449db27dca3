//! A server of the run, and calls of it that must succeed.

use super::client::Client;
use mw_http::sigv4::Credentials;

/// A server: `NAME=HOST:PORT=ID=SECRET=PID`. Each has the bucket `bench`.
pub struct Peer {
    pub name: String,
    pub address: String,
    pub credentials: Credentials,
    pub pid: String,
}

impl Peer {
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '=');
        let mut next = || parts.next().map(str::to_owned);
        let (name, address, id, secret, pid) = (next()?, next()?, next()?, next()?, next()?);
        Some(Self { name, address, credentials: Credentials { id, secret, token: None }, pid })
    }

    pub fn client(&self) -> Client {
        Client::to(&self.address, &self.credentials)
    }

    pub fn is_ours(&self) -> bool {
        self.name == "manyworlds"
    }

    /// Forgets what memory the server needed so far.
    pub fn forget_peak(&self) -> bool {
        std::fs::write(format!("/proc/{}/clear_refs", self.pid), "5").is_ok()
    }

    /// The most memory that was resident since, in MiB.
    pub fn peak_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
        line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    }
}

/// Calls, and returns the body of the answer.
pub fn ok(client: &mut Client, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    // Large bodies are not hashed here, so that the client's work is not taken for the server's.
    let (status, reply) = client.call_with(method, target, headers, body, body.len() > 1 << 20);
    assert!((200..300).contains(&status), "{method} {target}: {status} {}", String::from_utf8_lossy(&reply));
    reply
}
