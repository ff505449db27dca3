//! What to run and what it may see: data alone, and nothing in it grants what is not written down.

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::Error;

/// A command and the world that it sees. [`Spec::default`] grants nothing.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of `env`.
    pub command: Vec<OsString>,
    /// The whole environment, over the few variables every program expects (`PATH`, `HOME`, `USER`, `LANG`, ...). Nothing of
    /// the host's own environment is passed on.
    pub env: Vec<(String, String)>,
    /// Directories and files of the host, in the order in which they are laid over each other.
    pub binds: Vec<Bind>,
    /// Where the command starts, as seen inside.
    pub workdir: PathBuf,
    /// The store, a TCP address that the host can reach. It appears inside as `127.0.0.1:inside_port`.
    pub endpoint: Option<SocketAddr>,
    /// The port of the store as seen inside.
    pub inside_port: u16,
    /// Destinations reachable through the proxy named by `HTTPS_PROXY` and `HTTP_PROXY`. Empty: no proxy.
    pub allow: Vec<Destination>,
    /// Limits on the whole sandbox.
    pub limits: Limits,
    /// Whether the command gets a terminal of its own. Its output is then one stream, [`crate::Stream::Out`].
    pub tty: bool,
    /// Whether standard input is fed by [`crate::Running::input`]; otherwise it is empty. A terminal is always fed.
    pub stdin: bool,
    /// The user id shown inside. It stands for the user who runs the store, so files that the command makes in a writable
    /// bind belong to that user outside.
    pub uid: u32,
    /// The group id shown inside, standing for the group of the user who runs the store.
    pub gid: u32,
    /// The host name shown inside.
    pub hostname: String,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            env: Vec::new(),
            binds: Vec::new(),
            workdir: PathBuf::from("/tmp"),
            endpoint: None,
            inside_port: 9000,
            allow: Vec::new(),
            limits: Limits::default(),
            tty: false,
            stdin: false,
            uid: 1000,
            gid: 1000,
            hostname: String::from("world"),
        }
    }
}

/// A directory or file of the host, shown inside. Set-user-id bits and devices in it have no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The path on the host.
    pub host: PathBuf,
    /// The absolute path inside.
    pub inside: PathBuf,
    /// Whether the command may change it.
    pub writable: bool,
}

/// Limits on everything that runs in one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory, files in `/tmp` included. 0: no limit.
    pub memory: u64,
    /// Processes and threads. 0: no limit.
    pub processes: u32,
    /// How long the command may run.
    pub timeout: Option<Duration>,
    /// How long the command has between SIGTERM and the kill of everything.
    pub grace: Duration,
    /// Bytes kept of each output stream: the first and the last half.
    pub output: u64,
    /// Bytes in each of `/tmp`, the home directory and `/dev/shm`, which vanish with the sandbox.
    pub scratch: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 2 << 30,
            processes: 1024,
            timeout: None,
            grace: Duration::from_secs(2),
            output: 1 << 20,
            scratch: 1 << 30,
        }
    }
}

/// A host and port that the sandbox may reach. Parsed from `HOST:PORT`; an IPv6 address is written in brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The name or address, lower-case, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl FromStr for Destination {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Error::Invalid(format!("destination `{text}`: {why}; write HOST:PORT"));
        let (host, port) = text.rsplit_once(':').ok_or_else(|| refuse("no port"))?;
        let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if bracketed.is_none() && host.contains([':', '[', ']']) {
            return Err(refuse("an IPv6 address needs brackets"));
        }
        let host = bracketed.unwrap_or(host).trim_end_matches('.').to_ascii_lowercase();
        let fit =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') || (bracketed.is_some() && c == ':');
        if host.is_empty() || host.len() > 253 || !host.chars().all(fit) {
            return Err(refuse("not a host name"));
        }
        // `parse` alone would take a sign.
        let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        match port.parse() {
            Ok(port) if digits && port != 0 => Ok(Self { host, port }),
            _ => Err(refuse("the port is not a number from 1 to 65535")),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Who holds a sandbox to one of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcer {
    /// A control group of the unified hierarchy: the limit holds for the sandbox as a whole.
    CgroupV2,
    /// A control group of a version 1 hierarchy: the limit holds for the sandbox as a whole.
    CgroupV1,
    /// A resource limit. Memory is then bounded for each process alone, and processes by user.
    Rlimit,
    /// Nobody: the limit was not asked for, or nothing here can hold it.
    Nobody,
}

/// Who holds a sandbox to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enforcers {
    /// Who bounds the memory.
    pub memory: Enforcer,
    /// Who bounds the number of processes.
    pub processes: Enforcer,
}

#[cfg(test)]
mod tests;
