//! Mounts whose server died: "Transport endpoint is not connected".

use crate::device::{self, SUBTYPE};
use crate::error::{Error, Result};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Detaches every dead mount of this kind at `dir`, so that it can be mounted again. Does nothing where there is none, and
/// leaves living mounts and mounts of others alone.
///
/// Not for threads that answer requests: a living mount at `dir` is asked whether it lives.
///
/// # Errors
/// The mount is dead and cannot be detached.
pub fn clear_stale(dir: &Path) -> Result<()> {
    let dir = place(dir)?;
    while find(&dir)?.is_some() {
        match rustix::fs::statfs(&dir) {
            Err(Errno::NOTCONN | Errno::CONNABORTED) => device::unmount(&dir, true)?,
            _ => break,
        }
    }
    Ok(())
}

/// Ends the connection of the mount of this kind at `dir`, whose server is dead and cannot go (see `guard`): what waits for an answer gets an
/// error. To be followed by [`clear_stale`] once the server is gone. Does nothing where there is none.
///
/// # Errors
/// The system refused: an ordinary user needs the table of connections in `/sys/fs/fuse/connections`.
pub fn end_stuck(dir: &Path) -> Result<()> {
    let dir = place(dir)?;
    let Some(number) = find(&dir)?.and_then(|device| device.rsplit(':').next()?.parse().ok()) else { return Ok(()) };
    match device::abort(number) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(Error::io(format!("cannot end the dead mount at {}; `umount -f` it as root", dir.display()), e)),
    }
}

/// Returns the absolute path of a mount point without looking at the mount itself, which may be dead.
pub(crate) fn place(dir: &Path) -> Result<PathBuf> {
    let unusable = |e: io::Error| Error::mount_point(dir, e);
    let dir = std::path::absolute(dir).map_err(unusable)?;
    match (dir.parent(), dir.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize().map_err(unusable)?.join(name)),
        _ => dir.canonicalize().map_err(unusable),
    }
}

/// Returns the device number (`0:53`) of the mount of ours that is on top at `dir`.
pub(crate) fn find(dir: &Path) -> Result<Option<String>> {
    let table = std::fs::read("/proc/self/mountinfo").map_err(|e| Error::io("cannot read the table of mounts", e))?;
    Ok(find_in(&table, dir))
}

/// The fields are those of proc_pid_mountinfo(5): the later line is on top.
fn find_in(table: &[u8], dir: &Path) -> Option<String> {
    let mut found = None;
    for line in table.split(|b| *b == b'\n') {
        let mut fields = line.split(|b| *b == b' ');
        let (Some(device), Some(point)) = (fields.nth(2), fields.nth(1)) else { continue };
        if unescape(point).as_bytes() != dir.as_os_str().as_bytes() {
            continue;
        }
        let kind = fields.skip_while(|field| *field != b"-").nth(1);
        let ours = kind.and_then(|k| k.strip_prefix(b"fuse.")) == Some(SUBTYPE.as_bytes());
        found = ours.then(|| String::from_utf8_lossy(device).into_owned());
    }
    found
}

/// Space, tab, newline and backslash stand as three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let code =
            (*first == b'\\').then(|| tail.get(..3)).flatten().and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests;
