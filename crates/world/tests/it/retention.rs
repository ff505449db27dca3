//! How long history stays readable: set for a world, handed to its forks, and what is older gives its space back.

use crate::rig::{Rig, clean, content, file};
use mw_model::{ErrorKind, Version};
use mw_world::{At, Grant, KeyRequest, Role, Session};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const MIB: u64 = 1 << 20;

/// Content that does not compress.
fn noise(rig: &Rig, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(len).unwrap()];
    rig.env.fill(&mut bytes);
    bytes
}

fn remove(w: &Session, name: &str) {
    w.unlink(mw_model::Ino::ROOT, name.as_bytes()).unwrap();
}

fn now(rig: &Rig) -> At {
    At::Version(Version(rig.env.now()))
}

#[test]
fn what_was_deleted_gives_its_space_back_when_the_worlds_retention_is_over() {
    let rig = Rig::new();
    let w = rig.create("base");
    let (kept, lost) = (noise(&rig, MIB), noise(&rig, 4 * MIB));
    file(&w, "kept", &kept);
    w.snapshot(Some("mark"), None).unwrap();
    file(&w, "lost", &lost);
    let before = now(&rig);
    remove(&w, "kept");
    remove(&w, "lost");
    let full = rig.store.status().unwrap().claimed;
    // Seven days, unless something else is set.
    rig.env.sleep(3 * HOUR);
    assert_eq!(rig.store.sweep().unwrap().freed, 0);
    assert!(w.retention().unwrap().default);
    assert_eq!(content(&w.at(&before).unwrap(), "lost").unwrap(), lost);

    w.set_retention(Some(4 * HOUR)).unwrap();
    assert_eq!(rig.store.sweep().unwrap().freed, 0);
    assert_eq!(content(&w.at(&before).unwrap(), "lost").unwrap(), lost, "not over yet");

    // No write comes after the removal: the sweep itself has to find the end of what is kept.
    rig.env.sleep(2 * HOUR);
    let swept = rig.store.sweep().unwrap();
    assert!(swept.freed >= 4 * MIB && swept.entries > 0, "{swept:?}");
    assert!(rig.store.status().unwrap().claimed <= full - 4 * MIB);
    assert_eq!(w.at(&before).map(drop).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(matches!(before, At::Version(then) if then < w.retention().unwrap().oldest));
    let mark = w.at(&At::Label("mark".into())).unwrap();
    assert_eq!(content(&mark, "kept").unwrap(), kept, "a snapshot outlives the retention");
    assert!(content(&w, "kept").is_none() && content(&w, "lost").is_none());
    clean(&rig.store);
}

#[test]
fn whoever_reads_reads_to_the_end() {
    let rig = Rig::new();
    let w = rig.create("base");
    w.set_retention(Some(Duration::from_secs(1))).unwrap();
    let old = noise(&rig, 4 * MIB);
    file(&w, "a", &old);
    let object = w.get(b"a").unwrap();
    for n in 0..3 {
        file(&w, "a", &noise(&rig, MIB));
        rig.env.sleep(HOUR);
        let swept = rig.store.sweep().unwrap();
        assert!(swept.freed < MIB || n > 0, "{swept:?}");
        assert!(object.read(0, old.len()).unwrap() == old);
    }
    drop(object);
    let swept = rig.store.sweep().unwrap();
    assert!(swept.freed >= 4 * MIB, "{swept:?}");
    clean(&rig.store);
}

#[test]
fn a_busy_world_keeps_what_its_retention_promises() {
    let rig = Rig::new();
    let w = rig.create("base");
    w.set_retention(Some(4 * HOUR)).unwrap();
    let mut then = Vec::new();
    for hour in 0_u8..24 {
        file(&w, "a", &[hour; 9_000]);
        then.push((now(&rig), hour));
        rig.env.sleep(HOUR);
        rig.store.sweep().unwrap();
        for (at, hour) in then.iter().rev().take(4) {
            assert_eq!(content(&w.at(at).unwrap(), "a").unwrap(), [*hour; 9_000]);
        }
    }
    let (first, _) = &then[0];
    assert_eq!(w.at(first).map(drop).unwrap_err().kind(), ErrorKind::NotFound);
    clean(&rig.store);
}

#[test]
fn retention_is_inherited_outlives_a_restart_and_is_not_for_admins() {
    let rig = Rig::new();
    let w = rig.create("base");
    w.set_retention(Some(HOUR)).unwrap();
    rig.fork("base", "fork");
    drop(w);
    let rig = rig.reopen();
    let fork = rig.session("fork").retention().unwrap();
    assert_eq!((fork.keep, fork.default), (HOUR, false));
    let w = rig.session("base");
    assert_eq!(w.retention().unwrap().keep, HOUR);
    assert_eq!(w.set_retention(Some(Duration::MAX)).unwrap_err().kind(), ErrorKind::Invalid);

    let grants = vec![Grant::new("base", Role::Admin)];
    let key = rig.store.create_key(&rig.root, &KeyRequest { name: "k".into(), grants, ..Default::default() }).unwrap();
    let admin = rig.store.session(&rig.store.principal(&key.id).unwrap(), "base").unwrap();
    assert_eq!(admin.retention().unwrap().keep, HOUR);
    assert_eq!(admin.set_retention(Some(HOUR * 2)).unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(admin.set_retention(None).unwrap_err().kind(), ErrorKind::Denied);

    w.set_retention(None).unwrap();
    assert!(w.retention().unwrap().default);
    assert_eq!(rig.session("fork").retention().unwrap().keep, HOUR, "a fork has its own");
}
