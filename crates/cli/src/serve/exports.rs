//! The table of exports over NFS. It is kept in `DIR/exports.json`: a restarted server exports again, on the same ports, so that
//! clients go on.

use super::table::{self, TableFile};
use crate::failure::Failure;
use mw_env::Env;
use mw_http::host::ExportHost;
use mw_http::types::{Export, NewExport};
use mw_http::{Error, Result};
use mw_model::ErrorKind;
use mw_nfs::Options;
use mw_world::{Session, Store};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const FILE: &str = "exports.json";
/// How long calls of clients may take to be answered when the server is about to restart.
const PAUSE: Duration = Duration::from_secs(2);

/// What was asked for: enough to export it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Wish {
    world: String,
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    read_only: bool,
    /// The key under which the export acts.
    key: String,
}

/// A wish and what came of it.
struct Place {
    wish: Wish,
    state: std::result::Result<mw_nfs::Export, String>,
}

/// The exports of a server, by port.
pub struct ExportTable {
    file: TableFile,
    life: u64,
    places: Mutex<BTreeMap<u16, Place>>,
}

impl ExportTable {
    /// Exports again what the table in `dir` names. What cannot be exported stays in the table with its reason.
    ///
    /// `heirloom` is the life of a server that was here before and its listeners, by port.
    pub fn open(
        dir: &Path,
        store: &Arc<Store>,
        env: &Env,
        heirloom: Option<(u64, BTreeMap<u16, TcpListener>)>,
    ) -> Self {
        let (life, mut listeners) = heirloom.unwrap_or_else(|| (env.random(), BTreeMap::new()));
        let file = TableFile::new(dir, env, FILE, "exports");
        let wishes: BTreeMap<u16, Wish> = file.read();
        let places = wishes
            .into_iter()
            .map(|(port, wish)| {
                let state = again(store, port, listeners.remove(&port), &wish, life).map_err(|error| {
                    tracing::warn!(%error, port, world = wish.world, "cannot export again");
                    error.to_string()
                });
                (port, Place { wish, state })
            })
            .collect();
        Self { file, life, places: Mutex::new(places) }
    }

    /// Returns whether something is exported.
    pub fn is_busy(&self) -> bool {
        self.places.lock().values().any(|place| place.state.is_ok())
    }

    /// Returns the life that clients know.
    pub fn life(&self) -> u64 {
        self.life
    }

    /// Has every export answer what it was called for and accept nobody, until what is returned is dropped.
    pub fn halt(&self) -> Still<'_> {
        let places = self.places.lock();
        for place in places.values() {
            if let Ok(export) = &place.state {
                export.pause(PAUSE);
            }
        }
        Still(places)
    }

    /// Ends every export and keeps the table.
    pub fn close(&self) {
        self.places.lock().clear();
    }

    fn save(&self, places: &BTreeMap<u16, Place>) -> Result<()> {
        let wishes: BTreeMap<u16, &Wish> = places.iter().map(|(port, place)| (*port, &place.wish)).collect();
        self.file.write(&wishes)
    }
}

/// The exports of a server that accept nobody; dropped, they go on.
pub struct Still<'a>(MutexGuard<'a, BTreeMap<u16, Place>>);

impl Still<'_> {
    /// Returns what each port is listened on with.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn hand_over(&self) -> crate::failure::Result<Vec<(u16, OwnedFd)>> {
        let living = self.0.iter().filter_map(|(port, place)| Some((*port, place.state.as_ref().ok()?)));
        living
            .map(|(port, export)| {
                Ok((port, export.listener().map_err(|e| Failure::io(format!("port {port}"), e))?.into()))
            })
            .collect()
    }
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        for (port, place) in &*self.0 {
            if let Ok(export) = &place.state
                && let Err(error) = export.go_on()
            {
                tracing::error!(%error, port, "an export does not go on");
            }
        }
    }
}

fn again(
    store: &Arc<Store>,
    port: u16,
    listener: Option<TcpListener>,
    wish: &Wish,
    life: u64,
) -> Result<mw_nfs::Export> {
    let session = table::session(store, &wish.key, &wish.world, wish.at.as_deref())?;
    let Some(listener) = listener else { return export(session, port, wish.read_only, life) };
    mw_nfs::export_on(listener, session, &Options { port, read_only: wish.read_only, life })
        .map_err(|e| Error::new(ErrorKind::Io, format!("port {port}: {e}")))
}

fn export(session: Session, port: u16, read_only: bool, life: u64) -> Result<mw_nfs::Export> {
    mw_nfs::export(session, &Options { port, read_only, life }).map_err(|e| {
        let kind = if e.kind() == std::io::ErrorKind::AddrInUse { ErrorKind::Busy } else { ErrorKind::Io };
        let what = if port == 0 { "no port can be listened on".to_owned() } else { format!("port {port}") };
        Error::new(kind, format!("{what}: {e}; leave --port out to take a free one"))
    })
}

fn shown(port: u16, place: &Place) -> Export {
    let Place { wish, state } = place;
    Export {
        world: wish.world.clone(),
        at: wish.at.clone(),
        port,
        read_only: wish.read_only || wish.at.is_some(),
        clients: state.as_ref().map_or(0, |export| export.clients() as u64),
        problem: state.as_ref().err().cloned(),
    }
}

impl ExportHost for ExportTable {
    fn export(&self, session: Session, request: &NewExport) -> Result<Export> {
        let wish = Wish {
            world: request.world.clone(),
            at: request.at.clone(),
            read_only: request.read_only,
            key: session.principal().key_id().to_owned(),
        };
        let session = session.lasting();
        let mut places = self.places.lock();
        let same = places.iter().find(|(port, place)| {
            place.wish == wish && place.state.is_ok() && request.port.is_none_or(|wanted| wanted == **port)
        });
        if let Some((port, place)) = same {
            return Ok(shown(*port, place));
        }
        let export = export(session, request.port.unwrap_or(0), request.read_only, self.life)?;
        let port = export.address().port();
        let place = Place { wish, state: Ok(export) };
        let answer = shown(port, &place);
        places.insert(port, place);
        if let Err(error) = self.save(&places) {
            // Not half made: what is not in the table is not exported.
            places.remove(&port);
            return Err(error);
        }
        Ok(answer)
    }

    fn unexport(&self, port: u16) -> Result<()> {
        let mut places = self.places.lock();
        if places.remove(&port).is_none() {
            let message = format!("nothing of this store is exported on port {port}; `mw exports` lists what is");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        self.save(&places)
    }

    fn list(&self) -> Vec<Export> {
        self.places.lock().iter().map(|(port, place)| shown(*port, place)).collect()
    }
}
