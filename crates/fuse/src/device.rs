//! The system calls that make and end a mount. Nothing here knows worlds.
//!
//! fuser can mount too, but its unmount asks the device whether it is still mounted and takes "disconnected" for yes, so that
//! it could unmount whatever stands at the same place next; and it cannot unmount lazily. So we mount and hand it the device.

mod abort;
mod tree;

pub(crate) use abort::abort;
pub(crate) use tree::{Tree, attach, beneath, detached};

use crate::error::{Error, Result};
use mw_model::ErrorKind;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

const DEVICE: &str = "/dev/fuse";
/// The setuid program that mounts for ordinary users.
const HELPER: &str = "fusermount3";
/// The file system type that marks mounts as ours.
pub(crate) const SUBTYPE: &str = "mw";

/// What to mount.
pub(crate) struct Plan<'a> {
    pub(crate) dir: &'a Path,
    /// What stands in the first column of `mount`.
    pub(crate) source: &'a str,
    pub(crate) read_only: bool,
    pub(crate) allow_other: bool,
}

/// Returns whether each thread can have a device of its own.
pub(crate) fn can_clone() -> bool {
    open().is_ok()
}

fn open() -> io::Result<File> {
    File::options().read(true).write(true).open(DEVICE)
}

/// Mounts, and returns the kernel's end: directly as root, otherwise through [`HELPER`].
///
/// # Errors
/// Says what is missing.
pub(crate) fn mount(plan: &Plan<'_>) -> Result<OwnedFd> {
    if rustix::process::geteuid().is_root()
        && let Some(device) = mount_directly(plan)?
    {
        return Ok(device);
    }
    mount_with_helper(plan)
}

/// Returns `None` when the kernel does not let this process mount (a container without the right).
fn mount_directly(plan: &Plan<'_>) -> Result<Option<OwnedFd>> {
    let device = match open() {
        Ok(device) => device,
        Err(e) => {
            return Err(Error::io(
                format!("cannot open {DEVICE}; load the kernel module fuse, or give the container the device"),
                e,
            ));
        }
    };
    let root = std::fs::metadata(plan.dir).map_err(|e| Error::mount_point(plan.dir, e))?;
    let mut data = format!(
        "fd={},rootmode={:o},user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        root.mode(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    if plan.allow_other {
        data.push_str(",allow_other");
    }
    let data =
        CString::new(data).map_err(|e| Error::new(ErrorKind::Invalid, format!("a mount option contains NUL: {e}")))?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
    if plan.read_only {
        flags |= MountFlags::RDONLY;
    }
    match rustix::mount::mount(plan.source, plan.dir, format!("fuse.{SUBTYPE}"), flags, Some(data.as_c_str())) {
        Ok(()) => Ok(Some(OwnedFd::from(device))),
        Err(Errno::PERM) => Ok(None),
        Err(e) => Err(Error::io(format!("cannot mount at {}", plan.dir.display()), e)),
    }
}

/// The helper sends the device over a socket, which it finds as its standard input.
fn mount_with_helper(plan: &Plan<'_>) -> Result<OwnedFd> {
    let failed = |e: io::Error| {
        Error::io(format!("cannot mount at {}: {HELPER} failed to run; install fuse3", plan.dir.display()), e)
    };
    let (ours, its) = UnixStream::pair().map_err(failed)?;
    // A comma would end the option.
    let source = plan.source.replace('\\', "\\\\").replace(',', "\\,");
    let mut options = format!("default_permissions,nosuid,nodev,noatime,fsname={source},subtype={SUBTYPE}");
    for (wanted, option) in [(plan.read_only, ",ro"), (plan.allow_other, ",allow_other")] {
        if wanted {
            options.push_str(option);
        }
    }
    let helper = Command::new(HELPER)
        .args(["-o", &options, "--"])
        .arg(plan.dir)
        .env("_FUSE_COMMFD", "0")
        .stdin(Stdio::from(OwnedFd::from(its)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let device = receive(&ours);
    let output = helper.wait_with_output().map_err(failed)?;
    match device {
        Ok(Some(device)) if output.status.success() => Ok(device),
        Err(e) => Err(failed(e)),
        Ok(_) => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(Error::new(ErrorKind::Denied, format!("cannot mount at {}: {}", plan.dir.display(), why.trim())))
        }
    }
}

fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    }))
}

/// Unmounts `dir`; lazily means out of sight at once, and ended when the last program lets go.
///
/// # Errors
/// [`ErrorKind::Busy`] when programs use it; otherwise those of the system.
pub(crate) fn unmount(dir: &Path, lazy: bool) -> Result<()> {
    let flags = UnmountFlags::NOFOLLOW | if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(dir, flags) {
        Ok(()) => Ok(()),
        // Not mounted any more is what was wanted.
        Err(Errno::INVAL) => Ok(()),
        Err(Errno::BUSY) => Err(Error::new(
            ErrorKind::Busy,
            format!("{} is in use; end the programs that have it open or unmount it lazily", dir.display()),
        )),
        Err(Errno::PERM) => unmount_with_helper(dir, lazy),
        Err(e) => Err(Error::io(format!("cannot unmount {}", dir.display()), e)),
    }
}

fn unmount_with_helper(dir: &Path, lazy: bool) -> Result<()> {
    let mut command = Command::new(HELPER);
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(dir).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.output().map_err(|e| {
        Error::io(format!("cannot unmount {}: {HELPER} failed to run; install fuse3", dir.display()), e)
    })?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let kind = if why.contains("busy") { ErrorKind::Busy } else { ErrorKind::Denied };
    Err(Error::new(kind, format!("cannot unmount {}: {}", dir.display(), why.trim())))
}

/// Lets the kernel read ahead as much as four requests can hold (its default is an eighth of one), so that all who answer have
/// something to do while a program reads. An improvement only: without the right to set it, reading is slower.
pub(crate) fn widen_read_ahead(device_number: &str) {
    let knob = format!("/sys/class/bdi/{device_number}/read_ahead_kb");
    if let Err(e) = std::fs::write(knob, "4096") {
        tracing::debug!("the read-ahead of a mount stays as it is: {e}");
    }
}
