//! What can be seen of a world, through a mount and through S3, of the engine and of the naive model in one shape.
//!
//! Inode numbers are left out; which names are one file is kept. Times are left out: the model has none.

use mw_model::{FileType, Hash, Ino};
use mw_testkit::{Node, Tree};
use mw_world::{ListRequest, Listed, Result, Session};
use std::collections::BTreeMap;
use std::collections::HashMap;

/// One name that a mount shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub kind: FileType,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    /// Length and hash of a file's bytes or a link's target.
    pub content: (u64, Hash),
    pub xattrs: BTreeMap<String, Hash>,
    /// The number of names; 0 for a directory.
    pub names: u32,
    /// The first path of the same inode.
    pub same: String,
}

/// Length, hash and content type of an object.
pub type Stored = (u64, Hash, Option<String>);

/// A whole world, as its doors show it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Seen {
    pub mount: BTreeMap<String, Shown>,
    /// Objects by key, in the order of the listing.
    pub objects: Vec<(String, Stored)>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} names, {} objects", self.mount.len(), self.objects.len())
    }
}

impl Seen {
    /// Says how two sights differ; empty when they do not.
    pub fn difference(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        let (mine, theirs): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (self.objects.iter().cloned().collect(), other.objects.iter().cloned().collect());
        differ("name", &self.mount, &other.mount, &mut lines);
        differ("object", &mine, &theirs, &mut lines);
        if lines.is_empty() && self != other {
            lines.push("the objects are listed in another order".to_owned());
        }
        lines.truncate(12);
        lines.join("\n")
    }
}

fn differ<T: PartialEq + std::fmt::Debug>(
    what: &str,
    a: &BTreeMap<String, T>,
    b: &BTreeMap<String, T>,
    lines: &mut Vec<String>,
) {
    for (path, item) in a {
        match b.get(path) {
            None => lines.push(format!("{what} {path:?}: only the first has it: {item:?}")),
            Some(other) if other != item => lines.push(format!("{what} {path:?}:\n    {item:?}\n    {other:?}")),
            Some(_) => {}
        }
    }
    for (path, item) in b.iter().filter(|(path, _)| !a.contains_key(*path)) {
        lines.push(format!("{what} {path:?}: only the second has it: {item:?}"));
    }
}

/// Looks at a world of the engine, reading every byte.
pub fn engine(session: &Session) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut first: HashMap<Ino, String> = HashMap::new();
    let mut todo = vec![(String::new(), Ino::ROOT)];
    while let Some((path, ino)) = todo.pop() {
        let attr = session.attr(ino)?;
        let mut xattrs = BTreeMap::new();
        for name in session.list_xattr(ino)? {
            let value = session.get_xattr(ino, &name)?;
            xattrs.insert(String::from_utf8_lossy(&name).into_owned(), Hash::of(&value));
        }
        let mut content = (0, Hash::of(b""));
        let mut names = 0;
        if attr.kind == FileType::Directory {
            let dir = session.open_dir(ino)?;
            let mut entries = Vec::new();
            dir.read(
                0,
                &mut |entry, _| {
                    entries.push(entry);
                    true
                },
                false,
            )?;
            for entry in entries {
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                assert_eq!(session.lookup(ino, &entry.name)?.ino, entry.ino, "what readdir shows, lookup finds");
                todo.push((join(&path, &name), entry.ino));
            }
        } else {
            let bytes = session.read(ino, 0, attr.size as usize + 1)?;
            assert_eq!(bytes.len() as u64, attr.size, "{path:?} reads as long as it is");
            content = (attr.size, Hash::of(&bytes));
            names = attr.nlink;
        }
        let kept = first.entry(ino).or_insert_with(|| path.clone());
        if path < *kept {
            kept.clone_from(&path);
        }
        let same = ino.0.to_string();
        let (kind, mode, uid, gid, rdev) = (attr.kind, attr.mode, attr.uid, attr.gid, attr.rdev);
        seen.mount.insert(path, Shown { kind, mode, uid, gid, rdev, content, xattrs, names, same });
    }
    name_groups(&mut seen, &first.into_iter().map(|(ino, path)| (ino.0, path)).collect());
    seen.objects = objects(session)?;
    Ok(seen)
}

/// Lists and reads all objects, in pages of a handful.
fn objects(session: &Session) -> Result<Vec<(String, Stored)>> {
    let mut found = Vec::new();
    let mut request = ListRequest { limit: 7, ..ListRequest::default() };
    loop {
        let page = session.list(&request)?;
        for item in page.items {
            let Listed::Object(info) = item else { panic!("a prefix where no delimiter was asked for") };
            let object = session.get(&info.key)?;
            assert_eq!(object.info, info, "an object is what the listing says");
            let bytes = object.read(0, info.size as usize + 1)?;
            assert_eq!(bytes.len() as u64, info.size);
            let key = String::from_utf8_lossy(&info.key).into_owned();
            found.push((key, (info.size, Hash::of(&bytes), info.meta.content_type)));
        }
        match page.next {
            Some(next) => request.after = next,
            None => return Ok(found),
        }
    }
}

/// Looks at a tree of the model.
pub fn model(tree: &Tree) -> Seen {
    let mut seen = Seen::default();
    let mut first: HashMap<u64, String> = HashMap::new();
    let mut todo = vec![(String::new(), mw_testkit::tree::ROOT)];
    while let Some((path, ino)) = todo.pop() {
        let inode = tree.inode(ino);
        let (content, rdev) = match &inode.node {
            Node::Dir { .. } => {
                let names = tree.readdir(&path).expect("a directory that was shown");
                todo.extend(names.into_iter().map(|(name, child)| (join(&path, &name), child)));
                (Vec::new(), 0)
            }
            Node::File(bytes) => (bytes.clone(), 0),
            Node::Symlink(target) => (target.clone().into_bytes(), 0),
            Node::Special(_, rdev) => (Vec::new(), *rdev),
        };
        let kind = inode.kind();
        let kept = first.entry(ino).or_insert_with(|| path.clone());
        if path < *kept {
            kept.clone_from(&path);
        }
        let shown = Shown {
            kind,
            mode: inode.mode,
            uid: inode.uid,
            gid: inode.gid,
            rdev,
            content: (content.len() as u64, Hash::of(&content)),
            xattrs: inode.xattrs.iter().map(|(name, value)| (name.clone(), Hash::of(value))).collect(),
            names: if kind == FileType::Directory { 0 } else { tree.nlink(ino) },
            same: ino.to_string(),
        };
        seen.mount.insert(path, shown);
    }
    name_groups(&mut seen, &first);
    let objects = tree.objects().into_iter();
    seen.objects =
        objects.map(|(key, (bytes, o))| (key, (bytes.len() as u64, Hash::of(&bytes), o.content_type))).collect();
    seen
}

fn name_groups(seen: &mut Seen, first: &HashMap<u64, String>) {
    for shown in seen.mount.values_mut() {
        shown.same = shown.same.parse().ok().and_then(|ino: u64| first.get(&ino).cloned()).unwrap_or_default();
    }
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}
