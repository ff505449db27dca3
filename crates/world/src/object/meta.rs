//! What an object is, from outside: its metadata, checksums and attributes.

use bytes::Bytes;
use mw_model::{FileType, Ino, Version};

/// The headers and tags that a client gave with an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectMeta {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Expires`, as it was given.
    pub expires: Option<String>,
    /// User metadata, without the prefix `x-amz-meta-`.
    pub user: Vec<(String, String)>,
    /// Tags.
    pub tags: Vec<(String, String)>,
    /// `x-amz-storage-class`; kept and shown, without effect.
    pub storage_class: Option<String>,
}

/// The checksums that S3 knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecksumAlgorithm {
    /// CRC-32 (ISO-HDLC).
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// CRC-64/NVME.
    Crc64Nvme,
}

impl ChecksumAlgorithm {
    /// Returns the algorithm's number in stored records.
    pub(crate) fn to_u8(self) -> u8 {
        match self {
            Self::Crc32 => 1,
            Self::Crc32c => 2,
            Self::Sha1 => 3,
            Self::Sha256 => 4,
            Self::Crc64Nvme => 5,
        }
    }

    /// Returns the algorithm stored as `n`.
    pub(crate) fn from_u8(n: u8) -> Option<Self> {
        [Self::Crc32, Self::Crc32c, Self::Sha1, Self::Sha256, Self::Crc64Nvme].into_iter().find(|a| a.to_u8() == n)
    }
}

/// A checksum of an object's content, computed by the door that took it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// The algorithm.
    pub algorithm: ChecksumAlgorithm,
    /// The value in base64; a composite one ends in `-` and the number of parts.
    pub value: String,
    /// Whether it is a checksum of the parts' checksums.
    pub composite: bool,
}

/// The checksums of the parts that an object was uploaded in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSums {
    /// The algorithm that the upload was begun with.
    pub algorithm: ChecksumAlgorithm,
    /// The values in base64, in the order of the parts.
    pub values: Vec<String>,
}

/// What an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its key.
    pub key: Bytes,
    /// Its inode. An empty explicit directory without a marker is an object too: of no bytes, with the directory's inode.
    pub ino: Ino,
    /// Its size in bytes.
    pub size: u64,
    /// The last change of its content, in UNIX nanoseconds.
    pub modified: u64,
    /// The version of that change.
    pub version: Version,
    /// Whether it was put while the world's versions were suspended: the version `null`.
    pub unversioned: bool,
    /// Its entity tag, without quotes: the one given with the content, or, where the content came through another door, 32
    /// hexadecimal digits and `-0`, which change with every change of content.
    pub etag: String,
    /// Headers and tags.
    pub meta: ObjectMeta,
    /// Checksums given with the content; none where the content came through another door.
    pub checksums: Vec<Checksum>,
    /// The sizes of the parts it was uploaded in, in bytes; empty when it was put whole.
    pub parts: Vec<u64>,
    /// The checksums of those parts; none where the upload was begun without an algorithm.
    pub part_sums: Option<PartSums>,
    /// The type: a file, a symbolic link (whose content is its target), or an empty directory.
    pub kind: FileType,
    /// Permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The modification time that a mount shows, in nanoseconds since the epoch.
    pub mtime: i64,
}
