//! From the world's nouns to the documents of [`crate::types`].

use crate::types::{self, path_text};
use crate::when;
use mw_model::{Attr, FileType};
use mw_world::{ConflictKind, DiffEntry};

pub(super) fn time(nanoseconds: u64) -> String {
    when::rfc3339(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}

pub(super) fn world(info: mw_world::WorldInfo) -> types::World {
    types::World {
        name: info.name,
        id: info.id.to_string(),
        created: time(info.created),
        version: info.version.to_string(),
        parent: info.parent.map(|parent| types::Parent { name: parent.name, version: parent.version.to_string() }),
        expires: info.expires.map(time),
        run: info.run,
        versioned: info.versioned,
        has_forks: info.has_forks,
    }
}

pub(super) fn snapshot(snapshot: mw_world::Snapshot) -> types::Snapshot {
    types::Snapshot {
        version: snapshot.version.to_string(),
        label: snapshot.label,
        created: time(snapshot.created),
        bytes: snapshot.bytes,
    }
}

pub(super) fn freed(freed: &mw_world::Freed) -> types::Freed {
    types::Freed { bytes: freed.bytes, later: freed.later }
}

pub(super) fn kind(kind: FileType) -> types::Kind {
    match kind {
        FileType::File => types::Kind::File,
        FileType::Directory => types::Kind::Directory,
        FileType::Symlink => types::Kind::Symlink,
        FileType::Fifo => types::Kind::Fifo,
        FileType::Socket => types::Kind::Socket,
        FileType::CharDevice => types::Kind::CharDevice,
        FileType::BlockDevice => types::Kind::BlockDevice,
    }
}

pub(super) fn change(entry: DiffEntry) -> types::Change {
    let (how, from) = match entry.change {
        mw_world::Change::Added => (types::How::Added, None),
        mw_world::Change::Deleted => (types::How::Deleted, None),
        mw_world::Change::Modified => (types::How::Modified, None),
        mw_world::Change::Renamed { from } => (types::How::Renamed, Some(path_text(&from))),
        mw_world::Change::TypeChanged => (types::How::TypeChanged, None),
        mw_world::Change::Attributes => (types::How::Attributes, None),
    };
    types::Change {
        path: path_text(&entry.path),
        change: how,
        from,
        kind: kind(entry.kind),
        old_size: entry.old_size,
        new_size: entry.new_size,
        patch: None,
    }
}

fn conflict_kind(kind: ConflictKind) -> types::ConflictKind {
    match kind {
        ConflictKind::BothModified => types::ConflictKind::BothModified,
        ConflictKind::BothAdded => types::ConflictKind::BothAdded,
        ConflictKind::ModifyDelete => types::ConflictKind::ModifyDelete,
        ConflictKind::DeleteModify => types::ConflictKind::DeleteModify,
        ConflictKind::RenameRename => types::ConflictKind::RenameRename,
        ConflictKind::RenameCycle => types::ConflictKind::RenameCycle,
        ConflictKind::ParentDeleted => types::ConflictKind::ParentDeleted,
        ConflictKind::TypeChanged => types::ConflictKind::TypeChanged,
        ConflictKind::Attributes => types::ConflictKind::Attributes,
    }
}

pub(super) fn promoted(promoted: mw_world::Promoted) -> types::Promoted {
    types::Promoted {
        version: promoted.version.map(|version| version.to_string()),
        snapshot: promoted.snapshot.map(|version| version.to_string()),
        fast: promoted.fast,
        dry_run: promoted.dry_run,
        changes: promoted.changes.into_iter().map(change).collect(),
        merged: promoted.merged.iter().map(|path| path_text(path)).collect(),
        conflicts: promoted
            .conflicts
            .into_iter()
            .map(|conflict| types::Conflict {
                path: path_text(&conflict.path),
                kind: conflict_kind(conflict.kind),
                detail: conflict.detail,
            })
            .collect(),
        error: None,
    }
}

pub(super) fn entry(path: &[u8], attr: &Attr, target: Option<&[u8]>) -> types::Entry {
    types::Entry {
        path: path_text(path),
        kind: kind(attr.kind),
        mode: format!("{:04o}", attr.mode & 0o7777),
        uid: attr.uid,
        gid: attr.gid,
        links: attr.nlink,
        size: attr.size,
        modified: when::rfc3339(attr.mtime),
        ino: attr.ino.to_string(),
        target: target.map(path_text),
        hidden: false,
    }
}

pub(super) fn object(info: &mw_world::ObjectInfo) -> types::Entry {
    types::Entry {
        path: path_text(&info.key),
        kind: kind(info.kind),
        mode: format!("{:04o}", info.mode & 0o7777),
        uid: info.uid,
        gid: info.gid,
        links: 1,
        size: info.size,
        modified: when::rfc3339(info.mtime),
        ino: info.ino.to_string(),
        target: None,
        hidden: true,
    }
}
