//! What a key is, which directories stay, what is refused.

use super::{delete, get, keys, list, put, put_with, staged};
use crate::rig::{Rig, a, clean, file, names};
use bytes::Bytes;
use mw_model::{ErrorKind, FileType, Ino};
use mw_world::{Conditions, CopyOptions, Error, ListRequest, Listed, Make, PutOptions, Role, SetAttr, UploadOptions};

/// Case C06: who made a directory decides whether it goes with its last key.
#[test]
fn directories_stay_or_go_as_they_were_made() {
    let rig = Rig::new();
    let w = rig.create("base");
    put(&w, "p/q/r/f", b"x");
    assert_eq!(list(&w, "", Some("/")), ["p/*"]);
    assert!(delete(&w, "p/q/r/f"));
    assert!(!delete(&w, "p/q/r/f"));
    assert_eq!(names(&w, ""), Vec::<String>::new());

    let keep = w.make(Ino::ROOT, b"keep", &a(FileType::Directory)).expect("made");
    assert_eq!(keys(&w), ["keep/"]);
    assert_eq!(list(&w, "", Some("/")), ["keep/*"]);
    assert_eq!(list(&w, "keep/", Some("/")), ["keep/"]);
    assert_eq!(get(&w, "keep/").as_deref(), Some(&b""[..]));
    put(&w, "keep/f", b"x");
    assert_eq!(keys(&w), ["keep/f"]);
    assert!(!delete(&w, "keep/"), "it holds a file and has no marker");
    assert_eq!(get(&w, "keep/"), None);
    assert!(delete(&w, "keep/f"));
    assert_eq!(w.lookup(Ino::ROOT, b"keep").expect("there").ino, keep.ino);
    let f = rig.fork("base", "fork");
    assert_eq!(names(&f, ""), ["keep"]);
    assert!(delete(&f, "keep/"));
    assert_eq!(names(&f, ""), Vec::<String>::new());
    assert_eq!(names(&w, ""), ["keep"]);

    put(&w, "m/", b"marker");
    put(&w, "m/f", b"x");
    assert_eq!(keys(&w), ["keep/", "m/", "m/f"]);
    assert_eq!(get(&w, "m/").as_deref(), Some(&b"marker"[..]));
    assert_eq!(names(&w, "m"), ["f"]);
    assert!(delete(&w, "m/f"));
    assert_eq!(names(&w, ""), ["keep", "m"], "the marker keeps it");
    put(&w, "m/f", b"x");
    assert!(delete(&w, "m/"));
    assert!(delete(&w, "m/f"), "implicit since its marker went");
    assert_eq!(names(&w, ""), ["keep"]);
    clean(&rig.store);
}

#[test]
fn an_implicit_directory_in_use_stays_and_is_no_prefix() {
    let rig = Rig::new();
    let w = rig.create("base");
    put(&w, "d/sub/f", b"x");
    let sub = w.resolve(b"d/sub").expect("there").ino;
    let open = w.open_dir(sub).expect("opened");
    assert!(delete(&w, "d/sub/f"));
    assert_eq!(names(&w, "d"), ["sub"]);
    assert_eq!((keys(&w), list(&w, "", Some("/")), get(&w, "d/sub/")), (Vec::new(), Vec::new(), None));
    w.make(sub, b"b.txt", &a(FileType::File)).expect("made where a program works");
    assert_eq!(keys(&w), ["d/sub/b.txt"]);
    drop(open);
    assert!(delete(&w, "d/sub/b.txt"));
    assert_eq!(keys(&w), ["d/sub/"], "a mount changed it, so it is explicit");
    put(&w, "e/f", b"x");
    let open = w.open_dir(w.resolve(b"e").expect("there").ino).expect("opened");
    assert!(delete(&w, "e/f"));
    assert_eq!(names(&w, ""), ["d", "e"]);
    drop(open);
    assert_eq!(names(&w, ""), ["d"], "nobody uses it any more");
    clean(&rig.store);
}

/// Case C13: a link is an object of its target's bytes, and is never followed; special files are no objects.
#[test]
fn links_are_objects_and_special_files_are_none() {
    let rig = Rig::new();
    let w = rig.create("base");
    let link = |name: &[u8], target: &'static [u8]| {
        w.make(Ino::ROOT, name, &Make { target: Bytes::from_static(target), ..a(FileType::Symlink) }).expect("made");
    };
    link(b"x", b"/etc");
    link(b"y", b"/etc/passwd");
    w.make(Ino::ROOT, b"p", &a(FileType::Fifo)).expect("made");
    let pipes = w.make(Ino::ROOT, b"pipes", &a(FileType::Directory)).expect("made").ino;
    w.make(pipes, b"q", &a(FileType::Socket)).expect("made");
    assert_eq!(keys(&w), ["x", "y"]);
    assert_eq!(list(&w, "", Some("/")), ["x", "y"], "a directory of pipes is no prefix");
    assert_eq!(get(&w, "y").as_deref(), Some(&b"/etc/passwd"[..]));
    assert_eq!((get(&w, "x/passwd"), get(&w, "p"), get(&w, "pipes/")), (None, None, None));
    assert!(!delete(&w, "p") && !delete(&w, "pipes/"));
    put(&w, "x/pwned", b"inside");
    assert_eq!(keys(&w), ["x", "x/pwned", "y"]);
    assert_eq!(
        w.read_link(
            w.make(pipes, b"l", &Make { target: Bytes::from_static(b"t"), ..a(FileType::Symlink) }).expect("made").ino
        )
        .expect("read"),
        "t"
    );
    let over = put(&w, "p", b"a file now");
    assert_eq!((over.kind, over.mode), (FileType::File, 0o644));
    assert!(delete(&w, "y"));
    clean(&rig.store);
}

#[test]
fn keys_that_a_mount_cannot_show_are_keys_all_the_same() {
    let rig = Rig::new();
    let w = rig.create("base");
    let long = "n".repeat(900);
    let mut want = vec!["a//b", "../x", "./y", "/", "//", "z/..", "nul\0l", long.as_str()];
    for key in &want {
        put(&w, key, key.as_bytes());
    }
    want.sort_unstable();
    assert_eq!(keys(&w), want);
    for key in &want {
        assert_eq!(get(&w, key).as_deref(), Some(key.as_bytes()));
    }
    assert_eq!(names(&w, ""), ["a", "z"]);
    let kind = |key: &[u8]| w.put(key, staged(&w, b""), &PutOptions::default()).err().map(|e| e.kind());
    assert_eq!(
        (kind(b""), kind(&[0xff]), kind(&[b'k'; 1025])),
        (Some(ErrorKind::Invalid), Some(ErrorKind::Invalid), Some(ErrorKind::NameTooLong))
    );
    put(&w, &"k".repeat(1024), b"");
    // Names of other bytes and paths over 1,024 bytes come through a mount; they are listed, read and deleted.
    w.make(Ino::ROOT, b"raw\xff", &a(FileType::File)).expect("made");
    let deep = vec!["d".repeat(255); 6].join("/");
    file(&w, &deep, b"deep");
    let listing = w.list(&ListRequest { limit: 1000, ..ListRequest::default() }).expect("listed");
    let listed: Vec<&Bytes> = listing
        .items
        .iter()
        .map(|item| match item {
            Listed::Object(info) => &info.key,
            Listed::Prefix(prefix) => prefix,
        })
        .collect();
    assert!(listed.iter().any(|k| **k == b"raw\xff"[..]) && listed.iter().any(|k| **k == deep.as_bytes()));
    assert_eq!(get(&w, &deep).as_deref(), Some(&b"deep"[..]));
    assert!(w.delete(b"raw\xff", &Conditions::default()).expect("deleted") && delete(&w, &deep));
    for key in want {
        assert!(delete(&w, key));
    }
    clean(&rig.store);
}

#[test]
fn conditions_are_decided_by_what_is_there() {
    let rig = Rig::new();
    let w = rig.create("base");
    let tags = |tags: &[&str]| Some(tags.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
    let outcome = |key: &str, conditions: Conditions| {
        let options = PutOptions { conditions, etag: "e2".to_owned(), ..PutOptions::default() };
        put_with(&w, key, b"x", &options).map(drop).map_err(|e| e.kind())
    };
    let matching = |t: &[&str]| Conditions { if_match: tags(t), ..Conditions::default() };
    let none = |t: &[&str]| Conditions { if_none_match: tags(t), ..Conditions::default() };
    assert_eq!(outcome("k", matching(&["*"])), Err(ErrorKind::NotFound));
    assert_eq!(outcome("k", none(&["*"])), Ok(()));
    assert_eq!(outcome("k", none(&["*"])), Err(ErrorKind::Precondition));
    assert_eq!(outcome("k", none(&["e2"])), Err(ErrorKind::Precondition));
    assert_eq!(outcome("k", none(&["other"])), Ok(()));
    assert_eq!(outcome("k", matching(&["other"])), Err(ErrorKind::Precondition));
    assert_eq!(outcome("k", matching(&["other", "e2"])), Ok(()));
    let info = w.head(b"k").expect("there");
    let hour = 3_600_000_000_000;
    let since = |at: u64| Conditions { if_unmodified_since: Some(at), ..Conditions::default() };
    assert_eq!(outcome("k", since(info.modified - hour)), Err(ErrorKind::Precondition));
    assert_eq!(
        outcome("k", since(info.modified - info.modified % 1_000_000_000)),
        Ok(()),
        "whole seconds are compared"
    );
    let kind = |key: &[u8], c: Conditions| w.delete(key, &c).map_err(|e| e.kind());
    assert_eq!(kind(b"none", matching(&["*"])), Err(ErrorKind::NotFound));
    assert_eq!(kind(b"none", Conditions::default()), Ok(false));
    assert_eq!(kind(b"k", matching(&["x"])), Err(ErrorKind::Precondition));
    assert_eq!(kind(b"k", matching(&["e2"])), Ok(true));
    assert!(keys(&w).is_empty());
    // Of writers that all want to be first, one is.
    let won = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..8)
            .map(|i| {
                let w = &w;
                scope.spawn(move || {
                    let conditions = Conditions { if_none_match: Some(vec!["*".to_owned()]), ..Conditions::default() };
                    put_with(w, "race", &[i], &PutOptions { conditions, ..PutOptions::default() }).is_ok()
                })
            })
            .collect();
        racers.into_iter().map(|r| r.join().expect("ran")).filter(|won| *won).count()
    });
    assert_eq!(won, 1);
}

#[test]
fn many_keys_go_in_one_commit() {
    let rig = Rig::new();
    let w = rig.create("base");
    for i in 0..50 {
        put(&w, &format!("d/&<>\"%{i}"), b"");
    }
    let mut keys_gone: Vec<Bytes> = (0..60).map(|i| Bytes::from(format!("d/&<>\"%{i}"))).collect();
    keys_gone.push(keys_gone[0].clone());
    keys_gone.push(Bytes::new());
    let before = w.info().expect("info").version;
    let outcomes = w.delete_many(&keys_gone).expect("deleted");
    let existed = outcomes.iter().filter(|o| matches!(o, Ok(deleted) if deleted.existed)).count();
    assert_eq!((existed, outcomes.len()), (50, 62));
    assert_eq!(outcomes[61].as_ref().err().map(Error::kind), Some(ErrorKind::Invalid));
    assert!(keys(&w).is_empty() && names(&w, "").is_empty());
    let entries = w.log(&mw_world::LogQuery { path: None, limit: 100, before: None }).expect("log");
    assert_eq!(entries.iter().filter(|e| e.version > before).count(), 1);
}

#[test]
fn ranges_of_an_object_end_where_it_ends() {
    let rig = Rig::new();
    let w = rig.create("base");
    put(&w, "e", b"");
    put(&w, "t", b"0123456789");
    let t = w.get(b"t").expect("there");
    assert_eq!((t.read(5, 99).expect("read"), t.read(10, 1).expect("read")), (Bytes::from("56789"), Bytes::new()));
    assert_eq!(w.get(b"e").expect("there").read(0, 5).expect("read"), Bytes::new());
    // A hole that a mount left reads as zeros.
    let ino = w.head(b"t").expect("there").ino;
    w.set_attr(ino, &SetAttr { size: Some(20_000_000_010), ..SetAttr::default() }).expect("grown");
    assert_eq!(w.get(b"t").expect("there").read(19_000_000_000, 10).expect("read"), vec![0; 10]);
}

#[test]
fn who_may_only_read_changes_nothing() {
    let rig = Rig::new();
    let w = rig.create("base");
    put(&w, "k", b"1");
    let request = mw_world::KeyRequest {
        name: "reader".to_owned(),
        grants: vec![mw_world::Grant::new("base", Role::Reader)],
        ..Default::default()
    };
    let key = rig.store.create_key(&rig.root, &request).expect("made");
    let who = rig.store.principal(&key.id).expect("alive");
    let r = rig.store.session(&who, "base").expect("may read");
    let past = w.at(&mw_world::At::Version(w.info().expect("info").version)).expect("retained");
    for (session, kind) in [(&r, ErrorKind::Denied), (&past, ErrorKind::ReadOnly)] {
        assert_eq!(get(session, "k").as_deref(), Some(&b"1"[..]));
        let refused = [
            session.stage().map(drop),
            session.put(b"k", staged(&w, b"2"), &PutOptions::default()).map(drop),
            session.delete(b"k", &Conditions::default()).map(drop),
            session.delete(b"absent", &Conditions::default()).map(drop),
            session.delete_many(&[Bytes::from("k")]).map(drop),
            session.copy(&w, b"k", b"l", &CopyOptions::default()).map(drop),
            session.set_tags(b"k", Vec::new()),
            session.rename_key(b"k", b"l").map(drop),
            session.create_upload(b"k", &UploadOptions::default()).map(drop),
        ];
        for outcome in refused {
            assert_eq!(outcome.map_err(|e| e.kind()), Err(kind));
        }
    }
    assert_eq!(keys(&w), ["k"]);
}
