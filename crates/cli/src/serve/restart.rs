//! A restart in place: the process stays, its program is another one, and neither clients nor programs on the mounts notice.
//!
//! Order: what can be done beforehand (the new program is asked, content is synced); no new connections; requests under way are answered;
//! mounts stand still; everything is made durable; the hand-over. What was acknowledged is durable when the new program begins: only
//! therefore may open files outlive this one. Whatever fails before the new program runs is undone, and the server goes on.

use super::handover::{self, Bundle, Connection, Letter};
use super::listen::Open;
use super::wire::Wired;
use crate::failure::{Failure, Result};
use mw_http::host::RestartHost;
use mw_model::ErrorKind;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long requests, mounts and work of the server's own may take to come to an end; then the restart is given up.
pub const GRACE: Duration = Duration::from_secs(10);

/// How many connections that wait for a request are handed over; of descriptors in messages an ordinary user may have a thousand. Others are closed.
const KEPT: usize = 512;

/// What a restart needs of the server.
pub struct Standing {
    pub wired: Arc<Wired>,
    pub open: Open,
    pub lock: Arc<File>,
    pub instance: String,
}

impl Standing {
    /// Does beforehand what takes time and disturbs nobody.
    pub async fn prepare(&self) {
        let store = self.wired.store.clone();
        let flushed = tokio::task::spawn_blocking(move || store.flush()).await;
        if let Ok(Err(error)) = flushed {
            tracing::warn!(%error, "content could not be synced before a restart");
        }
    }

    /// Hands over, with `listeners` that accept nobody any more. Returns only when the server must go on, which it then can.
    pub async fn hand_over(&self, listeners: &[TcpListener], since: u64) {
        let desk = &self.wired.desk;
        let why = match self.drained().await {
            Err(failure) => failure,
            Ok(_rest) => {
                let descriptors: std::io::Result<Vec<_>> =
                    listeners.iter().map(|listener| listener.as_fd().try_clone_to_owned()).collect();
                let (wired, lock, open) = (self.wired.clone(), self.lock.clone(), self.open.clone());
                let instance = self.instance.clone();
                let done = tokio::task::spawn_blocking(move || {
                    let listeners = descriptors.map_err(|e| Failure::io("the listeners", e))?;
                    let listeners: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
                    exchange(&wired, lock.as_fd(), &listeners, &open, instance, since)
                });
                match done.await {
                    Ok(Err(failure)) => failure,
                    Ok(Ok(never)) => match never {},
                    Err(error) => Failure::new(ErrorKind::Io, format!("the hand-over failed: {error}")),
                }
            }
        };
        desk.failed(&why);
    }

    /// Waits until requests and the server's own work are done. None of that work begins while what is returned is held.
    async fn drained(&self) -> Result<impl Drop + use<>> {
        let late = |what: String| {
            Failure::new(
                ErrorKind::Busy,
                format!("{what} did not come to an end in {} s; try again later", GRACE.as_secs()),
            )
        };
        let empty = async {
            while self.open.count() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        if tokio::time::timeout(GRACE, empty).await.is_err() {
            return Err(late(format!("requests on {} connections", self.open.count())));
        }
        let rest = tokio::time::timeout(GRACE, self.wired.housework.clone().lock_owned()).await;
        let rest = rest.map_err(|_| late("the sweep".to_owned()))?;
        // The last of the requests may have been for one.
        self.wired.desk.need_no_runs()?;
        Ok(rest)
    }
}

/// Nobody.
enum Never {}

/// Brings everything to a standstill and becomes the new program, or undoes it.
fn exchange(
    wired: &Wired,
    lock: BorrowedFd<'_>,
    listeners: &[BorrowedFd<'_>],
    open: &Open,
    instance: String,
    since: u64,
) -> Result<Never> {
    let exports = wired.exports.halt();
    let mounts = wired.mounts.halt()?;
    // From here on nothing changes any more, and what was answered is on disk before anybody relies on it.
    wired.store.flush()?;
    let (handed, devices): (Vec<_>, Vec<_>) = mounts.hand_over()?.into_iter().unzip();
    let (ports, sockets): (Vec<_>, Vec<_>) = exports.hand_over()?.into_iter().unzip();
    let mut restart =
        wired.desk.last().ok_or_else(|| Failure::new(ErrorKind::Invalid, "nobody asked for a restart"))?;
    restart.mounts = handed.len() as u64;
    restart.open = handed.iter().map(|mount| mount.state.open()).sum();
    restart.listeners = (listeners.len() + sockets.len()) as u64;
    let mut kept = open.kept().lock();
    kept.truncate(KEPT);
    let letter = Letter {
        version: Letter::VERSION,
        instance,
        life: wired.exports.life(),
        restart,
        since,
        inner: listeners.len() > 1,
        mounts: handed,
        exports: ports,
        connections: kept.iter().map(|kept| Connection { tls: kept.tls, read: kept.read.to_vec() }).collect(),
    };
    let bundle = Bundle {
        lock,
        listener: listeners[0],
        inner: listeners.get(1).copied(),
        mounts: devices.iter().map(AsFd::as_fd).collect(),
        exports: sockets.iter().map(AsFd::as_fd).collect(),
        connections: kept.iter().map(|kept| kept.stream.as_fd()).collect(),
    };
    let delivery = handover::deliver(&letter, &bundle)?;
    let failure = wired.desk.program().become_it();
    drop(delivery);
    Err(failure)
}
