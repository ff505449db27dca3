//! Verbs on directories: open, list.
//!
//! An open directory is a view that the world pins, so every entry that stays is listed once whatever happens meanwhile. A
//! pinned view grows old, and the kernel must never learn old attributes from a listing: with attributes, an entry is
//! listed as it is now, and one that has gone is left out.

use super::{Door, Result};
use crate::errors::held;
use bytes::Bytes;
use fuser::Errno;
use mw_model::{Attr, ErrorKind, FileType, Ino, Version};
use mw_world::{Dir, DirEntry};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Offsets 1 and 2 are `.` and `..`; an entry's is its cookie and these two.
const DOTS: u64 = 2;
/// How many entries are prepared at a time for a listing with attributes.
const AT_ONCE: usize = 64;

/// A directory that a program has open.
pub(crate) struct OpenDir {
    ino: u64,
    dir: Dir,
}

/// One line of a listing.
pub(crate) struct Line {
    pub(crate) name: Bytes,
    pub(crate) ino: u64,
    pub(crate) kind: FileType,
    /// Where the listing goes on after it.
    pub(crate) offset: u64,
}

impl Line {
    /// Returns whether it is `.` or `..`.
    pub(crate) fn is_dot(&self) -> bool {
        self.offset <= DOTS
    }
}

impl Door {
    /// Opens a directory.
    pub(crate) fn open_dir(&self, ino: u64) -> Result<u64> {
        let dir = self.session.open_dir(Ino(ino)).map_err(|e| held(&e))?;
        let handle = self.last_dir.fetch_add(1, Ordering::Relaxed) + 1;
        self.dirs.lock().insert(handle, Arc::new(OpenDir { ino, dir }));
        Ok(handle)
    }

    /// Returns every open directory, for who takes the mount over: handle, inode, and the version that is listed.
    pub(super) fn opened_dirs(&self) -> Vec<(u64, u64, Version)> {
        self.dirs.lock().iter().map(|(handle, open)| (*handle, open.ino, open.dir.version())).collect()
    }

    /// Opens a directory as it was opened at `version`, under the same handle.
    pub(super) fn reopen_dir(&self, handle: u64, ino: u64, version: Version) -> mw_world::Result<()> {
        let dir = self.session.reopen_dir(Ino(ino), version)?;
        self.last_dir.fetch_max(handle, Ordering::Relaxed);
        self.dirs.lock().insert(handle, Arc::new(OpenDir { ino, dir }));
        Ok(())
    }

    /// Closes a directory.
    pub(crate) fn close_dir(&self, handle: u64) {
        // Dropped outside the lock: the last user of an implicit directory may remove it.
        let dir = self.dirs.lock().remove(&handle);
        drop(dir);
    }

    /// Lists from `offset` on, until `each` has enough. From the start means anew (POSIX rewinddir), which the world does.
    pub(crate) fn list(&self, handle: u64, offset: u64, each: &mut dyn FnMut(Line) -> bool) -> Result<()> {
        let open = self.opened(handle)?;
        if !open.dots(offset, each) {
            return Ok(());
        }
        let mut overflow = false;
        let mut line = |entry: DirEntry, _| match offset_after(&entry) {
            Ok(offset) => each(Line { name: entry.name, ino: entry.ino.0, kind: entry.kind, offset }),
            Err(_) => {
                overflow = true;
                false
            }
        };
        open.dir.read(offset.saturating_sub(DOTS), &mut line, false).map_err(|e| held(&e))?;
        if overflow { Err(Errno::EOVERFLOW) } else { Ok(()) }
    }

    /// Lists with attributes that hold now. An entry that has gone since the view was pinned is left out.
    pub(crate) fn list_plus(&self, handle: u64, offset: u64, each: &mut dyn FnMut(Line, &Attr) -> bool) -> Result<()> {
        let open = self.opened(handle)?;
        let of_dir = open.dir.attr();
        if !open.dots(offset, &mut |line| {
            let attr = Attr { ino: Ino(line.ino), ..of_dir };
            each(line, &attr)
        }) {
            return Ok(());
        }
        let mut offset = offset.max(DOTS);
        loop {
            // Gathered first: `each` and a look-up must not run inside the world's reading.
            let mut chunk = Vec::with_capacity(AT_ONCE);
            let mut gather = |entry, attr| {
                chunk.push((entry, attr));
                chunk.len() < AT_ONCE
            };
            open.dir.read(offset - DOTS, &mut gather, true).map_err(|e| held(&e))?;
            let last = chunk.len() < AT_ONCE;
            for (entry, attr) in chunk {
                offset = offset_after(&entry)?;
                let attr = match attr {
                    Some(attr) => attr,
                    None => match self.present(open.ino, &entry.name)? {
                        Some(attr) => attr,
                        None => continue,
                    },
                };
                if !each(Line { name: entry.name, ino: attr.ino.0, kind: attr.kind, offset }, &attr) {
                    return Ok(());
                }
            }
            if last {
                return Ok(());
            }
        }
    }

    /// Returns what a name stands for that no longer stands for what was listed.
    fn present(&self, parent: u64, name: &[u8]) -> Result<Option<Attr>> {
        match self.session.lookup(Ino(parent), name) {
            Ok(attr) => Ok(Some(attr)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(held(&e)),
        }
    }

    fn opened(&self, handle: u64) -> Result<Arc<OpenDir>> {
        self.dirs.lock().get(&handle).cloned().ok_or(Errno::EBADF)
    }
}

impl OpenDir {
    /// Lists `.` and `..`, as far as they come after `offset`. Returns whether there is room for more.
    fn dots(&self, offset: u64, each: &mut dyn FnMut(Line) -> bool) -> bool {
        let mut dot = |name: &'static [u8], ino, offset| {
            each(Line { name: Bytes::from_static(name), ino, kind: FileType::Directory, offset })
        };
        (offset > 0 || dot(b".", self.ino, 1)) && (offset > 1 || dot(b"..", self.dir.parent().0, DOTS))
    }
}

/// Returns where a listing goes on after an entry; the kernel's offsets are signed.
fn offset_after(entry: &DirEntry) -> Result<u64> {
    entry.cookie.checked_add(DOTS).filter(|offset| i64::try_from(*offset).is_ok()).ok_or(Errno::EOVERFLOW)
}
