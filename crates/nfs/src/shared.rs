//! What the threads of an export share.

use crate::handle::Realm;
use crate::openings::Openings;
use crate::replay::Replay;
use mw_world::Session;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;

/// The most bytes of content in one read or write.
pub(crate) const MAX_DATA: usize = 1 << 20;
/// An export, as its threads see it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub session: Session,
    pub realm: Realm,
    pub read_only: bool,
    pub port: u16,
    pub life: u64,
    pub replay: Replay,
    pub openings: Openings,
    pub closed: AtomicBool,
    pub clients: Mutex<HashMap<u64, TcpStream>>,
}
