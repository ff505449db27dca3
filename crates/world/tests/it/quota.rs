//! Quotas: what does not fit is refused before it is there, through every verb, and what makes room is not.

use crate::rig::{Rig, a, clean, content};
use mw_model::{ErrorKind, FileType, Ino};
use mw_world::{
    Conditions, Held, KeyRequest, Make, PromoteOptions, PutOptions, Quota, RenameFlag, Role, Session, SetAttr, WriteAt,
};

const KIB: u64 = 1024;

fn limit(w: &Session, bytes: Option<u64>, inodes: Option<u64>) {
    w.set_quota(Quota { bytes, inodes }).unwrap();
}

fn held(w: &Session) -> Held {
    w.quota().unwrap().1
}

fn refused<T: std::fmt::Debug>(outcome: mw_world::Result<T>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Quota, "{error}");
    assert!(error.to_string().contains("quota"), "{error}");
}

fn try_put(w: &Session, key: &str, bytes: &[u8]) -> mw_world::Result<()> {
    let mut staged = w.stage_over(key.as_bytes())?;
    staged.push(bytes)?;
    w.put(key.as_bytes(), staged, &PutOptions::default()).map(drop)
}

fn set(w: &Session, key: &str, bytes: &[u8]) {
    try_put(w, key, bytes).unwrap();
}

/// What was counted step by step must be what a fresh count finds.
fn counted(rig: &Rig, w: &Session) {
    let by_steps = held(w);
    let usage = w.du().unwrap();
    assert_eq!((by_steps.bytes, by_steps.inodes), (usage.bytes, usage.inodes));
    clean(&rig.store);
}

/// C20: what does not fit is refused before anything of it is there, through S3 and files alike.
#[test]
fn bytes_are_bounded_through_s3_and_files() {
    let rig = Rig::new();
    let w = rig.create("base");
    set(&w, "a", &[1; 10 * KIB as usize]);
    limit(&w, Some(32 * KIB), None);
    assert_eq!(held(&w).bytes, 10 * KIB);
    set(&w, "b", &[2; 20 * KIB as usize]);
    refused(try_put(&w, "c", &[3; 3 * KIB as usize]));
    refused(try_put(&w, "big", &vec![3; 1 << 20]));
    assert!(content(&w, "c").is_none() && content(&w, "big").is_none(), "nothing is half there");
    // Replacing counts the difference.
    set(&w, "b", &[4; 22 * KIB as usize]);
    let ino = w.resolve(b"a").unwrap().ino;
    refused(w.write(ino, WriteAt::End, &[5]));
    w.write(ino, WriteAt::Offset(0), &[6; 512]).unwrap();
    // A hole costs nothing, and filling it does.
    w.set_attr(ino, &SetAttr { size: Some(1 << 40), ..SetAttr::default() }).unwrap();
    refused(w.write(ino, WriteAt::Offset(1 << 30), &[7; 4096]));
    w.set_attr(ino, &SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
    set(&w, "c", &[8; 10 * KIB as usize]);
    refused(w.copy(&w, b"c", b"d", &Default::default()));
    w.delete(b"b", &Conditions::default()).unwrap();
    set(&w, "d", &[9; 20 * KIB as usize]);
    let space = w.stat_fs().unwrap();
    assert_eq!((space.bytes, space.bytes_free), (32 * KIB, 2 * KIB));
    counted(&rig, &w);
}

#[test]
fn inodes_are_bounded_and_names_are_not() {
    let rig = Rig::new();
    let w = rig.create("base");
    limit(&w, None, Some(4));
    let dir = w.make(Ino::ROOT, b"d", &a(FileType::Directory)).unwrap().ino;
    let file = w.make(dir, b"f", &a(FileType::File)).unwrap().ino;
    w.make(dir, b"l", &Make { target: "f".into(), ..a(FileType::Symlink) }).unwrap();
    refused(w.make(dir, b"g", &a(FileType::File)));
    refused(try_put(&w, "x/y", b""));
    w.link(file, dir, b"again").unwrap();
    w.rename(dir, b"l", Ino::ROOT, b"l", RenameFlag::Replace).unwrap();
    w.unlink(Ino::ROOT, b"l").unwrap();
    set(&w, "g", b"");
    assert_eq!(w.stat_fs().unwrap().files_free, 0);
    counted(&rig, &w);
}

#[test]
fn a_fork_has_its_bases_quota_and_a_promote_keeps_the_bases() {
    let rig = Rig::new();
    let base = rig.create("base");
    set(&base, "a", &[1; 8 * KIB as usize]);
    limit(&base, Some(16 * KIB), Some(100));
    let fork = rig.fork("base", "fork");
    assert_eq!(fork.quota().unwrap().0, Quota { bytes: Some(16 * KIB), inodes: Some(100) });
    refused(try_put(&fork, "b", &[2; 9 * KIB as usize]));
    set(&fork, "b", &[2; 8 * KIB as usize]);
    set(&base, "c", &[3; 4 * KIB as usize]);
    refused(fork.promote(&PromoteOptions::default()));
    assert!(content(&base, "b").is_none());
    limit(&base, Some(20 * KIB), None);
    fork.promote(&PromoteOptions::default()).unwrap();
    assert_eq!(held(&base).bytes, 20 * KIB);
    counted(&rig, &base);
    counted(&rig, &fork);
}

#[test]
fn a_quota_outlives_a_restart_and_binds_admins() {
    let rig = Rig::new();
    let w = rig.create("base");
    set(&w, "a", &[1; 8 * KIB as usize]);
    limit(&w, Some(10 * KIB), Some(9));
    drop(w);
    let rig = rig.reopen();
    let w = rig.session("base");
    refused(try_put(&w, "b", &[2; 3 * KIB as usize]));
    let grants = vec![mw_world::Grant::new("base", Role::Admin)];
    let key = rig.store.create_key(&rig.root, &KeyRequest { name: "k".into(), grants, ..Default::default() }).unwrap();
    let admin = rig.store.session(&rig.store.principal(&key.id).unwrap(), "base").unwrap();
    assert_eq!(admin.quota().unwrap().0.bytes, Some(10 * KIB));
    assert_eq!(admin.set_quota(Quota::default()).unwrap_err().kind(), ErrorKind::Denied);
    // Less than there is: nothing is lost, and only what makes room goes through.
    limit(&w, Some(KIB), None);
    refused(try_put(&w, "b", &[2; 1]));
    set(&w, "a", &[1; 4 * KIB as usize]);
    w.delete(b"a", &Conditions::default()).unwrap();
    set(&w, "a", &[1; KIB as usize]);
    limit(&w, None, None);
    set(&w, "b", &vec![2; 1 << 20]);
    limit(&w, Some(2 << 20), None);
    counted(&rig, &w);
}
