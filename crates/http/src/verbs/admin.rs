//! Verbs about the whole store and its server: status, fsck, gc, restart. For the root key alone.

use super::long::report;
use super::root_only;
use crate::call::{Inner, Reply};
use crate::host::RestartHost;
use crate::types;
use crate::{Error, Result};
use hyper::StatusCode;
use mw_model::ErrorKind;
use mw_world::Principal;
use std::sync::Arc;

pub(super) fn status(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    root_only(who, "see the state of the server")?;
    let store = serde_json::to_value(inner.store.status()?)
        .map_err(|e| Error::new(ErrorKind::Io, "the status cannot be written as JSON").with_source(e))?;
    let mounted = inner.hosts.mounts.as_ref().map_or_else(Vec::new, |mounts| mounts.list());
    Reply::json(&types::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        mounts: mounted.iter().filter(|mount| mount.alive).count() as u64,
        mounted,
        runs: inner.hosts.runs.as_ref().map_or(0, |runs| runs.active()),
        store,
    })
}

fn restarts(inner: &Inner) -> Result<&Arc<dyn RestartHost>> {
    inner
        .hosts
        .restarts
        .as_ref()
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, "this server cannot restart in place"))
}

pub(super) fn restart(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    root_only(who, "restart the server")?;
    Reply::with_status(StatusCode::ACCEPTED, &restarts(inner)?.restart()?)
}

pub(super) fn last_restart(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    root_only(who, "ask about restarts")?;
    let missing = || Error::new(ErrorKind::NotFound, "the server was not restarted in place");
    Reply::json(&restarts(inner)?.last().ok_or_else(missing)?)
}

pub(super) fn fsck(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    root_only(who, "check the store")?;
    let store = inner.store.clone();
    Ok(report(move |progress| {
        let found = store.fsck(progress)?;
        Ok(types::Fsck {
            worlds: found.worlds,
            roots: found.roots,
            blobs: found.blobs,
            bytes: found.bytes,
            problems: found.problems,
        })
    }))
}

pub(super) fn gc(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    root_only(who, "sweep the store")?;
    let store = inner.store.clone();
    Ok(report(move |progress| {
        progress("discarding forks whose time is over");
        let reaped = store.reap()?;
        progress("sweeping");
        let swept = store.sweep()?;
        Ok(types::Swept {
            freed: swept.freed,
            segments: swept.segments,
            inside: swept.inside,
            worlds: swept.worlds,
            entries: swept.entries,
            reaped,
        })
    }))
}
