//! The schemas of all documents, made from the types themselves, so that they cannot drift apart.

use crate::types::*;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

/// Returns one JSON Schema document with every type under `$defs`.
pub fn all() -> Value {
    let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    macro_rules! publish {
        ($($name:ty),* $(,)?) => { $( let _ = generator.subschema_for::<$name>(); )* };
    }
    publish!(
        ErrorReply,
        Done,
        Health,
        World,
        Worlds,
        NewWorld,
        NewFork,
        Freed,
        Snapshot,
        Snapshots,
        NewSnapshot,
        Usage,
        NewQuota,
        QuotaReport,
        NewRetention,
        RetentionReport,
        Fsck,
        Swept,
        Status,
        Restart,
        Change,
        Diff,
        Log,
        NewPromote,
        NewRevert,
        NewRestore,
        Promoted,
        Key,
        Keys,
        NewKey,
        Secret,
        NewTemporaryKey,
        TemporaryKey,
        NewMount,
        Mount,
        Mounts,
        Unmount,
        NewExport,
        Export,
        Exports,
        Entry,
        Entries,
        Line,
        Remove,
        Transfer,
        Moved,
        NewRun,
        Run,
        Runs,
        RunEvent,
        Progress<Fsck>,
        Progress<Promoted>,
        Progress<Swept>,
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Manyworlds control plane, version 1",
        "$defs": generator.take_definitions(true),
    })
}
