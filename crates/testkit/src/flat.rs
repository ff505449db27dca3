//! A tree as a map from path to item, the shape in which worlds are compared and merged.
//!
//! Invariants: a directory's path ends in `/`, the root's is empty; the marker object of `d/` is the content of its directory; an
//! implicit directory is no item, because it only follows from the paths below it. Inode numbers, link counts and times are no
//! part of an item: they do not make a difference.

use crate::tree::{Inode, Node, Object, ROOT, Tree, split};
use mw_model::FileType;
use std::collections::{BTreeMap, BTreeSet};

/// One entry with everything that travels in a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The type.
    pub kind: FileType,
    /// A file's bytes, a link's target, a directory's marker object.
    pub content: Option<Vec<u8>>,
    /// Permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The device number.
    pub rdev: u32,
    /// Extended attributes.
    pub xattrs: BTreeMap<String, Vec<u8>>,
    /// What S3 was told, for a directory of its marker.
    pub object: Object,
}

/// A whole tree by path.
pub type Flat = BTreeMap<String, Item>;

/// How a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Only the second tree has it.
    Added,
    /// Both have it, with a difference.
    Changed,
    /// Only the first tree has it.
    Deleted,
}

/// Returns what leads from `a` to `b`, by path.
pub fn diff(a: &Flat, b: &Flat) -> BTreeMap<String, Change> {
    let paths: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let change = |path: &String| match (a.get(path), b.get(path)) {
        (None, _) => Some(Change::Added),
        (_, None) => Some(Change::Deleted),
        (x, y) => (x != y).then_some(Change::Changed),
    };
    paths.into_iter().filter_map(|path| Some((path.clone(), change(path)?))).collect()
}

impl Tree {
    /// Returns the tree by path.
    pub fn flat(&self) -> Flat {
        self.walk().into_iter().map(|(path, ino)| (path, self.item(ino))).collect()
    }

    /// Returns the inode of every path that is an item.
    fn walk(&self) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::from([(String::new(), ROOT)]);
        let mut open = vec![(String::new(), ROOT)];
        while let Some((prefix, dir)) = open.pop() {
            for (entry, &child) in self.entries(dir).iter().filter(|(entry, _)| !entry.is_empty()) {
                let path = format!("{prefix}{entry}");
                if self.is_dir(child) {
                    open.push((path.clone(), child));
                }
                if !matches!(self.inode(child).node, Node::Dir { explicit: false, .. }) {
                    found.insert(path, child);
                }
            }
        }
        found
    }

    fn item(&self, ino: u64) -> Item {
        let inode = self.inode(ino);
        let (mode, uid, gid, xattrs) = (inode.mode, inode.uid, inode.gid, inode.xattrs.clone());
        let mut item =
            Item { kind: inode.kind(), content: None, mode, uid, gid, rdev: 0, xattrs, object: inode.object.clone() };
        match &inode.node {
            Node::Dir { entries, .. } => {
                if let Some(marker) = entries.get("").map(|&marker| self.inode(marker))
                    && let Node::File(bytes) = &marker.node
                {
                    (item.content, item.object) = (Some(bytes.clone()), marker.object.clone());
                }
            }
            Node::File(bytes) => item.content = Some(bytes.clone()),
            Node::Symlink(target) => item.content = Some(target.clone().into_bytes()),
            Node::Special(_, rdev) => item.rdev = *rdev,
        }
        item
    }

    /// Makes every path in `changes` be that item, or be gone. Names that were one file in `from` become one file here, where both
    /// come as they are there.
    pub(crate) fn apply_items(&mut self, changes: &BTreeMap<String, Option<Item>>, from: &Self) {
        let theirs = from.walk();
        let mut links = BTreeMap::new();
        for (path, item) in changes {
            let Some(item) = item else {
                self.drop_item(path);
                continue;
            };
            if item.kind == FileType::Directory {
                self.put_dir(path, item);
                continue;
            }
            let source = theirs.get(path).filter(|&&ino| from.item(ino) == *item);
            let ino = match source.and_then(|source| links.get(source)) {
                Some(&known) => known,
                None => self.add(inode(item)),
            };
            if let Some(source) = source {
                links.insert(*source, ino);
            }
            let (dirs, leaf) = split(path);
            let dir = self.make_dirs(&dirs);
            self.put_entry(dir, leaf, ino);
        }
        self.tidy();
    }

    fn drop_item(&mut self, path: &str) {
        let (dirs, leaf) = split(path);
        if let Some(dir) = self.find_dir(&dirs) {
            self.take_entry(dir, leaf);
            if leaf.is_empty() {
                // What the merge leaves below keeps it alive as an implicit directory; its attributes go with it.
                let (explicit, fresh) = (false, self.entries(dir).clone());
                *self.get_mut(dir) = Inode::new(Node::Dir { entries: fresh, explicit }, 0o755);
            }
        }
    }

    fn put_dir(&mut self, path: &str, item: &Item) {
        let dir = match path {
            "" => ROOT,
            _ => self.make_dirs(&split(path).0),
        };
        *self.dir_mut(dir).1 = true;
        let inode = self.get_mut(dir);
        (inode.mode, inode.uid, inode.gid, inode.xattrs) = (item.mode, item.uid, item.gid, item.xattrs.clone());
        self.take_entry(dir, "");
        if let Some(bytes) = &item.content {
            let marker = Inode { object: item.object.clone(), ..Inode::new(Node::File(bytes.clone()), 0o644) };
            let marker = self.add(marker);
            self.put_entry(dir, "", marker);
        }
    }
}

fn inode(item: &Item) -> Inode {
    let content = item.content.clone().unwrap_or_default();
    let node = match item.kind {
        FileType::File => Node::File(content),
        FileType::Symlink => Node::Symlink(String::from_utf8_lossy(&content).into_owned()),
        kind => Node::Special(kind, item.rdev),
    };
    Inode {
        node,
        mode: item.mode,
        uid: item.uid,
        gid: item.gid,
        xattrs: item.xattrs.clone(),
        object: item.object.clone(),
    }
}
