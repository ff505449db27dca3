//! One world at one instant: a table of inodes and the directories that name them.
//!
//! Invariants: a directory's entry is `name/`, any other is `name`, the marker object `d/` is the entry with the empty name in
//! `d`; so the keys `a` and `a/b` live side by side and a walk in entry order is S3's byte order of whole keys (DESIGN 7).
//! No implicit directory is empty. No inode is without a name.

use mw_model::FileType;
use std::collections::{BTreeMap, BTreeSet};

/// The root directory's inode number.
pub const ROOT: u64 = 1;

/// What only S3 knows of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// The `Content-Type`.
    pub content_type: Option<String>,
    /// The user metadata.
    pub user: BTreeMap<String, String>,
}

/// What an inode holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Dir {
        /// Inodes by entry name.
        entries: BTreeMap<String, u64>,
        /// Whether it stays when it is empty.
        explicit: bool,
    },
    /// A file's bytes.
    File(Vec<u8>),
    /// A link's target.
    Symlink(String),
    /// A pipe, socket or device, with its device number.
    Special(FileType, u32),
}

/// One inode. Times are not kept: a counter has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inode {
    /// Its content.
    pub node: Node,
    /// Permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Extended attributes.
    pub xattrs: BTreeMap<String, Vec<u8>>,
    /// What S3 was told; it belongs to the file and outlives a write through the mount.
    pub object: Object,
}

/// A whole world at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    pub(crate) inodes: BTreeMap<u64, Inode>,
    next: u64,
}

impl Inode {
    pub(crate) fn new(node: Node, mode: u32) -> Self {
        Self { node, mode, uid: 0, gid: 0, xattrs: BTreeMap::new(), object: Object::default() }
    }

    /// Returns the type.
    pub fn kind(&self) -> FileType {
        match &self.node {
            Node::Dir { .. } => FileType::Directory,
            Node::File(_) => FileType::File,
            Node::Symlink(_) => FileType::Symlink,
            Node::Special(kind, _) => *kind,
        }
    }

    /// Returns the size as stat(2) gives it; 0 for directories.
    pub fn size(&self) -> u64 {
        match &self.node {
            Node::File(bytes) => bytes.len() as u64,
            Node::Symlink(target) => target.len() as u64,
            Node::Dir { .. } | Node::Special(..) => 0,
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        let root = Inode::new(Node::Dir { entries: BTreeMap::new(), explicit: true }, 0o755);
        Self { inodes: BTreeMap::from([(ROOT, root)]), next: ROOT + 1 }
    }
}

impl Tree {
    /// Returns inode number `ino`.
    pub fn inode(&self, ino: u64) -> &Inode {
        &self.inodes[&ino]
    }

    /// Returns the inode at `path` as a mount shows it, and its number. The empty path is the root.
    ///
    /// # Errors
    /// Those of lookup.
    pub fn stat(&self, path: &str) -> Result<(u64, &Inode), mw_model::ErrorKind> {
        let ino = self.lookup(path)?;
        Ok((ino, self.inode(ino)))
    }

    /// Returns the number of names of `ino`; for a directory 2 plus its subdirectories that a mount can show.
    pub fn nlink(&self, ino: u64) -> u32 {
        if let Node::Dir { entries, .. } = &self.inode(ino).node {
            let dirs = entries.keys().filter_map(|entry| entry.strip_suffix('/'));
            return 2 + dirs.filter(|name| mw_model::name::mountable(name.as_bytes())).count() as u32;
        }
        let dirs = self.inodes.values().filter_map(|inode| match &inode.node {
            Node::Dir { entries, .. } => Some(entries),
            _ => None,
        });
        dirs.flat_map(BTreeMap::values).filter(|&&child| child == ino).count() as u32
    }

    pub(crate) fn entries(&self, dir: u64) -> &BTreeMap<String, u64> {
        match &self.inode(dir).node {
            Node::Dir { entries, .. } => entries,
            other => panic!("inode {dir} is no directory but {other:?}"),
        }
    }

    pub(crate) fn dir_mut(&mut self, dir: u64) -> (&mut BTreeMap<String, u64>, &mut bool) {
        match self.inodes.get_mut(&dir).map(|inode| &mut inode.node) {
            Some(Node::Dir { entries, explicit }) => (entries, explicit),
            other => panic!("inode {dir} is no directory but {other:?}"),
        }
    }

    pub(crate) fn is_dir(&self, ino: u64) -> bool {
        self.inode(ino).kind() == FileType::Directory
    }

    pub(crate) fn get_mut(&mut self, ino: u64) -> &mut Inode {
        self.inodes.entry(ino).or_insert_with(|| panic!("inode {ino} does not exist"))
    }

    pub(crate) fn add(&mut self, inode: Inode) -> u64 {
        let ino = self.next;
        self.next += 1;
        self.inodes.insert(ino, inode);
        ino
    }

    /// Puts an entry; the one it replaces loses that name.
    pub(crate) fn put_entry(&mut self, dir: u64, entry: &str, ino: u64) {
        self.dir_mut(dir).0.insert(entry.to_owned(), ino);
    }

    pub(crate) fn take_entry(&mut self, dir: u64, entry: &str) -> Option<u64> {
        self.dir_mut(dir).0.remove(entry)
    }

    /// Returns the directory that key prefix `dirs` names, if all of it exists.
    pub(crate) fn find_dir(&self, dirs: &[&str]) -> Option<u64> {
        dirs.iter().try_fold(ROOT, |dir, name| self.entries(dir).get(&format!("{name}/")).copied())
    }

    /// Returns the same directory, made with implicit ones where it is missing.
    pub(crate) fn make_dirs(&mut self, dirs: &[&str]) -> u64 {
        let mut dir = ROOT;
        for name in dirs {
            let entry = format!("{name}/");
            dir = match self.entries(dir).get(&entry) {
                Some(&child) => child,
                None => {
                    let child = self.add(Inode::new(Node::Dir { entries: BTreeMap::new(), explicit: false }, 0o755));
                    self.put_entry(dir, &entry, child);
                    child
                }
            };
        }
        dir
    }

    /// Restores the invariants after a change: implicit directories go with their last key, inodes with their last name.
    pub(crate) fn tidy(&mut self) {
        self.prune(ROOT);
        let mut named = BTreeSet::from([ROOT]);
        let mut open = vec![ROOT];
        while let Some(dir) = open.pop() {
            for &child in self.entries(dir).values() {
                if named.insert(child) && self.is_dir(child) {
                    open.push(child);
                }
            }
        }
        self.inodes.retain(|ino, _| named.contains(ino));
    }

    fn prune(&mut self, dir: u64) {
        for (entry, child) in self.entries(dir).clone() {
            if self.is_dir(child) {
                self.prune(child);
                let (entries, explicit) = self.dir_mut(child);
                if entries.is_empty() && !*explicit {
                    self.take_entry(dir, &entry);
                }
            }
        }
    }

    /// Takes the subtree `ino` of `from` into this tree under new numbers, hard links within it kept.
    pub(crate) fn graft(&mut self, from: &Self, ino: u64, known: &mut BTreeMap<u64, u64>) -> u64 {
        if let Some(&copy) = known.get(&ino) {
            return copy;
        }
        let mut inode = from.inode(ino).clone();
        if let Node::Dir { entries, .. } = &mut inode.node {
            for child in entries.values_mut() {
                *child = self.graft(from, *child, known);
            }
        }
        let copy = self.add(inode);
        known.insert(ino, copy);
        copy
    }
}

/// Cuts a key or path at its last slash: the directories above, and the rest, which is empty in `d/`.
pub(crate) fn split(key: &str) -> (Vec<&str>, &str) {
    match key.rsplit_once('/') {
        Some((above, leaf)) => (above.split('/').collect(), leaf),
        None => (Vec::new(), key),
    }
}
