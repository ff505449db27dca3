//! What an inode looks like from outside.

use crate::{Ino, Version};

/// The type of an inode (POSIX `<sys/stat.h>`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; its target is content.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl FileType {
    /// Returns the type's number in stored records.
    pub fn to_u8(self) -> u8 {
        match self {
            Self::File => 1,
            Self::Directory => 2,
            Self::Symlink => 3,
            Self::Fifo => 4,
            Self::Socket => 5,
            Self::CharDevice => 6,
            Self::BlockDevice => 7,
        }
    }

    /// Returns the type stored as `n`.
    pub fn from_u8(n: u8) -> Option<Self> {
        Some(match n {
            1 => Self::File,
            2 => Self::Directory,
            3 => Self::Symlink,
            4 => Self::Fifo,
            5 => Self::Socket,
            6 => Self::CharDevice,
            7 => Self::BlockDevice,
            _ => return None,
        })
    }
}

/// The attributes of an inode. Times are nanoseconds since the epoch and may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr {
    /// The inode number.
    pub ino: Ino,
    /// The type.
    pub kind: FileType,
    /// Permission bits, setuid, setgid and sticky (`0o7777`).
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The number of names; directories count 2 plus their subdirectories.
    pub nlink: u32,
    /// The size in bytes.
    pub size: u64,
    /// The bytes of content that are not holes.
    pub allocated: u64,
    /// The device number of a device file.
    pub rdev: u32,
    /// The time of the last access.
    pub atime: i64,
    /// The time of the last change of content.
    pub mtime: i64,
    /// The time of the last change of the inode.
    pub ctime: i64,
    /// The time of birth.
    pub btime: i64,
    /// The version of the last change of content: moves with every write, never with `utimens`.
    pub content: Version,
}
