//! Which server a command talks to.
//!
//! `$MW_ENDPOINT` with the AWS key variables (and `$AWS_SESSION_TOKEN`, of a temporary key) names one outright. Otherwise it is the server of a directory: the one that
//! `DIR/server.json` names if it answers with the same instance, else one that is started in the background. Clients that find none
//! at the same time take turns at `DIR/start.lock`, so that one of them starts it and the others find it.

use crate::dir::{self, Announcement};
use crate::failure::{Failure, Result};
use crate::serve::authority;
use crate::transport::{dial, send};
use crate::trust::Trust;
use http_body_util::BodyExt;
use hyper::Request;
use mw_env::Env;
use mw_http::body;
use mw_http::sigv4::Credentials;
use mw_http::types::{Health, Secret};
use mw_model::ErrorKind;
use std::ffi::OsStr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long a server may take to start, in nanoseconds.
const START: u64 = 60_000_000_000;
/// How long a server that was started for a command stays without clients, mounts and runs.
const IDLE: &str = "60";
/// How many bytes of the log an error shows.
const TAIL: usize = 2_000;

/// A server and the key for it.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where this command connects to: `HOST:PORT`.
    pub authority: String,
    /// What is trusted there, when the connection is encrypted.
    pub trust: Option<Trust>,
    /// The address for other clients, as a URL.
    pub endpoint: String,
    /// The key.
    pub credentials: Credentials,
    /// Whether it was started for this command.
    pub started: bool,
}

/// Returns the directory of the store: `given`, else `$MW_DATA` (which the parser reads), else the one in the home directory.
///
/// # Errors
/// None is given and there is no home directory.
pub fn data_dir(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(dir) = given {
        return std::path::absolute(dir).map_err(|e| Failure::io(dir.display(), e));
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HOME")
        .map(|home| home.join(".local/share/manyworlds"))
        .ok_or_else(|| Failure::usage("there is no home directory to keep worlds in; give --data DIR or set MW_DATA"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns `HOST:PORT` of an endpoint, and whether it is encrypted.
fn parse(endpoint: &str) -> Result<(String, bool)> {
    let wrong = |why: &str| {
        Failure::usage(format!("the endpoint {endpoint:?} {why}; write http://HOST:PORT or https://HOST:PORT"))
    };
    let (rest, tls) = match endpoint.split_once("://") {
        Some(("http", rest)) => (rest, false),
        Some(("https", rest)) => (rest, true),
        _ => return Err(wrong("is no URL")),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.is_empty() || rest.contains(['/', '?', '#', '@']) {
        return Err(wrong("has more, or less, than a host and a port"));
    }
    let port =
        rest.rsplit_once(':').filter(|(host, _)| !host.is_empty() && (!host.contains(':') || host.ends_with(']')));
    match port {
        Some((_, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => Ok((rest.to_owned(), tls)),
        Some(_) => Err(wrong("has no port from 1 to 65535")),
        None => Ok((format!("{rest}:{}", if tls { 443 } else { 80 }), tls)),
    }
}

/// Returns the server that the environment names, if it names one.
///
/// # Errors
/// The endpoint is malformed, or there is no key for it.
pub fn named(dir: &Path) -> Result<Option<Found>> {
    let Some(endpoint) = variable("MW_ENDPOINT") else { return Ok(None) };
    let (authority, tls) = parse(&endpoint)?;
    let trust = if tls { Some(Trust::new(&authority::folder(dir).join(authority::CA))?) } else { None };
    let credentials = match (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => Credentials { id, secret, token: variable("AWS_SESSION_TOKEN") },
        (None, None) => own_key(dir, &authority).ok_or_else(|| {
            Failure::usage("MW_ENDPOINT is set without a key; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as `mw env` prints them")
        })?,
        _ => return Err(Failure::usage("set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; only one of them is")),
    };
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    Ok(Some(Found { authority, trust, endpoint, credentials, started: false }))
}

/// Returns the root key of `dir` when the named server is that directory's own.
fn own_key(dir: &Path, wanted: &str) -> Option<Credentials> {
    let announcement = dir::announced(dir)?;
    (parse(&announcement.endpoint).ok()?.0 == wanted).then(|| key(dir).ok())?
}

/// Reads the root key of a directory.
///
/// # Errors
/// The file cannot be read, or is no key.
pub fn key(dir: &Path) -> Result<Credentials> {
    let path = dir.join(dir::ROOT_KEY);
    let bytes = std::fs::read(&path).map_err(|e| Failure::io(path.display(), e))?;
    let secret: Secret = serde_json::from_slice(&bytes)
        .map_err(|e| Failure::new(ErrorKind::Corrupt, format!("{}: {e}", path.display())))?;
    Ok(Credentials { id: secret.id, secret: secret.secret, token: None })
}

/// Returns the server of `dir`, starting it when none answers.
///
/// # Errors
/// It cannot be started; the error shows the end of its log.
pub fn of_dir(dir: &Path, runtime: &Runtime, env: &Env) -> Result<Found> {
    if let Some(found) = running(dir, runtime) {
        return Ok(found);
    }
    dir::make(dir)?;
    let path = dir.join("start.lock");
    let turn = dir::open_lock(&path)?;
    rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).map_err(|e| Failure::io(path.display(), e))?;
    if let Some(found) = running(dir, runtime) {
        return Ok(found);
    }
    let mut child = start(dir)?;
    let from = env.monotonic();
    loop {
        if let Some(found) = running(dir, runtime) {
            return Ok(Found { started: true, ..found });
        }
        if let Ok(Some(status)) = child.try_wait() {
            // Somebody else's server may have come up meanwhile, which is why this one left.
            return running(dir, runtime).ok_or_else(|| failed(dir, &format!("ended at once ({status})")));
        }
        if env.monotonic() - from > START {
            return Err(failed(dir, "does not answer"));
        }
        env.sleep(Duration::from_millis(10));
    }
}

/// Returns the server that `dir` announces, if it answers and is the one that was announced.
fn running(dir: &Path, runtime: &Runtime) -> Option<Found> {
    let announcement = dir::announced(dir)?;
    let near = announcement.local.as_ref().unwrap_or(&announcement.endpoint);
    let (authority, tls) = parse(near).ok()?;
    if tls {
        return None;
    }
    runtime.block_on(answers(&authority, &announcement)).then_some(())?;
    let endpoint = announcement.endpoint;
    Some(Found { authority, trust: None, endpoint, credentials: key(dir).ok()?, started: false })
}

async fn answers(authority: &str, announcement: &Announcement) -> bool {
    let ask = async {
        let stream = dial(authority, None).await.ok()?;
        let request = Request::get("/-/healthz").header("host", authority).body(body::full("")).ok()?;
        let answer = send(stream, request).await.ok()?;
        let bytes = http_body_util::Limited::new(answer.into_body(), 4096).collect().await.ok()?.to_bytes();
        serde_json::from_slice::<Health>(&bytes).ok()
    };
    let health = tokio::time::timeout(Duration::from_secs(5), ask).await.ok().flatten();
    health.is_some_and(|health| health.instance == announcement.instance)
}

fn start(dir: &Path) -> Result<Child> {
    let log = dir.join("server.log");
    let open = || std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&log);
    let (out, err) = open().and_then(|out| Ok((out, open()?))).map_err(|e| Failure::io(log.display(), e))?;
    let program = std::env::current_exe().map_err(|e| Failure::io("this program", e))?;
    Command::new(program)
        .arg("serve")
        .arg("--data")
        .arg(dir)
        .args(["--listen", "127.0.0.1:0", "--idle-exit", IDLE, "--background"].map(OsStr::new))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .map_err(|e| Failure::io("cannot start a server", e))
}

fn failed(dir: &Path, why: &str) -> Failure {
    let log = dir.join("server.log");
    let text = std::fs::read(&log).unwrap_or_default();
    let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(TAIL)..]).trim().to_owned();
    Failure::Unreachable(format!(
        "the server that was started for {} {why}; try `mw serve --data {0}` to see it; its log ends with:\n{tail}",
        dir.display()
    ))
}

#[cfg(test)]
mod tests;
