//! Records of a newer program: refused by name, never guessed at.

use crate::rig::{Rig, content, file, options};
use mw_meta::{Batch, Durability, Meta, Order};
use mw_model::Version;
use mw_world::{At, Grant, KeyRequest, PromoteOptions, Quota, Result, Role, Store, UploadOptions};
use std::time::Duration;

/// The tags of records whose first byte is their version (FORMAT.md, 3.2), but for those of runs and doors.
const TAGS: &[u8] = b"WRLHVTYKSQU";

fn rig() -> Rig {
    let rig = Rig::new();
    let base = rig.create("base");
    file(&base, "a", &[7; 100_000]);
    let mark = base.snapshot(Some("mark"), None).unwrap().version;
    base.set_quota(Quota { bytes: Some(1 << 30), inodes: None }).unwrap();
    base.set_retention(Some(Duration::from_secs(3600))).unwrap();
    let fork = rig.fork("base", "fork");
    file(&fork, "b", b"1");
    fork.promote(&PromoteOptions::default()).unwrap();
    base.revert(At::Version(mark)).unwrap();
    base.create_upload(b"u", &UploadOptions::default()).unwrap();
    let key = KeyRequest { name: "k".into(), grants: vec![Grant::new("base", Role::Reader)], ..KeyRequest::default() };
    rig.store.create_key(&rig.root, &key).unwrap();
    rig
}

/// Opens the store and looks at everything; returns what it has to say.
fn look(rig: &Rig) -> Result<String> {
    let store = Store::open(rig.meta.clone(), rig.segments.clone(), rig.env.clone(), options())?;
    let root = store.principal(&store.root_key()?.id)?;
    store.keys(&root)?;
    for world in ["base", "fork"] {
        let w = store.session(&root, world)?;
        content(&w, "a");
        w.quota()?;
        w.snapshots()?;
        w.uploads(b"", None, 10)?;
        w.log(&mw_world::LogQuery { limit: 100, ..Default::default() })?;
    }
    store.session(&root, "fork")?.promote(&PromoteOptions { dry_run: true, ..PromoteOptions::default() })?;
    store.session_at(&root, "base", At::Version(Version(rig.env.now())))?;
    let report = store.fsck(&mut |_| {})?;
    store.sweep()?;
    Ok(report.problems.join("; "))
}

#[test]
fn a_record_of_a_newer_program_is_refused() {
    let sound = rig();
    assert_eq!(look(&sound).unwrap(), "");
    let all = sound.meta.scan(&[], &[u8::MAX], usize::MAX, Order::Up).unwrap();
    let mut seen = Vec::new();
    for (key, value) in all {
        let tag = key[4];
        if !TAGS.contains(&tag) || value.is_empty() {
            continue;
        }
        let rig = rig();
        let mut newer = value.to_vec();
        newer[0] = 77;
        let mut batch = Batch::new();
        batch.put(key.clone(), newer);
        rig.meta.commit(batch, Durability::Durable).unwrap();
        let said = look(&rig).unwrap_or_else(|e| format!("{e:?} {e}"));
        assert!(said.contains("77") && said.contains("newer"), "{} {key:?}: {said:?}", tag as char);
        seen.push(tag);
    }
    seen.sort_unstable();
    seen.dedup();
    let mut wanted = TAGS.to_vec();
    wanted.sort_unstable();
    assert_eq!(String::from_utf8(seen), String::from_utf8(wanted));
}
