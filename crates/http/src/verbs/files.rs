//! Verbs about files: cat, get, rm, cp, mv. (`put` is beside the dispatcher, as its body is a stream.)

use crate::body::produce;
use crate::call::{Inner, Reply};
use crate::frames::{MAX_DATA, Node};
use crate::harvest::{Harvest, join};
use crate::plant::Planter;
use crate::route::At;
use crate::types::{self, Moved, Place, Spot, path_bytes, path_text};
use crate::{Error, Result};
use bytes::Bytes;
use mw_model::{Attr, ErrorKind, FileType, Ino};
use mw_world::{CopyOptions, ListRequest, Listed, Principal, RenameFlag, Session};
use std::sync::Arc;

/// Returns where a thing goes: into `path` under its own `name` when that is a directory or ends in `/`, else to `path` itself.
pub(super) fn landing(session: &Session, path: &[u8], name: Option<&[u8]>) -> Result<Bytes> {
    let trimmed = path.strip_suffix(b"/").unwrap_or(path);
    let landed = match name {
        None => Bytes::copy_from_slice(trimmed),
        Some(name) => {
            let inside = trimmed.is_empty()
                || trimmed.len() < path.len()
                || session.resolve(trimmed).is_ok_and(|attr| attr.kind == FileType::Directory);
            if inside { join(trimmed, name) } else { Bytes::copy_from_slice(trimmed) }
        }
    };
    crate::frames::check_path(&landed)?;
    Ok(landed)
}

pub(super) fn content(inner: &Arc<Inner>, who: &Principal, at: &At) -> Result<Reply> {
    let session = inner.session(who, &at.spot)?;
    let shown = path_text(&at.path);
    let object = match session.get(&at.path) {
        Ok(object) => object,
        Err(error) => {
            // What is no object may still be something.
            return Err(match session.resolve(&at.path).map(|attr| attr.kind) {
                Ok(FileType::Directory) => Error::new(
                    ErrorKind::IsDirectory,
                    format!("{shown:?} is a directory; `mw ls` lists it, `mw get` copies it"),
                ),
                Ok(FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice) => {
                    Error::invalid(format!("{shown:?} is a special file and has no content"))
                }
                Ok(FileType::File | FileType::Symlink) | Err(_) => error.into(),
            });
        }
    };
    if object.info.kind == FileType::Symlink {
        return Err(Error::invalid(format!(
            "{shown:?} is a symbolic link, which is not followed here; name its target, which `mw ls -l` shows"
        )));
    }
    Ok(Reply::Stream(
        "application/octet-stream",
        produce(move |sink| {
            let mut offset = 0;
            while offset < object.info.size {
                match object.read(offset, MAX_DATA) {
                    Ok(bytes) if bytes.is_empty() => return sink.fail("the content ended early"),
                    Ok(bytes) => {
                        offset += bytes.len() as u64;
                        if sink.send(bytes).is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        tracing::error!(%error, "reading content failed");
                        return sink.fail(error);
                    }
                }
            }
        }),
    ))
}

pub(super) fn get(inner: &Arc<Inner>, who: &Principal, at: At) -> Result<Reply> {
    let session = inner.session(who, &at.spot)?;
    let attr = session.resolve(at.path.strip_suffix(b"/").unwrap_or(&at.path))?;
    Ok(Reply::Stream("application/x-manyworlds-tree", produce(move |sink| Harvest::new(&session, &sink).send(&attr))))
}

/// Splits a path into its directory and its name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        None => (b"", path),
        Some(at) => (&path[..at], &path[at + 1..]),
    }
}

pub(super) fn remove(inner: &Arc<Inner>, who: &Principal, world: &str, request: &types::Remove) -> Result<Reply> {
    let session = inner.now(who, world)?;
    let given = path_bytes(&request.path);
    let path = given.strip_suffix(b"/").map_or(given.clone(), Bytes::copy_from_slice);
    let mut moved = Moved::default();
    match session.resolve(&path) {
        Ok(attr) if attr.kind == FileType::Directory => {
            if !request.recursive {
                let message = format!("{:?} is a directory; remove it with all that is in it with -r", request.path);
                return Err(Error::new(ErrorKind::IsDirectory, message));
            }
            empty(&session, &path, attr.ino, &mut moved)?;
            if !path.is_empty() {
                gone(remove_dir(&session, &path))?;
                moved.directories += 1;
            }
        }
        Ok(_) => {
            let (dir, name) = split(&path);
            session.unlink(session.resolve(dir)?.ino, name)?;
            moved.files += 1;
        }
        // A key that no mount shows, such as `a//b`.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if !session.delete(&given, &mw_world::Conditions::default())? {
                return Err(error.into());
            }
            moved.files += 1;
        }
        Err(error) => return Err(error.into()),
    }
    session.sync()?;
    Reply::json(&moved)
}

fn remove_dir(session: &Session, path: &[u8]) -> mw_world::Result<()> {
    let (dir, name) = split(path);
    session.rmdir(session.resolve(dir)?.ino, name)
}

/// Somebody else removed it first, or it was implicit and went with its last key.
fn gone(outcome: mw_world::Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => Ok(other?),
    }
}

/// Removes everything under the directory `path`: what a mount shows, then the keys that only S3 shows, then the directories,
/// deepest first.
fn empty(session: &Session, path: &Bytes, ino: Ino, moved: &mut Moved) -> Result<()> {
    let mut dirs = Vec::new();
    let mut waiting = vec![(path.clone(), ino)];
    while let Some((path, ino)) = waiting.pop() {
        let mut entries = Vec::new();
        session.open_dir(ino)?.read(
            0,
            &mut |entry, _| {
                entries.push(entry);
                true
            },
            false,
        )?;
        for entry in entries {
            if entry.kind == FileType::Directory {
                let below = join(&path, &entry.name);
                dirs.push(below.clone());
                waiting.push((below, entry.ino));
            } else {
                gone(session.unlink(ino, &entry.name))?;
                moved.files += 1;
            }
        }
    }
    delete_keys(session, path, moved)?;
    // Parents were pushed before their children.
    for dir in dirs.iter().rev() {
        gone(remove_dir(session, dir))?;
        moved.directories += 1;
    }
    Ok(())
}

/// Deletes the keys under `path` that a walk of directories does not find.
fn delete_keys(session: &Session, path: &[u8], moved: &mut Moved) -> Result<()> {
    let prefix = if path.is_empty() { Bytes::new() } else { join(path, b"") };
    let mut after = Bytes::new();
    loop {
        let listing = session.list(&ListRequest { prefix: prefix.clone(), delimiter: None, after, limit: 1000 })?;
        let keys: Vec<Bytes> = listing
            .items
            .into_iter()
            .filter_map(|item| match item {
                // A key that ends in `/` may be nothing but an empty directory, which goes as one.
                Listed::Object(info) if !(info.size == 0 && info.key.ends_with(b"/")) => Some(info.key),
                Listed::Object(_) | Listed::Prefix(_) => None,
            })
            .collect();
        for deleted in session.delete_many(&keys)? {
            moved.files += u64::from(deleted?.existed);
        }
        match listing.next {
            None => return Ok(()),
            Some(next) => after = next,
        }
    }
}

fn spot(place: &Place) -> Spot {
    Spot { world: place.world.clone(), at: place.at.clone() }
}

fn target(inner: &Inner, who: &Principal, place: &Place) -> Result<Session> {
    if place.at.is_some() {
        return Err(Error::new(ErrorKind::ReadOnly, format!("{} is a past instant and takes no changes", spot(place))));
    }
    inner.now(who, &place.world)
}

pub(super) fn rename(inner: &Arc<Inner>, who: &Principal, request: &types::Transfer) -> Result<Reply> {
    let from = target(inner, who, &request.from)?;
    let to = target(inner, who, &request.to)?;
    if from.world_id() != to.world_id() {
        let message = format!(
            "a move from {} to {} cannot be done in one step; copy with `mw cp -r`, then remove with `mw rm -r`",
            request.from.world, request.to.world
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let given = path_bytes(&request.from.path);
    let path = given.strip_suffix(b"/").unwrap_or(&given);
    let (dir, name) = split(path);
    let parent = from.resolve(dir)?.ino;
    let attr = from.resolve(path)?;
    if path.is_empty() {
        return Err(Error::invalid("the root of a world cannot be moved; name a path in it"));
    }
    let landed = landing(&to, &path_bytes(&request.to.path), Some(name))?;
    let (new_dir, new_name) = split(&landed);
    let new_parent =
        Planter::new(to.clone(), Bytes::new(), inner.env.token(8)).dir(&Bytes::copy_from_slice(new_dir))?;
    to.rename(parent, name, new_parent, new_name, RenameFlag::Replace)?;
    to.sync()?;
    let directory = attr.kind == FileType::Directory;
    Reply::json(&Moved { files: u64::from(!directory), directories: u64::from(directory), ..Moved::default() })
}

pub(super) fn copy(inner: &Arc<Inner>, who: &Principal, request: &types::Transfer) -> Result<Reply> {
    let from = inner.session(who, &spot(&request.from))?;
    let to = target(inner, who, &request.to)?;
    let given = path_bytes(&request.from.path);
    let path = Bytes::copy_from_slice(given.strip_suffix(b"/").unwrap_or(&given));
    let attr = from.resolve(&path)?;
    let name = if path.is_empty() { None } else { Some(split(&path).1) };
    let directory = attr.kind == FileType::Directory;
    if directory && !request.recursive {
        let message = format!("{:?} is a directory; copy it with all that is in it with -r", request.from.path);
        return Err(Error::new(ErrorKind::IsDirectory, message));
    }
    let landed = landing(&to, &path_bytes(&request.to.path), name)?;
    let inside = directory && (landed == path || path.is_empty() || landed.starts_with(&join(&path, b"")));
    if inside && from.world_id() == to.world_id() && from.version().is_none() {
        return Err(Error::invalid(format!("{:?} cannot be copied into itself", request.from.path)));
    }
    let shared = from.world_id() == to.world_id() && from.version().is_none();
    let planter = Planter::new(to.clone(), Bytes::new(), inner.env.token(8));
    let mut copy = Copy { from, to, shared, planter };
    copy.tree(&path, &landed, &attr)?;
    Reply::json(&copy.planter.finish()?)
}

/// A copy within the store. Content is shared, never read, wherever the world offers that.
struct Copy {
    from: Session,
    to: Session,
    /// Both sides are one live world.
    shared: bool,
    planter: Planter,
}

impl Copy {
    fn tree(&mut self, from: &Bytes, to: &Bytes, attr: &Attr) -> Result<()> {
        let node = self.node(to.clone(), attr)?;
        match attr.kind {
            FileType::File => self.file(from, attr, &node),
            FileType::Directory => {
                self.planter.node(&node)?;
                let mut entries = Vec::new();
                self.from.open_dir(attr.ino)?.read(
                    0,
                    &mut |entry, attr| {
                        entries.extend(attr.map(|attr| (entry.name, attr)));
                        true
                    },
                    true,
                )?;
                for (name, attr) in entries {
                    self.tree(&join(from, &name), &join(to, &name), &attr)?;
                }
                let ino = self.planter.dir(to)?;
                self.planter.settle(ino, &node)
            }
            FileType::Symlink | FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice => {
                self.planter.node(&node)
            }
        }
    }

    fn node(&self, path: Bytes, attr: &Attr) -> Result<Node> {
        let target = if attr.kind == FileType::Symlink { self.from.read_link(attr.ino)? } else { Bytes::new() };
        let mut xattrs = Vec::new();
        for name in self.from.list_xattr(attr.ino)? {
            let value = self.from.get_xattr(attr.ino, &name)?;
            xattrs.push((name, value));
        }
        let (mode, uid, gid, rdev) = (attr.mode & 0o7777, attr.uid, attr.gid, attr.rdev);
        let size = if attr.kind == FileType::File { attr.size } else { 0 };
        Ok(Node {
            path,
            kind: attr.kind,
            mode,
            uid,
            gid,
            rdev,
            size,
            atime: attr.atime,
            mtime: attr.mtime,
            target,
            xattrs,
        })
    }

    fn file(&mut self, from: &Bytes, attr: &Attr, node: &Node) -> Result<()> {
        if (!self.shared || self.to.is_limited()) && node.path.len() <= mw_model::name::MAX_KEY {
            // Between worlds only objects share extents; and a narrowed key may make no file that has no name yet.
            let (dir, _) = split(&node.path);
            self.planter.dir(&Bytes::copy_from_slice(dir))?;
            self.to.copy(&self.from, from, &node.path, &CopyOptions::default())?;
            let copied = self.to.resolve(&node.path)?;
            self.planter.settle(copied.ino, node)?;
            self.planter.count_file(attr.size);
            return Ok(());
        }
        let ino = self.planter.begin(node)?;
        let filled = if self.shared {
            self.to.copy_range(attr.ino, 0, ino, 0, attr.size).map(|n| self.planter.count(n)).map_err(Error::from)
        } else {
            self.bytes(attr, ino)
        };
        match filled {
            Ok(()) => self.planter.end(node, ino),
            Err(error) => {
                self.to.release(ino);
                Err(error)
            }
        }
    }

    fn bytes(&mut self, attr: &Attr, ino: Ino) -> Result<()> {
        let mut offset = 0;
        while offset < attr.size {
            let bytes = self.from.read(attr.ino, offset, MAX_DATA)?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.planter.fill(ino, offset, &bytes)?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }
}
