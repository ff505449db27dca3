//! All versions of all keys, in the byte order of keys and newest first, a page at a time, rolled up at a delimiter.
//!
//! Invariant: what is there and what is kept are merged into one sorted stream; versions, markers and rolled-up prefixes count alike.
//! A page costs what it shows.

use super::{Marker, Versioned, kept_object};
use crate::error::Result;
use crate::object::{Known, ObjectInfo};
use crate::objects::find::{Found, find_object};
use crate::objects::list::{Item, ListRequest, page, rolled_up};
use crate::objects::walk::past;
use crate::session::Session;
use crate::versioning::{VersionId, Versions};
use crate::versions::{self, Kept};
use crate::view::View;
use bytes::Bytes;
use mw_model::policy::Action;
use mw_model::{Ino, Version};
use std::iter::Peekable;

/// What to list.
#[derive(Debug, Clone, Default)]
pub struct VersionsRequest {
    /// Only keys that start with this.
    pub prefix: Bytes,
    /// Keys that have this behind the prefix are rolled up to where it ends. Empty: as none.
    pub delimiter: Option<Bytes>,
    /// Where to go on: behind this key or rolled-up prefix. Empty: from the start.
    pub after: Bytes,
    /// Go on within the key `after` instead, behind this version.
    pub after_version: Option<VersionId>,
    /// The most items to return; with 0 there is nothing, and nothing left.
    pub limit: usize,
}

/// One item of a listing of versions.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all items are versions")]
pub enum ListedVersion {
    /// A version of a key.
    Version {
        /// The key.
        key: Bytes,
        /// The version.
        id: VersionId,
        /// Whether it is what a read of the key finds.
        latest: bool,
        /// What it is.
        what: Versioned<ObjectInfo>,
    },
    /// Everything that starts like this.
    Prefix(Bytes),
}

/// A page of a listing of versions.
#[derive(Debug, Default)]
pub struct VersionsListing {
    /// In the byte order of keys and prefixes; the versions of a key newest first.
    pub items: Vec<ListedVersion>,
    /// Where the next page goes on; none when this was the last.
    pub next: Option<(Bytes, Option<VersionId>)>,
}

impl Session {
    /// Lists versions. In a world without versions each object is the version `null` of its key.
    ///
    /// # Errors
    /// The store failed.
    pub fn list_versions(&self, request: &VersionsRequest) -> Result<VersionsListing> {
        self.may_list(Action::ListBucketVersions, &request.prefix)?;
        if request.limit == 0 {
            return Ok(VersionsListing::default());
        }
        let view = self.view();
        let mut pages =
            Pages { view: &view, setting: self.world.versions(), request, page: VersionsListing::default() };
        if pages.rest_of_key()? {
            pages.keys()?;
        }
        Ok(pages.page)
    }
}

/// A page being filled.
struct Pages<'a> {
    view: &'a View,
    setting: Versions,
    request: &'a VersionsRequest,
    page: VersionsListing,
}

impl Pages<'_> {
    fn rolled(&self, key: &Bytes) -> Option<Bytes> {
        let delimiter = self.request.delimiter.as_deref().filter(|d| !d.is_empty())?;
        key.starts_with(&self.request.prefix).then(|| rolled_up(key, self.request.prefix.len(), delimiter))?
    }

    /// Adds an item; false when the page was full, and is to be gone on with.
    fn add(&mut self, item: ListedVersion) -> bool {
        if self.page.items.len() < self.request.limit {
            self.page.items.push(item);
            return true;
        }
        self.page.next = self.page.items.last().map(|last| match last {
            ListedVersion::Version { key, id, .. } => (key.clone(), Some(*id)),
            ListedVersion::Prefix(prefix) => (prefix.clone(), None),
        });
        false
    }

    fn add_object(&mut self, key: &Bytes, found: &Found, latest: bool) -> bool {
        let info = found.info(key);
        let id = self.setting.id_of(info.version, info.unversioned).unwrap_or(VersionId::Null);
        self.add(ListedVersion::Version { key: key.clone(), id, latest, what: Versioned::Object(info) })
    }

    fn add_kept(&mut self, key: &Bytes, kept: &Kept, latest: bool) -> Result<bool> {
        let id = kept.id();
        let what = match kept.ino {
            Some(ino) => Versioned::Object(kept_object(self.view, ino)?.info(key)),
            None => Versioned::Marker(Marker { id, modified: kept.time.0 }),
        };
        Ok(self.add(ListedVersion::Version { key: key.clone(), id, latest, what }))
    }

    /// Adds what is left of the key in which the page before ended.
    fn rest_of_key(&mut self) -> Result<bool> {
        let key = &self.request.after;
        let Some(id) = self.request.after_version.filter(|_| !key.is_empty()) else { return Ok(true) };
        if !key.starts_with(&self.request.prefix) || self.rolled(key).is_some() {
            return Ok(true);
        }
        let current = find_object(self.view, key)?;
        let current = current.map(|found| (found.inode.content, found.known.unversioned));
        let before = match id {
            VersionId::At(time) => Some(time),
            VersionId::Null if current.is_some_and(|(at, null)| self.setting.id_of(at, null) == Some(id)) => None,
            VersionId::Null => match versions::find(self.view, key, id)? {
                Some(kept) => Some(kept.time),
                None => return Ok(true),
            },
        };
        for kept in versions::of(self.view, key, before) {
            let kept = kept?;
            if current.is_none_or(|(at, _)| at != kept.time) && !self.add_kept(key, &kept, false)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the keys behind `after`.
    fn keys(&mut self) -> Result<()> {
        let request = self.request;
        let left = request.limit - self.page.items.len();
        let listed = ListRequest {
            prefix: request.prefix.clone(),
            delimiter: request.delimiter.clone(),
            after: request.after.clone(),
            limit: left + 1,
        };
        let mut there = page(self.view, &listed)?.0.into_iter().peekable();
        let Some(start) = self.start() else { return Ok(()) };
        let mut kept = self.kept(&start);
        loop {
            let next_kept = match kept.peek() {
                Some(Ok((key, _))) if key.starts_with(&request.prefix) => Some(key.clone()),
                Some(Err(_)) => return kept.next().map_or(Ok(()), |item| item.map(drop)),
                _ => None,
            };
            let rolled = next_kept.as_ref().map(|key| self.rolled(key).unwrap_or_else(|| key.clone()));
            let (Some(name), _) = (smaller(there.peek().map(|item| item.name().clone()), rolled), ()) else {
                return Ok(());
            };
            let here = there.next_if(|item| *item.name() == name);
            if matches!(here, Some(Item::Prefix(_)))
                || next_kept.as_ref().and_then(|key| self.rolled(key)).as_ref() == Some(&name)
            {
                if !self.add(ListedVersion::Prefix(name.clone())) {
                    return Ok(());
                }
                let Some(behind) = past(&name) else { return Ok(()) };
                kept = self.kept(&behind);
                continue;
            }
            let current = match here {
                Some(Item::Object { ino, .. }) => Some(self.found(ino)?),
                _ => None,
            };
            let time = current.as_ref().map(|found| found.inode.content);
            if let Some(found) = &current
                && !self.add_object(&name, found, true)
            {
                return Ok(());
            }
            if !self.all_kept(&name, &mut kept, time)? {
                return Ok(());
            }
        }
    }

    /// Adds the kept versions of a key that the walk has come to.
    fn all_kept<I>(&mut self, key: &Bytes, walk: &mut Peekable<I>, current: Option<Version>) -> Result<bool>
    where
        I: Iterator<Item = Result<(Bytes, Kept)>>,
    {
        let mut first = current.is_none();
        while let Some(item) = walk.next_if(|item| item.as_ref().map_or(true, |(at, _)| at == key)) {
            let (_, kept) = item?;
            let latest = std::mem::take(&mut first) && kept.ino.is_none();
            // A key that was renamed away and back has its current version among the kept ones too.
            if current != Some(kept.time) && !self.add_kept(key, &kept, latest)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn kept(&self, from: &[u8]) -> Peekable<impl Iterator<Item = Result<(Bytes, Kept)>> + use<>> {
        versions::all(self.view, from).peekable()
    }

    fn found(&self, ino: Ino) -> Result<Found> {
        let inode = self.view.inode(ino)?;
        Ok(Found { ino, known: Known::of(self.view, ino, &inode)?, inode })
    }

    /// Returns the least key whose kept versions may be shown; none when there is none.
    fn start(&self) -> Option<Vec<u8>> {
        let (prefix, after) = (&self.request.prefix, &self.request.after);
        let behind = match after {
            after if after.is_empty() => Vec::new(),
            after if self.rolled(after).as_ref() == Some(after) => past(after)?,
            after => [&after[..], b"\0"].concat(),
        };
        Some(behind.max(prefix.to_vec()))
    }
}

fn smaller(a: Option<Bytes>, b: Option<Bytes>) -> Option<Bytes> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
