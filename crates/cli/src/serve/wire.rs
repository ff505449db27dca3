//! The whole server on one screen: which engine stands behind which seam, and which door before them.

use super::Setup;
use super::desk::Desk;
use super::exports::ExportTable;
use super::handover::Inheritance;
use super::listen::{Peer, Router};
use super::mcp::Mcp;
use super::mounts::MountTable;
use super::program::Program;
use super::runs::RunTable;
use super::upgrade;
use crate::dir;
use crate::failure::{Failure, Result};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response};
use mw_env::{Env, LocalDisk};
use mw_http::{Body, ControlDoor, Hosts, host::RunHost};
use mw_model::ErrorKind;
use mw_s3::{Encrypted, S3Door, S3Options};
use mw_world::{Options, SealingKey, Store};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Everything that is open.
pub struct Wired {
    pub store: Arc<Store>,
    pub router: Doors,
    pub mounts: Arc<MountTable>,
    pub exports: Arc<ExportTable>,
    pub desk: Arc<Desk>,
    /// Held by what the server does of its own accord.
    pub housework: Arc<tokio::sync::Mutex<()>>,
    runs: Arc<RunTable>,
}

/// Where the server is and goes by which name.
pub struct Place {
    /// Where sandboxes reach it.
    pub near: SocketAddr,
    /// The address of the listener that speaks TLS, where there is one.
    pub encrypted: Option<String>,
    /// This life of the server.
    pub instance: String,
    /// What is to take its place one day.
    pub program: Program,
}

/// Opens the store of `setup` and puts the doors before it. `heir` is what another program left that was this process.
pub fn wire(setup: &Setup, place: Place, env: &Env, heir: Option<Inheritance>) -> Result<Wired> {
    let Place { near, encrypted, instance, program } = place;
    let disk = |name: &str| {
        let path = setup.dir.join(name);
        LocalDisk::new(&path).map(Arc::new).map_err(|e| Failure::io(path.display(), e))
    };
    let sealing = dir::sealing_key(&setup.dir, env)?;
    upgrade::upgrade(&setup.dir, env, &sealing)?;
    let meta = mw_meta::Embedded::open(disk("meta")?, env.clone()).map_err(|e| cannot_open("meta", &e))?;
    let segments = mw_segments::Local::open(disk("segments")?, env.clone()).map_err(|e| cannot_open("segments", &e))?;
    // Only the mounts know which files without a name are open.
    let options = Options { keep_orphans: heir.is_some(), ..options(sealing, setup.memory) };
    let arriving = options.memory / 32;
    let store = Store::open(meta, segments, env.clone(), options)?;
    dir::write_key(&setup.dir, &store.root_key()?, env)?;
    store.keep_root_key(dir::key_file(&setup.dir, env));

    let (mut handed, mut heirloom, mut restart) = (Vec::new(), None, None);
    if let Some(Inheritance { letter, devices, exports, .. }) = heir {
        handed = letter.mounts.into_iter().zip(devices).collect();
        (heirloom, restart) = (Some((letter.life, exports)), Some(letter.restart));
    }
    let mounts = Arc::new(MountTable::open(&setup.dir, &store, env, handed));
    store.settle_orphans();
    let exports = Arc::new(ExportTable::open(&setup.dir, &store, env, heirloom));
    let runs = Arc::new(RunTable::open(&setup.dir, &store, near, env)?);
    let desk = Arc::new(Desk::new(program, env.clone(), mounts.clone(), runs.clone(), restart));
    let hosts = Hosts {
        mounts: Some(mounts.clone()),
        exports: Some(exports.clone()),
        runs: Some(runs.clone()),
        restarts: Some(desk.clone()),
    };
    let control = ControlDoor::new(store.clone(), hosts, instance);
    let router = Doors {
        mcp: Mcp::new(store.clone(), control.clone(), setup.public_url.clone(), encrypted.clone()),
        control,
        s3: mw_s3::service(
            store.clone(),
            S3Options {
                host_suffix: setup.host_suffix.clone(),
                public_url: setup.public_url.clone(),
                encrypted_url: encrypted.clone(),
                arriving,
                ..S3Options::default()
            },
        ),
        host_suffix: setup.host_suffix.as_ref().map(|suffix| format!(".{}", suffix.to_ascii_lowercase()).into()),
        served: Arc::default(),
    };
    Ok(Wired { store, router, mounts, exports, desk, housework: Arc::default(), runs })
}

/// What no mount and no client owns belongs to whoever runs the server.
fn options(sealing: SealingKey, memory: usize) -> Options {
    let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Options { owner, memory, sealing: Some(sealing), ..Options::default() }
}

fn cannot_open(what: &str, error: &dyn std::error::Error) -> Failure {
    Failure::new(ErrorKind::Io, format!("cannot open {what}: {error}; `mw fsck` of a copy tells what is whole"))
}

impl Wired {
    /// Returns whether mounts or runs need the server.
    pub fn is_busy(&self) -> bool {
        self.mounts.is_busy() || self.exports.is_busy() || self.runs.active() > 0
    }

    /// Returns how many requests have come.
    pub fn served(&self) -> u64 {
        self.router.served.load(Ordering::Relaxed)
    }

    /// Ends the runs, each cleanly.
    pub fn stop_runs(&self) {
        self.runs.stop();
    }

    /// Detaches the mounts, which come back with the next start, and closes the store.
    pub fn close(&self) {
        self.exports.close();
        self.mounts.close();
        self.store.close();
    }
}

/// The doors behind one listener: what is under `/-/mcp` is MCP's, under `/-/` the control plane's, all else is S3's.
#[derive(Clone)]
pub struct Doors {
    control: ControlDoor,
    mcp: Mcp,
    s3: S3Door,
    host_suffix: Option<Arc<str>>,
    served: Arc<AtomicU64>,
}

impl Doors {
    /// On a virtual host the path is a key, and a key may well start with `-/`.
    fn is_virtual(&self, request: &Request<Incoming>) -> bool {
        let Some(suffix) = &self.host_suffix else { return false };
        let host =
            request.headers().get("host").and_then(|host| host.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
        let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        name.ends_with(&**suffix) || host.ends_with(&**suffix)
    }
}

impl Router for Doors {
    async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        self.served.fetch_add(1, Ordering::Relaxed);
        if request.extensions().get::<Peer>().is_some_and(|peer| peer.tls) {
            request.extensions_mut().insert(Encrypted);
        }
        let path = request.uri().path();
        if !path.starts_with(mw_http::route::PREFIX) || self.is_virtual(&request) {
            self.s3.call(request).await.map(|body| body.map_err(Into::into).boxed_unsync())
        } else if Mcp::takes(path) {
            self.mcp.call(request).await
        } else {
            self.control.call(request.map(|body| body.map_err(Into::into).boxed_unsync())).await
        }
    }
}
