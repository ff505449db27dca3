//! What `mw put`, `rm`, `cp` and `mv` ask for is durable when it is answered.

use crate::rig::{Ask, Rig};
use bytes::Bytes;
use mw_env::Env;
use mw_http::frames::{MAGIC, Node, Record, encode};
use mw_meta::{Embedded, embedded};
use mw_model::FileType;
use mw_segments::{Local, local};
use mw_sim::{Part, SimDisk};
use serde_json::{Value, json};
use std::sync::Arc;

fn rig(disk: &SimDisk) -> Rig {
    let (all, env) = (Arc::new(disk.clone()), Env::seeded(1));
    let small =
        embedded::Options { wal_bytes: 64 << 10, table_bytes: 24 << 10, cache_bytes: 1 << 20, background: false };
    let meta = Embedded::open_with(Part::of(all.clone(), "meta-"), env.clone(), small).unwrap();
    let size = local::Options { file_size: 8 << 20, step: 2 << 20 };
    let segments = Local::with(Part::of(all, "data-"), env, size).unwrap();
    Rig::over(meta, segments)
}

/// A tree of one file as `mw put` sends it.
fn tree(bytes: &[u8]) -> Vec<u8> {
    let node = Node {
        path: Bytes::new(),
        kind: FileType::File,
        mode: 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: bytes.len() as u64,
        atime: 1,
        mtime: 1,
        target: Bytes::new(),
        xattrs: Vec::new(),
    };
    let mut out = MAGIC.to_vec();
    let data = Record::Data { offset: 0, bytes: Bytes::copy_from_slice(bytes) };
    for record in [Record::Node(node), data, Record::Done, Record::End] {
        encode(&record, &mut out);
    }
    out
}

#[test]
fn verbs_about_files_are_durable_when_they_are_answered() {
    let put = |path: &str, bytes: &[u8]| Ask {
        method: "PUT",
        path: "worlds/base/tree".into(),
        query: vec![("path", path.into())],
        body: tree(bytes),
    };
    let post = |path: &str, body: Value| Ask {
        method: "POST",
        path: path.into(),
        query: Vec::new(),
        body: body.to_string().into_bytes(),
    };
    let two =
        |from: &str, to: &str| json!({"from": {"world": "base", "path": from}, "to": {"world": "base", "path": to}});
    let large = vec![7; 300_000];
    // What is asked, and which paths hold what after that.
    type Holds<'a> = Vec<(&'a str, Option<&'a [u8]>)>;
    let steps: Vec<(Ask, Holds<'_>)> = vec![
        (put("small", b"1"), vec![("small", Some(b"1"))]),
        (put("large", &large), vec![("small", Some(b"1")), ("large", Some(&large))]),
        (post("copy", two("large", "copy")), vec![("copy", Some(&large))]),
        (post("move", two("small", "moved")), vec![("small", None), ("moved", Some(b"1"))]),
        (post("worlds/base/remove", json!({"path": "large"})), vec![("large", None), ("copy", Some(&large))]),
    ];
    for seed in 0..6 {
        let mut disk = SimDisk::new(seed);
        let rig_of = rig(&disk);
        rig_of.world("base", &[]);
        drop(rig_of);
        for (ask, holds) in &steps {
            let before = rig(&disk);
            let (status, text) = before.ask(&before.root_credentials(), ask);
            assert!(status < 300, "{} {}: {status} {text}", ask.method, ask.path);
            // The power goes the moment the verb was answered.
            disk.power_off();
            disk = disk.crash();
            drop(before);
            let after = rig(&disk);
            for (path, wanted) in holds {
                let get = Ask {
                    method: "GET",
                    path: "worlds/base/content".into(),
                    query: vec![("path", (*path).into())],
                    body: Vec::new(),
                };
                let (status, body) = after.send(&after.root_credentials(), &get, |_| {});
                let found = (status == 200).then_some(body);
                assert!(
                    found.as_deref() == *wanted,
                    "seed {seed}, after {} {}: {path}: {status}",
                    ask.method,
                    ask.path
                );
            }
        }
    }
}
