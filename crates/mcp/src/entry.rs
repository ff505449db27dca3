//! One thing of a listing.

use mw_model::text::path_text;
use mw_model::{Attr, FileType, when};
use mw_world::{ObjectInfo, Session};
use schemars::JsonSchema;
use serde::Serialize;

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    Special,
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::File => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice => Self::Special,
        }
    }
}

/// One thing of a listing.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// Its path from the root of the world; a directory's ends in a slash.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Its size in bytes, of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// When its content last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) modified: Option<String>,
    /// Where a symbolic link points. Links are never followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
}

impl Entry {
    /// A directory.
    pub(crate) fn directory(path: &[u8]) -> Self {
        Self { path: path_text(path), kind: Kind::Directory, size: None, modified: None, target: None }
    }

    /// What a path leads to.
    pub(crate) fn of(session: &Session, path: &[u8], attr: &Attr) -> Self {
        if attr.kind == FileType::Directory {
            return Self::directory(&[path, b"/"].concat());
        }
        let target = (attr.kind == FileType::Symlink).then(|| session.read_link(attr.ino).ok()).flatten();
        Self {
            path: path_text(path),
            kind: attr.kind.into(),
            size: (attr.kind == FileType::File).then_some(attr.size),
            modified: Some(time(attr.content.0)),
            target: target.map(|target| path_text(&target)),
        }
    }

    /// An object of a listing.
    pub(crate) fn object(session: &Session, info: &ObjectInfo) -> Self {
        if info.kind == FileType::Directory {
            return Self::directory(&info.key);
        }
        let target = (info.kind == FileType::Symlink).then(|| session.read_link(info.ino).ok()).flatten();
        Self {
            path: path_text(&info.key),
            kind: info.kind.into(),
            size: (info.kind == FileType::File).then_some(info.size),
            modified: Some(time(info.modified)),
            target: target.map(|target| path_text(&target)),
        }
    }
}

/// Writes an instant to the second.
pub(crate) fn time(nanoseconds: u64) -> String {
    let text = when::rfc3339(i64::try_from(nanoseconds).unwrap_or(i64::MAX));
    format!("{}Z", &text[..19])
}
