//! Forks of a mounted world, and what stays the same in them.

use crate::bed::{Mounted, bed, noise};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// C02: a fork of a busy mount is a prefix of what was written: A always at or ahead of B, and no block torn.
#[test]
fn a_fork_of_a_busy_mount_is_a_prefix() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let stop = AtomicBool::new(false);
    let write = |name: &str, i: u64| {
        let file = File::options().write(true).create(true).truncate(false).open(m.path(name)).unwrap();
        let block: Vec<u8> = i.to_be_bytes().repeat(1024);
        file.write_all_at(&block, 0).unwrap();
    };
    ["A", "B"].iter().for_each(|name| write(name, 0));
    std::thread::scope(|scope| {
        let stop = &stop;
        let write = &write;
        scope.spawn(move || {
            for i in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                ["A", "B"].iter().for_each(|name| write(name, i));
            }
        });
        // Names and other files are busy too.
        let at = &m;
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                fs::write(at.path("tmp"), "x").unwrap();
                fs::rename(at.path("tmp"), at.path("t")).unwrap();
            }
        });
        for n in 0..30 {
            let fork = format!("fork{n}");
            bed.fork("base", &fork);
            let value = |name: &str| {
                let block = bed.get(&fork, name).unwrap();
                assert_eq!(block.len(), 8192);
                assert!(block.chunks(8).all(|word| word == &block[..8]), "{name} is torn in {fork}");
                u64::from_be_bytes(block[..8].try_into().unwrap())
            };
            let (a, b) = (value("A"), value("B"));
            assert!(a == b || a == b + 1, "{fork}: {a} {b}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let big = noise(9, 16 << 20);
    fs::write(m.path("big"), &big).unwrap();
    bed.fork("base", "last");
    assert!(bed.get("last", "big").unwrap() == big);
}

fn stats(m: &Mounted, under: &Path) -> Vec<(String, u64, u64, i64, i64, i64, i64)> {
    let mut out = Vec::new();
    let mut dirs = vec![under.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(m.at.join(&dir)).unwrap() {
            let entry = entry.unwrap();
            let path = dir.join(entry.file_name());
            let s = fs::symlink_metadata(m.at.join(&path)).unwrap();
            if s.is_dir() {
                dirs.push(path.clone());
            }
            let name = path.to_str().unwrap().to_owned();
            out.push((name, s.ino(), s.len(), s.mtime(), s.mtime_nsec(), s.ctime(), s.ctime_nsec()));
        }
    }
    out.sort();
    out
}

/// C23: inode, size, mtime and ctime are the same after a remount and in a fork, so that git need not look at content.
#[test]
fn nothing_looks_modified_after_remount_or_fork() {
    let Some(bed) = bed() else { return };
    if !crate::bed::missing(Command::new("git").arg("--version").output().is_ok(), "git") {
        return;
    }
    let m = bed.mount("base", "m");
    let git = |dir: &Path, args: &[&str]| {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@t",
                "-c",
                "safe.directory=*",
                "-c",
                "init.defaultBranch=main",
            ])
            .arg("-C")
            .arg(dir)
            .args(args)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        crate::bed::succeeded(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    let repo = m.path("r");
    fs::create_dir(&repo).unwrap();
    git(&repo, &["init", "-q"]);
    for i in 0..50 {
        fs::create_dir_all(repo.join(format!("src/{}", i % 5))).unwrap();
        fs::write(repo.join(format!("src/{}/{i}", i % 5)), format!("file {i}\n").repeat(i)).unwrap();
    }
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "-qm", "one"]);
    git(&repo, &["update-index", "--refresh"]);
    assert_eq!(git(&repo, &["diff-files", "--name-only"]), "");
    let before = stats(&m, Path::new("r/src"));
    m.mount.unmount(false).unwrap();
    let m = bed.mount("base", "m");
    assert_eq!(git(&repo, &["diff-files", "--name-only"]), "");
    assert_eq!(stats(&m, Path::new("r/src")), before);
    bed.fork("base", "fork1");
    let f = bed.mount("fork1", "f");
    assert_eq!(git(&f.path("r"), &["diff-files", "--name-only"]), "");
    assert_eq!(stats(&f, Path::new("r/src")), before);
    git(&f.path("r"), &["fsck", "--strict"]);
    git(&f.path("r"), &["gc", "-q"]);
    assert_eq!(git(&f.path("r"), &["status", "--porcelain"]), "");
}
