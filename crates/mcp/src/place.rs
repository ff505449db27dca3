//! Paths as a model writes them, and why one leads nowhere.
//!
//! A path starts at the root of the world. It cannot leave it, as `.` and `..` are no names here, and no link is ever followed: a link
//! is reported with its target, so that the model can decide to name that.

use crate::error::{Refusal, Result};
use bytes::Bytes;
use mw_model::name::mountable;
use mw_model::text::{path_bytes, path_text};
use mw_model::{Attr, ErrorKind, FileType};
use mw_world::Session;

/// Reads a path. One slash at the start and one at the end do not count; the empty path is the root.
pub(crate) fn parse(text: &str) -> Result<Bytes> {
    let path = path_bytes(text);
    let path = path.strip_prefix(b"/").map_or(path.clone(), |rest| path.slice_ref(rest));
    let path = path.strip_suffix(b"/").map_or(path.clone(), |rest| path.slice_ref(rest));
    if path.is_empty() {
        return Ok(path);
    }
    for part in path.split(|&b| b == b'/') {
        if !mountable(part) {
            return Err(Refusal::invalid(wrong(text, part)));
        }
    }
    Ok(path)
}

fn wrong(text: &str, part: &[u8]) -> String {
    let why = match part {
        b"" => "has two slashes in a row",
        b"." | b".." => "has a part `.` or `..`: a path starts at the root of the world and cannot leave it",
        _ if part.contains(&0) => "has a NUL character",
        _ => "has a name of over 255 bytes",
    };
    format!("the path {text:?} {why}; write it from the root of the world, such as docs/notes.md")
}

/// Reads a path that must not be the root.
pub(crate) fn below_root(text: &str, what: &str) -> Result<Bytes> {
    let path = parse(text)?;
    if path.is_empty() {
        return Err(Refusal::invalid(format!("the root of the world cannot be {what}; name a path in it")));
    }
    Ok(path)
}

/// Splits a path into its directory and its name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        None => (b"", path),
        Some(at) => (&path[..at], &path[at + 1..]),
    }
}

/// Returns the keys under a directory: its path with a slash, nothing for the root.
pub(crate) fn prefix(path: &[u8]) -> Bytes {
    if path.is_empty() { Bytes::new() } else { [path, b"/"].concat().into() }
}

/// Returns what a path leads to, or says at which of its parts it ends.
pub(crate) fn stat(session: &Session, path: &[u8]) -> Result<Attr> {
    match session.resolve(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Err(nowhere(session, path)?),
        other => Ok(other?),
    }
}

/// Returns the regular file at a path.
pub(crate) fn file(session: &Session, path: &[u8]) -> Result<Attr> {
    let attr = stat(session, path)?;
    need_file(session, path, &attr)?;
    Ok(attr)
}

/// Refuses what is no regular file.
pub(crate) fn need_file(session: &Session, path: &[u8], attr: &Attr) -> Result<()> {
    let shown = path_text(path);
    match attr.kind {
        FileType::File => Ok(()),
        FileType::Directory => Err(Refusal::new(ErrorKind::IsDirectory, format!("{shown:?} is a directory"))),
        FileType::Symlink => Err(link(session, path, attr)),
        FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice => {
            Err(Refusal::invalid(format!("{shown:?} is a special file and has no content")))
        }
    }
}

/// Refuses a place where no file can be put: below something that is no directory, or on what is no file. Returns what stands there.
pub(crate) fn target(session: &Session, path: &[u8]) -> Result<Option<Attr>> {
    for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
        let above = &path[..at];
        match session.resolve(above) {
            Ok(attr) if attr.kind == FileType::Directory => {}
            Ok(attr) => return Err(no_directory(session, above, &attr)),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        }
    }
    match session.resolve(path) {
        Ok(attr) => Ok(Some(attr)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Says at which part a path ends.
fn nowhere(session: &Session, path: &[u8]) -> Result<Refusal> {
    for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
        let above = &path[..at];
        match session.resolve(above) {
            Ok(attr) if attr.kind == FileType::Directory => {}
            Ok(attr) => return Ok(no_directory(session, above, &attr)),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(missing(above)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(missing(path))
}

fn missing(path: &[u8]) -> Refusal {
    let (dir, _) = split(path);
    Refusal::plain(
        ErrorKind::NotFound,
        format!(
            "{:?} does not exist; call `list` with the path {:?} to see what does",
            path_text(path),
            path_text(dir)
        ),
    )
}

fn no_directory(session: &Session, path: &[u8], attr: &Attr) -> Refusal {
    if attr.kind == FileType::Symlink {
        return link(session, path, attr);
    }
    Refusal::plain(
        ErrorKind::NotDirectory,
        format!("{:?} is no directory, so that nothing can lie under it", path_text(path)),
    )
}

/// Says that links are not followed, and where this one points.
fn link(session: &Session, path: &[u8], attr: &Attr) -> Refusal {
    let shown = path_text(path);
    let target = session.read_link(attr.ino).unwrap_or_default();
    let advice = match inside(path, &target) {
        Some(inside) => format!("links are not followed here: name {:?} instead", path_text(&inside)),
        None => "it leads out of this world and is not followed".to_owned(),
    };
    Refusal::plain(ErrorKind::Invalid, format!("{shown:?} is a symbolic link to {:?}; {advice}", path_text(&target)))
}

/// Returns the path in the world that a relative link at `path` points to, if it stays inside.
fn inside(path: &[u8], target: &[u8]) -> Option<Bytes> {
    if target.is_empty() || target.starts_with(b"/") {
        return None;
    }
    let (dir, _) = split(path);
    let mut parts: Vec<&[u8]> = dir.split(|&b| b == b'/').filter(|part| !part.is_empty()).collect();
    for part in target.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/').into())
}
