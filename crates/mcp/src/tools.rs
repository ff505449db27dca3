//! One file for each tool, or for two that belong together.

mod diff;
mod edit;
mod find;
mod fork;
mod history;
mod list;
mod read;
mod relocate;
mod remove;
mod restore;
mod search;
mod share;
mod snapshot;
mod stat;
mod write;

pub(crate) use diff::Diff;
pub(crate) use edit::Edit;
pub(crate) use find::Find;
pub(crate) use fork::Fork;
pub(crate) use history::History;
pub(crate) use list::List;
pub(crate) use read::Read;
pub(crate) use relocate::Move;
pub(crate) use remove::Remove;
pub(crate) use restore::Restore;
pub(crate) use search::Search;
pub(crate) use share::ShareUrl;
pub(crate) use snapshot::{Snapshots, TakeSnapshot};
pub(crate) use stat::Stat;
pub(crate) use write::Write;
