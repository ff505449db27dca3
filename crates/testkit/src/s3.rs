//! The S3 door's verbs. Keys are whole texts; directories are only a way to store them.
//!
//! Rules chosen here: a PUT that replaces a regular file takes its mode and owner over, and gives a new one 0644 and owner 0; a copy
//! under a new key takes those of a regular source; extended attributes do not travel; `DELETE d/` takes the marker and makes `d`
//! implicit; where `d/` is not listed (no marker, not empty) it deletes nothing. A special file is no object: GET and DELETE
//! do not see it, a PUT of its key replaces it.

use crate::tree::{Inode, Node, Object, ROOT, Tree, split};
use mw_model::ErrorKind;
use mw_model::name::MAX_KEY;
use std::collections::BTreeMap;

/// One page of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Keys with their sizes, in byte order.
    pub keys: Vec<(String, u64)>,
    /// Common prefixes, in byte order.
    pub prefixes: Vec<String>,
    /// Whether something is left out.
    pub truncated: bool,
}

impl Tree {
    /// Returns every object, by key in byte order. A symlink is an object of its target's bytes; an empty explicit directory is the
    /// empty object `d/`; special files are none.
    pub fn objects(&self) -> BTreeMap<String, (Vec<u8>, Object)> {
        let mut found = BTreeMap::new();
        self.collect(ROOT, "", &mut found);
        found
    }

    fn collect(&self, dir: u64, prefix: &str, found: &mut BTreeMap<String, (Vec<u8>, Object)>) {
        for (entry, &child) in self.entries(dir) {
            let key = format!("{prefix}{entry}");
            let inode = self.inode(child);
            match &inode.node {
                Node::Dir { entries, .. } if entries.is_empty() => {
                    found.insert(key, (Vec::new(), Object::default()));
                }
                Node::Dir { .. } => self.collect(child, &key, found),
                Node::File(bytes) => {
                    found.insert(key, (bytes.clone(), inode.object.clone()));
                }
                Node::Symlink(target) => {
                    found.insert(key, (target.clone().into_bytes(), inode.object.clone()));
                }
                Node::Special(..) => {}
            }
        }
    }

    /// Gives the bytes of an object.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn get(&self, key: &str) -> Result<Vec<u8>, ErrorKind> {
        self.objects().remove(key).map(|(bytes, _)| bytes).ok_or(ErrorKind::NotFound)
    }

    /// Lists keys after `start_after` that begin with `prefix`; those that have `delimiter` behind the prefix are rolled up. Keys and
    /// prefixes count together against `max_keys` (AWS: ListObjectsV2).
    pub fn list(&self, prefix: &str, delimiter: Option<&str>, start_after: &str, max_keys: usize) -> Listing {
        let mut page = Listing::default();
        for (key, (bytes, _)) in self.objects() {
            let Some(rest) = key.strip_prefix(prefix) else { continue };
            if key.as_str() <= start_after {
                continue;
            }
            let group = delimiter.filter(|d| !d.is_empty()).and_then(|d| rest.find(d).map(|at| at + d.len()));
            let group = group.map(|end| key[..prefix.len() + end].to_owned());
            if group.is_some() && group.as_ref() == page.prefixes.last() {
                continue;
            }
            if page.keys.len() + page.prefixes.len() == max_keys {
                page.truncated = max_keys > 0;
                break;
            }
            match group {
                Some(group) => page.prefixes.push(group),
                None => page.keys.push((key, bytes.len() as u64)),
            }
        }
        page
    }

    pub(crate) fn put(&mut self, key: &str, bytes: Vec<u8>, object: Object, if_absent: bool) -> Result<(), ErrorKind> {
        self.place(key, bytes, object, if_absent, (0o644, 0, 0))
    }

    /// Puts an object that has `attributes` (mode, user, group) unless it replaces a regular file.
    fn place(
        &mut self,
        key: &str,
        bytes: Vec<u8>,
        object: Object,
        if_absent: bool,
        attributes: (u32, u32, u32),
    ) -> Result<(), ErrorKind> {
        check_key(key)?;
        if if_absent && self.objects().contains_key(key) {
            return Err(ErrorKind::Precondition);
        }
        let (dirs, leaf) = split(key);
        let dir = self.make_dirs(&dirs);
        let replaced = self.entries(dir).get(leaf).and_then(|&old| self.file_attributes(old));
        let (mode, uid, gid) = replaced.unwrap_or(attributes);
        let ino = self.add(Inode { object, uid, gid, ..Inode::new(Node::File(bytes), mode) });
        self.put_entry(dir, leaf, ino);
        if leaf.is_empty() {
            *self.dir_mut(dir).1 = true;
        }
        Ok(())
    }

    pub(crate) fn delete(&mut self, key: &str) -> Result<(), ErrorKind> {
        check_key(key)?;
        if !self.objects().contains_key(key) {
            return Ok(());
        }
        let (dirs, leaf) = split(key);
        if let Some(dir) = self.find_dir(&dirs) {
            self.take_entry(dir, leaf);
            if leaf.is_empty() {
                *self.dir_mut(dir).1 = false;
            }
        }
        Ok(())
    }

    pub(crate) fn copy(&mut self, from: &str, to: &str) -> Result<(), ErrorKind> {
        check_key(from)?;
        check_key(to)?;
        let (bytes, object) = self.objects().remove(from).ok_or(ErrorKind::NotFound)?;
        let (dirs, leaf) = split(from);
        let source = self.find_dir(&dirs).and_then(|dir| self.entries(dir).get(leaf).copied());
        let attributes = source.and_then(|ino| self.file_attributes(ino)).unwrap_or((0o644, 0, 0));
        self.place(to, bytes, object, false, attributes)
    }

    /// Returns mode, user and group of a regular file.
    fn file_attributes(&self, ino: u64) -> Option<(u32, u32, u32)> {
        let inode = self.inode(ino);
        matches!(inode.node, Node::File(_)).then_some((inode.mode, inode.uid, inode.gid))
    }
}

fn check_key(key: &str) -> Result<(), ErrorKind> {
    match key.len() {
        0 => Err(ErrorKind::Invalid),
        n if n > MAX_KEY => Err(ErrorKind::NameTooLong),
        _ => Ok(()),
    }
}
