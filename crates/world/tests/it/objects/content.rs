//! Content, attributes and metadata: put over, copied, changed through another door.

use super::{get, keys, put, put_with, staged};
use crate::rig::{Rig, clean, content};
use mw_model::{ErrorKind, Ino};
use mw_world::{
    Checksum, ChecksumAlgorithm, Conditions, CopyOptions, ObjectMeta, PutOptions, SetAttr, WriteAt, XattrFlag,
};

/// Cases C08, C09: a reader sees the old object or the new one.
#[test]
fn a_put_over_an_open_file_leaves_its_readers_the_old_bytes() {
    let rig = Rig::new();
    let w = rig.create("base");
    let old = vec![1u8; 300_000];
    put(&w, "o", &old);
    let ino = w.resolve(b"o").expect("there").ino;
    w.open(ino).expect("opened");
    let object = w.get(b"o").expect("there");
    put(&w, "o", b"new");
    assert_eq!(w.read(ino, 0, 400_000).expect("read"), old);
    assert_eq!(object.read(0, 400_000).expect("read"), old);
    assert_eq!(content(&w, "o").as_deref(), Some(&b"new"[..]));
    assert_ne!(w.resolve(b"o").expect("there").ino, ino);
    w.release(ino);
    assert_eq!(w.attr(ino).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    assert_eq!(object.read(299_999, 400_000).expect("read"), old[..1]);
    let left = staged(&w, &old);
    drop(left);
    assert_eq!(keys(&w), ["o"]);
    clean(&rig.store);
}

/// Case C19: what a PUT keeps, and what a change through another door does to an object.
#[test]
fn attributes_and_metadata_survive_where_they_should() {
    let rig = Rig::new();
    let w = rig.create("base");
    let meta = ObjectMeta {
        content_type: Some("text/x-sh".to_owned()),
        user: vec![("owner".to_owned(), "é".to_owned())],
        ..ObjectMeta::default()
    };
    let sum = Checksum { algorithm: ChecksumAlgorithm::Crc64Nvme, value: "AAAAAAAAAAA=".to_owned(), composite: false };
    let options =
        PutOptions { meta: meta.clone(), etag: "0a".repeat(16), checksums: vec![sum], ..PutOptions::default() };
    let first = put_with(&w, "t.sh", b"#!/bin/sh", &options).expect("put");
    assert_eq!((first.mode, first.etag.as_str(), first.size), (0o644, &*"0a".repeat(16), 9));
    w.set_attr(first.ino, &SetAttr { mode: Some(0o755), uid: Some(5), gid: Some(6), ..SetAttr::default() })
        .expect("set");
    w.set_xattr(first.ino, b"user.a", b"b", XattrFlag::Any).expect("set");
    let info = w.head(b"t.sh").expect("there");
    assert_eq!((info.mode, &info.etag, info.checksums.len(), info.modified), (0o755, &first.etag, 1, first.modified));

    w.write(first.ino, WriteAt::End, b"#new").expect("written");
    let info = w.head(b"t.sh").expect("there");
    assert!(info.etag.ends_with("-0") && info.checksums.is_empty() && info.modified > first.modified);
    assert_eq!(info.meta, meta);
    w.rename(Ino::ROOT, b"t.sh", Ino::ROOT, b"u.sh", mw_world::RenameFlag::Replace).expect("renamed");
    assert_eq!(w.head(b"u.sh").expect("there").meta, meta);
    let f = rig.fork("base", "fork");
    assert_eq!(f.head(b"u.sh").expect("there").etag, info.etag, "a fork changes nothing");

    let over = put(&w, "u.sh", b"2");
    assert_eq!((over.mode, over.uid, over.gid, over.meta.clone()), (0o755, 5, 6, ObjectMeta::default()));
    assert!(w.list_xattr(over.ino).expect("listed").is_empty());
    let asked = PutOptions { mode: Some(0o600), mtime: Some(-5), ..PutOptions::default() };
    let asked = put_with(&w, "u.sh", b"3", &asked).expect("put");
    assert_eq!((asked.mode, asked.uid, asked.mtime), (0o600, 5, -5));

    w.link(over.ino, Ino::ROOT, b"x").expect_err("the replaced inode is gone");
    w.link(asked.ino, Ino::ROOT, b"hard").expect("linked");
    put(&w, "u.sh", b"4");
    assert_eq!((get(&w, "hard").as_deref(), get(&w, "u.sh").as_deref()), (Some(&b"3"[..]), Some(&b"4"[..])));
    assert_eq!(w.attr(asked.ino).expect("there").nlink, 1);

    let tags = vec![("k".to_owned(), "v".to_owned())];
    let before = w.head(b"u.sh").expect("there");
    w.set_tags(b"u.sh", tags.clone()).expect("tagged");
    let after = w.head(b"u.sh").expect("there");
    assert_eq!((after.meta.tags.clone(), &after.etag, after.modified), (tags.clone(), &before.etag, before.modified));
    let moved = w.rename_key(b"u.sh", b"deep/er/u.sh").expect("moved");
    assert_eq!((moved.ino, &moved.meta.tags), (after.ino, &tags));
    let moved = w.rename_key(b"deep/er/u.sh", b"hard").expect("moved over another");
    assert_eq!((moved.ino, keys(&w)), (after.ino, vec!["hard".to_owned()]));
    w.link(moved.ino, Ino::ROOT, b"again").expect("linked");
    w.rename_key(b"again", b"hard").expect("two names of one inode");
    assert_eq!((keys(&w), w.attr(moved.ino).expect("there").nlink), (vec!["hard".to_owned()], 1));
    clean(&rig.store);
}

#[test]
fn a_copy_shares_bytes_across_worlds_and_outlives_its_source() {
    let rig = Rig::new();
    let (w, o) = (rig.create("base"), rig.create("other"));
    let big: Vec<u8> = (0..600_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let options = PutOptions {
        etag: "abc".to_owned(),
        meta: ObjectMeta {
            content_type: Some("x/y".to_owned()),
            tags: vec![("t".to_owned(), "1".to_owned())],
            ..ObjectMeta::default()
        },
        mode: Some(0o755),
        ..PutOptions::default()
    };
    put_with(&w, "dir/big", &big, &options).expect("put");
    put(&w, "small", b"small");
    let used = o.du().expect("du").own;
    let copied = o.copy(&w, b"dir/big", b"copy", &CopyOptions::default()).expect("copied");
    o.copy(&w, b"small", b"small", &CopyOptions::default()).expect("copied");
    assert_eq!((copied.etag.as_str(), &copied.meta, copied.mode), ("abc", &options.meta, 0o755));
    assert!(o.du().expect("du").own <= used + 4096, "no byte was moved");
    let within = w
        .copy(&w, b"dir/big", b"again", &CopyOptions { replace: Some(ObjectMeta::default()), ..CopyOptions::default() })
        .expect("copied");
    assert_eq!((within.meta.content_type.as_deref(), within.meta.tags.len(), within.etag.as_str()), (None, 1, "abc"));

    let kind =
        |key: &[u8], to: &[u8], options: &CopyOptions| w.copy(&w, key, to, options).map(drop).map_err(|e| e.kind());
    let plain = CopyOptions::default();
    assert_eq!(kind(b"nosuch", b"k", &plain), Err(ErrorKind::NotFound));
    let illegal = w.copy(&w, b"small", b"small", &plain).expect_err("nothing would change");
    assert!(illegal.kind() == ErrorKind::Invalid && illegal.to_string().starts_with("InvalidRequest"));
    assert_eq!(kind(b"small", b"small", &CopyOptions { replace_tags: Some(Vec::new()), ..plain.clone() }), Ok(()));
    let stale = Conditions { if_match: Some(vec!["no".to_owned()]), ..Conditions::default() };
    assert_eq!(
        kind(b"again", b"k", &CopyOptions { source: stale.clone(), ..plain.clone() }),
        Err(ErrorKind::Precondition)
    );
    assert_eq!(
        kind(b"again", b"small", &CopyOptions { conditions: stale, ..plain.clone() }),
        Err(ErrorKind::Precondition)
    );

    let version = w.info().expect("info").version;
    put(&w, "dir/big", b"other content");
    let past = w.at(&mw_world::At::Version(version)).expect("retained");
    w.copy(&past, b"dir/big", b"dir/big", &plain).expect("an old version comes back");
    assert_eq!(get(&w, "dir/big").as_ref(), Some(&big));

    drop((w, past));
    rig.store.delete_world(&rig.root, "base", true).expect("deleted");
    rig.store.sweep().expect("swept");
    assert_eq!(get(&o, "copy").as_ref(), Some(&big));
    clean(&rig.store);
    drop(o);
    let rig = rig.reopen();
    rig.store.sweep().expect("swept");
    assert_eq!(get(&rig.session("other"), "copy").as_ref(), Some(&big));
    clean(&rig.store);
}

#[test]
fn copies_between_two_worlds_both_ways_at_once_do_not_wait_for_each_other() {
    let rig = Rig::new();
    let (x, y) = (rig.create("world-x"), rig.create("world-y"));
    let big = vec![7u8; 100_000];
    put(&x, "k", &big);
    put(&y, "k", &big);
    std::thread::scope(|scope| {
        for (from, to) in [(&x, &y), (&y, &x)] {
            scope.spawn(move || {
                for i in 0..50 {
                    to.copy(from, b"k", format!("c{i}").as_bytes(), &CopyOptions::default()).expect("copied");
                }
            });
        }
    });
    assert_eq!((keys(&x).len(), keys(&y).len()), (51, 51));
    clean(&rig.store);
}

/// What is sent at once ends where a piece does, whoever wrote the pieces and however the range lies; all of it is kept, or none.
#[test]
fn stretches_cover_a_range_and_cut_no_piece() {
    let rig = Rig::new();
    let w = rig.create("base");
    let mut bytes = vec![0; 17 << 20];
    rig.env.fill(&mut bytes);
    let ino = put(&w, "o", &bytes).ino;
    // Pieces of a mount, small ones, and a hole at the end.
    w.write(ino, WriteAt::Offset(3 << 20), &[7; 200_000]).expect("written");
    bytes[3 << 20..(3 << 20) + 200_000].fill(7);
    for at in [5_000_000, 5_000_100, 16_800_000] {
        w.write(ino, WriteAt::Offset(at), b"small").expect("written");
        bytes[at as usize..at as usize + 5].copy_from_slice(b"small");
    }
    w.set_attr(ino, &SetAttr { size: Some(19 << 20), ..SetAttr::default() }).expect("grown");
    bytes.resize(19 << 20, 0);
    let object = w.get(b"o").expect("there");
    let size = bytes.len() as u64;
    // The third is more than this store keeps.
    for asked in [0, 1, u64::MAX] {
        for range in [0..size, 1..size - 1, 2_999_999..6_000_001, 16_000_000..16_000_001, 18_000_000..size + 5] {
            for len in [1 << 16, 512 << 10, 8 << 20] {
                let mut at = range.start;
                while at < range.end.min(size) {
                    let stretches = object.stretches(at..range.end, len).expect("cut");
                    assert!(!stretches.is_empty());
                    for stretch in stretches {
                        assert_eq!(stretch.range.start, at);
                        at = stretch.range.end;
                        assert!(at - stretch.range.start <= len.max(1 << 20));
                        let runs = object.read_stretch(&stretch, asked).expect("read").concat();
                        assert!(runs == bytes[stretch.range.start as usize..at as usize], "{:?}", stretch.range);
                    }
                }
                assert_eq!(at, range.end.min(size));
            }
        }
    }
    assert!(object.stretches(size..size + 1, 1).expect("cut").is_empty());
    // A stretch of each piece, and what is cut between them.
    let full = 17 << 20;
    let pieces: Vec<u64> = object.stretches(0..full, 1).expect("cut").iter().map(|s| s.range.end).collect();
    for start in [0, 1, pieces[3] - 1] {
        let stretches = object.stretches(start..full, 512 << 10).expect("cut");
        assert!(stretches.iter().all(|stretch| pieces.contains(&stretch.range.end)));
    }
}
