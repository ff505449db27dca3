//! Promote and rebase (a merge of fork and base, committed as one entry of the changed world), revert and restore.
//!
//! - `bring`: promote and rebase; `back`: revert and restore; `root`: the commit that all of them end in.

mod back;
mod bring;
mod root;
mod versions;

use crate::diff::DiffEntry;
use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::merge::{Combine, Conflict, Policy, Side};
use crate::principal::Role;
use crate::session::Session;
use crate::sync::SyncPoints;
use crate::time::At;
use crate::world::World;
use bytes::Bytes;
use mw_model::Version;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How a promote or rebase is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromoteOptions {
    /// Says what the real one would do, and touches nothing.
    pub dry_run: bool,
    /// Takes only what lies under this prefix of paths.
    pub only: Option<Bytes>,
    /// What is done with conflicts that `resolve` does not name.
    pub policy: Policy,
    /// Decisions by path.
    pub resolve: BTreeMap<Bytes, Side>,
    /// What may be combined when both sides changed a content.
    pub combine: Combine,
    /// The run that history shows it as a part of.
    pub run: Option<String>,
    /// What history shows.
    pub message: Option<String>,
    /// Objects (key, content) written into the changed world by the same commit.
    pub extra: Vec<(Bytes, Bytes)>,
}

/// What a promote, rebase, revert or restore did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Promoted {
    /// The version of the change; none when nothing was changed.
    pub version: Option<Version>,
    /// The snapshot of the changed world that was taken first.
    pub snapshot: Option<Version>,
    /// Whether one root took the place of another.
    pub fast: bool,
    /// What became different in the changed world.
    pub changes: Vec<DiffEntry>,
    /// Files whose content is made of both sides': both appended, or what both changed was combined.
    pub merged: Vec<Bytes>,
    /// What could not be merged. With any that is not decided nothing was applied.
    pub conflicts: Vec<Conflict>,
    /// Whether this was a dry run.
    pub dry_run: bool,
}

impl Session {
    /// Brings the changes of this fork to its base.
    ///
    /// # Errors
    /// `Denied` below reader on the fork or admin on the base; `Invalid` when the world is no fork; `NotFound` when its base was
    /// deleted.
    /// Conflicts are no error: see [`Promoted::conflicts`].
    pub fn promote(&self, options: &PromoteOptions) -> Result<Promoted> {
        self.promote_watched(options, &|_| {})
    }

    /// Does what [`Session::promote`] does and says meanwhile what it is doing.
    ///
    /// # Errors
    /// Those of [`Session::promote`], and `Cancelled` after [`Session::stop_merge`]: nothing was applied.
    pub fn promote_watched(&self, options: &PromoteOptions, progress: &dyn Fn(&str)) -> Result<Promoted> {
        self.need_present()?;
        let base = self.base(Role::Admin)?;
        self.bring(base, true, options, progress)
    }

    /// Brings the changes of the base to this fork.
    ///
    /// # Errors
    /// `Denied` below admin on the fork or reader on the base; otherwise those of [`Session::promote`].
    pub fn rebase(&self, options: &PromoteOptions) -> Result<Promoted> {
        self.rebase_watched(options, &|_| {})
    }

    /// Does what [`Session::rebase`] does and says meanwhile what it is doing.
    ///
    /// # Errors
    /// Those of [`Session::rebase`], and `Cancelled` after [`Session::stop_merge`]: nothing was applied.
    pub fn rebase_watched(&self, options: &PromoteOptions, progress: &dyn Fn(&str)) -> Result<Promoted> {
        self.need_present()?;
        self.need(Role::Admin)?;
        let base = self.base(Role::Reader)?;
        self.bring(base, false, options, progress)
    }

    /// Ends every promote and rebase of this fork that is under way and has not begun to commit: it fails with `Cancelled`, and
    /// nothing of it was applied. One that has begun to commit is done, as if nobody had asked.
    ///
    /// # Errors
    /// `Denied` to a key that may neither promote nor rebase the fork.
    pub fn stop_merge(&self) -> Result<()> {
        self.need(Role::Reader)?;
        if !self.allows(Role::Admin) {
            self.base(Role::Admin)?;
        }
        self.world.stops.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Makes the world again what it was at an instant, as a new change.
    ///
    /// # Errors
    /// `Denied` below editor; `NotFound` when the instant is not retained.
    pub fn revert(&self, to: At) -> Result<Promoted> {
        self.need_writable()?;
        back::Back { session: self, at: &to, path: None }.run()
    }

    /// Makes one file or directory again what it was at an instant, as a new change. A directory and an object of the same name
    /// come back together; directories above that are gone come back without their other content.
    ///
    /// # Errors
    /// `Denied` below editor; `NotFound` when the instant is not retained or had nothing there.
    pub fn restore(&self, from: At, path: &[u8]) -> Result<Promoted> {
        self.need_writable()?;
        back::Back { session: self, at: &from, path: Some(path) }.run()
    }

    fn bring(
        &self,
        base: Arc<World>,
        into_base: bool,
        options: &PromoteOptions,
        progress: &dyn Fn(&str),
    ) -> Result<Promoted> {
        let fork = self.world.clone();
        let stops = fork.stops.load(Ordering::SeqCst);
        bring::Bring { store: &self.store, who: &self.who, fork, base, into_base, options, progress, stops }.run()
    }

    fn need_present(&self) -> Result<()> {
        match self.at {
            Some(_) => Err(Error::new(
                mw_model::ErrorKind::ReadOnly,
                format!("{} is a version; fork it to promote what it holds", self.name),
            )),
            None => Ok(()),
        }
    }

    /// Returns the base, when the key has `role` in it.
    fn base(&self, role: Role) -> Result<Arc<World>> {
        let points = self.store.meta.get(&layout::of(Tag::Sync, self.world.id))?.ok_or_else(|| {
            Error::invalid(format!("world {} is not a fork; only forks can be promoted or rebased", self.name))
        })?;
        let id = SyncPoints::decode(&points)?.base;
        let owner = self.store.record_of(id)?.map_or_else(String::new, |record| record.owner);
        // A key without rights on the base learns nothing of it, not even whether it is still there.
        let held = self.who.role(id, &owner).ok_or_else(Error::denied)?;
        match self.store.world(id) {
            Ok(base) => {
                Session::new(self.store.clone(), base.clone(), self.who.clone(), held).need(role)?;
                Ok(base)
            }
            Err(e) if e.kind() == mw_model::ErrorKind::NotFound => {
                let parent = self.world.record.read().parent.clone();
                let name = parent.map_or_else(String::new, |(_, name, _)| name);
                Err(Error::not_found(format!("world {name}, the base of {}, was deleted", self.name)))
            }
            Err(e) => Err(e),
        }
    }
}
