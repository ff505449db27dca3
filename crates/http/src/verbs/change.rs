//! Verbs about changes: log, diff, promote, rebase, revert, restore.

use super::convert;
use super::long::report;
use crate::Result;
use crate::call::{Inner, Reply};
use crate::error::status;
use crate::types::{self, ErrorBody, Spot, path_bytes, path_text};
use bytes::Bytes;
use mw_model::{ErrorKind, Seq};
use mw_world::{At, Combine, LogQuery, Policy, Principal, PromoteOptions, Promoted, Session, Side};
use std::cell::RefCell;
use std::sync::Arc;

pub(super) fn log(
    inner: &Arc<Inner>,
    who: &Principal,
    spot: &Spot,
    path: Option<Bytes>,
    limit: usize,
    before: Option<u64>,
) -> Result<Reply> {
    let session = inner.session(who, spot)?;
    let entries = session
        .log(&LogQuery { path, limit, before: before.map(Seq) })?
        .into_iter()
        .map(|entry| types::LogEntry {
            seq: entry.seq.to_string(),
            version: entry.version.to_string(),
            time: convert::time(entry.version.0),
            key: entry.key,
            run: entry.run,
            verb: entry.verb,
            path: entry.path.map(|path| path_text(&path)),
            note: entry.note,
            changes: entry.changes as u64,
            bytes: entry.bytes,
            chain: entry.chain.to_string(),
        })
        .collect();
    Reply::json(&types::Log { entries })
}

pub(super) fn diff(inner: &Arc<Inner>, who: &Principal, from: &Spot, to: &Spot) -> Result<Reply> {
    let (from, to) = (inner.session(who, from)?, inner.session(who, to)?);
    let changes = mw_world::diff(&from, &to)?.into_iter().map(convert::change).collect();
    Reply::json(&types::Diff { changes })
}

fn options(new: &types::NewPromote) -> PromoteOptions {
    PromoteOptions {
        dry_run: new.dry_run,
        only: new.only.as_deref().map(path_bytes),
        policy: match new.policy {
            types::Policy::Fail => Policy::Fail,
            types::Policy::Ours => Policy::Ours,
            types::Policy::Theirs => Policy::Theirs,
        },
        resolve: new
            .resolve
            .iter()
            .map(|(path, side)| {
                let side = match side {
                    types::Side::Ours => Side::Ours,
                    types::Side::Theirs => Side::Theirs,
                };
                (path_bytes(path), side)
            })
            .collect(),
        run: None,
        combine: Combine {
            text: new.merge.contains(&types::Combine::Text),
            json: new.merge.contains(&types::Combine::Json),
        },
        message: new.message.clone(),
        extra: Vec::new(),
    }
}

/// Conflicts that kept everything from being applied are a refusal with the list beside it, so that nobody who looks at the
/// status alone takes them for success.
fn document(promoted: Promoted) -> types::Promoted {
    let mut document = convert::promoted(promoted);
    if !document.conflicts.is_empty() && !document.dry_run {
        let message = format!(
            "{} conflict(s), nothing was applied; decide each with a resolution, or all with the policy ours or theirs",
            document.conflicts.len()
        );
        document.error = Some(ErrorBody { kind: ErrorKind::Conflict.as_str().to_owned(), message });
    }
    document
}

fn reply(promoted: Promoted) -> Result<Reply> {
    let document = document(promoted);
    match document.error {
        None => Reply::json(&document),
        Some(_) => Reply::with_status(status(ErrorKind::Conflict), &document),
    }
}

/// A merge that tells how far it is.
type Merge = fn(&Session, &PromoteOptions, &dyn Fn(&str)) -> mw_world::Result<Promoted>;

pub(super) fn promote(
    inner: &Arc<Inner>,
    who: &Principal,
    fork: &str,
    new: &types::NewPromote,
    watch: bool,
) -> Result<Reply> {
    merge(inner, who, fork, new, watch, Session::promote_watched)
}

pub(super) fn rebase(
    inner: &Arc<Inner>,
    who: &Principal,
    fork: &str,
    new: &types::NewPromote,
    watch: bool,
) -> Result<Reply> {
    merge(inner, who, fork, new, watch, Session::rebase_watched)
}

fn merge(
    inner: &Arc<Inner>,
    who: &Principal,
    fork: &str,
    new: &types::NewPromote,
    watch: bool,
    verb: Merge,
) -> Result<Reply> {
    let (session, options) = (inner.now(who, fork)?, options(new));
    if watch {
        return Ok(report(move |progress| watched(progress, |tell| verb(&session, &options, tell))));
    }
    reply(verb(&session, &options, &|_| {})?)
}

/// Lends what takes lines one by one to work that only shares it.
fn watched(
    progress: &mut dyn FnMut(&str),
    work: impl FnOnce(&dyn Fn(&str)) -> mw_world::Result<Promoted>,
) -> mw_world::Result<types::Promoted> {
    let progress = RefCell::new(progress);
    work(&|text| (*progress.borrow_mut())(text)).map(document)
}

pub(super) fn stop_merge(inner: &Arc<Inner>, who: &Principal, fork: &str) -> Result<Reply> {
    inner.now(who, fork)?.stop_merge()?;
    Reply::json(&types::Done {})
}

pub(super) fn revert(inner: &Arc<Inner>, who: &Principal, world: &str, new: &types::NewRevert) -> Result<Reply> {
    let session = inner.now(who, world)?;
    reply(session.revert(At::parse(&new.to)?)?)
}

pub(super) fn restore(inner: &Arc<Inner>, who: &Principal, world: &str, new: &types::NewRestore) -> Result<Reply> {
    let session = inner.now(who, world)?;
    reply(session.restore(At::parse(&new.from)?, &path_bytes(&new.path))?)
}
