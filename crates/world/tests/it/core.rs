//! Files, forks, time and space of worlds.

use crate::rig::{Rig, a, clean, content, file, names};
use mw_meta::{Meta, Order};
use mw_model::{ErrorKind, FileType, Ino};
use mw_world::{
    Allocate, At, ForkOptions, KeyRequest, LogQuery, RenameFlag, Role, SeekFor, SetAttr, WriteAt, XattrFlag,
};

#[test]
fn files_are_there_after_folds_and_restarts() {
    let rig = Rig::new();
    let w = rig.create("base");
    let big: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    file(&w, "d/small", b"hello");
    file(&w, "d/big", &big);
    for i in 0..400 {
        file(&w, &format!("many/f{i}"), format!("content {i}").as_bytes());
    }
    clean(&rig.store);
    drop(w);
    let rig = rig.reopen();
    let w = rig.session("base");
    assert_eq!(content(&w, "d/small").as_deref(), Some(&b"hello"[..]));
    assert_eq!(content(&w, "d/big"), Some(big));
    assert_eq!(names(&w, "many").len(), 400);
    assert_eq!(content(&w, "many/f399").as_deref(), Some(&b"content 399"[..]));
    clean(&rig.store);
}

#[test]
fn what_is_rewritten_again_and_again_rides_only_where_somebody_syncs() {
    let rig = Rig::new();
    let w = rig.create("base");
    let ino = file(&w, "db", &vec![0; 64 << 12]).ino;
    let held = || rig.meta.scan(&[], &[u8::MAX; 64], usize::MAX, Order::Up).unwrap().iter().map(|(_, v)| v.len()).sum();
    let rewrite = |pages: std::ops::Range<u64>| -> usize {
        let before: usize = held();
        for n in pages {
            w.write(ino, WriteAt::Offset((n % 64) << 12), &[n as u8; 1 << 12]).unwrap();
        }
        held() - before
    };
    assert!(rewrite(0..100) > 100 << 12, "nobody knows yet that there will be no fsync");
    rewrite(100..300);
    assert!(rewrite(300..400) < 100 << 10, "the content is in segments alone");
    w.sync().unwrap();
    assert!(rewrite(400..410) > 10 << 12, "an fsync may come soon again");
    drop(w);
    let rig = rig.reopen();
    let last = |page: u64| (0..410).rev().find(|n| n % 64 == page).unwrap() as u8;
    let wanted: Vec<u8> = (0..64).flat_map(|page| [last(page); 1 << 12]).collect();
    assert_eq!(content(&rig.session("base"), "db"), Some(wanted));
    clean(&rig.store);
}

#[test]
fn a_fork_holds_what_was_there_and_no_more() {
    let rig = Rig::new();
    let w = rig.create("base");
    file(&w, "a", b"1");
    let f = rig.fork("base", "fork");
    file(&w, "a", b"2");
    file(&f, "b", b"3");
    assert_eq!(content(&f, "a").as_deref(), Some(&b"1"[..]));
    assert_eq!(content(&w, "b"), None);
    let g = rig.fork("fork", "grandchild");
    rig.store.delete_world(&rig.root, "base", true).expect("a base can go");
    drop((w, f, g));
    let rig = rig.reopen();
    let g = rig.session("grandchild");
    assert_eq!((content(&g, "a").as_deref(), content(&g, "b").as_deref()), (Some(&b"1"[..]), Some(&b"3"[..])));
    assert_eq!(rig.store.session(&rig.root, "base").err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    rig.store.sweep().expect("swept");
    clean(&rig.store);
    assert_eq!(content(&rig.session("fork"), "a").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_long_chain_of_forks_reads_like_a_short_one() {
    let rig = Rig::new();
    let mut w = rig.create("w-0");
    file(&w, "first", b"0");
    for level in 1..40 {
        w = rig.fork(&format!("w-{}", level - 1), &format!("w-{level}"));
        file(&w, &format!("own-{level}"), level.to_string().as_bytes());
    }
    drop(w);
    let rig = rig.reopen();
    let last = rig.session("w-39");
    assert_eq!(content(&last, "first").as_deref(), Some(&b"0"[..]));
    for level in 1..40 {
        assert_eq!(content(&last, &format!("own-{level}")), Some(level.to_string().into_bytes()));
    }
    clean(&rig.store);
}

#[test]
fn every_instant_reads_as_it_was() {
    let rig = Rig::new();
    let w = rig.create("base");
    let mut versions = Vec::new();
    for i in 0..300 {
        file(&w, "n", i.to_string().as_bytes());
        file(&w, &format!("f{}", i % 50), &vec![b'x'; i * 10]);
        versions.push(w.info().expect("info").version);
    }
    let check = |rig: &Rig| {
        for (i, version) in versions.iter().enumerate() {
            let then = rig.store.session_at(&rig.root, "base", At::Version(*version)).expect("retained");
            assert_eq!(content(&then, "n"), Some(i.to_string().into_bytes()));
            assert_eq!(then.attr(Ino::ROOT).map(|a| a.nlink).ok(), Some(2));
        }
    };
    check(&rig);
    drop(w);
    let rig = rig.reopen();
    check(&rig);
    let fork = ForkOptions { at: Some(At::Version(versions[100])), ..Default::default() };
    rig.store.fork(&rig.root, "base", "past", &fork).expect("forked");
    assert_eq!(content(&rig.session("past"), "n").as_deref(), Some(&b"100"[..]));
    let future = At::Version(mw_model::Version(u64::MAX));
    assert_eq!(rig.store.session_at(&rig.root, "base", future).err().map(|e| e.kind()), Some(ErrorKind::Invalid));
    clean(&rig.store);
}

#[test]
fn snapshots_stay_and_are_found_by_label() {
    let rig = Rig::new();
    let w = rig.create("base");
    file(&w, "a", b"1");
    let taken = w.snapshot(Some("before"), Some("K")).expect("taken");
    assert_eq!(w.snapshot(Some("before"), Some("K")).expect("the same again").version, taken.version);
    assert_eq!(w.snapshot(Some("other"), Some("K")).err().map(|e| e.kind()), Some(ErrorKind::Conflict));
    file(&w, "a", b"2");
    let then = w.at(&At::parse("before").expect("a label")).expect("found");
    assert_eq!(content(&then, "a").as_deref(), Some(&b"1"[..]));
    assert_eq!(then.unlink(Ino::ROOT, b"a").err().map(|e| e.kind()), Some(ErrorKind::ReadOnly));
    w.delete_snapshot(taken.version).expect("deleted");
    assert!(w.snapshots().expect("listed").is_empty());
    assert_eq!(w.delete_snapshot(taken.version).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
}

#[test]
fn an_open_file_outlives_its_name_but_not_a_fork() {
    let rig = Rig::new();
    let w = rig.create("base");
    let ino = file(&w, "u", b"hello").ino;
    w.open(ino).expect("opened");
    w.unlink(Ino::ROOT, b"u").expect("unlinked");
    assert_eq!(w.read(ino, 0, 9).expect("still there"), b"hello"[..]);
    assert_eq!(w.write(ino, WriteAt::End, b" more").expect("written").attr.nlink, 0);
    let f = rig.fork("base", "fork");
    assert_eq!(f.attr(ino).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    w.release(ino);
    assert_eq!(w.attr(ino).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    clean(&rig.store);
}

#[test]
fn rename_keeps_posix() {
    let rig = Rig::new();
    let w = rig.create("base");
    file(&w, "d1/in/x", b"x");
    file(&w, "d2/y", b"y");
    file(&w, "a", b"A");
    file(&w, "b", b"B");
    let dir = |p: &str| w.resolve(p.as_bytes()).expect("there").ino;
    let rename =
        |p: Ino, n: &str, q: Ino, m: &str, f| w.rename(p, n.as_bytes(), q, m.as_bytes(), f).map_err(|e| e.kind());
    let root = Ino::ROOT;
    assert_eq!(rename(root, "a", root, "b", RenameFlag::Exchange), Ok(()));
    assert_eq!((content(&w, "a"), content(&w, "b")), (Some(b"B".to_vec()), Some(b"A".to_vec())));
    assert_eq!(rename(root, "a", root, "b", RenameFlag::NoReplace), Err(ErrorKind::AlreadyExists));
    assert_eq!(rename(root, "d1", root, "d2", RenameFlag::Replace), Err(ErrorKind::NotEmpty));
    assert_eq!(rename(root, "a", root, "d1", RenameFlag::Replace), Err(ErrorKind::IsDirectory));
    assert_eq!(rename(root, "d1", root, "a", RenameFlag::Replace), Err(ErrorKind::NotDirectory));
    assert_eq!(rename(root, "d1", dir("d1/in"), "z", RenameFlag::Replace), Err(ErrorKind::Invalid));
    assert_eq!(rename(root, "d1", dir("d2"), "moved", RenameFlag::Replace), Ok(()));
    assert_eq!(content(&w, "d2/moved/in/x").as_deref(), Some(&b"x"[..]));
    assert_eq!(w.path_of(dir("d2/moved/in")).expect("a path").as_deref(), Some(&b"d2/moved/in/"[..]));
    assert_eq!(w.attr(dir("d2")).expect("there").nlink, 3);
    clean(&rig.store);
}

#[test]
fn holes_copies_and_appends() {
    let rig = Rig::new();
    let w = rig.create("base");
    let ino = w.make(Ino::ROOT, b"s", &a(FileType::File)).expect("made").ino;
    w.write(ino, WriteAt::Offset(100_000), b"data").expect("written");
    assert_eq!(w.read(ino, 99_998, 10).expect("read"), b"\0\0data"[..]);
    assert_eq!(w.seek(ino, 0, SeekFor::Data).expect("data"), 100_000);
    assert_eq!(w.seek(ino, 100_001, SeekFor::Hole).expect("hole"), 100_004);
    let to = w.make(Ino::ROOT, b"t", &a(FileType::File)).expect("made").ino;
    assert_eq!(w.copy_range(ino, 99_999, to, 1, 100).expect("copied"), 5);
    assert_eq!(w.read(to, 0, 10).expect("read"), b"\0\0data"[..]);
    w.allocate(ino, Allocate::PunchHole, 100_001, 2).expect("punched");
    assert_eq!(w.read(ino, 100_000, 4).expect("read"), b"d\0\0a"[..]);
    w.set_attr(ino, &SetAttr { size: Some(100_001), ..Default::default() }).expect("cut");
    w.set_attr(ino, &SetAttr { size: Some(100_010), ..Default::default() }).expect("grown");
    assert_eq!(w.read(ino, 100_000, 100).expect("read"), b"d\0\0\0\0\0\0\0\0\0"[..]);
    for i in 0..2_000 {
        w.write(to, WriteAt::End, format!("line {i:05}\n").as_bytes()).expect("appended");
    }
    let text = content(&w, "t").expect("there");
    assert_eq!(text.len(), 6 + 2_000 * 11);
    assert!(text.ends_with(b"line 01999\n"));
    clean(&rig.store);
}

#[test]
fn a_scoped_key_reaches_its_world_and_nothing_else() {
    let rig = Rig::new();
    rig.create("base");
    rig.create("other");
    let grants = vec![mw_world::Grant::new("base", Role::Editor)];
    let key =
        rig.store.create_key(&rig.root, &KeyRequest { name: "k".into(), grants, ..Default::default() }).expect("made");
    let who = rig.store.principal(&key.id).expect("alive");
    let w = rig.store.session(&who, "base").expect("its own");
    file(&w, "a", b"1");
    let refusals: Vec<String> = ["other", "missing", "Not A Name", "base-1"]
        .iter()
        .map(|name| rig.store.session(&who, name).expect_err("refused").to_string())
        .collect();
    assert!(refusals.iter().all(|r| *r == refusals[0]), "{refusals:?}");
    let fork = rig.store.fork(&who, "base", "fork", &ForkOptions::default());
    assert_eq!(fork.err().map(|e| e.kind()), Some(ErrorKind::Denied));
    assert_eq!(rig.store.worlds(&who).expect("listed").len(), 1);
    assert_eq!(rig.store.keys(&who).expect("listed").len(), 1);
    rig.store.delete_key(&rig.root, &key.id).expect("revoked");
    assert_eq!(w.unlink(Ino::ROOT, b"a").err().map(|e| e.kind()), Some(ErrorKind::Denied));
    assert_eq!(content(&rig.session("base"), "a").as_deref(), Some(&b"1"[..]));
    let log = rig.session("base").log(&LogQuery { path: Some("a".into()), limit: 9, before: None }).expect("a log");
    assert!(log.iter().all(|e| e.key == key.id) && log.iter().any(|e| e.verb == "write"), "{log:?}");
}

#[test]
fn dropping_a_fork_gives_its_space_back() {
    let rig = Rig::new();
    let w = rig.create("base");
    file(&w, "a", &vec![7; 200_000]);
    let before = rig.store.status().expect("status").claimed;
    let f = rig.fork("base", "fork");
    let mut noise = vec![0; 400_000];
    rig.env.fill(&mut noise);
    file(&f, "big", &noise);
    assert!(rig.store.status().expect("status").claimed > before);
    let freed = f.discard().expect("discarded");
    assert!(freed.bytes >= 400_000, "{freed:?}");
    assert_eq!(rig.store.status().expect("status").claimed, before);
    assert_eq!(w.discard().err().map(|e| e.kind()), Some(ErrorKind::Invalid));
    clean(&rig.store);
}

#[test]
fn a_retried_fork_is_the_same_fork() {
    let rig = Rig::new();
    rig.create("base");
    rig.create("other");
    let once = ForkOptions { idempotency: Some("K".into()), ..Default::default() };
    let ids: Vec<_> = std::thread::scope(|s| {
        let all: Vec<_> =
            (0..20).map(|_| s.spawn(|| rig.store.fork(&rig.root, "base", "run-5", &once).expect("one").id)).collect();
        all.into_iter().map(|t| t.join().expect("no panic")).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
    let again = rig.store.fork(&rig.root, "base", "run-5", &ForkOptions::default());
    assert_eq!(again.err().map(|e| e.kind()), Some(ErrorKind::AlreadyExists));
    let other = rig.store.fork(&rig.root, "other", "run-5", &once);
    assert_eq!(other.err().map(|e| e.kind()), Some(ErrorKind::Conflict));
}

#[test]
fn checkpoint_cycles_of_any_number_lose_nothing() {
    let mut rig = Rig::new();
    rig.create("cyc");
    let label = |i: u32| At::Label(format!("s{i}"));
    for i in 1..=30u32 {
        let w = rig.session("cyc");
        file(&w, "n", i.to_string().as_bytes());
        file(&w, &format!("f{i}"), i.to_string().as_bytes());
        if i > 3 {
            w.unlink(Ino::ROOT, format!("f{}", i - 3).as_bytes()).expect("unlinked");
        }
        let (old, new) = (format!("d{}", i - 1), format!("d{i}"));
        if w.rename(Ino::ROOT, old.as_bytes(), Ino::ROOT, new.as_bytes(), RenameFlag::Replace).is_err() {
            w.make(Ino::ROOT, new.as_bytes(), &a(FileType::Directory)).expect("made");
        }
        w.snapshot(Some(&format!("s{i}")), None).expect("taken");
        drop(w);
        rig = rig.reopen();
        let w = rig.session("cyc");
        w.revert(label(i)).expect("restored");
        assert_eq!(content(&w, "n"), Some(i.to_string().into_bytes()));
        let mut want = vec![format!("d{i}"), "n".to_owned()];
        want.extend((i.saturating_sub(2).max(1)..=i).map(|k| format!("f{k}")));
        let mut seen = names(&w, "");
        want.sort();
        seen.sort();
        assert_eq!(seen, want, "cycle {i}");
    }
    let w = rig.session("cyc");
    let taken = w.snapshots().expect("listed").len();
    for i in (1..=30u32).map(|k| k * 7 % 31) {
        let fork = ForkOptions { at: Some(label(i)), ..Default::default() };
        rig.store.fork(&rig.root, "cyc", &format!("z{i:02}"), &fork).expect("forked");
        assert_eq!(content(&rig.session(&format!("z{i:02}")), "n"), Some(i.to_string().into_bytes()));
    }
    for i in [5, 25] {
        w.revert(label(i)).expect("restored");
        assert_eq!(content(&w, "n"), Some(i.to_string().into_bytes()));
    }
    assert!(w.snapshots().expect("listed").len() >= taken, "going back keeps all snapshots");
    assert_eq!(w.revert(At::Label("nosuch".into())).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    assert_eq!(content(&w, "n").as_deref(), Some(&b"25"[..]), "a failed restore changes nothing");
    clean(&rig.store);
}

#[test]
fn a_write_takes_a_capability_away() {
    let rig = Rig::new();
    let w = rig.create("base");
    file(&w, "program", b"code");
    let ino = w.resolve(b"program").unwrap().ino;
    let (capability, other) = (b"security.capability", b"user.note");
    let set = |name: &[u8]| w.set_xattr(ino, name, b"value", XattrFlag::Any).unwrap();
    set(capability);
    set(other);
    // Reading, and nothing written, leave it.
    w.read(ino, 0, 10).unwrap();
    w.write(ino, WriteAt::Offset(0), b"").unwrap();
    assert!(w.get_xattr(ino, capability).is_ok());
    w.write(ino, WriteAt::End, b"more").unwrap();
    assert_eq!(w.get_xattr(ino, capability).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
    assert!(w.get_xattr(ino, other).is_ok());
    clean(&rig.store);
}
