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

/// C02: a write(2) that the kernel sends in pieces is in a fork whole or not at all: unaligned over pages that it does not know, of
/// several MiB, appended, and of many segments.
#[test]
fn no_write_is_torn_by_a_fork() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    const WRITER: &str = "
import os
whole = os.open('large', os.O_CREAT | os.O_WRONLY)
odd = os.open('odd', os.O_CREAT | os.O_WRONLY)
log = os.open('log', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
segments = os.open('segments', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
os.pwrite(odd, bytes(1 << 20), 0)
print('ready', flush=True)
for i in range(1, 1 << 30):
    b = bytes([i % 251])
    os.pwrite(whole, b * (3 << 20), 0)
    for at in range(100, 1 << 20, 50_000):
        os.pwrite(odd, b * 10_000, at)
    if i % 8 == 0:
        # What is read back must not outgrow the reader.
        if i % 64 == 0:
            os.ftruncate(log, 0)
            os.ftruncate(segments, 0)
        os.write(log, b * (2 << 20))
        os.writev(segments, [b * 7] * 700)
";
    let mut writer = Command::new("python3")
        .args(["-c", WRITER])
        .current_dir(&m.at)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = writer.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    let alike = |bytes: &[u8]| bytes.iter().all(|b| *b == bytes[0]);
    for n in 0..40 {
        let fork = format!("fork{n}");
        bed.fork("base", &fork);
        if let Some(large) = bed.get(&fork, "large").filter(|large| !large.is_empty()) {
            assert_eq!(large.len(), 3 << 20, "{fork}");
            assert!(alike(&large), "the large write is torn in {fork}");
        }
        let odd = bed.get(&fork, "odd").unwrap();
        for at in (100..1 << 20).step_by(50_000) {
            let end = (at + 10_000).min(odd.len());
            assert!(alike(&odd[at..end]), "the write at {at} is torn in {fork}");
        }
        for (name, each) in [("log", 2 << 20), ("segments", 4900)] {
            let log = bed.get(&fork, name).unwrap();
            assert_eq!(log.len() % each, 0, "{name} ends in part of a write in {fork}");
        }
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
}

/// A program that wrote last up to the end of a page and does nothing since does not hold a fork up.
#[test]
#[allow(clippy::disallowed_methods, reason = "the real kernel keeps no other time")]
fn an_idle_writer_holds_no_fork_up() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let file = File::create(m.path("idle")).unwrap();
    file.write_all_at(&[1; 4096], 0).unwrap();
    std::thread::scope(|scope| {
        let forked = scope.spawn(|| {
            bed.fork("base", "fork");
            fs::read(bed.mount("fork", "fork").path("idle")).unwrap()
        });
        let start = std::time::Instant::now();
        while !forked.is_finished() {
            assert!(start.elapsed() < std::time::Duration::from_secs(60), "the fork hangs");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(forked.join().unwrap(), [1; 4096]);
    });
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
                // Nothing in the background: it would hold the mount when it is unmounted.
                "-c",
                "maintenance.auto=false",
                "-c",
                "gc.auto=0",
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
