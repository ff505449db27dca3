//! The stream in which file trees travel between the command line and the server: records, each a tag, a length and a payload.
//!
//! It keeps what a tar archive loses: holes, nanoseconds, extended attributes, odd bytes in names. Every length is bounded
//! before anything is allocated, and a stream without its [`Record::End`] was cut off. Paths are relative, raw bytes, and checked here
//! once for both directions: no empty name, `.`, `..` or NUL, so that neither a world nor a host can be left by a path.

use crate::{Error, Result};
use bytes::Bytes;
use mw_model::ErrorKind;
use mw_model::FileType;
use mw_model::codec::{DecodeError, Reader, Writer};
use std::io::Read;

/// What a stream starts with; the number is the format's version.
pub const MAGIC: &[u8; 8] = b"mwtree1\n";
/// The largest content of one [`Record::Data`], in bytes.
pub const MAX_DATA: usize = 1 << 20;
/// The largest payload of one record, in bytes: content, or names with attributes.
const MAX_PAYLOAD: usize = MAX_DATA + (256 << 10);
/// The size of a file that is not known before its end, as from a pipe: where its data ends, it ends.
pub const UNKNOWN_SIZE: u64 = u64::MAX;
/// The longest path, in bytes (PATH_MAX of Linux).
pub const MAX_PATH: usize = 4096;

/// What travels about an inode besides its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The path under the root of the transfer; empty for the root itself.
    pub path: Bytes,
    /// The type.
    pub kind: FileType,
    /// The permission bits (`0o7777`).
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The device number.
    pub rdev: u32,
    /// The size of a file's content in bytes; what no [`Record::Data`] covers is a hole.
    pub size: u64,
    /// The time of the last access, in UNIX nanoseconds.
    pub atime: i64,
    /// The time of the last change of content, in UNIX nanoseconds.
    pub mtime: i64,
    /// The target of a symbolic link.
    pub target: Bytes,
    /// The extended attributes.
    pub xattrs: Vec<(Bytes, Bytes)>,
}

/// One record of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An inode. A directory comes before what is in it; a file is followed by its data and a [`Record::Done`].
    Node(Node),
    /// Content of the file begun last.
    Data {
        /// Where it goes.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The file begun last is whole.
    Done,
    /// Another name of a file that came before.
    HardLink {
        /// The new name.
        path: Bytes,
        /// The name it came under.
        to: Bytes,
    },
    /// The attributes of a directory once everything in it is there (filling it moved its times).
    Settle(Node),
    /// Something that could not travel.
    Skipped {
        /// What.
        path: Bytes,
        /// Why.
        why: String,
    },
    /// The sender failed; nothing more comes.
    Failed {
        /// The kind of its error.
        kind: ErrorKind,
        /// Its message.
        message: String,
    },
    /// The end of a whole stream.
    End,
}

fn put_node(w: &mut Writer, node: &Node) {
    w.bytes(&node.path).u8(node.kind.to_u8()).u32(node.mode).u32(node.uid).u32(node.gid).u32(node.rdev);
    w.var(node.size).int(node.atime).int(node.mtime).bytes(&node.target).var(node.xattrs.len() as u64);
    for (name, value) in &node.xattrs {
        w.bytes(name).bytes(value);
    }
}

/// Appends `record` to `out`.
pub fn encode(record: &Record, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 5]);
    let mut w = Writer(std::mem::take(out));
    let tag = match record {
        Record::Node(node) => {
            put_node(&mut w, node);
            1
        }
        Record::Data { offset, bytes } => {
            w.u64(*offset).raw(bytes);
            2
        }
        Record::Done => 3,
        Record::HardLink { path, to } => {
            w.bytes(path).bytes(to);
            4
        }
        Record::Settle(node) => {
            put_node(&mut w, node);
            5
        }
        Record::Skipped { path, why } => {
            w.bytes(path).str(why);
            6
        }
        Record::Failed { kind, message } => {
            w.str(kind.as_str()).str(message);
            7
        }
        Record::End => 8,
    };
    *out = w.0;
    let len = (out.len() - start - 5) as u32;
    out[start] = tag;
    out[start + 1..start + 5].copy_from_slice(&len.to_be_bytes());
}

/// Checks a path of the stream.
///
/// # Errors
/// `Invalid` or `NameTooLong`, naming the path.
pub fn check_path(path: &[u8]) -> Result<()> {
    if path.len() > MAX_PATH {
        return Err(Error::new(ErrorKind::NameTooLong, format!("a path of {} bytes is over {MAX_PATH}", path.len())));
    }
    let fine = path.is_empty() || path.split(|&b| b == b'/').all(mw_model::name::mountable);
    if fine {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(path);
    Err(Error::invalid(format!(
        "the path {shown:?} has a name that is empty, '.', '..', over 255 bytes or with NUL; rename it"
    )))
}

fn get_path(r: &mut Reader<'_>) -> Result<Bytes> {
    let path = Bytes::copy_from_slice(r.bytes().map_err(broken)?);
    check_path(&path)?;
    Ok(path)
}

fn get_node(r: &mut Reader<'_>) -> Result<Node> {
    let path = get_path(r)?;
    let kind =
        FileType::from_u8(r.u8().map_err(broken)?).ok_or_else(|| Error::invalid("unknown file type in the stream"))?;
    let rest = |r: &mut Reader<'_>| -> std::result::Result<Node, DecodeError> {
        let (mode, uid, gid, rdev) = (r.u32()? & 0o7777, r.u32()?, r.u32()?, r.u32()?);
        let (size, atime, mtime) = (r.var()?, r.int()?, r.int()?);
        let target = Bytes::copy_from_slice(r.bytes()?);
        let count = r.var()?;
        let mut xattrs = Vec::new();
        // The payload is bounded and each attribute takes two bytes of it at least, so that the loop is bounded too.
        for _ in 0..count {
            xattrs.push((Bytes::copy_from_slice(r.bytes()?), Bytes::copy_from_slice(r.bytes()?)));
        }
        Ok(Node { path: Bytes::new(), kind, mode, uid, gid, rdev, size, atime, mtime, target, xattrs })
    };
    let mut node = rest(r).map_err(broken)?;
    node.path = path;
    Ok(node)
}

fn broken(error: DecodeError) -> Error {
    Error::invalid("a record of the stream is malformed").with_source(error)
}

fn decode(tag: u8, payload: Vec<u8>) -> Result<Record> {
    if tag == 2 {
        let bytes = Bytes::from(payload);
        let offset = bytes.get(..8).and_then(|eight| eight.try_into().ok()).map(u64::from_be_bytes);
        let offset = offset.ok_or_else(|| Error::invalid("a record of the stream is malformed"))?;
        return Ok(Record::Data { offset, bytes: bytes.slice(8..) });
    }
    let mut r = Reader::new(&payload);
    let record = match tag {
        1 => Record::Node(get_node(&mut r)?),
        3 => Record::Done,
        4 => Record::HardLink { path: get_path(&mut r)?, to: get_path(&mut r)? },
        5 => Record::Settle(get_node(&mut r)?),
        6 => Record::Skipped {
            path: Bytes::copy_from_slice(r.bytes().map_err(broken)?),
            why: r.str().map_err(broken)?.to_owned(),
        },
        7 => Record::Failed {
            kind: ErrorKind::parse(r.str().map_err(broken)?).unwrap_or(ErrorKind::Io),
            message: r.str().map_err(broken)?.to_owned(),
        },
        8 => Record::End,
        _ => {
            return Err(Error::invalid(format!(
                "the stream has an unknown record {tag}; is one side older than the other?"
            )));
        }
    };
    r.end().map_err(broken)?;
    Ok(record)
}

/// Reads records one after another.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    started: bool,
    ended: bool,
}

impl<R: Read> Records<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self { input, started: false, ended: false }
    }

    /// Returns the next record; `None` after [`Record::End`].
    ///
    /// # Errors
    /// `Invalid` when the stream is malformed or cut off; the error that the sender put in; those of the input.
    #[allow(clippy::should_implement_trait, reason = "an iterator of results would go on after an error")]
    pub fn next(&mut self) -> Result<Option<Record>> {
        if self.ended {
            return Ok(None);
        }
        if !self.started {
            let mut magic = [0; MAGIC.len()];
            self.fill(&mut magic)?;
            if magic != *MAGIC {
                return Err(Error::invalid(
                    "this is no stream of files, or one of another version; use one version of mw on both sides",
                ));
            }
            self.started = true;
        }
        let mut head = [0; 5];
        self.fill(&mut head)?;
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if len > MAX_PAYLOAD {
            return Err(Error::invalid("a record of the stream is too long"));
        }
        let mut payload = vec![0; len];
        self.fill(&mut payload)?;
        match decode(head[0], payload)? {
            Record::End => {
                self.ended = true;
                Ok(None)
            }
            Record::Failed { kind, message } => Err(Error::new(kind, message)),
            record => Ok(Some(record)),
        }
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<()> {
        self.input.read_exact(out).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::new(ErrorKind::Io, "the stream of files was cut off; send it again")
            }
            _ => error.into(),
        })
    }
}

#[cfg(test)]
mod tests;
