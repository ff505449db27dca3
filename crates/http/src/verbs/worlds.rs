//! Verbs about worlds and snapshots.

use super::convert;
use crate::call::{Inner, Reply};
use crate::types::{self, Spot};
use crate::{Error, Result};
use hyper::StatusCode;
use mw_model::Version;
use mw_world::{At, CreateOptions, ForkOptions, Principal, Quota};
use std::sync::Arc;
use std::time::Duration;

/// The longest time to live, in seconds (ten years).
const MAX_TTL: u64 = 10 * 366 * 86_400;

/// Checks a time to live.
pub(super) fn ttl(seconds: Option<u64>) -> Result<Option<Duration>> {
    match seconds {
        Some(n) if !(1..=MAX_TTL).contains(&n) => {
            Err(Error::invalid(format!("a time to live of {n} seconds is out of range; use 1 s to ten years")))
        }
        n => Ok(n.map(Duration::from_secs)),
    }
}

pub(super) fn list(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    let worlds = inner.store.worlds(who)?.into_iter().map(convert::world).collect();
    Reply::json(&types::Worlds { worlds })
}

pub(super) fn create(
    inner: &Arc<Inner>,
    who: &Principal,
    new: &types::NewWorld,
    idempotency: Option<String>,
) -> Result<Reply> {
    let info = inner.store.create_world(who, &new.name, &CreateOptions { idempotency, ..CreateOptions::default() })?;
    Reply::with_status(StatusCode::CREATED, &convert::world(info))
}

pub(super) fn show(inner: &Arc<Inner>, who: &Principal, world: &str) -> Result<Reply> {
    Reply::json(&convert::world(inner.now(who, world)?.info()?))
}

pub(super) fn delete(inner: &Arc<Inner>, who: &Principal, world: &str, force: bool) -> Result<Reply> {
    Reply::json(&convert::freed(&inner.store.delete_world(who, world, force)?))
}

pub(super) fn fork(
    inner: &Arc<Inner>,
    who: &Principal,
    base: &str,
    new: &types::NewFork,
    idempotency: Option<String>,
) -> Result<Reply> {
    let at = new.at.as_deref().map(At::parse).transpose()?;
    let options = ForkOptions { at, ttl: ttl(new.ttl_seconds)?, idempotency, ..ForkOptions::default() };
    let info = inner.store.fork(who, base, &new.name, &options)?;
    Reply::with_status(StatusCode::CREATED, &convert::world(info))
}

pub(super) fn discard(inner: &Arc<Inner>, who: &Principal, fork: &str) -> Result<Reply> {
    Reply::json(&convert::freed(&inner.now(who, fork)?.discard()?))
}

pub(super) fn snapshots(inner: &Arc<Inner>, who: &Principal, world: &str) -> Result<Reply> {
    let snapshots = inner.now(who, world)?.snapshots()?.into_iter().map(convert::snapshot).collect();
    Reply::json(&types::Snapshots { snapshots })
}

pub(super) fn take_snapshot(
    inner: &Arc<Inner>,
    who: &Principal,
    world: &str,
    new: &types::NewSnapshot,
    idempotency: Option<&str>,
) -> Result<Reply> {
    let snapshot = inner.now(who, world)?.snapshot(new.label.as_deref(), idempotency)?;
    Reply::with_status(StatusCode::CREATED, &convert::snapshot(snapshot))
}

pub(super) fn delete_snapshot(inner: &Arc<Inner>, who: &Principal, world: &str, version: &str) -> Result<Reply> {
    let session = inner.now(who, world)?;
    session.delete_snapshot(Version(crate::route::number("version", version)?))?;
    Reply::json(&types::Done {})
}

pub(super) fn usage(inner: &Arc<Inner>, who: &Principal, spot: &Spot) -> Result<Reply> {
    let usage = inner.session(who, spot)?.du()?;
    Reply::json(&types::Usage {
        objects: usage.objects,
        files: usage.files,
        directories: usage.directories,
        bytes: usage.bytes,
        own: usage.own,
        inodes: usage.inodes,
    })
}

pub(super) fn quota(inner: &Arc<Inner>, who: &Principal, world: &str) -> Result<Reply> {
    let (quota, held) = inner.now(who, world)?.quota()?;
    Reply::json(&types::QuotaReport {
        bytes: quota.bytes,
        inodes: quota.inodes,
        held_bytes: held.bytes,
        held_inodes: held.inodes,
    })
}

pub(super) fn set_quota(inner: &Arc<Inner>, who: &Principal, world: &str, new: &types::NewQuota) -> Result<Reply> {
    inner.now(who, world)?.set_quota(Quota { bytes: new.bytes, inodes: new.inodes })?;
    quota(inner, who, world)
}

pub(super) fn retention(inner: &Arc<Inner>, who: &Principal, world: &str) -> Result<Reply> {
    let retention = inner.now(who, world)?.retention()?;
    Reply::json(&types::RetentionReport {
        seconds: retention.keep.as_secs(),
        default: retention.default,
        oldest: convert::time(retention.oldest.0),
    })
}

pub(super) fn set_retention(
    inner: &Arc<Inner>,
    who: &Principal,
    world: &str,
    new: &types::NewRetention,
) -> Result<Reply> {
    inner.now(who, world)?.set_retention(new.seconds.map(Duration::from_secs))?;
    retention(inner, who, world)
}
