//! Ending the connection of a mount whose server answers no more.

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where the kernel's table of connections usually is; a mount's own user may write there.
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// Ends the connection with this device number: every request is answered with ECONNABORTED, every later one with ENOTCONN.
///
/// # Errors
/// `NOENT` when there is none; otherwise those of the system: without the table only root can.
pub(crate) fn abort(device: u32) -> rustix::io::Result<()> {
    let knob = format!("{device}/abort");
    let told = rustix::fs::open(format!("{CONNECTIONS}/{knob}"), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    let file = match told {
        Err(Errno::NOENT | Errno::ACCESS) => {
            // The table need not be mounted anywhere to be looked into.
            let table = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(&table)?;
            let table = fsmount(&table, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
            openat(&table, &knob, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?
        }
        told => told?,
    };
    rustix::io::write(&file, b"1").map(drop)
}
