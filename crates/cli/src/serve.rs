//! `mw serve`: take the directory, open the store, answer, and leave cleanly.
//!
//! Order: lock, format, listener and its certificate, store, root key, mounts, `ready`. The end is the other way round: no new connections,
//! requests in flight get ten seconds, mounts go, the store closes, the lock last. In between, another program may take this one's place
//! ([`restart`]); it then begins with what it is handed over ([`handover`]).

pub mod authority;
mod desk;
mod exports;
mod handover;
mod listen;
mod mcp;
mod mounts;
mod program;
mod restart;
mod runs;
mod table;
mod tls;
mod upgrade;
mod wire;

use crate::dir::{self, Announcement, Owned};
use crate::failure::{Failure, Result};
use crate::output::Output;
pub use handover::ASK as CAN_TAKE_OVER;
use handover::Inheritance;
use listen::{Open, Stop};
use mw_env::Env;
use mw_http::host::RestartHost;
use mw_model::ErrorKind;
use program::Program;
use restart::{GRACE, Standing};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
pub use tls::Source;
use tls::Tls;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The first argument that makes this program the first process of a sandbox.
pub const SANDBOX_INIT: &str = "sandbox-init";
/// The first argument that makes this program the guard of a server's mounts.
pub const MOUNT_GUARD: &str = "mount-guard";
/// How often forks whose time is over are looked for.
const REAP: Duration = Duration::from_secs(5);
/// How often freed space is swept up.
const SWEEP: Duration = Duration::from_secs(3_600);
/// How long a dead predecessor that is let go may take to go, in steps of a hundredth of a second.
const BURIAL: u32 = 1_000;
/// Stack of the threads that walk trees; the deepest path has some two thousand directories.
const STACK: usize = 8 << 20;

/// How the server is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The directory.
    pub dir: PathBuf,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where the certificate comes from; none: no TLS.
    pub tls: Option<Source>,
    /// The suffix of virtual hosts.
    pub host_suffix: Option<String>,
    /// The address under which clients reach the server.
    pub public_url: Option<String>,
    /// The memory that the server may use, in bytes.
    pub memory: usize,
    /// Leave after this long without clients, mounts and runs.
    pub idle: Option<Duration>,
    /// Started by a command, without a terminal.
    pub background: bool,
    /// Take over from the program that this process was.
    pub heir: bool,
}

/// Serves until told to leave.
///
/// # Errors
/// The directory is taken or of a newer format, the store does not open, or the address cannot be listened on.
pub fn serve(setup: &Setup, out: &Output) -> Result<()> {
    if setup.background {
        // The terminal of the command that started the server is not the server's. It fails for a session's leader, which has none to leave.
        let _ = rustix::process::setsid();
    }
    trace();
    let env = Env::real();
    let program = Program::own()?;
    let heir = setup.heir.then(handover::receive).transpose()?;
    let owned = match &heir {
        Some(heir) => Owned::inherit(&setup.dir, &heir.lock, &env)?,
        None => {
            bury(&setup.dir, &env);
            Owned::take(&setup.dir, setup.background, &env)?
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()
        .map_err(|e| Failure::io("cannot start", e))?;
    let outcome = runtime.block_on(run(setup, program, heir, &owned, &env, out));
    // Threads that still watch something end with the process; waiting for them could take for ever.
    runtime.shutdown_timeout(Duration::from_secs(1));
    drop(owned);
    outcome
}

/// Lets a predecessor go that was killed and hangs in its own mounts; its guard does so too, unless that was killed with it.
fn bury(dir: &Path, env: &Env) {
    let Some(dead) = dir::owner(dir).filter(|process| mw_fuse::is_gone(*process)) else { return };
    let rests = || PathBuf::from(format!("/proc/{dead}/task")).read_dir().is_ok_and(|tasks| tasks.count() > 1);
    if !rests() {
        return;
    }
    mounts::end_stuck(dir);
    for _ in 0..BURIAL {
        if !rests() {
            return;
        }
        env.sleep(Duration::from_millis(10));
    }
}

/// The life of the guard of a server's mounts (see [`MOUNT_GUARD`]).
pub fn mount_guard() -> ExitCode {
    let server = std::env::args().nth(2).and_then(|number| number.parse().ok());
    match server.map(mw_fuse::guard_main) {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Says whether this program can take a server's place (see [`CAN_TAKE_OVER`]).
pub fn can_take_over() -> ExitCode {
    use std::io::Write;
    match program::say().and_then(|said| writeln!(std::io::stdout(), "{said}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn trace() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("MW_LOG").or_else(|_| EnvFilter::try_from_default_env());
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("warn,mw=info"));
    // A second subscriber in one process would be a test's, and then the first one serves.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).try_init();
}

/// What ends a turn of serving.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    restart: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let hear = |kind| signal(kind).map_err(|e| Failure::io("signals", e));
        let signals = Self {
            terminate: hear(SignalKind::terminate())?,
            interrupt: hear(SignalKind::interrupt())?,
            restart: hear(SignalKind::user_defined2())?,
        };
        program::listen();
        Ok(signals)
    }
}

/// The sockets of a server: the one that clients know, and where that is encrypted, one beside it for this machine.
struct Sockets {
    outer: TcpListener,
    inner: Option<TcpListener>,
}

impl Sockets {
    /// Listens, on what was handed over where something was.
    async fn open(setup: &Setup, heir: Option<&mut Inheritance>) -> Result<Self> {
        let failed = |e| Failure::io("the listener", e);
        if let Some(heir) = heir {
            let (outer, inner) = heir.listeners.take().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
            let ours = |listener: std::net::TcpListener| {
                listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener)).map_err(failed)
            };
            return Ok(Self { outer: ours(outer)?, inner: inner.map(ours).transpose()? });
        }
        let outer = TcpListener::bind(setup.listen).await.map_err(|e| {
            Failure::new(
                ErrorKind::of_io(&e),
                format!("cannot listen on {}: {e}; give another --listen, or port 0 for a free one", setup.listen),
            )
        })?;
        // Sandboxes, and commands beside the server, have no use for TLS: beside an encrypted listener they have one of their own.
        let inner = match setup.tls {
            Some(_) => Some(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?),
            None => None,
        };
        Ok(Self { outer, inner })
    }

    fn address(&self) -> Result<SocketAddr> {
        self.outer.local_addr().map_err(|e| Failure::io("the listener", e))
    }

    /// Returns where programs of this machine reach the server without TLS.
    fn near(&self) -> Result<SocketAddr> {
        match &self.inner {
            Some(inner) => inner.local_addr().map_err(|e| Failure::io("the listener", e)),
            None => Ok(reachable(self.address()?)),
        }
    }
}

async fn run(
    setup: &Setup,
    program: Program,
    mut heir: Option<Inheritance>,
    owned: &Owned,
    env: &Env,
    out: &Output,
) -> Result<()> {
    let mut signals = Signals::new()?;
    let sockets = Sockets::open(setup, heir.as_mut()).await?;
    let (address, near) = (sockets.address()?, sockets.near()?);
    let tls = match &setup.tls {
        Some(source) => Some(Tls::open(source, &setup.dir, names(setup, address), env)?),
        None => None,
    };
    if tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(
            "listening on {address}, which other machines may reach, without TLS: serve with --tls, or put a TLS proxy before it"
        );
        out.note(&format!("mw: warning: {address} may be reached by other machines, and nothing is encrypted"));
    }
    let open = Open::default();
    if let Some(heir) = &mut heir {
        open.kept().lock().extend(heir.connections());
    }
    let since = heir.as_ref().map(|heir| heir.letter.since);
    let instance = heir.as_ref().map_or_else(|| env.token(20), |heir| heir.letter.instance.clone());
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = format!("{scheme}://{}", reachable(address));
    let place =
        wire::Place { near, encrypted: tls.is_some().then(|| endpoint.clone()), instance: instance.clone(), program };
    let (setup2, env2) = (setup.clone(), env.clone());
    let wired = tokio::task::spawn_blocking(move || wire::wire(&setup2, place, &env2, heir))
        .await
        .map_err(|e| Failure::new(ErrorKind::Io, format!("opening the store failed: {e}")))??;
    let local = sockets.inner.is_some().then(|| format!("http://{near}"));
    let standing = Standing { wired: Arc::new(wired), open, lock: owned.lock(), instance: instance.clone() };
    let announcement = Announcement { pid: std::process::id(), endpoint: endpoint.clone(), local, instance };
    dir::announce(&setup.dir, &announcement, env)?;
    match since {
        Some(since) => standing.wired.desk.done(since),
        None => out.bytes(format!("ready {endpoint}\n").as_bytes()),
    }
    let mut sockets: Vec<_> = [sockets.outer].into_iter().chain(sockets.inner).collect();
    loop {
        let (stop, stopped) = watch::channel(Stop::No);
        let mut accepting = Vec::new();
        for (n, socket) in sockets.into_iter().enumerate() {
            // The second one, where there is one, is not encrypted.
            let acceptor = tls.as_ref().filter(|_| n == 0).map(Tls::acceptor).transpose()?;
            let (router, open) = (standing.wired.router.clone(), standing.open.clone());
            accepting.push(tokio::spawn(listen::accept(socket, acceptor, router, open, stopped.clone())));
        }
        let leaving = !until_restart(setup, &standing, &mut signals, tls.as_ref()).await;
        if leaving {
            dir::withdraw(&setup.dir, &announcement.instance);
        } else {
            standing.prepare().await;
        }
        let since = env.now();
        // The receivers may be gone already.
        let _ = stop.send(if leaving { Stop::Leave } else { Stop::Restart });
        sockets = Vec::new();
        for accepting in accepting {
            let socket = accepting.await.map_err(|e| Failure::new(ErrorKind::Io, format!("the listener: {e}")))?;
            sockets.push(socket);
        }
        if leaving {
            // Who comes now is refused, and need not wait for the end.
            drop(sockets);
            break;
        }
        standing.hand_over(&sockets, since).await;
    }
    leave(standing).await
}

/// Serves until it is time to restart; returns false when it is time to leave.
async fn until_restart(setup: &Setup, standing: &Standing, signals: &mut Signals, tls: Option<&Tls>) -> bool {
    let (wired, open) = (&standing.wired, &standing.open);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => tracing::info!("told to leave"),
            _ = signals.interrupt.recv() => tracing::info!("interrupted"),
            () = idle(setup.idle, wired, open) => tracing::info!("idle, leaving"),
            () = housekeeping(wired) => {}
            () = watch_tls(tls) => {}
            () = wired.desk.asked() => return true,
            _ = signals.restart.recv() => {
                let desk = wired.desk.clone();
                let asked = tokio::task::spawn_blocking(move || desk.restart()).await;
                if let Ok(Err(error)) = asked {
                    tracing::error!(%error, "no restart");
                }
                continue;
            }
        }
        return false;
    }
}

/// Ends runs, answers what was asked, lets mounts go and closes the store.
async fn leave(standing: Standing) -> Result<()> {
    let Standing { wired, open, .. } = standing;
    let closing = |e| Failure::new(ErrorKind::Io, format!("closing the store failed: {e}"));
    // Runs end first, so that whoever watches them hears how.
    let runs = wired.clone();
    tokio::task::spawn_blocking(move || runs.stop_runs()).await.map_err(closing)?;
    drain(&open).await;
    tokio::task::spawn_blocking(move || wired.close()).await.map_err(closing)?;
    Ok(())
}

/// Keeps the certificate fresh. Never ends.
async fn watch_tls(tls: Option<&Tls>) {
    match tls {
        Some(tls) => tls.watch().await,
        None => std::future::pending().await,
    }
}

/// Returns the names and addresses by which clients may call a server on `address`.
fn names(setup: &Setup, address: SocketAddr) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string(), Ipv6Addr::LOCALHOST.to_string()];
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names.extend(rustix::system::uname().nodename().to_str().ok().filter(|name| !name.is_empty()).map(str::to_owned));
    if let Some(suffix) = &setup.host_suffix {
        names.extend([suffix.clone(), format!("*.{suffix}")]);
    }
    let public = setup.public_url.as_deref().and_then(|url| url.split_once("://")).map(|(_, rest)| rest);
    let host = public.map(|rest| rest.split(['/', ':']).next().unwrap_or_default());
    names.extend(host.filter(|host| !host.is_empty() && !host.starts_with('[')).map(str::to_owned));
    names.sort();
    names.dedup();
    names
}

/// Returns the address at which this machine reaches a listener on `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    address
}

/// Waits until requests in flight are answered, or their time is over.
async fn drain(open: &Open) {
    let empty = async {
        while open.count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(GRACE, empty).await.is_err() {
        tracing::warn!(connections = open.count(), "leaving with requests unanswered");
    }
}

/// Ends when there have been no clients, mounts and runs for `limit`.
async fn idle(limit: Option<Duration>, wired: &wire::Wired, open: &Open) {
    let Some(limit) = limit else { return std::future::pending().await };
    let mut quiet = Duration::ZERO;
    let mut served = wired.served();
    // Short commands come and go between two looks, so that requests are counted as well as connections.
    let step = (limit / 20).clamp(Duration::from_millis(10), Duration::from_secs(1));
    while quiet < limit {
        tokio::time::sleep(step).await;
        let now = wired.served();
        let busy = now != served || open.count() > 0 || wired.is_busy();
        served = now;
        quiet = if busy { Duration::ZERO } else { quiet + step };
    }
}

/// Discards forks whose time is over, and sweeps now and then. Never ends.
async fn housekeeping(wired: &wire::Wired) {
    let mut since = Duration::ZERO;
    loop {
        tokio::time::sleep(REAP).await;
        since += REAP;
        let store = wired.store.clone();
        let sweep = since >= SWEEP;
        if sweep {
            since = Duration::ZERO;
        }
        let held = wired.housework.clone().lock_owned().await;
        let work = tokio::task::spawn_blocking(move || {
            let _held = held;
            match store.reap() {
                Ok(gone) if gone.is_empty() => {}
                Ok(gone) => tracing::info!(forks = gone.join(" "), "discarded, their time was over"),
                Err(error) => tracing::warn!(%error, "discarding old forks failed"),
            }
            if sweep && let Err(error) = store.sweep() {
                tracing::warn!(%error, "the sweep failed");
            }
        });
        if let Err(error) = work.await {
            tracing::error!(%error, "housekeeping failed");
        }
    }
}
