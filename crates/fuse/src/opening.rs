//! What the kernel may do by itself with a file or directory that a program opens.

use crate::door::Door;
use fuser::{FileHandle, FopenFlags};
use rustix::fs::OFlags;

/// The number of an open file, and what the kernel may do with it: keep its pages unless they may be old, and where nobody is likely to have
/// locked it not ask at `close`.
///
/// A descriptor that appends goes around the kernel's pages: through them, an append that starts in a page that is not
/// cached arrives as two writes, and between them another mount's append may fall. So does one that only writes: its writes
/// arrive whole, and the kernel does not ask for a capability of the file before the first of them (we take that away
/// ourselves, as it trusts us to). With write-back nothing goes around them: the kernel holds what was written, and knows the end.
pub(crate) fn opened(door: &Door, ino: u64, since: u64, flags: i32) -> (FileHandle, FopenFlags) {
    let flags = OFlags::from_bits_retain(flags as u32);
    let hears_of_close = door.hears_of_close(ino, flags);
    let mut told = FopenFlags::empty();
    if !hears_of_close {
        told |= FopenFlags::FOPEN_NOFLUSH;
    }
    if !door.epochs.touched(ino, since) {
        told |= FopenFlags::FOPEN_KEEP_CACHE;
    }
    if goes_around_pages(door, flags) {
        told |= FopenFlags::FOPEN_DIRECT_IO;
    }
    (FileHandle(door.handle(hears_of_close)), told)
}

/// What the kernel may do with an open directory: keep its entries for whoever lists it next, until a name in it changes. It
/// knows of changes through this mount by itself, and is told of the others.
pub(crate) fn listing_flags(door: &Door, ino: u64, since: u64) -> FopenFlags {
    door.known.listed(ino);
    if door.epochs.touched(ino, since) {
        FopenFlags::FOPEN_CACHE_DIR
    } else {
        FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE
    }
}

/// Returns whether what is written through a descriptor goes around the kernel's pages.
pub(crate) fn goes_around_pages(door: &Door, flags: OFlags) -> bool {
    !door.writes_back() && (flags.contains(OFlags::APPEND) || flags.intersection(OFlags::RWMODE) == OFlags::WRONLY)
}
