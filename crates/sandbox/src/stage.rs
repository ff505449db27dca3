//! A short-lived process between the store and the builder: opens the files that the builder is to inherit, then becomes it.
//!
//! It exists for two reasons. The store has many threads, so a file that it made inheritable could leak into any process it
//! starts at that moment; here there is one. And paths inside a world lie on a mount that the store itself serves, which the
//! store must never open; here they are opened by somebody else.

use crate::wire::{self, Blueprint, Order, Step};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::FdFlags;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Takes the blueprint from standard input and becomes the builder. Returns only when that fails.
pub(crate) fn become_builder() -> io::Result<Infallible> {
    let refuse = || io::Error::new(io::ErrorKind::InvalidInput, "this command is not for people: the store starts it");
    let stdin = io::stdin();
    let Some(wire::Received { message: Order::Build, mut files, .. }) = wire::receive(&stdin).map_err(|_| refuse())?
    else {
        return Err(refuse());
    };
    only_standard_files_are_inherited();
    let Blueprint { program, steps } = wire::read_file(files.pop().ok_or_else(refuse)?)?;
    let mut inherited = Vec::new();
    let arguments = steps.into_iter().map(|s| argument(s, &mut inherited)).collect::<io::Result<Vec<_>>>()?;
    let error = Command::new(OsStr::from_bytes(&program)).args(arguments).exec();
    Err(io::Error::new(error.kind(), format!("{}: {error}", OsStr::from_bytes(&program).display())))
}

/// Turns a step into an argument; what the argument refers to is kept open in `inherited`.
fn argument(step: Step, inherited: &mut Vec<OwnedFd>) -> io::Result<OsString> {
    let (file, by_path) = match step {
        Step::Text(text) => return Ok(OsString::from_vec(text)),
        Step::Data(bytes) => (wire::memory_file(&bytes)?, false),
        Step::Beneath { base, rest, by_path } => (open_beneath(&base, &rest)?, by_path),
    };
    let number = file.as_raw_fd();
    if by_path {
        // Not by the number: such a builder would not close the file, and the command would inherit a way out.
        return Ok(std::fs::read_link(format!("/proc/self/fd/{number}"))?.into_os_string());
    }
    rustix::io::fcntl_setfd(&file, FdFlags::empty())?;
    inherited.push(file);
    Ok(number.to_string().into())
}

/// Makes every file but the standard ones end with this program. Whoever started the store may have left files open that it
/// knows nothing of, and one directory among them would lead out of the sandbox.
pub(crate) fn only_standard_files_are_inherited() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// Opens `rest` beneath `base`. Whoever wrote the directory may have put a link in the way, which must not lead out of it.
fn open_beneath(base: &[u8], rest: &[u8]) -> io::Result<OwnedFd> {
    let said = |path: &[u8]| {
        let path = OsStr::from_bytes(path).display().to_string();
        move |e: rustix::io::Errno| {
            let why =
                if e == rustix::io::Errno::LOOP { "a symbolic link stands in the way" } else { "cannot be opened" };
            io::Error::new(io::Error::from(e).kind(), format!("{path}: {why} ({e})"))
        }
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let base_fd = rustix::fs::openat(CWD, base, flags | OFlags::DIRECTORY, Mode::empty()).map_err(said(base))?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(base_fd, rest, flags, Mode::empty(), resolve).map_err(said(rest))
}
