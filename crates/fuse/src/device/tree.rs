//! A mount that is nowhere yet, and putting it beneath another: what a switch is made of.

use super::{DEVICE, Plan, SUBTYPE, open};
use crate::error::{Error, Result};
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen, move_mount,
};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// A mount that is nowhere, and the kernel's end of it.
pub(crate) struct Tree {
    pub(crate) device: OwnedFd,
    /// Its root.
    pub(crate) root: OwnedFd,
}

/// Makes a mount that is nowhere. `None` where only the helper may mount, or the kernel is too old (before Linux 5.2).
///
/// # Errors
/// Says what is missing.
pub(crate) fn detached(plan: &Plan<'_>) -> Result<Option<Tree>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let device = open().map_err(|e| Error::io(format!("cannot open {DEVICE}"), e))?;
    match tree(plan, device.into()) {
        Ok(tree) => Ok(Some(tree)),
        Err(Errno::PERM | Errno::NOSYS | Errno::INVAL | Errno::NODEV) => Ok(None),
        Err(e) => Err(Error::io(format!("cannot mount for {}", plan.dir.display()), e)),
    }
}

fn tree(plan: &Plan<'_>, device: OwnedFd) -> rustix::io::Result<Tree> {
    let fs = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let user = rustix::process::getuid().as_raw().to_string();
    let group = rustix::process::getgid().as_raw().to_string();
    for (name, value) in [
        ("source", plan.source),
        ("subtype", SUBTYPE),
        ("fd", &device.as_raw_fd().to_string()),
        ("rootmode", "40755"),
        ("user_id", &user),
        ("group_id", &group),
    ] {
        fsconfig_set_string(&fs, name, value)?;
    }
    fsconfig_set_flag(&fs, "default_permissions")?;
    for (wanted, name) in [(plan.allow_other, "allow_other"), (plan.read_only, "ro")] {
        if wanted {
            fsconfig_set_flag(&fs, name)?;
        }
    }
    fsconfig_create(&fs)?;
    let mut flags =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOATIME;
    if plan.read_only {
        flags |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    let root = fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
    Ok(Tree { device, root })
}

/// Puts a mount beneath the one at `dir`: it is there in the instant in which that one goes. Returns false where the kernel cannot
/// (before Linux 6.5).
///
/// # Errors
/// Those of the system.
pub(crate) fn beneath(root: &OwnedFd, dir: &Path) -> Result<bool> {
    match put(root, dir, MoveMountFlags::MOVE_MOUNT_BENEATH) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::PERM) => Ok(false),
        Err(e) => Err(Error::io(format!("cannot mount beneath {}", dir.display()), e)),
    }
}

/// Puts a mount at `dir`.
///
/// # Errors
/// Those of the system.
pub(crate) fn attach(root: &OwnedFd, dir: &Path) -> Result<()> {
    put(root, dir, MoveMountFlags::empty()).map_err(|e| Error::io(format!("cannot mount at {}", dir.display()), e))
}

fn put(root: &OwnedFd, dir: &Path, how: MoveMountFlags) -> rustix::io::Result<()> {
    move_mount(root, "", CWD, dir, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | how)
}
