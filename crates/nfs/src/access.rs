//! Who may do what: the classes of owner, group and others, as NFS servers judge them.

use crate::rpc::Caller;
use crate::status::Status;
use mw_model::{Attr, FileType};

pub(crate) const READ: u32 = 4;
pub(crate) const WRITE: u32 = 2;
pub(crate) const EXECUTE: u32 = 1;

impl Caller {
    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0
    }

    pub(crate) fn owns(&self, attr: &Attr) -> bool {
        self.is_root() || self.uid == attr.uid
    }

    pub(crate) fn is_in(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// Returns whether all of `wanted` is allowed.
    pub(crate) fn may(&self, attr: &Attr, wanted: u32) -> bool {
        if self.is_root() {
            // Only what somebody may execute is executable for root.
            let executable = attr.kind == FileType::Directory || attr.mode & 0o111 != 0;
            return wanted & EXECUTE == 0 || executable;
        }
        let class = if self.uid == attr.uid {
            attr.mode >> 6
        } else if self.is_in(attr.gid) {
            attr.mode >> 3
        } else {
            attr.mode
        };
        class & wanted == wanted
    }

    /// Refuses what is not allowed.
    pub(crate) fn need(&self, attr: &Attr, wanted: u32) -> Result<(), Status> {
        if self.may(attr, wanted) { Ok(()) } else { Err(Status::Access) }
    }

    /// Refuses reading or writing a file. Its owner may always: the client has it open since before it lost the right.
    pub(crate) fn need_content(&self, attr: &Attr, wanted: u32) -> Result<(), Status> {
        // A client that pages a program in has only the right to execute it.
        let page_in = wanted == READ && self.may(attr, EXECUTE);
        if self.owns(attr) || self.may(attr, wanted) || page_in { Ok(()) } else { Err(Status::Access) }
    }

    /// Refuses taking a name from a directory, or giving its place to another.
    pub(crate) fn need_removal(&self, dir: &Attr, child: &Attr) -> Result<(), Status> {
        self.need(dir, WRITE | EXECUTE)?;
        let sticky = dir.mode & 0o1000 != 0;
        if sticky && !self.owns(dir) && !self.owns(child) { Err(Status::Permission) } else { Ok(()) }
    }
}

/// Bits of the procedure ACCESS (RFC 1813, section 3.3.4).
const ACCESS_READ: u32 = 0x01;
const ACCESS_LOOKUP: u32 = 0x02;
const ACCESS_MODIFY: u32 = 0x04;
const ACCESS_EXTEND: u32 = 0x08;
const ACCESS_DELETE: u32 = 0x10;
const ACCESS_EXECUTE: u32 = 0x20;

/// Returns those of the asked bits that are allowed.
pub(crate) fn granted(caller: &Caller, attr: &Attr, read_only: bool, asked: u32) -> u32 {
    let dir = attr.kind == FileType::Directory;
    let mut granted = 0;
    if caller.may(attr, READ) {
        granted |= ACCESS_READ;
    }
    if caller.may(attr, WRITE) && !read_only {
        granted |= ACCESS_MODIFY | ACCESS_EXTEND | if dir { ACCESS_DELETE } else { 0 };
    }
    if caller.may(attr, EXECUTE) {
        granted |= if dir { ACCESS_LOOKUP } else { ACCESS_EXECUTE };
    }
    granted & asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use mw_model::{Ino, Version};

    fn attr(kind: FileType, mode: u32) -> Attr {
        Attr {
            ino: Ino(7),
            kind,
            mode,
            uid: 1,
            gid: 2,
            nlink: 1,
            size: 0,
            allocated: 0,
            rdev: 0,
            atime: 0,
            mtime: 0,
            ctime: 0,
            btime: 0,
            content: Version(0),
        }
    }

    fn caller(uid: u32, gid: u32) -> Caller {
        Caller { uid, gid, groups: vec![9] }
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        let file = attr(FileType::File, 0o274);
        assert!(!caller(1, 2).may(&file, READ), "the owner's class, although the group may");
        assert!(caller(5, 2).may(&file, READ | WRITE | EXECUTE));
        assert!(caller(5, 5).may(&file, READ) && !caller(5, 5).may(&file, WRITE));
        assert!(caller(0, 0).may(&file, READ | WRITE));
        assert!(!caller(0, 0).may(&attr(FileType::File, 0o600), EXECUTE));
    }

    #[test]
    fn in_a_sticky_directory_only_owners_remove() {
        let dir = Attr { uid: 3, ..attr(FileType::Directory, 0o1777) };
        let child = attr(FileType::File, 0o666);
        assert_eq!(caller(1, 1).need_removal(&dir, &child), Ok(()));
        assert_eq!(caller(3, 1).need_removal(&dir, &child), Ok(()));
        assert_eq!(caller(4, 1).need_removal(&dir, &child), Err(Status::Permission));
        assert_eq!(caller(4, 1).need_removal(&Attr { mode: 0o755, ..dir }, &child), Err(Status::Access));
    }
}
