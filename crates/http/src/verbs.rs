//! One file for each family of verbs. A verb decodes its document, calls the world, and encodes what comes back.

mod admin;
mod change;
mod convert;
mod files;
mod hosts;
mod keys;
mod listing;
mod long;
mod worlds;

use crate::body::Source;
use crate::call::{Call, Inner, Reply};
use crate::plant::Planter;
use crate::route::Verb;
use crate::types::Spot;
use crate::{Error, Result};
use mw_model::ErrorKind;
use mw_world::{At, Principal, Session};
use serde::de::DeserializeOwned;
use std::sync::Arc;

impl Inner {
    /// Opens a world, or an instant of it, for `who`.
    pub(crate) fn session(&self, who: &Principal, spot: &Spot) -> Result<Session> {
        match &spot.at {
            None => Ok(self.store.session(who, &spot.world)?),
            Some(at) => {
                // The key is judged before the instant, so that a wrong instant says nothing about somebody else's world.
                self.store.session(who, &spot.world)?;
                Ok(self.store.session_at(who, &spot.world, At::parse(at)?)?)
            }
        }
    }

    fn now(&self, who: &Principal, world: &str) -> Result<Session> {
        Ok(self.store.session(who, world)?)
    }
}

fn parse<T: DeserializeOwned>(document: &[u8]) -> Result<T> {
    serde_json::from_slice(document).map_err(|e| {
        Error::invalid(format!("the JSON document is not what this verb takes: {e}; see GET /-/v1/schema"))
    })
}

/// Refuses everybody but the root key, before anything is looked up.
fn root_only(who: &Principal, what: &str) -> Result<()> {
    if who.is_root() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Denied,
        format!("only the root key may {what}; use the key in root-key.json of the server's directory"),
    ))
}

/// Does a verb whose document is there.
pub(crate) fn run(inner: &Arc<Inner>, call: Call, document: &[u8]) -> Result<Reply> {
    let Call { who, verb, idempotency } = call;
    let who = &who;
    match verb {
        // Answered before authentication, and with the body as a stream.
        Verb::Health | Verb::Schema | Verb::Put { .. } => {
            Err(Error::new(ErrorKind::Unsupported, "this verb is answered elsewhere"))
        }
        Verb::Status => admin::status(inner, who),
        Verb::Fsck => admin::fsck(inner, who),
        Verb::Gc => admin::gc(inner, who),
        Verb::Restart => admin::restart(inner, who),
        Verb::LastRestart => admin::last_restart(inner, who),
        Verb::Worlds => worlds::list(inner, who),
        Verb::CreateWorld => worlds::create(inner, who, &parse(document)?, idempotency),
        Verb::ShowWorld { world } => worlds::show(inner, who, &world),
        Verb::DeleteWorld { world, force } => worlds::delete(inner, who, &world, force),
        Verb::Fork { base } => worlds::fork(inner, who, &base, &parse(document)?, idempotency),
        Verb::Discard { fork } => worlds::discard(inner, who, &fork),
        Verb::Snapshots { world } => worlds::snapshots(inner, who, &world),
        Verb::TakeSnapshot { world } => {
            worlds::take_snapshot(inner, who, &world, &parse(document)?, idempotency.as_deref())
        }
        Verb::DeleteSnapshot { world, version } => worlds::delete_snapshot(inner, who, &world, &version),
        Verb::Usage { spot } => worlds::usage(inner, who, &spot),
        Verb::Quota { world } => worlds::quota(inner, who, &world),
        Verb::SetQuota { world } => worlds::set_quota(inner, who, &world, &parse(document)?),
        Verb::Retention { world } => worlds::retention(inner, who, &world),
        Verb::SetRetention { world } => worlds::set_retention(inner, who, &world, &parse(document)?),
        Verb::Log { spot, path, limit, before } => change::log(inner, who, &spot, path, limit, before),
        Verb::Diff { from, to } => change::diff(inner, who, &from, &to),
        Verb::Promote { fork, watch } => change::promote(inner, who, &fork, &parse(document)?, watch),
        Verb::Rebase { fork, watch } => change::rebase(inner, who, &fork, &parse(document)?, watch),
        Verb::StopMerge { fork } => change::stop_merge(inner, who, &fork),
        Verb::Revert { world } => change::revert(inner, who, &world, &parse(document)?),
        Verb::Restore { world } => change::restore(inner, who, &world, &parse(document)?),
        Verb::Keys => keys::list(inner, who),
        Verb::CreateKey => keys::create(inner, who, &parse(document)?, idempotency),
        Verb::DeleteKey { id } => keys::delete(inner, who, &id),
        Verb::RotateKey { id } => keys::rotate(inner, who, &id),
        Verb::CreateTemporaryKey => keys::create_temporary(inner, who, &parse(document)?),
        Verb::Mounts => hosts::mounts(inner, who),
        Verb::Mount => hosts::mount(inner, who, &parse(document)?),
        Verb::Unmount => hosts::unmount(inner, who, &parse(document)?),
        Verb::Exports => hosts::exports(inner, who),
        Verb::Export => hosts::export(inner, who, &parse(document)?),
        Verb::Unexport { port } => hosts::unexport(inner, who, port),
        Verb::Runs => hosts::runs(inner, who),
        Verb::StartRun => hosts::start_run(inner, who, &parse(document)?, idempotency.as_deref()),
        Verb::ShowRun { id } => hosts::show_run(inner, who, &id),
        Verb::CancelRun { id } => hosts::cancel_run(inner, who, &id),
        Verb::WatchRun { id } => hosts::watch_run(inner, who, id),
        Verb::TypeToRun { id, end, size } => hosts::type_to_run(inner, who, &id, document, end, size),
        Verb::List { at, recursive, hidden } => listing::list(inner, who, at, recursive, hidden),
        Verb::Content { at } => files::content(inner, who, &at),
        Verb::Get { at } => files::get(inner, who, at),
        Verb::Remove { world } => files::remove(inner, who, &world, &parse(document)?),
        Verb::Copy => files::copy(inner, who, &parse(document)?),
        Verb::Move => files::rename(inner, who, &parse(document)?),
    }
}

/// Puts a stream of files into a world.
pub(crate) fn put(inner: &Arc<Inner>, call: &Call, source: Source) -> Result<Reply> {
    let Verb::Put { at, name } = &call.verb else { return Err(Error::invalid("this is no put")) };
    if at.spot.at.is_some() {
        return Err(Error::new(
            ErrorKind::ReadOnly,
            format!("{} is a past instant and takes no changes; put into the world itself", at.spot),
        ));
    }
    let session = inner.now(&call.who, &at.spot.world)?;
    let root = files::landing(&session, &at.path, name.as_deref())?;
    let moved = Planter::new(session, root, inner.env.token(8)).plant(source)?;
    Reply::json(&moved)
}
