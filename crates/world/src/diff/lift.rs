//! Records that differ, lifted to paths. Invariants: an implicit directory is nowhere; a directory whose only change is its times
//! is no change; what is below a renamed directory and did not change itself is not listed.

use super::item::{Difference, Item, difference};
use super::records::Records;
use super::{Change, DiffEntry};
use crate::content::Content;
use crate::error::Result;
use crate::names::{names_of, path_of};
use crate::record::{self, Entry, Kind};
use crate::view::View;
use bytes::Bytes;
use mw_model::{FileType, Ino};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Names that stand on one side only, or for something else there.
type Names = BTreeMap<Bytes, Entry>;

/// Lifts the records in which `b` differs from `a`.
pub(crate) fn lift(content: &Content, a: &View, b: &View, records: &Records) -> Result<Vec<DiffEntry>> {
    let mut lift = Lift { content, a, b, gone: Names::new(), come: Names::new(), entries: BTreeMap::new() };
    let mut touched = BTreeSet::new();
    let (mut in_a, mut in_b) = (Paths::new(a), Paths::new(b));
    for (key, (left, right)) in records {
        let (ino, kind, suffix) = record::split(key)?;
        match kind {
            Kind::Entry => {
                if let (Some(value), Some(path)) = (left, in_a.of(ino)?) {
                    lift.gone.insert(join(&path, suffix), Entry::decode(value)?);
                }
                if let (Some(value), Some(path)) = (right, in_b.of(ino)?) {
                    lift.come.insert(join(&path, suffix), Entry::decode(value)?);
                }
            }
            Kind::Inode | Kind::Object | Kind::Xattr | Kind::Extent => {
                touched.insert(ino);
            }
            Kind::Parent | Kind::Orphan | Kind::Version => {}
        }
    }
    lift.renames(&mut in_a)?;
    lift.replaced()?;
    lift.twins()?;
    lift.one_sided()?;
    for ino in touched {
        lift.inode(ino, &mut in_b)?;
    }
    Ok(lift.entries.into_values().collect())
}

struct Lift<'a> {
    content: &'a Content,
    a: &'a View,
    b: &'a View,
    gone: Names,
    come: Names,
    entries: BTreeMap<Bytes, DiffEntry>,
}

impl Lift<'_> {
    fn add(&mut self, path: Bytes, change: Change, old: Option<&Item>, new: Option<&Item>) {
        let size = |item: Option<&Item>| {
            item.filter(|item| item.inode.kind != FileType::Directory).map_or(0, |item| item.inode.size)
        };
        let Some(kind) = new.or(old).map(|item| item.inode.kind) else { return };
        let entry = DiffEntry { path: path.clone(), change, kind, old_size: size(old), new_size: size(new) };
        // The marker of a directory has the directory's path: one line says both.
        match self.entries.get_mut(&path) {
            Some(known) => {
                known.old_size = known.old_size.max(entry.old_size);
                known.new_size = known.new_size.max(entry.new_size);
            }
            None => {
                self.entries.insert(path, entry);
            }
        }
    }

    /// Pairs names that one inode lost with names that it got.
    fn renames(&mut self, in_a: &mut Paths<'_>) -> Result<()> {
        let mut lost: HashMap<Ino, BTreeSet<Bytes>> = HashMap::new();
        for (path, entry) in &self.gone {
            lost.entry(entry.ino).or_default().insert(path.clone());
        }
        for (path, entry) in self.come.clone() {
            let Some(old) = Item::read(self.a, entry.ino)? else { continue };
            let directory = entry.kind == FileType::Directory;
            let from = if directory {
                in_a.of(entry.ino)?
            } else if self.gone.contains_key(&path) {
                None
            } else {
                // A file's old name that stands for another one now was replaced, not renamed.
                let names = lost.get_mut(&entry.ino);
                names.and_then(|names| {
                    let vacant = names.iter().find(|name| !self.come.contains_key(*name)).cloned();
                    vacant.inspect(|name| {
                        names.remove(name);
                    })
                })
            };
            let Some(from) = from else { continue };
            self.come.remove(&path);
            if self.gone.get(&from).is_some_and(|gone| gone.ino == entry.ino) {
                self.gone.remove(&from);
            }
            if from != path {
                let new = Item::read(self.b, entry.ino)?;
                self.add(path, Change::Renamed { from }, Some(&old), new.as_ref());
            }
        }
        Ok(())
    }

    /// Names that stand for another inode now.
    fn replaced(&mut self) -> Result<()> {
        let both: Vec<Bytes> = self.gone.keys().filter(|path| self.come.contains_key(*path)).cloned().collect();
        for path in both {
            let (Some(gone), Some(come)) = (self.gone.remove(&path), self.come.remove(&path)) else { continue };
            let old = Item::read_party(self.a, gone.ino)?;
            let new = Item::read_party(self.b, come.ino)?;
            self.compare(path, old.as_ref(), new.as_ref())?;
        }
        Ok(())
    }

    fn compare(&mut self, path: Bytes, old: Option<&Item>, new: Option<&Item>) -> Result<()> {
        let change = match (old, new) {
            (None, None) => return Ok(()),
            (None, Some(_)) => Change::Added,
            (Some(_), None) => Change::Deleted,
            (Some(x), Some(y)) => match difference(self.content, (self.a, x), (self.b, y))? {
                Difference::None => return Ok(()),
                Difference::Attributes => Change::Attributes,
                Difference::Content => Change::Modified,
                Difference::Type => Change::TypeChanged,
            },
        };
        self.add(path, change, old, new);
        Ok(())
    }

    /// A file where a directory was, or the reverse.
    fn twins(&mut self) -> Result<()> {
        let paths: Vec<Bytes> = self.come.keys().cloned().collect();
        for path in paths {
            let twin = match path.strip_suffix(b"/") {
                Some(file) => Bytes::copy_from_slice(file),
                None => join(&path, b"/"),
            };
            let (Some(gone), Some(come)) = (self.gone.get(&twin).copied(), self.come.get(&path).copied()) else {
                continue;
            };
            let (old, new) = (Item::read_party(self.a, gone.ino)?, Item::read_party(self.b, come.ino)?);
            if old.is_some() && new.is_some() {
                self.gone.remove(&twin);
                self.come.remove(&path);
                self.add(path, Change::TypeChanged, old.as_ref(), new.as_ref());
            }
        }
        Ok(())
    }

    fn one_sided(&mut self) -> Result<()> {
        for (path, entry) in std::mem::take(&mut self.gone) {
            if let Some(old) = Item::read_party(self.a, entry.ino)? {
                self.add(path, Change::Deleted, Some(&old), None);
            }
        }
        for (path, entry) in std::mem::take(&mut self.come) {
            if let Some(new) = Item::read_party(self.b, entry.ino)? {
                self.add(path, Change::Added, None, Some(&new));
            }
        }
        Ok(())
    }

    /// An inode that both have and that changed, under each of its names.
    fn inode(&mut self, ino: Ino, in_b: &mut Paths<'_>) -> Result<()> {
        let (Some(old), Some(new)) = (Item::read(self.a, ino)?, Item::read(self.b, ino)?) else { return Ok(()) };
        let (before, after) = (Some(&old).filter(|i| !i.inode.implicit), Some(&new).filter(|i| !i.inode.implicit));
        for path in in_b.all_of(ino)? {
            // An added or renamed name says it all; a directory and its marker share a path, and both are looked at.
            let told = self.entries.get(&path).map(|entry| &entry.change);
            if !matches!(told, Some(Change::Renamed { .. } | Change::Added)) {
                self.compare(path, before, after)?;
            }
        }
        Ok(())
    }
}

/// The paths of directories in one view, each walked once.
pub(crate) struct Paths<'a> {
    view: &'a View,
    known: HashMap<Ino, Option<Bytes>>,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(view: &'a View) -> Self {
        Self { view, known: HashMap::new() }
    }

    /// Returns the path of a directory, with its slash; none when it is not there or has no name.
    pub(crate) fn of(&mut self, ino: Ino) -> Result<Option<Bytes>> {
        if let Some(path) = self.known.get(&ino) {
            return Ok(path.clone());
        }
        let path = if self.view.find_inode(ino)?.is_some() { path_of(self.view, ino)? } else { None };
        self.known.insert(ino, path.clone());
        Ok(path)
    }

    /// Returns every path of an inode.
    pub(crate) fn all_of(&mut self, ino: Ino) -> Result<Vec<Bytes>> {
        if ino == Ino::ROOT {
            return Ok(vec![Bytes::new()]);
        }
        let mut paths = Vec::new();
        for (parent, name) in names_of(self.view, ino)? {
            if let Some(path) = self.of(parent)? {
                paths.push(join(&path, &name));
            }
        }
        Ok(paths)
    }
}

pub(crate) fn join(above: &[u8], name: &[u8]) -> Bytes {
    [above, name].concat().into()
}
