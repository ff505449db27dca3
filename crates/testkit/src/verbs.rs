//! One verb, whichever door it came through, on a tree.

use crate::op::Verb;
use crate::tree::{Inode, Node, Object, Tree};
use mw_model::ErrorKind;
use mw_model::name::MAX_TARGET;
use std::collections::BTreeMap;

impl Tree {
    /// Runs one verb. After an error the tree is of no use: the caller works on a copy.
    pub(crate) fn run(&mut self, verb: &Verb) -> Result<(), ErrorKind> {
        match verb {
            Verb::Put { key, content, content_type, if_absent } => {
                let object = Object { content_type: content_type.clone(), user: BTreeMap::new() };
                self.put(key, content.bytes(), object, *if_absent)?;
            }
            Verb::Delete { key } => self.delete(key)?,
            Verb::Copy { from, to } => self.copy(from, to)?,
            Verb::Mkdir { path, mode } => {
                self.make(path, Inode::new(Node::Dir { entries: BTreeMap::new(), explicit: true }, *mode))?;
            }
            Verb::Create { path, mode } => self.make(path, Inode::new(Node::File(Vec::new()), *mode))?,
            Verb::Mknod { path, kind, mode, rdev } => {
                self.make(path, Inode::new(Node::Special(*kind, *rdev), *mode))?
            }
            Verb::Symlink { target, path } => {
                if target.is_empty() {
                    return Err(ErrorKind::NotFound);
                }
                if target.len() > MAX_TARGET {
                    return Err(ErrorKind::NameTooLong);
                }
                self.make(path, Inode::new(Node::Symlink(target.clone()), 0o777))?;
            }
            Verb::Write { path, offset, content } => {
                let (bytes, start) = (content.bytes(), *offset as usize);
                let file = self.file(path)?;
                let end = start + bytes.len();
                if !bytes.is_empty() && file.len() < end {
                    file.resize(end, 0);
                }
                if !bytes.is_empty() {
                    file[start..end].copy_from_slice(&bytes);
                }
            }
            Verb::Truncate { path, len } => self.file(path)?.resize(*len as usize, 0),
            Verb::Unlink { path } => self.unlink(path)?,
            Verb::Rmdir { path } => self.rmdir(path)?,
            Verb::Rename { from, to, how } => self.rename(from, to, *how)?,
            Verb::Link { from, to } => self.link(from, to)?,
            Verb::Chmod { path, mode } => self.attributes(path)?.mode = mode & 0o7777,
            Verb::Chown { path, uid, gid } => {
                let inode = self.attributes(path)?;
                (inode.uid, inode.gid) = (*uid, *gid);
            }
            Verb::SetXattr { path, name, value } => {
                self.attributes(path)?.xattrs.insert(name.clone(), value.bytes());
            }
            Verb::RemoveXattr { path, name } => {
                self.attributes(path)?.xattrs.remove(name).ok_or(ErrorKind::NotFound)?;
            }
        }
        self.tidy();
        Ok(())
    }
}
