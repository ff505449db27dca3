//! Keys are bytes: nothing is normalised, folded or lost on any way in or out.

use crate::client::{Ask, encode, path};
use crate::house::House;
use mw_model::{FileType, Ino};
use mw_world::{Make, WriteAt};

const KEYS: [&str; 30] = [
    "a\u{1}b",
    "a\u{2}b",
    "a\rb",
    "a\nb",
    "a\tb",
    "é",
    "e\u{301}",
    "İ",
    "i̇",
    "README",
    "readme",
    "ß",
    "ss",
    "a b",
    "a  b",
    " lead",
    "trail ",
    "\u{200b}",
    "\u{1f600}",
    "&<>\"'",
    "%00",
    "nul%2500",
    "my file+1.txt",
    "100%.txt",
    "q?x=1#y",
    "a&b=c;d",
    "=eq",
    "it's(1)!*~",
    "a/./b",
    "\u{fffe}",
];

/// C21: control characters, CR, both normal forms and both cases are keys of their own, and come back byte by byte through every verb.
#[test]
fn every_key_goes_in_and_comes_out_by_every_verb() {
    let house = House::with_base();
    for key in KEYS {
        let at = path("base", &format!("kb/{key}"));
        house.root.put(&at, key).ok();
        assert_eq!(house.root.get(&at).ok().text(), key);
        assert_eq!(house.root.raw(&house.root.presign(&Ask::new("GET", &at), 60)).ok().text(), key);
        let source = encode(&format!("base/kb/{key}"));
        house
            .root
            .ask(&Ask::new("PUT", &path("base", &format!("dst/{key}"))).header("x-amz-copy-source", &source))
            .ok();
        assert_eq!(house.root.get(&path("base", &format!("dst/{key}"))).ok().text(), key);
    }
    let mut expected: Vec<String> = KEYS.iter().map(|k| format!("kb/{k}")).collect();
    expected.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    let url = house.root.get("/base?list-type=2&prefix=kb%2F&encoding-type=url").ok();
    let decoded: Vec<String> = url.tags("Key").iter().map(|k| decode(k)).collect();
    assert_eq!(decoded, expected);

    // Without an encoding the page is well-formed, and what XML cannot carry comes under an escape that is read back.
    let plain = house.root.get("/base?list-type=2&prefix=kb%2F").ok();
    assert!(plain.text().chars().all(|c| c >= ' ' || c == '\n' || c == '\t'));
    let shown = plain.tags("Key");
    assert_eq!(shown.len(), KEYS.len());
    for (shown, key) in shown.iter().zip(&expected) {
        assert_eq!(house.root.get(&path("base", shown)).ok().text(), key["kb/".len()..]);
    }
    let unchanged = shown.iter().zip(&expected).filter(|(a, b)| a == b).count();
    assert_eq!(unchanged, KEYS.len() - 3, "all but two controls and a noncharacter are shown as they are");

    let objects: String = shown.iter().map(|k| format!("<Object><Key>{}</Key></Object>", xml(k))).collect();
    let answer = house.root.post("/base?delete=", &format!("<Delete>{objects}</Delete>")).ok();
    assert!(answer.tags("Error").is_empty(), "{}", answer.text());
    assert_eq!(house.root.get("/base?list-type=2&prefix=kb%2F").tag("KeyCount"), "0");

    // Some SDKs write a control character as it is. They are answered in XML that they can read.
    let raw = house.root.post("/base?delete=", "<Delete><Object><Key>dst/a\u{1}b</Key></Object></Delete>").ok();
    assert_eq!(raw.tags("Key"), ["dst/a\u{f701}b"]);
    assert_eq!(house.root.get(&path("base", "dst/a\u{1}b")).status, 404);
}

fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            out.push(u8::from_str_radix(std::str::from_utf8(&tail[..2]).unwrap(), 16).unwrap());
            rest = &tail[2..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(out).unwrap()
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#13;")
}

#[test]
fn bytes_that_are_not_text_have_a_reversible_name() {
    let house = House::with_base();
    let session = house.store.session(&house.root_principal(), "base").unwrap();
    house.root.put("/base/d/", "").ok();
    let dir = session.resolve(b"d").unwrap().ino;
    let file = session.make(dir, b"x\xff", &make(FileType::File, b"")).unwrap();
    session.write(file.ino, WriteAt::End, b"raw").unwrap();
    let shown = house.root.get("/base?list-type=2").ok().tags("Key")[1].clone();
    assert_eq!(shown, "d/x\u{f7ff}");
    assert_eq!(house.root.get(&path("base", &shown)).ok().text(), "raw");
    house.root.delete(&path("base", &shown)).ok();
    assert_eq!(house.root.get("/base?list-type=2").ok().tag("KeyCount"), "1");
    assert_eq!(
        house.root.put(&path("base", &shown), "x").fault().0,
        400,
        "such a name is readable here, not creatable"
    );
    assert_eq!(house.root.put(&path("base", "\u{f741}"), "x").fault(), (400, "InvalidArgument".into()));
}

/// What a mount asks for when it makes a file or a link.
fn make(kind: FileType, target: &[u8]) -> Make {
    Make { kind, mode: 0o644, uid: 0, gid: 0, rdev: 0, target: target.to_vec().into() }
}

#[test]
fn a_link_is_an_object_and_is_never_followed() {
    let house = House::with_base();
    house.root.put("/base/secret", "s").ok();
    let session = house.store.session(&house.root_principal(), "base").unwrap();
    for (name, target) in [("x", "/etc"), ("y", "/etc/passwd"), ("d", "nowhere"), ("s", "secret")] {
        session.make(Ino::ROOT, name.as_bytes(), &make(FileType::Symlink, target.as_bytes())).unwrap();
        let got = house.root.get(&format!("/base/{name}")).ok();
        assert_eq!((got.text().as_str(), got.header("content-type")), (target, Some("application/x-symlink")));
    }
    session.make(Ino::ROOT, b"pipe", &make(FileType::Fifo, b"")).unwrap();
    assert_eq!(house.root.get("/base/x/passwd").fault(), (404, "NoSuchKey".into()));
    assert_eq!(house.root.get("/base?list-type=2").ok().tags("Key"), ["d", "s", "secret", "x", "y"]);
    house.root.put("/base/s", "new").ok();
    assert_eq!(house.root.get("/base/secret").ok().text(), "s", "a PUT replaces the link");
}

#[test]
fn what_a_mount_writes_is_read_here_at_once() {
    let house = House::with_base();
    house
        .root
        .ask(&Ask::new("PUT", "/base/k").header("x-amz-meta-a", "1").header("content-type", "a/b").body("old"))
        .ok();
    let old = house.root.get("/base/k").ok();
    let session = house.store.session(&house.root_principal(), "base").unwrap();
    let ino = session.resolve(b"k").unwrap().ino;
    session.write(ino, WriteAt::Offset(1), b"ther").unwrap();
    let new = house.root.ask(&Ask::new("GET", "/base/k").header("x-amz-checksum-mode", "ENABLED")).ok();
    assert_eq!(
        (new.text().as_str(), new.header("x-amz-meta-a"), new.header("content-type")),
        ("other", Some("1"), Some("a/b"))
    );
    assert_ne!(new.header("etag"), old.header("etag"));
    assert_eq!(new.header("x-amz-checksum-crc64nvme"), None, "a checksum of what was there before is not answered");
}

/// C14: a copy source is decoded once, in every form in which clients send it, and `+` stays `+`.
#[test]
fn a_copy_source_is_decoded_once() {
    let house = House::with_base();
    for key in ["k", "a%2Bb", "a+b", "a b", "/k", "k/"] {
        house.root.put(&path("base", key), key).ok();
    }
    for (source, key) in [
        ("base/k", "k"),
        ("/base/k", "k"),
        ("%2Fbase%2Fk", "k"),
        ("base/a%252Bb", "a%2Bb"),
        ("base/a%2Bb", "a+b"),
        ("base/a+b", "a+b"),
        ("base/a%20b", "a b"),
        ("base//k", "/k"),
        ("base/k/", "k/"),
        ("base/k?versionId=null", "k"),
    ] {
        house.root.ask(&Ask::new("PUT", "/base/to").header("x-amz-copy-source", source)).ok();
        assert_eq!(house.root.get("/base/to").ok().text(), key, "{source}");
    }
}

/// `Last-Modified` is when the content changed, whatever a mount does to times and names.
#[test]
fn last_modified_does_not_move_with_times_and_names() {
    let house = House::with_base();
    house.root.put("/base/a", "x").ok();
    let session = house.store.session(&house.root_principal(), "base").unwrap();
    let modified = |key: &str| house.root.get(&format!("/base/{key}")).ok().header("last-modified").unwrap().to_owned();
    let before = modified("a");
    let ino = session.resolve(b"a").unwrap().ino;
    let old = mw_world::SetTime::At(86_400_000_000_001);
    session.set_attr(ino, &mw_world::SetAttr { mtime: Some(old), atime: Some(old), ..Default::default() }).unwrap();
    assert_eq!(modified("a"), before);
    session.rename(Ino::ROOT, b"a", Ino::ROOT, b"b", mw_world::RenameFlag::Replace).unwrap();
    assert_eq!(modified("b"), before);
    assert_eq!(session.attr(ino).unwrap().mtime, 86_400_000_000_001, "a mount shows what was set");
    mw_env::Env::real().sleep(std::time::Duration::from_millis(1_100));
    session.write(ino, mw_world::WriteAt::End, b"y").unwrap();
    assert_ne!(modified("b"), before);
}
