//! History, listed: who did what, when, in which run.

use crate::diff::{Change, lift, records};
use crate::entry::{Entry, Verb};
use crate::error::{Error, Result};
use crate::files::resolve;
use crate::layout::{self, Tag};
use crate::names::path_of;
use crate::principal::Role;
use crate::record::{self, Extent, Kind, is_extent};
use crate::session::Session;
use crate::view::View;
use bytes::Bytes;
use mw_meta::Order;
use mw_model::{ErrorKind, Hash, Ino, Seq, Version};
use mw_tree::Value;

/// What is asked of a log.
#[derive(Debug, Clone, Default)]
pub struct LogQuery {
    /// Only entries that touch this path or anything under it.
    pub path: Option<Bytes>,
    /// The most entries to return.
    pub limit: usize,
    /// Only entries before this one.
    pub before: Option<Seq>,
}

/// One entry, as history shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place in the log.
    pub seq: Seq,
    /// Its time.
    pub version: Version,
    /// The key that did it; empty for the store's own doings.
    pub key: String,
    /// The run it belonged to.
    pub run: Option<String>,
    /// What it was.
    pub verb: String,
    /// The path it touched, as that is called now (or was then, when it is gone).
    pub path: Option<Bytes>,
    /// What was said with it.
    pub note: String,
    /// How many records it changed.
    pub changes: usize,
    /// The bytes of content that it brought; of a write in the middle of a large file also those of whole pieces beside it, in whose record
    /// it was, some hundred KiB at most.
    pub bytes: u64,
    /// Its chain hash.
    pub chain: Hash,
}

impl Session {
    /// Returns entries of the world's own log, newest first. A fork's begins at its fork point.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn log(&self, query: &LogQuery) -> Result<Vec<LogEntry>> {
        self.need(Role::Reader)?;
        let view = self.view();
        let top = Seq(view.seq.0 + 1);
        let mut before = query.before.map_or(top, |b| b.min(top));
        let (start, _) = layout::all_of(Tag::Log, self.world.id);
        let mut found = Vec::new();
        while found.len() < query.limit {
            let page = self.store.meta.scan(&start, &layout::log(self.world.id, before), 256, Order::Down)?;
            if page.is_empty() {
                break;
            }
            for (_, value) in page {
                let entry = Entry::decode(&value)?;
                before = entry.seq;
                let path = path_touched(&view, &entry)?;
                if let Some(wanted) = &query.path
                    && !touches(&view, wanted, path.as_deref(), &entry)?
                    && !self.wide_touched(wanted, &entry)?
                {
                    continue;
                }
                found.push(show(entry, path));
                if found.len() >= query.limit {
                    break;
                }
            }
        }
        Ok(found)
    }
}

impl Session {
    /// Returns whether an entry that changed the world as a whole changed anything at or under a path. Instants that are no longer
    /// retained tell nothing.
    fn wide_touched(&self, wanted: &[u8], entry: &Entry) -> Result<bool> {
        if !entry.verb.is_wide() || entry.seq.0 == 0 {
            return Ok(false);
        }
        let state = |seq| {
            let state = self.store.state_upto(&self.world, seq)?;
            Ok::<_, Error>(self.store.view_of(self.world.id, &state, seq)?.0)
        };
        let (before, after): (View, View) = match (state(Seq(entry.seq.0 - 1)), state(entry.seq)) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(e), _) | (_, Err(e)) if e.kind() == ErrorKind::NotFound => return Ok(false),
            (Err(e), _) | (_, Err(e)) => return Err(e),
        };
        let changes = lift(&self.store.content, &before, &after, &records(&before, &after)?)?;
        Ok(changes.iter().any(|change| {
            let from = match &change.change {
                Change::Renamed { from } => Some(&from[..]),
                _ => None,
            };
            is_under(wanted, &change.path) || from.is_some_and(|from| is_under(wanted, from))
        }))
    }
}

/// Returns whether a path is the wanted one, or lies under it.
fn is_under(wanted: &[u8], path: &[u8]) -> bool {
    let folder = wanted.strip_suffix(b"/").unwrap_or(wanted);
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || folder.is_empty())
}

/// Returns the path that an entry touched: by the entry of a directory it set or removed, or else by an inode it changed.
fn path_touched(view: &View, entry: &Entry) -> Result<Option<Bytes>> {
    if entry.verb.is_wide() {
        return Ok(entry.path.clone());
    }
    let mut inode = None;
    let mut last = None;
    for (key, value) in &entry.changes {
        let (ino, kind, suffix) = record::split(key)?;
        match kind {
            Kind::Entry => {
                if let Some(above) = path_of(view, ino)? {
                    let path: Bytes = [&above[..], suffix].concat().into();
                    if value.is_some() {
                        return Ok(Some(path));
                    }
                    last = Some(path);
                }
            }
            Kind::Inode | Kind::Object | Kind::Xattr => inode = inode.or(Some(ino)),
            _ => {}
        }
    }
    match (last, inode) {
        (Some(path), _) => Ok(Some(path)),
        (None, Some(ino)) if ino != Ino::ROOT => Ok(path_of(view, ino)?.or_else(|| entry.path.clone())),
        _ => Ok(entry.path.clone()),
    }
}

fn touches(view: &View, wanted: &[u8], path: Option<&[u8]>, entry: &Entry) -> Result<bool> {
    let under = |path: &[u8]| is_under(wanted, path);
    if path.is_some_and(under) || entry.path.as_deref().is_some_and(under) {
        return Ok(true);
    }
    let Some(ino) = resolve(view, wanted)? else { return Ok(false) };
    Ok(entry.changes.iter().any(|(key, _)| key.starts_with(&ino.0.to_be_bytes())))
}

/// Returns how many bytes of content a record brought. What is left of a piece that was overwritten was there before.
fn brought(verb: Verb, key: &[u8], value: &Value) -> u64 {
    if verb == Verb::Copy || !is_extent(key) {
        return value.weight;
    }
    let extents = Extent::decode(value).into_iter().flatten().flatten();
    extents.filter(|extent| extent.len == extent.piece.len).map(|extent| u64::from(extent.len)).sum()
}

fn show(entry: Entry, path: Option<Bytes>) -> LogEntry {
    let changed = entry.changes.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    let bytes = changed.map(|(key, value)| brought(entry.verb, key, value)).sum();
    LogEntry {
        chain: entry.chain(),
        seq: entry.seq,
        version: entry.time,
        key: entry.key,
        run: entry.run,
        verb: entry.verb.as_str().to_owned(),
        path,
        note: entry.note,
        changes: entry.changes.len(),
        bytes,
    }
}
