//! Runs in the server. Wired to `mw_run` here, and nowhere else.

use super::mounts::MountTable;
use crate::failure::Result;
use mw_http::host::RunHost;
use mw_world::Store;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// Opens the runs of the store; `None` where none can be had. `endpoint` is where the server answers, for the forwarder of the
/// sandbox.
pub fn open(
    _dir: &Path,
    _store: &Arc<Store>,
    _mounts: &Arc<MountTable>,
    _endpoint: SocketAddr,
) -> Result<Option<Arc<dyn RunHost>>> {
    Ok(None)
}
