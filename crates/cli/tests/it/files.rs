//! Files in and out: what travels, what replaces what, and where nothing is ever written.

use crate::bench::{Server, temp, write};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// What there is to say about a tree: a line for each path.
fn describe(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    let mut inodes: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    while let Some(dir) = waiting.pop() {
        let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        for path in names {
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            let mut line = format!("{:o} {}.{:09}", meta.mode(), meta.mtime(), meta.mtime_nsec());
            if meta.is_symlink() {
                line.push_str(&format!(" -> {:?}", fs::read_link(&path).unwrap()));
            } else if meta.is_file() {
                let content = fs::read(&path).unwrap();
                line.push_str(&format!(
                    " {} bytes, sum {}",
                    content.len(),
                    content.iter().map(|&b| u64::from(b)).sum::<u64>()
                ));
            } else if meta.is_dir() {
                waiting.push(path.clone());
            }
            found.insert(name.clone(), line);
            if !meta.is_dir() && meta.nlink() > 1 {
                inodes.entry(meta.ino()).or_insert(name);
            }
        }
    }
    let names: Vec<_> = found.keys().cloned().collect();
    for name in names {
        let meta = fs::symlink_metadata(root.join(OsStr::from_bytes(&name))).unwrap();
        if let Some(first) = inodes.get(&meta.ino()) {
            found.get_mut(&name).unwrap().push_str(&format!(" same file as {:?}", String::from_utf8_lossy(first)));
        }
    }
    found
}

fn set_time(path: &Path, seconds: i64) {
    let time = rustix::fs::Timespec { tv_sec: seconds, tv_nsec: 123_456_789 };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn make_tree(root: &Path) {
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::create_dir(root.join("private")).unwrap();
    write(root, "plain", "hello");
    write(root, "nothing", "");
    write(root, "sub/deep/script", "#!/bin/sh\n");
    write(root, "private/read-only", "x");
    fs::write(
        root.join("large"),
        (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>(),
    )
    .unwrap();
    fs::write(root.join(OsStr::from_bytes(b"odd \xff\n'\"name")), "odd").unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", 8 << 20).unwrap();
    sparse.set_len(16 << 20).unwrap();
    fs::hard_link(root.join("plain"), root.join("sub/hard")).unwrap();
    symlink("plain", root.join("link")).unwrap();
    symlink("/etc/passwd", root.join("away")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o640),
        0,
    )
    .unwrap();
    for (name, mode) in [
        ("sub/deep/script", 0o755),
        ("private/read-only", 0o444),
        ("plain", 0o640),
        ("empty", 0o1777),
        ("private", 0o500),
    ] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (at, name) in [
        "sub/deep/script",
        "private/read-only",
        "plain",
        "large",
        "link",
        "pipe",
        "sub/deep",
        "sub",
        "private",
        "empty",
    ]
    .iter()
    .enumerate()
    {
        set_time(&root.join(name), 1_000_000_000 + at as i64);
    }
}

#[test]
fn a_tree_round_trips_with_modes_links_times_and_holes() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let dir = temp();
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    make_tree(&source);
    let put = s.json(&["put", source.to_str().unwrap(), "mw://base/tree"]);
    assert_eq!(put["files"], 7, "{put}");
    let out = dir.path().join("out");
    s.json(&["get", "mw://base/tree", out.to_str().unwrap()]);
    assert_eq!(describe(&out), describe(&source));
    let sparse = fs::metadata(out.join("sparse")).unwrap();
    assert!(sparse.blocks() * 512 < 4 << 20, "the hole is kept: {} blocks", sparse.blocks());
    assert_eq!(fs::metadata(&out).unwrap().permissions(), fs::metadata(&source).unwrap().permissions());
    // A second time changes nothing.
    s.ok(&["put", source.to_str().unwrap(), "mw://base/tree"]);
    s.ok(&["get", "mw://base/tree", out.to_str().unwrap()]);
    assert_eq!(describe(&out), describe(&source));
    assert_eq!(s.json(&["ls", "-R", "mw://base/tree"])["entries"].as_array().unwrap().len(), describe(&source).len());
}

#[test]
fn many_small_files_cost_few_syncs() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let dir = temp();
    for n in 0..1_000 {
        let sub = dir.path().join(format!("d{}", n % 20));
        fs::create_dir_all(&sub).unwrap();
        write(&sub, &format!("f{n}"), &format!("file {n}"));
    }
    let put = s.json(&["put", dir.path().to_str().unwrap(), "mw://base/"]);
    assert_eq!((put["files"].as_u64(), put["directories"].as_u64()), (Some(1_000), Some(21)));
    assert_eq!(s.ok(&["cat", "mw://base/d7/f7"]), "file 7");
}

#[test]
fn a_file_lands_where_it_says() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let file = write(s.path(), "name", "one");
    let file = file.to_str().unwrap();
    s.ok(&["put", file, "mw://base/new/as"]);
    s.ok(&["put", file, "mw://base/new/"]);
    s.ok(&["put", file, "mw://base/new"]);
    s.ok(&["put", file, "mw://base"]);
    assert_eq!(s.ok(&["ls", "-R", "mw://base"]), "name\nnew/\nnew/as\nnew/name\n");
    let out = temp();
    let at = |name: &str| out.path().join(name).to_str().unwrap().to_owned();
    s.ok(&["get", "mw://base/new/as", &at("")]);
    s.ok(&["get", "mw://base/new/as", &at("other")]);
    assert_eq!(fs::read_to_string(at("as")).unwrap(), fs::read_to_string(at("other")).unwrap());
    assert_eq!(s.ok(&["get", "mw://base/new/as", "-"]), "one");
    let mut child = crate::bench::command(s.path())
        .args(["put", "-", "mw://base/piped"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through a pipe").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(s.ok(&["cat", "mw://base/piped"]), "through a pipe");
}

#[test]
fn copies_moves_and_removals() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    s.ok(&["world", "create", "other"]);
    s.put("mw://base/d/a", "aa");
    s.put("mw://base/d/b", "bb");
    assert_eq!(s.mw(&["cp", "mw://base/d", "mw://base/e"]).code, 1);
    s.ok(&["cp", "-r", "mw://base/d", "mw://base/e"]);
    s.ok(&["cp", "-r", "mw://base/d", "mw://other/from/base"]);
    s.ok(&["cp", "mw://base/d/a", "mw://other/"]);
    assert_eq!(s.ok(&["cat", "mw://base/e/a", "mw://other/from/base/b", "mw://other/a"]), "aabbaa");
    assert_eq!(s.mw(&["cp", "-r", "mw://base/d", "mw://base/d/inside"]).code, 2);
    s.ok(&["mv", "mw://base/e", "mw://base/f"]);
    s.ok(&["mv", "mw://base/f/a", "mw://base/d/c"]);
    assert_eq!(s.mw(&["mv", "mw://base/d/c", "mw://other/c"]).code, 1);
    assert_eq!(s.mw(&["rm", "mw://base/d"]).code, 1);
    s.ok(&["rm", "-r", "mw://base/d"]);
    assert_eq!(s.ok(&["ls", "-R", "mw://base"]), "f/\nf/b\n");
    assert_eq!(s.mw(&["rm", "mw://base/nothing"]).code, 4);
    s.ok(&["rm", "-r", "mw://base/"]);
    assert_eq!(s.ok(&["ls", "mw://base"]), "");
    let left = s.json(&["du", "base"]);
    assert_eq!((left["inodes"].as_u64(), left["bytes"].as_u64()), (Some(1), Some(0)), "{left}");
    s.ok(&["world", "delete", "base"]);
}

#[test]
fn links_are_never_followed() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let (dir, outside) = (temp(), temp());
    write(outside.path(), "secret", "kept");
    symlink(outside.path(), dir.path().join("x")).unwrap();
    symlink(outside.path().join("secret"), dir.path().join("y")).unwrap();
    s.ok(&["put", dir.path().to_str().unwrap(), "mw://base/"]);
    assert_eq!(s.mw(&["cat", "mw://base/y"]).code, 2);
    assert_eq!(s.mw(&["cat", "mw://base/x/secret"]).code, 4);
    // A put through a link of the world is refused on the server...
    let file = write(dir.path(), "file", "evil");
    let done = s.mw(&["put", file.to_str().unwrap(), "mw://base/x/secret"]);
    assert_eq!(done.code, 1, "{}", done.err);
    // ... and a get through a link of this machine here.
    let world = temp();
    fs::create_dir(world.path().join("x")).unwrap();
    write(&world.path().join("x"), "secret", "evil");
    s.ok(&["world", "create", "evil"]);
    s.ok(&["put", world.path().to_str().unwrap(), "mw://evil/"]);
    let target = temp();
    symlink(outside.path(), target.path().join("x")).unwrap();
    let done = s.mw(&["get", "mw://evil/", target.path().to_str().unwrap()]);
    assert_eq!(done.code, 5, "{}", done.err);
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "kept");
}

#[test]
fn odd_names_are_shown_and_found() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let dir = temp();
    fs::write(dir.path().join(OsStr::from_bytes(b"\xff\x1b[31m")), "odd").unwrap();
    s.ok(&["put", dir.path().to_str().unwrap(), "mw://base/"]);
    let listed = s.json(&["ls", "mw://base/"]);
    assert_eq!(listed["entries"][0]["path"], "\u{F7FF}\u{1b}[31m");
    assert!(!s.ok(&["ls", "mw://base/"]).contains('\x1b'));
    let mut command = crate::bench::command(s.path());
    command.arg("cat").arg(OsStr::from_bytes(b"mw://base/\xff\x1b[31m"));
    assert_eq!(crate::bench::Done::of(&mut command).out, "odd");
}
