//! `ls`: what a directory holds, as lines of JSON, with what only S3 shows when that is asked for.

use super::convert;
use crate::body::{Gone, Sink, produce};
use crate::call::{Inner, Reply};
use crate::harvest::join;
use crate::route::At;
use crate::types::{Done, Entry, Line};
use crate::{Error, Result};
use bytes::Bytes;
use mw_model::{Attr, ErrorKind, FileType};
use mw_world::{DirEntry, ListRequest, Listed, Principal, Session};
use std::sync::Arc;

/// How many keys of S3 are looked at in one go.
const PAGE: usize = 1000;

pub(super) fn list(inner: &Arc<Inner>, who: &Principal, at: At, recursive: bool, hidden: bool) -> Result<Reply> {
    let session = inner.session(who, &at.spot)?;
    let path = at.path.clone();
    let trimmed = path.strip_suffix(b"/").map_or(path.clone(), Bytes::copy_from_slice);
    let root = match session.resolve(&trimmed) {
        Ok(attr) => Some(attr),
        // Names like `a//b` lead nowhere on a mount, and still have keys beneath them.
        Err(error) if error.kind() == ErrorKind::NotFound && hidden => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Reply::lines(produce(move |sink| {
        let outcome = walk(&session, root.as_ref(), &trimmed, recursive, &sink)
            .and_then(|()| if hidden { shadows(&session, &trimmed, recursive, &sink) } else { Ok(()) });
        let last = match outcome {
            Ok(()) => Line::End(Done {}),
            Err(error) => Line::Error(error.reply().error),
        };
        let _: std::result::Result<(), Gone> = sink.line(&last);
    })))
}

fn send(sink: &Sink, entry: Entry) -> Result<()> {
    sink.line(&Line::Entry(entry)).map_err(|Gone| Error::new(ErrorKind::Cancelled, "the reader went away"))
}

fn walk(session: &Session, root: Option<&Attr>, path: &[u8], recursive: bool, sink: &Sink) -> Result<()> {
    let Some(root) = root else { return Ok(()) };
    if root.kind != FileType::Directory {
        return show(session, path, root, sink);
    }
    let mut waiting = vec![(Bytes::copy_from_slice(path), root.ino)];
    while let Some((path, ino)) = waiting.pop() {
        let dir = match session.open_dir(ino) {
            Ok(dir) => dir,
            // Removed since its name was read.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        let mut below = Vec::new();
        let mut cookie = 0;
        loop {
            let mut page: Vec<(DirEntry, Attr)> = Vec::new();
            dir.read(
                cookie,
                &mut |entry, attr| {
                    page.extend(attr.map(|attr| (entry, attr)));
                    page.len() < PAGE
                },
                true,
            )?;
            let last = page.len() < PAGE;
            for (entry, attr) in page {
                cookie = entry.cookie;
                let path = join(&path, &entry.name);
                show(session, &path, &attr, sink)?;
                if recursive && attr.kind == FileType::Directory {
                    below.push((path, attr.ino));
                }
            }
            if last {
                break;
            }
        }
        waiting.extend(below.into_iter().rev());
    }
    Ok(())
}

fn show(session: &Session, path: &[u8], attr: &Attr, sink: &Sink) -> Result<()> {
    let target = if attr.kind == FileType::Symlink { session.read_link(attr.ino).ok() } else { None };
    send(sink, convert::entry(path, attr, target.as_deref()))
}

/// Sends the keys under `path` that a mount does not show.
fn shadows(session: &Session, path: &[u8], recursive: bool, sink: &Sink) -> Result<()> {
    let prefix = if path.is_empty() { Bytes::new() } else { join(path, b"") };
    let delimiter = (!recursive).then(|| Bytes::from_static(b"/"));
    let mut after = Bytes::new();
    loop {
        let listing =
            session.list(&ListRequest { prefix: prefix.clone(), delimiter: delimiter.clone(), after, limit: PAGE })?;
        for item in listing.items {
            match item {
                Listed::Object(info) if is_hidden(session, &info.key, info.size)? => {
                    send(sink, convert::object(&info))?
                }
                Listed::Object(_) => {}
                Listed::Prefix(prefix) => {
                    let name = prefix.strip_suffix(b"/").unwrap_or(&prefix);
                    if !name.split(|&b| b == b'/').all(mw_model::name::mountable) {
                        send(sink, Entry { hidden: true, ..Entry::prefix(&prefix) })?;
                    }
                }
            }
        }
        match listing.next {
            None => return Ok(()),
            Some(next) => after = next,
        }
    }
}

fn is_hidden(session: &Session, key: &[u8], size: u64) -> Result<bool> {
    // An empty `d/` is how S3 shows the directory `d`, which a mount shows too.
    if size == 0 && key.strip_suffix(b"/").is_some_and(|dir| dir.split(|&b| b == b'/').all(mw_model::name::mountable)) {
        return Ok(false);
    }
    if !key.split(|&b| b == b'/').all(mw_model::name::mountable) {
        return Ok(true);
    }
    Ok(session.resolve(key)?.kind == FileType::Directory)
}

impl Entry {
    /// A directory that exists in S3 names alone.
    fn prefix(path: &[u8]) -> Self {
        Self {
            path: crate::types::path_text(path),
            kind: crate::types::Kind::Directory,
            mode: "0755".to_owned(),
            uid: 0,
            gid: 0,
            links: 1,
            size: 0,
            modified: crate::when::rfc3339(0),
            ino: "0".to_owned(),
            target: None,
            hidden: false,
        }
    }
}
