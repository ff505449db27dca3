//! What the tables of the server have in common: they lie in a file of the data directory, as what was asked for by place, and are asked
//! for again by a server that starts.

use crate::dir;
use mw_env::Env;
use mw_http::{Error, Result};
use mw_model::ErrorKind;
use mw_world::{At, Session, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of one table.
pub(super) struct TableFile {
    dir: PathBuf,
    env: Env,
    name: &'static str,
    /// What the table is of, for people.
    what: &'static str,
}

impl TableFile {
    pub(super) fn new(dir: &Path, env: &Env, name: &'static str, what: &'static str) -> Self {
        Self { dir: dir.to_owned(), env: env.clone(), name, what }
    }

    /// Returns the directory of the store.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads the wishes. An unreadable table is logged, and empty: the server starts without it.
    pub(super) fn read<K: DeserializeOwned + Ord, W: DeserializeOwned>(&self) -> BTreeMap<K, W> {
        match std::fs::read(self.dir.join(self.name)) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::error!(%error, "the table of {} is unreadable; none comes back", self.what);
                BTreeMap::new()
            }),
            Err(_) => BTreeMap::new(),
        }
    }

    /// Writes the wishes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write<K: Serialize + Ord, W: Serialize>(&self, wishes: &BTreeMap<K, W>) -> Result<()> {
        let what = self.what;
        let bytes = serde_json::to_vec(wishes)
            .map_err(|e| Error::new(ErrorKind::Io, format!("the table of {what}")).with_source(e))?;
        dir::write(&self.dir, self.name, &bytes, &self.env)
            .map_err(|failure| Error::new(ErrorKind::Io, format!("the table of {what} cannot be written: {failure}")))
    }
}

/// Opens a world, or an instant of it, with the key under which it was asked for.
///
/// # Errors
/// The key is dead, or reaches the world no more; the instant is not retained any more.
pub(super) fn session(store: &Arc<Store>, key: &str, world: &str, at: Option<&str>) -> Result<Session> {
    let who = store.principal(key)?.lasting();
    Ok(match at {
        None => store.session(&who, world)?,
        Some(at) => store.session_at(&who, world, At::parse(at)?)?,
    })
}
