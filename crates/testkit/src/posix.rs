//! The mount's verbs, in the order of checks that Linux makes (fs/namei.c), with error kinds for errno.
//!
//! Rules chosen here: a directory hides the object of the same name, which no verb of the mount touches; an EXCHANGE that would
//! put something on a hidden object is `AlreadyExists`. A mount that changes the entries or attributes of an implicit directory
//! is using it: it becomes explicit, so that it does not vanish under a program that saw it.

use crate::op::Exchange;
use crate::tree::{Inode, Node, ROOT, Tree, split};
use mw_model::ErrorKind;
use mw_model::name::{MAX_NAME, mountable};
use std::collections::BTreeMap;

type Done = Result<(), ErrorKind>;

impl Tree {
    /// Returns what readdir(3) shows of a directory, without `.` and `..`: inodes by name.
    ///
    /// # Errors
    /// Those of lookup; `NotDirectory`.
    pub fn readdir(&self, path: &str) -> Result<BTreeMap<String, u64>, ErrorKind> {
        let dir = self.lookup(path)?;
        if !self.is_dir(dir) {
            return Err(ErrorKind::NotDirectory);
        }
        let names = self.entries(dir).keys().map(|entry| entry.strip_suffix('/').unwrap_or(entry));
        let shown = names.filter(|name| mountable(name.as_bytes()));
        Ok(shown.filter_map(|name| Some((name.to_owned(), self.visible(dir, name)?.1))).collect())
    }

    /// Finds `path` as a mount shows it.
    pub(crate) fn lookup(&self, path: &str) -> Result<u64, ErrorKind> {
        if path.is_empty() {
            return Ok(ROOT);
        }
        let (dir, name) = self.parent(path)?;
        self.visible(dir, name).map(|(_, ino)| ino).ok_or(ErrorKind::NotFound)
    }

    /// Finds the directory that holds the last name of `path`.
    fn parent<'a>(&self, path: &'a str) -> Result<(u64, &'a str), ErrorKind> {
        if path.is_empty() {
            return Err(ErrorKind::Busy);
        }
        let (dirs, leaf) = split(path);
        let mut dir = ROOT;
        for name in dirs {
            check_name(name)?;
            dir = self.visible(dir, name).map(|(_, ino)| ino).ok_or(ErrorKind::NotFound)?;
            if !self.is_dir(dir) {
                return Err(ErrorKind::NotDirectory);
            }
        }
        check_name(leaf)?;
        Ok((dir, leaf))
    }

    /// Finds what a mount shows under `name`: the directory first.
    pub(crate) fn visible(&self, dir: u64, name: &str) -> Option<(String, u64)> {
        let entries = self.entries(dir);
        [format!("{name}/"), name.to_owned()].into_iter().find_map(|entry| {
            let ino = *entries.get(&entry)?;
            Some((entry, ino))
        })
    }

    fn use_dir(&mut self, dir: u64) {
        *self.dir_mut(dir).1 = true;
    }

    /// Names a new inode.
    pub(crate) fn make(&mut self, path: &str, mut inode: Inode) -> Done {
        let (dir, name) = self.parent(path)?;
        if self.visible(dir, name).is_some() {
            return Err(ErrorKind::AlreadyExists);
        }
        inode.mode &= 0o7777;
        let ino = self.add(inode);
        self.put_entry(dir, &self.entry(name, ino), ino);
        self.use_dir(dir);
        Ok(())
    }

    fn entry(&self, name: &str, ino: u64) -> String {
        if self.is_dir(ino) { format!("{name}/") } else { name.to_owned() }
    }

    pub(crate) fn file(&mut self, path: &str) -> Result<&mut Vec<u8>, ErrorKind> {
        let ino = self.lookup(path)?;
        match &mut self.get_mut(ino).node {
            Node::File(bytes) => Ok(bytes),
            Node::Dir { .. } => Err(ErrorKind::IsDirectory),
            Node::Symlink(_) | Node::Special(..) => Err(ErrorKind::Invalid),
        }
    }

    pub(crate) fn attributes(&mut self, path: &str) -> Result<&mut Inode, ErrorKind> {
        let ino = self.lookup(path)?;
        if self.is_dir(ino) {
            self.use_dir(ino);
        }
        Ok(self.get_mut(ino))
    }

    pub(crate) fn unlink(&mut self, path: &str) -> Done {
        let (dir, name) = self.parent(path)?;
        let (entry, ino) = self.visible(dir, name).ok_or(ErrorKind::NotFound)?;
        if self.is_dir(ino) {
            return Err(ErrorKind::IsDirectory);
        }
        self.take_entry(dir, &entry);
        self.use_dir(dir);
        Ok(())
    }

    pub(crate) fn rmdir(&mut self, path: &str) -> Done {
        let (dir, name) = self.parent(path)?;
        let (entry, ino) = self.visible(dir, name).ok_or(ErrorKind::NotFound)?;
        if !self.is_dir(ino) {
            return Err(ErrorKind::NotDirectory);
        }
        if !self.removable(ino) {
            return Err(ErrorKind::NotEmpty);
        }
        self.take_entry(dir, &entry);
        self.use_dir(dir);
        Ok(())
    }

    /// Returns whether a directory holds nothing, or its marker alone.
    fn removable(&self, dir: u64) -> bool {
        self.entries(dir).keys().all(String::is_empty)
    }

    pub(crate) fn link(&mut self, from: &str, to: &str) -> Done {
        let ino = self.lookup(from)?;
        let (dir, name) = self.parent(to)?;
        if self.visible(dir, name).is_some() {
            return Err(ErrorKind::AlreadyExists);
        }
        if self.is_dir(ino) {
            return Err(ErrorKind::Denied);
        }
        self.put_entry(dir, name, ino);
        self.use_dir(dir);
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str, how: Exchange) -> Done {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let (from_entry, source) = self.visible(from_dir, from_name).ok_or(ErrorKind::NotFound)?;
        let target = self.visible(to_dir, to_name);
        match how {
            Exchange::NoReplace if target.is_some() => return Err(ErrorKind::AlreadyExists),
            Exchange::Exchange if target.is_none() => return Err(ErrorKind::NotFound),
            _ => {}
        }
        if self.within(source, to_dir) {
            return Err(ErrorKind::Invalid);
        }
        if let Some((_, target)) = &target
            && self.within(*target, from_dir)
        {
            return Err(if how == Exchange::Exchange { ErrorKind::Invalid } else { ErrorKind::NotEmpty });
        }
        if target.as_ref().is_some_and(|(_, target)| *target == source) {
            return Ok(());
        }
        match (target, how) {
            (Some((to_entry, target)), Exchange::Exchange) => {
                self.take_entry(from_dir, &from_entry);
                self.take_entry(to_dir, &to_entry);
                for (dir, name, ino) in [(from_dir, from_name, target), (to_dir, to_name, source)] {
                    let entry = self.entry(name, ino);
                    if self.entries(dir).contains_key(&entry) {
                        return Err(ErrorKind::AlreadyExists);
                    }
                    self.put_entry(dir, &entry, ino);
                }
            }
            (target, _) => {
                if let Some((to_entry, target)) = target {
                    match (self.is_dir(source), self.is_dir(target)) {
                        (true, false) => return Err(ErrorKind::NotDirectory),
                        (false, true) => return Err(ErrorKind::IsDirectory),
                        (true, true) if !self.removable(target) => return Err(ErrorKind::NotEmpty),
                        _ => {}
                    }
                    self.take_entry(to_dir, &to_entry);
                }
                self.take_entry(from_dir, &from_entry);
                self.put_entry(to_dir, &self.entry(to_name, source), source);
            }
        }
        self.use_dir(from_dir);
        self.use_dir(to_dir);
        Ok(())
    }

    /// Returns whether `dir` is `top` or lies below it.
    fn within(&self, top: u64, dir: u64) -> bool {
        top == dir
            || self.is_dir(top)
                && self.entries(top).values().any(|&child| self.is_dir(child) && self.within(child, dir))
    }
}

fn check_name(name: &str) -> Done {
    match name {
        _ if name.len() > MAX_NAME => Err(ErrorKind::NameTooLong),
        _ if !mountable(name.as_bytes()) => Err(ErrorKind::Invalid),
        _ => Ok(()),
    }
}
