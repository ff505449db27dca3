//! Multipart uploads.

use super::{get, keys, put, staged, text};
use crate::rig::{Rig, clean, names};
use bytes::Bytes;
use mw_model::ErrorKind;
use mw_world::{ChecksumAlgorithm, Conditions, ObjectMeta, PartCopy, PartSaid, Session, UploadOptions};

fn part_copy(range: Option<(u64, u64)>) -> PartCopy {
    PartCopy { range, ..PartCopy::default() }
}

#[test]
fn an_upload_becomes_an_object_part_by_part() {
    let rig = Rig::new();
    let w = rig.create("base");
    let part = |n: u8, len: usize| -> Vec<u8> { (0..len).map(|i| (i / 7) as u8 ^ n).collect() };
    let (one, two, three) = (part(1, 5 << 20), part(2, (5 << 20) + 3), part(3, 10));
    let options = UploadOptions {
        meta: ObjectMeta { content_type: Some("v/w".to_owned()), ..ObjectMeta::default() },
        algorithm: Some(ChecksumAlgorithm::Sha256),
        composite: true,
    };
    let id = w.create_upload(b"up/o", &options).expect("begun");
    let send = |number: u32, content: &[u8], etag: &str| {
        w.put_part(b"up/o", &id, number, staged(&w, content), etag, Vec::new()).map_err(|e| e.kind())
    };
    send(1, b"replaced later", "old").expect("put");
    send(3, &three, "e3").expect("put");
    send(2, &two, "e2").expect("put");
    send(1, &one, "e1").expect("put");
    assert_eq!(send(0, b"", "e"), Err(ErrorKind::Invalid));
    assert_eq!(
        w.put_part(b"other", &id, 1, staged(&w, b""), "e", Vec::new()).map_err(|e| e.kind()),
        Err(ErrorKind::NotFound)
    );
    let (parts, more) = w.parts(b"up/o", &id, 0, 2).expect("listed");
    assert_eq!(
        (parts.iter().map(|p| (p.number, p.etag.as_str(), p.size)).collect::<Vec<_>>(), more),
        (vec![(1, "e1", 5 << 20), (2, "e2", (5 << 20) + 3)], true)
    );
    let (rest, more) = w.parts(b"up/o", &id, 2, 2).expect("listed");
    assert_eq!((rest.len(), rest[0].number, more), (1, 3, false));
    assert_eq!(w.upload(b"up/o", &id).expect("there").options, options);
    assert!(keys(&w).is_empty() && names(&w, "").is_empty(), "nobody sees it yet");
    assert!(rig.fork("base", "fork").uploads(b"", None, 10).expect("listed").0.is_empty());
    rig.store.sweep().expect("swept");

    let complete = |parts: &[(u32, &str)], conditions: &Conditions| {
        let parts: Vec<_> = parts.iter().map(|(n, e)| (*n, (*e).to_owned())).collect();
        w.complete_upload(b"up/o", &id, &parts, "whole-3", Vec::new(), conditions)
    };
    let fault = |parts: &[(u32, &str)]| {
        let e = complete(parts, &Conditions::default()).expect_err("refused");
        assert_eq!(e.kind(), ErrorKind::Invalid);
        e.to_string().split(':').next().unwrap_or_default().to_owned()
    };
    assert_eq!(fault(&[]), "InvalidPart");
    assert_eq!(fault(&[(1, "old")]), "InvalidPart");
    assert_eq!(fault(&[(1, "e1"), (4, "e4")]), "InvalidPart");
    assert_eq!(fault(&[(2, "e2"), (1, "e1")]), "InvalidPartOrder");
    assert_eq!(fault(&[(1, "e1"), (1, "e1")]), "InvalidPartOrder");
    let id_small = w.create_upload(b"s", &UploadOptions::default()).expect("begun");
    for n in 1..=2 {
        w.put_part(b"s", &id_small, n, staged(&w, b"tiny"), "t", Vec::new()).expect("put");
    }
    let small =
        w.complete_upload(b"s", &id_small, &[(1, "t".into()), (2, "t".into())], "", Vec::new(), &Conditions::default());
    assert!(small.expect_err("too small").to_string().starts_with("EntityTooSmall"));
    let absent = Conditions { if_match: Some(vec!["*".to_owned()]), ..Conditions::default() };
    assert_eq!(complete(&[(1, "e1")], &absent).map_err(|e| e.kind()).map(drop), Err(ErrorKind::NotFound));
    assert!(w.upload(b"up/o", &id).is_ok(), "a refused completion ends nothing");

    let info = complete(&[(1, "e1"), (2, "\"e2\""), (3, "e3")], &Conditions::default()).expect("completed");
    assert_eq!(
        (info.etag.as_str(), &info.meta, &info.parts),
        ("whole-3", &options.meta, &vec![5 << 20, (5 << 20) + 3, 10])
    );
    let whole = [one, two, three].concat();
    assert_eq!(get(&w, "up/o").as_ref(), Some(&whole));
    assert_eq!(w.get(b"up/o").expect("there").read(5 << 20, 5).expect("read"), whole[5 << 20..][..5]);
    assert_eq!(w.upload(b"up/o", &id).map_err(|e| e.kind()).map(drop), Err(ErrorKind::NotFound));
    assert_eq!(
        complete(&[(1, "e1")], &Conditions::default()).map_err(|e| e.kind()).map(drop),
        Err(ErrorKind::NotFound)
    );
    w.abort_upload(b"s", &id_small).expect("aborted");
    assert_eq!(w.abort_upload(b"s", &id_small).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
    rig.store.sweep().expect("swept");
    drop(w);
    let rig = rig.reopen();
    assert_eq!(get(&rig.session("base"), "up/o").as_ref(), Some(&whole));
    clean(&rig.store);
}

#[test]
fn uploads_are_listed_by_key_and_id_and_survive_a_restart_and_a_sweep() {
    let rig = Rig::new();
    let w = rig.create("base");
    let begun: Vec<(String, String)> = ["b", "a/1", "b", "a/2", "c"]
        .into_iter()
        .map(|key| (key.to_owned(), w.create_upload(key.as_bytes(), &UploadOptions::default()).expect("begun")))
        .collect();
    let mut want = begun.clone();
    want.sort();
    let shown = |w: &Session, prefix: &str, after: Option<(Bytes, String)>, limit| {
        let (found, more) = w.uploads(prefix.as_bytes(), after, limit).expect("listed");
        (found.into_iter().map(|u| (text(&u.key), u.id)).collect::<Vec<_>>(), more)
    };
    assert_eq!(shown(&w, "", None, 10), (want.clone(), false));
    assert!(begun[0].1 < begun[2].1, "uploads of one key are in the order of their beginning");
    let after = Some((Bytes::copy_from_slice(want[1].0.as_bytes()), want[1].1.clone()));
    assert_eq!(shown(&w, "", after, 2), (want[2..4].to_vec(), true));
    assert_eq!(shown(&w, "a/", None, 10), (want[..2].to_vec(), false));

    let (key, id) = &begun[4];
    let bytes: Vec<u8> = (0..500_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    let from = rig.create("other");
    put(&from, "src", &bytes);
    let range = w.copy_part(&from, b"src", &part_copy(Some((100, 399_999))), key.as_bytes(), id, 1).expect("copied");
    assert_eq!((range.size, range.etag.len()), (399_900, 32));
    let kind =
        |copy: &PartCopy| w.copy_part(&from, b"src", copy, key.as_bytes(), id, 2).map(drop).map_err(|e| e.kind());
    assert_eq!(kind(&part_copy(Some((0, 500_000)))), Err(ErrorKind::Invalid));
    let info = from.head(b"src").expect("there");
    let said = PartSaid { ino: info.ino, content: info.version, etag: "e".to_owned(), checksums: Vec::new() };
    put(&from, "src", &bytes);
    assert_eq!(kind(&PartCopy { said: Some(said), ..PartCopy::default() }), Err(ErrorKind::Busy));
    put(&w, "own", &bytes[..9_000]);
    w.copy_part(&w, b"own", &PartCopy::default(), key.as_bytes(), id, 2).expect("copied from the same world");
    drop((w, from));
    rig.store.delete_world(&rig.root, "other", true).expect("deleted");
    rig.store.sweep().expect("swept");
    let rig = rig.reopen();
    rig.store.sweep().expect("swept");
    let w = rig.session("base");
    let done = w.complete_upload(key.as_bytes(), id, &[(1, range.etag)], "e", Vec::new(), &Conditions::default());
    assert_eq!(done.expect("completed").size, 399_900);
    assert_eq!(get(&w, key).as_deref(), Some(&bytes[100..400_000]));
    clean(&rig.store);
}

#[test]
fn an_upload_that_nobody_ends_is_given_up_after_its_time() {
    let rig = Rig::new();
    let w = rig.create("base");
    let old = w.create_upload(b"old", &UploadOptions::default()).expect("begun");
    w.put_part(b"old", &old, 1, staged(&w, &[7; 300_000]), "e", Vec::new()).expect("put");
    rig.env.sleep(std::time::Duration::from_secs(7 * 86_400 - 60));
    let young = w.create_upload(b"young", &UploadOptions::default()).expect("begun");
    assert_eq!(rig.store.sweep().expect("swept").uploads, 0);
    rig.env.sleep(std::time::Duration::from_secs(120));
    assert_eq!(rig.store.sweep().expect("swept").uploads, 1);
    assert_eq!(w.upload(b"old", &old).map(drop).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
    assert!(w.upload(b"young", &young).is_ok());
    clean(&rig.store);
}
