//! The S3 verbs, against the naive model and rule by rule.

use crate::rig::{Rig, a, clean, content, file, names};
use bytes::Bytes;
use mw_model::{ErrorKind, FileType, Ino};
use mw_testkit::{Model, Op, Rng, Verb, random_key};
use mw_world::{
    Checksum, ChecksumAlgorithm, Conditions, CopyOptions, Error, ListRequest, Listed, Make, ObjectInfo, ObjectMeta,
    PutOptions, Role, Session, SetAttr, UploadOptions, WriteAt, XattrFlag,
};

fn staged(session: &Session, content: &[u8]) -> mw_world::Staged {
    let mut staged = session.stage().expect("staged");
    for piece in content.chunks(70_001) {
        staged.push(piece).expect("pushed");
    }
    staged
}

fn put_with(session: &Session, key: &str, content: &[u8], options: &PutOptions) -> mw_world::Result<ObjectInfo> {
    session.put(key.as_bytes(), staged(session, content), options)
}

fn put(session: &Session, key: &str, content: &[u8]) -> ObjectInfo {
    put_with(session, key, content, &PutOptions::default()).expect("put")
}

fn get(session: &Session, key: &str) -> Option<Vec<u8>> {
    match session.get(key.as_bytes()) {
        Ok(object) => Some(object.read(0, usize::MAX >> 1).expect("read").to_vec()),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::NotFound);
            None
        }
    }
}

fn delete(session: &Session, key: &str) -> bool {
    session.delete(key.as_bytes(), &Conditions::default()).expect("deleted")
}

fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).expect("UTF-8")
}

/// Lists page by page; prefixes end in `*`.
fn pages(session: &Session, prefix: &str, delimiter: Option<&str>, after: &str, limit: usize) -> Vec<Vec<String>> {
    let mut request = ListRequest {
        prefix: Bytes::copy_from_slice(prefix.as_bytes()),
        delimiter: delimiter.map(|d| Bytes::copy_from_slice(d.as_bytes())),
        after: Bytes::copy_from_slice(after.as_bytes()),
        limit,
    };
    let mut pages = Vec::new();
    loop {
        let page = session.list(&request).expect("listed");
        assert!(page.items.len() <= limit);
        let item = |item: &Listed| match item {
            Listed::Object(info) => {
                assert_eq!(session.head(&info.key).expect("an object that is listed is there"), *info);
                text(&info.key)
            }
            Listed::Prefix(prefix) => format!("{}*", text(prefix)),
        };
        pages.push(page.items.iter().map(item).collect());
        match page.next {
            Some(next) => request.after = next,
            None => return pages,
        }
        assert!(pages.len() < 10_000, "the listing never ends");
    }
}

fn list(session: &Session, prefix: &str, delimiter: Option<&str>) -> Vec<String> {
    pages(session, prefix, delimiter, "", 1000).concat()
}

fn keys(session: &Session) -> Vec<String> {
    list(session, "", None)
}

/// What a listing must show, made from the keys alone.
fn naive(keys: &[String], prefix: &str, delimiter: Option<&str>, after: &str) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let group = |key: &str| {
        let at = delimiter.and_then(|d| key[prefix.len()..].find(d).map(|at| prefix.len() + at + d.len()));
        at.map(|end| key[..end].to_owned())
    };
    let rolled = after.starts_with(prefix) && group(after).is_some_and(|g| g == after);
    for key in keys.iter().filter(|key| key.starts_with(prefix)) {
        if key.as_str() <= after || rolled && key.starts_with(after) {
            continue;
        }
        let item = group(key).map_or_else(|| key.clone(), |g| format!("{g}*"));
        if shown.last() != Some(&item) {
            shown.push(item);
        }
    }
    shown
}

/// Compares every way to list with the naive one.
fn agrees(session: &Session, keys: &[String]) {
    let mut starts: Vec<String> = vec![String::new(), "a".into(), "d/a.zzz".into(), "~~".into()];
    starts.extend(keys.iter().step_by(3).flat_map(|key| {
        let cut = key.char_indices().map(|(at, _)| at).nth(key.chars().count() / 2).unwrap_or(0);
        [key.clone(), key[..cut].to_owned()]
    }));
    starts.sort();
    starts.dedup();
    for delimiter in [None, Some("/"), Some("a"), Some("/a"), Some("-")] {
        for prefix in &starts {
            let want = naive(keys, prefix, delimiter, "");
            for limit in [1, 2, 3, 7, 1000] {
                let got = pages(session, prefix, delimiter, "", limit);
                let full = got.iter().rev().skip(1).all(|page| page.len() == limit);
                assert!(full, "a page before the last is full");
                assert_eq!(got.concat(), want, "prefix {prefix:?} delimiter {delimiter:?} limit {limit}");
            }
        }
        for after in &starts {
            let got = pages(session, "", delimiter, after, 5).concat();
            assert_eq!(got, naive(keys, "", delimiter, after), "after {after:?} delimiter {delimiter:?}");
            let got = pages(session, "d/", delimiter, after, 2).concat();
            assert_eq!(got, naive(keys, "d/", delimiter, after), "in d/ after {after:?} delimiter {delimiter:?}");
        }
    }
}

/// Case C01: byte order of whole keys at every page size, on a base and on its fork.
#[test]
fn listing_is_in_the_byte_order_of_whole_keys_on_base_and_fork() {
    let rig = Rig::new();
    let w = rig.create("base");
    let mut want: Vec<String> = [
        "d/a.b/f",
        "d/a/f",
        "d/a-",
        "d/a0",
        "obj+",
        "obj/x",
        "obj1",
        "z\u{e000}",
        "z\u{10000}",
        "A",
        "a!",
        "obj",
        "d/a",
    ]
    .map(str::to_owned)
    .to_vec();
    for key in &want {
        put(&w, key, key.as_bytes());
    }
    want.sort();
    for limit in 1..=want.len() + 1 {
        assert_eq!(pages(&w, "", None, "", limit).concat(), want);
    }
    agrees(&w, &want);
    let f = rig.fork("base", "fork");
    let gone: Vec<Bytes> = want.iter().step_by(2).map(|k| Bytes::copy_from_slice(k.as_bytes())).collect();
    assert!(f.delete_many(&gone).expect("deleted").into_iter().all(|gone| gone.expect("one")));
    put(&f, "d/a.a/f", b"1");
    put(&f, "d/a/0", b"2");
    let mut forked: Vec<String> = want.iter().skip(1).step_by(2).cloned().collect();
    forked.extend(["d/a.a/f".to_owned(), "d/a/0".to_owned()]);
    forked.sort();
    agrees(&f, &forked);
    agrees(&w, &want);
    assert_eq!((get(&w, "d/a").as_deref(), get(&w, "d/a/f").as_deref()), (Some(&b"d/a"[..]), Some(&b"d/a/f"[..])));
    clean(&rig.store);
}

/// Case C03: prefixes and keys are one stream, counted together, each once.
#[test]
fn a_delimiter_rolls_up_each_prefix_once() {
    let rig = Rig::new();
    let w = rig.create("base");
    for i in 0..700 {
        put(&w, &format!("many/k{i}"), b"x");
    }
    for key in ["asdf", "boo/bar", "boo/baz/x", "cq/a", "cq/b"] {
        put(&w, key, b"x");
    }
    for limit in [1, 2, 3, 1000] {
        assert_eq!(pages(&w, "", Some("/"), "", limit).concat(), ["asdf", "boo/*", "cq/*", "many/*"]);
    }
    let nothing = w.list(&ListRequest::default()).expect("listed");
    assert!(nothing.items.is_empty() && nothing.next.is_none());
    let page = pages(&w, "", Some("/"), "boo/", 1);
    assert_eq!(page[0], ["cq/*"]);
    assert_eq!(
        pages(&w, "many/", None, "many/k5", 100).concat().len(),
        naive(&keys(&w), "many/", None, "many/k5").len()
    );
}

/// Draws keys that are nasty to each other and compares with the model after every one.
#[test]
fn keys_do_what_the_model_does() {
    for seed in 0..6 {
        let (rig, mut model) = (Rig::new(), Model::new());
        let w = rig.create("base");
        model.apply(&Op::CreateWorld { world: "base".to_owned() }).expect("made");
        let mut rng = Rng::new(seed);
        for step in 0..120 {
            let known: Vec<String> = model.world("base").expect("there").tree().objects().into_keys().collect();
            let key = |rng: &mut Rng| {
                if known.is_empty() || rng.one_in(2) { random_key(rng) } else { rng.pick(&known).clone() }
            };
            let verb = match rng.below(8) {
                0..=3 => {
                    let content = mw_testkit::Content { tag: step as u8, len: [0, 3, 9_000, 200_000][rng.below(4)] };
                    Verb::Put { key: key(&mut rng), content, content_type: None, if_absent: rng.one_in(4) }
                }
                4 | 5 => Verb::Delete { key: key(&mut rng) },
                6 => Verb::Mkdir { path: mw_testkit::random_name(&mut rng), mode: 0o755 },
                _ => Verb::Copy { from: key(&mut rng), to: key(&mut rng) },
            };
            let itself = matches!(&verb, Verb::Copy { from, to } if from == to);
            if itself {
                continue;
            }
            let want = model.apply(&Op::In { world: "base".to_owned(), verb: verb.clone() }).map(drop);
            let got = run(&w, &verb).map_err(|e| e.kind());
            assert_eq!(got, want, "seed {seed} step {step}: {verb:?}");
        }
        let objects = model.world("base").expect("there").tree().objects();
        let want: Vec<String> = objects.keys().cloned().collect();
        assert_eq!(keys(&w), want, "seed {seed}");
        for (key, (bytes, _)) in &objects {
            assert_eq!(get(&w, key).as_ref(), Some(bytes), "seed {seed}: {key:?}");
        }
        for delimiter in ["/", "a", "b/"] {
            for prefix in ["", "a", "a/", "a.", "b/a"] {
                assert_eq!(list(&w, prefix, Some(delimiter)), naive(&want, prefix, Some(delimiter), ""));
            }
        }
        drop(w);
        let rig = rig.reopen();
        assert_eq!(keys(&rig.session("base")), want);
        clean(&rig.store);
    }
}

fn run(w: &Session, verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::Put { key, content, if_absent, .. } => {
            let if_none_match = if_absent.then(|| vec!["*".to_owned()]);
            let conditions = Conditions { if_none_match, ..Conditions::default() };
            put_with(w, key, &content.bytes(), &PutOptions { conditions, ..PutOptions::default() }).map(drop)
        }
        Verb::Delete { key } => w.delete(key.as_bytes(), &Conditions::default()).map(drop),
        Verb::Copy { from, to } => w.copy(w, from.as_bytes(), to.as_bytes(), &CopyOptions::default()).map(drop),
        Verb::Mkdir { path, mode } => {
            w.make(Ino::ROOT, path.as_bytes(), &Make { mode: *mode, ..a(FileType::Directory) }).map(drop)
        }
        other => panic!("{other:?} is not drawn here"),
    }
}

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
    let existed = outcomes.iter().filter(|o| matches!(o, Ok(true))).count();
    assert_eq!((existed, outcomes.len()), (50, 62));
    assert_eq!(outcomes[61].as_ref().err().map(Error::kind), Some(ErrorKind::Invalid));
    assert!(keys(&w).is_empty() && names(&w, "").is_empty());
    let entries = w.log(&mw_world::LogQuery { path: None, limit: 100, before: None }).expect("log");
    assert_eq!(entries.iter().filter(|e| e.version > before).count(), 1);
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
    let range = w.copy_part(&from, b"src", Some((100, 399_999)), key.as_bytes(), id, 1).expect("copied");
    assert_eq!((range.size, range.etag.len()), (399_900, 32));
    let kind = |range| w.copy_part(&from, b"src", range, key.as_bytes(), id, 2).map(drop).map_err(|e| e.kind());
    assert_eq!(kind(Some((0, 500_000))), Err(ErrorKind::Invalid));
    put(&w, "own", &bytes[..9_000]);
    w.copy_part(&w, b"own", None, key.as_bytes(), id, 2).expect("copied from the same world");
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
        grants: vec![("base".to_owned(), Role::Reader)],
        ttl: None,
        run: None,
        idempotency: None,
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
