//! Listing: while others come and go, over `seekdir`, big, in use.

use crate::bed::{Turns, bed, succeeded};
use mw_model::Ino;
use mw_world::At;
use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// C10: removing while listing removes all.
#[test]
fn a_big_directory_is_listed_and_removed() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("big")).unwrap();
    for i in 0..5000 {
        File::create(m.path(&format!("big/{i}"))).unwrap();
    }
    let names = m.names("big");
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 5000);
    assert_eq!(names.len(), 5000);
    let listed = Command::new("ls").arg("-fa").arg(m.path("big")).output().unwrap();
    assert_eq!(listed.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty()).count(), 5002);
    succeeded(&Command::new("rm").arg("-rf").arg(m.path("big")).output().unwrap());
    assert!(m.names("").is_empty());
}

/// A million names in one directory: made, each listed once, found, moved as one, and removed.
#[test]
#[ignore = "takes minutes: make soak"]
fn a_million_names_in_one_directory() {
    const NAMES: usize = 1_000_000;
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("wide")).unwrap();
    for i in 0..NAMES {
        File::create(m.path(&format!("wide/{i}"))).unwrap();
    }
    fs::rename(m.path("wide"), m.path("moved")).unwrap();
    assert!(!m.path("wide").exists());
    let mut seen = vec![false; NAMES];
    for entry in fs::read_dir(m.path("moved")).unwrap() {
        let number: usize = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        assert!(!std::mem::replace(&mut seen[number], true), "{number} is listed twice");
    }
    assert!(seen.iter().all(|seen| *seen), "every name is listed");
    for i in (0..NAMES).step_by(997) {
        assert_eq!(fs::metadata(m.path(&format!("moved/{i}"))).unwrap().len(), 0);
    }
    bed.fork("base", "fork");
    let fork = bed.mount("fork", "f");
    assert!(fork.path(&format!("moved/{}", NAMES - 1)).exists());
    fs::remove_dir_all(m.path("moved")).unwrap();
    assert!(m.names("").is_empty());
    assert!(fork.path("moved/0").exists(), "a fork keeps what its base removes");
}

/// C10: what stays is seen exactly once, whatever others do, on the mount and over S3.
#[test]
fn entries_that_stay_are_listed_once() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("c")).unwrap();
    for i in 0..1000 {
        File::create(m.path(&format!("c/s{i}"))).unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                File::create(m.path(&format!("c/x{i}"))).unwrap();
                fs::remove_file(m.path(&format!("c/x{i}"))).unwrap();
            }
        });
        scope.spawn(|| {
            for i in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                bed.put("base", &format!("c/a{i}"), b"x");
                bed.delete("base", &format!("c/a{i}"));
            }
        });
        for _ in 0..20 {
            let stable: Vec<_> = m.names("c").into_iter().filter(|name| name.starts_with('s')).collect();
            assert_eq!(stable.len(), 1000);
            assert_eq!(stable.iter().collect::<HashSet<_>>().len(), 1000);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// C10: a cookie is good after removals, and starting again shows what is there now.
#[test]
fn seekdir_and_rewinddir() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("d")).unwrap();
    for i in 0..200 {
        File::create(m.path(&format!("d/{i:03}"))).unwrap();
    }
    let mut dir =
        rustix::fs::Dir::new(rustix::fs::open(m.path("d"), rustix::fs::OFlags::DIRECTORY, 0.into()).unwrap()).unwrap();
    let mut all = Vec::new();
    while let Some(entry) = dir.read() {
        let entry = entry.unwrap();
        all.push((entry.file_name().to_owned(), entry.offset()));
    }
    assert_eq!(all.len(), 202);
    assert_eq!((all[0].0.to_bytes(), all[1].0.to_bytes()), (&b"."[..], &b".."[..]));
    for i in [0, 1, 2, 50, 199, 200] {
        dir.seek(all[i].1).unwrap();
        assert_eq!(dir.read().unwrap().unwrap().file_name(), all[i + 1].0.as_c_str());
    }
    for i in 0..100 {
        fs::remove_file(m.path(&format!("d/{i:03}"))).unwrap();
    }
    dir.seek(all[150].1).unwrap();
    assert_eq!(dir.read().unwrap().unwrap().file_name(), all[151].0.as_c_str());
    fs::write(m.path("d/new"), "").unwrap();
    dir.rewind();
    let mut now = Vec::new();
    while let Some(entry) = dir.read() {
        now.push(entry.unwrap().file_name().to_owned());
    }
    assert_eq!(now.len(), 103);
    assert!(now.iter().any(|name| name.to_bytes() == b"new"));
}

/// The kernel learns attributes from listings; from an old view it must not learn old ones.
#[test]
fn an_old_view_does_not_bring_old_attributes_back() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("d")).unwrap();
    for i in 0..500 {
        fs::write(m.path(&format!("d/{i:03}")), "old").unwrap();
    }
    let mut dir =
        rustix::fs::Dir::new(rustix::fs::open(m.path("d"), rustix::fs::OFlags::DIRECTORY, 0.into()).unwrap()).unwrap();
    for _ in 0..3 {
        dir.read().unwrap().unwrap();
    }
    for i in 0..500 {
        match i % 3 {
            0 => fs::write(m.path(&format!("d/{i:03}")), "new content").unwrap(),
            1 => fs::remove_file(m.path(&format!("d/{i:03}"))).unwrap(),
            _ => {
                fs::remove_file(m.path(&format!("d/{i:03}"))).unwrap();
                fs::write(m.path(&format!("d/{i:03}")), "again").unwrap();
            }
        }
    }
    while let Some(entry) = dir.read() {
        entry.unwrap();
    }
    for i in 0..500 {
        let path = m.path(&format!("d/{i:03}"));
        match i % 3 {
            0 => assert_eq!(fs::read_to_string(path).unwrap(), "new content"),
            1 => assert!(!path.exists()),
            _ => assert_eq!(fs::read_to_string(path).unwrap(), "again"),
        }
    }
}

/// What the kernel keeps of a listing goes with every change through another door, whether it knew the name or not, and also when
/// the change falls between two parts of a listing that it is keeping.
#[test]
fn a_kept_listing_hears_of_every_change_elsewhere() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    for i in 0..600 {
        bed.put("base", &format!("d/a-name-that-fills-pages-{i:03}"), b"x");
    }
    // Kept from here on.
    assert_eq!(m.names("d").len(), 600);
    assert_eq!(m.names("d").len(), 600);
    bed.put("base", "d/new", b"x");
    assert!(m.names("d").contains(&"new".to_owned()));
    bed.delete("base", "d/new");
    assert!(!m.names("d").contains(&"new".to_owned()));

    let session = bed.session("base");
    let rename = |from: &str, to: &str| {
        let d = session.lookup(Ino::ROOT, b"d").unwrap().ino;
        session.rename(d, from.as_bytes(), d, to.as_bytes(), mw_world::RenameFlag::Replace).unwrap();
    };
    for round in 0..40 {
        // Only part of it has been asked for when the name comes.
        let flags = rustix::fs::OFlags::DIRECTORY;
        let mut dir = rustix::fs::Dir::new(rustix::fs::open(m.path("d"), flags, 0.into()).unwrap()).unwrap();
        for _ in 0..1 + round * 15 {
            dir.read().unwrap().unwrap();
        }
        let name = format!("round-{round}");
        match round % 2 {
            0 => bed.put("base", &format!("d/{name}"), b"x"),
            _ => rename(&format!("round-{}", round - 1), &name),
        }
        while let Some(entry) = dir.read() {
            entry.unwrap();
        }
        let names = m.names("d");
        assert!(names.contains(&name), "{name}");
        assert_eq!(names.iter().filter(|name| name.starts_with("round-")).count(), 1 + round / 2);
    }
}

/// Whoever lists all the time fills what the kernel keeps at every moment, also just before it must go: no listing that begins after a
/// change, by another door or by a revert, may show what was there before.
#[test]
fn a_kept_listing_is_never_kept_late() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    for i in 0..60 {
        bed.put("base", &format!("d/a-name-that-fills-pages-{i:03}"), b"x");
    }
    let before = bed.session("base").snapshot(None, None).unwrap().version;
    let stop = AtomicBool::new(false);
    let late = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    m.names("d");
                }
            });
        }
        let mut late = Vec::new();
        for round in 0..150 {
            let name = format!("round-{round}");
            bed.put("base", &format!("d/{name}"), b"x");
            let listed = m.names("d");
            if !listed.contains(&name) {
                late.push(format!("{name} is missing among {}", listed.len()));
            }
            if round % 10 == 9 {
                bed.session("base").revert(At::Version(before)).unwrap();
                let listed = m.names("d").len();
                if listed != 60 {
                    late.push(format!("after {name}: {listed}"));
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        late
    });
    assert_eq!(late, Vec::<String>::new());
}

/// C06: a directory that someone is in does not go away under them.
#[test]
fn a_directory_in_use_stays() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("abc")).unwrap();
    bed.put("base", "p/q/r/f", b"x");
    for (dir, last) in [("abc", "abc/a.txt"), ("p/q/r", "p/q/r/f")] {
        let mut program = Turns::start(
            &m.path(dir),
            "open('a.txt','w').write('a') if os.getcwd().endswith('abc') else None\nturn()\nopen('b.txt','w').write('b')\nos.listdir('.')\n",
        );
        program.wait();
        bed.delete("base", last);
        program.finish();
        assert_eq!(bed.get("base", &format!("{dir}/b.txt")).as_deref(), Some(&b"b"[..]), "{dir}");
        assert_eq!(m.names(dir), ["b.txt"]);
    }
    fs::create_dir(m.path("keep")).unwrap();
    bed.fork("base", "fork3");
    assert!(bed.mount("fork3", "f").path("keep").is_dir());
}

#[test]
fn links_of_directories_are_counted() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let links = |name: &str| fs::metadata(m.path(name)).unwrap().nlink();
    fs::create_dir(m.path("d")).unwrap();
    assert_eq!(links("d"), 2);
    fs::create_dir(m.path("d/a")).unwrap();
    fs::create_dir(m.path("d/b")).unwrap();
    assert_eq!(links("d"), 4);
    fs::rename(m.path("d/a"), m.path("a")).unwrap();
    assert_eq!(links("d"), 3);
    fs::remove_dir(m.path("d/b")).unwrap();
    assert_eq!(links("d"), 2);
    let busy = fs::remove_dir(&m.at).unwrap_err();
    assert_eq!(busy.raw_os_error(), Some(rustix::io::Errno::BUSY.raw_os_error()));
    fs::write(m.path("d/f"), "").unwrap();
    let full = fs::remove_dir(m.path("d")).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::DirectoryNotEmpty);
}
