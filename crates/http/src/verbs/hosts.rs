//! Verbs about mounts and runs. They decide who may, and leave the doing to the hosts.
//!
//! A mount puts a world into a directory of the server's machine, which is not the store's to give: only the root key may. So it is with what
//! opens the sandbox to the host. A run forks, promotes and makes keys, so that it needs the admin role on its base.

use super::root_only;
use crate::body::{Gone, produce};
use crate::call::{Inner, Reply};
use crate::host::{ExportHost, MountHost, RunHost, Typed};
use crate::types::{self, RunEvent, Spot};
use crate::{Error, Result};
use hyper::StatusCode;
use mw_model::ErrorKind;
use mw_world::{Principal, Role};
use std::sync::Arc;

fn mount_host(inner: &Inner) -> Result<&Arc<dyn MountHost>> {
    inner.hosts.mounts.as_ref().ok_or_else(|| Error::new(ErrorKind::Unsupported, "this server cannot mount"))
}

fn run_host(inner: &Inner) -> Result<&Arc<dyn RunHost>> {
    inner.hosts.runs.as_ref().ok_or_else(|| Error::new(ErrorKind::Unsupported, "this server cannot run commands"))
}

pub(super) fn mounts(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    root_only(who, "see mounts")?;
    Reply::json(&types::Mounts { mounts: mount_host(inner)?.list() })
}

pub(super) fn mount(inner: &Arc<Inner>, who: &Principal, new: &types::NewMount) -> Result<Reply> {
    root_only(who, "mount")?;
    let session = inner.session(who, &Spot { world: new.world.clone(), at: new.at.clone() })?;
    Reply::with_status(StatusCode::CREATED, &mount_host(inner)?.mount(session, new)?)
}

pub(super) fn unmount(inner: &Arc<Inner>, who: &Principal, request: &types::Unmount) -> Result<Reply> {
    root_only(who, "unmount")?;
    mount_host(inner)?.unmount(request)?;
    Reply::json(&types::Done {})
}

fn export_host(inner: &Inner) -> Result<&Arc<dyn ExportHost>> {
    inner.hosts.exports.as_ref().ok_or_else(|| Error::new(ErrorKind::Unsupported, "this server cannot export"))
}

pub(super) fn exports(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    root_only(who, "see exports")?;
    Reply::json(&types::Exports { exports: export_host(inner)?.list() })
}

/// Whoever reaches the port of an export acts with its key, so that opening one is the root key's alone.
pub(super) fn export(inner: &Arc<Inner>, who: &Principal, new: &types::NewExport) -> Result<Reply> {
    root_only(who, "export")?;
    let session = inner.session(who, &Spot { world: new.world.clone(), at: new.at.clone() })?;
    Reply::with_status(StatusCode::CREATED, &export_host(inner)?.export(session, new)?)
}

pub(super) fn unexport(inner: &Arc<Inner>, who: &Principal, port: u16) -> Result<Reply> {
    root_only(who, "end an export")?;
    export_host(inner)?.unexport(port)?;
    Reply::json(&types::Done {})
}

pub(super) fn runs(inner: &Arc<Inner>, who: &Principal) -> Result<Reply> {
    Reply::json(&types::Runs { runs: run_host(inner)?.list(who)? })
}

/// The most attempts of one run.
const MAX_ATTEMPTS: u32 = 1000;

pub(super) fn start_run(
    inner: &Arc<Inner>,
    who: &Principal,
    new: &types::NewRun,
    idempotency: Option<&str>,
) -> Result<Reply> {
    let session = inner.now(who, &new.base)?;
    let needed = if new.exec { Role::Editor } else { Role::Admin };
    if !session.allows(needed) {
        let message = format!("this needs the role {needed} on all of {:?}, and the key has less", new.base);
        return Err(Error::new(ErrorKind::Denied, message));
    }
    if !new.read_only.is_empty() || !new.allow.is_empty() {
        root_only(who, "open the sandbox to the host or the network")?;
    }
    check_run(new)?;
    Reply::with_status(StatusCode::CREATED, &run_host(inner)?.start(who, new, idempotency)?)
}

fn check_run(new: &types::NewRun) -> Result<()> {
    if new.command.is_empty() == new.commands.is_empty() {
        return Err(Error::invalid("a run takes either one command or a list of commands, one for each attempt"));
    }
    if !(1..=MAX_ATTEMPTS).contains(&new.attempts) {
        return Err(Error::invalid(format!("{} attempts are out of range; use 1 to {MAX_ATTEMPTS}", new.attempts)));
    }
    if !new.commands.is_empty() && new.commands.len() != new.attempts as usize {
        return Err(Error::invalid("there must be as many commands as attempts"));
    }
    if new.timeout_seconds == Some(0) {
        return Err(Error::invalid("a time limit of zero seconds leaves no time; use at least one"));
    }
    if new.command.iter().chain(&new.commands).any(|word| word.contains('\0')) {
        return Err(Error::invalid("a command cannot contain NUL"));
    }
    if let Some((name, _)) =
        new.env.iter().find(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0'))
    {
        return Err(Error::invalid(format!("{name:?} is no environment variable")));
    }
    Ok(())
}

pub(super) fn show_run(inner: &Arc<Inner>, who: &Principal, id: &str) -> Result<Reply> {
    Reply::json(&run_host(inner)?.show(who, id)?)
}

pub(super) fn cancel_run(inner: &Arc<Inner>, who: &Principal, id: &str) -> Result<Reply> {
    Reply::json(&run_host(inner)?.cancel(who, id)?)
}

pub(super) fn watch_run(inner: &Arc<Inner>, who: &Principal, id: String) -> Result<Reply> {
    let host = run_host(inner)?.clone();
    host.show(who, &id)?;
    let who = who.clone();
    Ok(Reply::lines(produce(move |sink| {
        let outcome = host.watch(&who, &id, &mut |event: RunEvent| !matches!(sink.line(&event), Err(Gone)));
        if let Err(error) = outcome {
            tracing::error!(%error, run = id, "watching a run failed");
            sink.fail(error);
        }
    })))
}

/// Passes on what was typed: the size of the terminal first, then the bytes, then the end.
pub(super) fn type_to_run(
    inner: &Arc<Inner>,
    who: &Principal,
    id: &str,
    bytes: &[u8],
    end: bool,
    size: Option<(u16, u16)>,
) -> Result<Reply> {
    let host = run_host(inner)?;
    if let Some((rows, columns)) = size {
        host.type_to(who, id, Typed::Size { rows, columns })?;
    }
    if !bytes.is_empty() {
        host.type_to(who, id, Typed::Bytes(bytes))?;
    }
    if end {
        host.type_to(who, id, Typed::End)?;
    }
    Reply::json(&types::Done {})
}
