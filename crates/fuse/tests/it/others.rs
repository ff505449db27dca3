//! Changes through other doors and other mounts: seen at once, and no two mounts wait for each other.

use crate::bed::{bed, noise};
use mw_world::At;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};

/// C09: after S3 answered, the mount has the new bytes and the new size.
#[test]
fn an_s3_write_is_seen_at_once() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let versions = [noise(1, 10), noise(2, 100_000), b"c\n".to_vec()];
    for round in 0..30 {
        for version in &versions {
            bed.put("base", "s", version);
            assert!(fs::read(m.path("s")).unwrap() == *version, "round {round}");
            assert_eq!(fs::metadata(m.path("s")).unwrap().len(), version.len() as u64);
        }
    }
    assert!(!m.path("new").exists());
    bed.put("base", "new", b"1");
    assert!(m.path("new").exists());
    bed.put("base", "d/n0", b"0");
    assert_eq!(m.names("d"), ["n0"]);
    bed.put("base", "d/n1", b"1");
    assert_eq!(m.names("d"), ["n0", "n1"]);
    bed.delete("base", "s");
    assert_eq!(fs::read(m.path("s")).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    // The other way round: no flush, no close.
    let mut file = fs::File::create(m.path("y")).unwrap();
    file.write_all(b"x").unwrap();
    assert_eq!(bed.get("base", "y").unwrap(), b"x");
}

/// C08: a reader has one version from the first byte to the last.
#[test]
fn a_reader_sees_one_version() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let versions = [vec![b'a'; 700_000], vec![b'b'; 300_000]];
    bed.put("base", "o", &versions[0]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..200 {
                bed.put("base", "o", &versions[i % 2]);
            }
        });
        for _ in 0..200 {
            let read = fs::read(m.path("o")).unwrap();
            assert!(versions.contains(&read), "{} bytes, mixed", read.len());
        }
    });
}

/// A change through one mount is there on the other when the call has returned.
#[test]
fn two_mounts_agree_at_once() {
    let Some(bed) = bed() else { return };
    let (a, b) = (bed.mount("base", "a"), bed.mount("base", "b"));
    for i in 0..100 {
        let (from, to) = if i % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let text = "x".repeat(i);
        fs::write(from.path("f"), &text).unwrap();
        assert_eq!(fs::read_to_string(to.path("f")).unwrap(), text);
        let name = format!("n{i}");
        assert!(!to.path(&name).exists());
        fs::create_dir(from.path(&name)).unwrap();
        assert!(to.path(&name).is_dir());
        fs::rename(to.path(&name), to.path("moved")).unwrap();
        assert!(!from.path(&name).exists() && from.path("moved").exists());
        fs::remove_dir(from.path("moved")).unwrap();
        assert!(!to.path("moved").exists());
    }
    // Without a truncation in between, so that nothing but the notification drops the pages.
    let (x, y) = (
        OpenOptions::new().read(true).write(true).open(a.path("f")).unwrap(),
        OpenOptions::new().read(true).write(true).open(b.path("f")).unwrap(),
    );
    for i in 0..100u8 {
        let (from, to) = if i % 2 == 0 { (&x, &y) } else { (&y, &x) };
        from.write_all_at(&[i; 50], 0).unwrap();
        let mut seen = [0; 50];
        to.read_exact_at(&mut seen, 0).unwrap();
        assert_eq!(seen, [i; 50]);
    }
    // Attributes.
    for i in 0..50 {
        let (from, to) = if i % 2 == 0 { (&a, &b) } else { (&b, &a) };
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(from.path("f"), fs::Permissions::from_mode(0o600 + i)).unwrap();
        assert_eq!(fs::metadata(to.path("f")).unwrap().mode() & 0o777, 0o600 + i);
    }
}

/// Two mounts that change one directory and one file at the same time, with S3 between them, come to an end and agree.
#[test]
fn two_busy_mounts_do_not_wait_for_each_other() {
    let Some(bed) = bed() else { return };
    let mounts = [bed.mount("base", "a"), bed.mount("base", "b")];
    fs::create_dir(mounts[0].path("d")).unwrap();
    fs::write(mounts[0].path("shared"), vec![0; 8192]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let m = &mounts[thread % 2];
            scope.spawn(move || {
                let shared = OpenOptions::new().read(true).write(true).open(m.path("shared")).unwrap();
                for i in 0..60 {
                    let (old, new) = (m.path(&format!("d/{thread}-{i}")), m.path(&format!("d/{thread}-{i}-new")));
                    fs::write(&old, "x").unwrap();
                    shared.write_all_at(&[thread as u8; 100], 100 * thread as u64).unwrap();
                    fs::rename(&old, &new).unwrap();
                    fs::metadata(&new).unwrap();
                    if i % 3 == 0 {
                        fs::remove_file(&new).unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            for i in 0..60 {
                bed.put("base", &format!("d/s3-{i}"), b"x");
            }
        });
    });
    assert_eq!(mounts[0].names("d").len(), 6 * 40 + 60);
    assert_eq!(mounts[0].names("d"), mounts[1].names("d"));
    let shared = bed.get("base", "shared").unwrap();
    for thread in 0..6 {
        assert!(shared[100 * thread..100 * (thread + 1)].iter().all(|b| usize::from(*b) == thread));
    }
    for m in &mounts {
        assert!(fs::read(m.path("shared")).unwrap() == shared);
    }
}

/// Look-ups that race with changes leave nothing old behind.
#[test]
fn late_answers_do_not_bring_back_the_past() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let done = &std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let m = &m;
            scope.spawn(move || {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    for i in 0..4 {
                        let _ = fs::metadata(m.path(&format!("d/{i}")));
                        let _ = fs::read(m.path(&format!("d/{i}")));
                    }
                    let _ = fs::read_dir(m.path("d")).map(Iterator::count);
                }
            });
        }
        for i in 0..300 {
            let key = format!("d/{}", i % 4);
            let content = vec![b'x'; 1 + i % 97];
            bed.put("base", &key, &content);
            let seen = fs::read(m.path(&key)).unwrap();
            assert_eq!(seen.len(), content.len(), "put {i}");
            if i % 5 == 4 {
                bed.delete("base", &key);
                assert!(!m.path(&key).exists(), "delete {i}");
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Everything may change at once: a revert is seen when it has returned, also where the kernel remembers that there was nothing.
#[test]
fn a_revert_is_seen_at_once() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("d")).unwrap();
    fs::write(m.path("d/kept"), "first").unwrap();
    fs::write(m.path("d/removed"), "there").unwrap();
    let before = bed.session("base").snapshot(None, None).unwrap().version;
    fs::write(m.path("d/kept"), "second").unwrap();
    fs::remove_file(m.path("d/removed")).unwrap();
    fs::write(m.path("d/added"), "").unwrap();
    assert!(!m.path("d/removed").exists());
    bed.session("base").revert(At::Version(before)).unwrap();
    assert_eq!(m.names("d"), ["kept", "removed"]);
    assert_eq!(fs::read_to_string(m.path("d/removed")).unwrap(), "there");
    assert_eq!(fs::read_to_string(m.path("d/kept")).unwrap(), "first");
    assert!(!m.path("d/added").exists());
}
