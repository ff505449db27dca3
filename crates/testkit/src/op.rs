//! Every verb as a value. One operation prints on one line, so that a failing sequence can be read and typed in again.

use mw_model::FileType;

/// Bytes that need not be printed: `len` bytes that follow from `tag`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Tells one content from another; 0 is for zeros.
    pub tag: u8,
    /// The length in bytes.
    pub len: u32,
}

impl Content {
    /// Returns the bytes: no two tags share a run of eight, and none repeats itself within 64 KiB.
    pub fn bytes(self) -> Vec<u8> {
        let byte = |i: u32| {
            let word = (u64::from(self.tag) << 32 | u64::from(i / 8 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (word ^ (word >> 29)).to_le_bytes()[(i % 8) as usize]
        };
        if self.tag == 0 { vec![0; self.len as usize] } else { (0..self.len).map(byte).collect() }
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}*{}", self.tag, self.len)
    }
}

/// The flags of renameat2(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// No flag: a target is replaced.
    Replace,
    /// `RENAME_NOREPLACE`.
    NoReplace,
    /// `RENAME_EXCHANGE`.
    Exchange,
}

/// What a merge does with conflicts. *Ours* is the world that is changed: the base of a promote, the fork of a rebase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Nothing is applied.
    Fail,
    /// The changed world's entry stays.
    Ours,
    /// The other world's entry comes.
    Theirs,
}

/// A verb on the content of one world, through the S3 door (`Put` to `Copy`) or the mount (the others).
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the arguments of the call that the variant names")]
pub enum Verb {
    /// PutObject; `if_absent` is `If-None-Match: *`.
    Put { key: String, content: Content, content_type: Option<String>, if_absent: bool },
    /// DeleteObject; a missing key is not an error.
    Delete { key: String },
    /// CopyObject within the world.
    Copy { from: String, to: String },
    /// mkdir(2).
    Mkdir { path: String, mode: u32 },
    /// open(2) with `O_CREAT | O_EXCL`.
    Create { path: String, mode: u32 },
    /// mknod(2) of a pipe, socket or device.
    Mknod { path: String, kind: FileType, mode: u32, rdev: u32 },
    /// pwrite(2).
    Write { path: String, offset: u64, content: Content },
    /// truncate(2).
    Truncate { path: String, len: u64 },
    /// unlink(2).
    Unlink { path: String },
    /// rmdir(2).
    Rmdir { path: String },
    /// renameat2(2).
    Rename { from: String, to: String, how: Exchange },
    /// link(2), without following.
    Link { from: String, to: String },
    /// symlink(2).
    Symlink { target: String, path: String },
    /// chmod(2).
    Chmod { path: String, mode: u32 },
    /// lchown(2).
    Chown { path: String, uid: u32, gid: u32 },
    /// lsetxattr(2) without flags.
    SetXattr { path: String, name: String, value: Content },
    /// lremovexattr(2).
    RemoveXattr { path: String, name: String },
}

/// A verb on worlds. Versions are the model's own ([`crate::Outcome::version`]); a test maps them to the store's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the arguments of the verb that the variant names")]
pub enum Op {
    /// Changes the content of a world.
    In { world: String, verb: Verb },
    /// Makes an empty world.
    CreateWorld { world: String },
    /// Deletes a world; its forks live on.
    DeleteWorld { world: String },
    /// Forks `from` as it is, or as it was at a version.
    Fork { from: String, at: Option<u64>, to: String },
    /// Names the present version of a world.
    Snapshot { world: String, name: String },
    /// Makes a world again what it was, as a new change.
    Revert { world: String, at: u64 },
    /// Makes one path again what it was, as a new change.
    Restore { world: String, path: String, at: u64 },
    /// Brings the changes of a fork to its base, or those whose path starts with `only`.
    Promote { fork: String, policy: Policy, only: Option<String> },
    /// Brings the changes of the base to its fork.
    Rebase { fork: String, policy: Policy },
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::In { world, verb } => write!(f, "{world}: {verb:?}"),
            other => write!(f, "{other:?}"),
        }
    }
}
