//! Making and ending mounts, and mounts whose server died.

use crate::bed::{Mounted, bed, is_root};
use mw_fuse::{Guard, MountOptions, clear_stale, guard_main, mount, switch};
use mw_model::ErrorKind;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn source_of(dir: &Path) -> Option<String> {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    table.lines().find(|line| line.split(' ').nth(1) == dir.to_str()).map(str::to_owned)
}

#[test]
fn a_mount_says_what_it_is() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let line = source_of(&m.at).unwrap();
    assert!(line.starts_with("manyworlds:base ") && line.contains(" fuse.mw rw,nosuid,nodev,"), "{line}");
    assert!(line.contains("default_permissions"), "{line}");
    assert_eq!((m.mount.dir(), m.mount.world(), m.mount.is_alive()), (m.at.as_path(), "base", true));
    let named = bed.mount_with("base", "n", &MountOptions { name: "run-7".into(), threads: 1, ..Default::default() });
    assert!(source_of(&named.at).unwrap().starts_with("manyworlds:run-7 "));
    fs::write(named.path("f"), "one thread is enough").unwrap();
    assert_eq!(fs::read_to_string(m.path("f")).unwrap(), "one thread is enough");
}

#[test]
fn a_busy_mount_is_unmounted_lazily_only() {
    let Some(bed) = bed() else { return };
    let Mounted { mount: m, at } = bed.mount("base", "m");
    let mut file = File::create(at.join("f")).unwrap();
    assert_eq!(m.unmount(false).unwrap_err().kind(), ErrorKind::Busy);
    assert!(at.join("f").exists());
    m.unmount(true).unwrap();
    assert!(!at.join("f").exists() && source_of(&at).is_none());
    // Who has it open goes on.
    file.write_all(b"late").unwrap();
    assert_eq!(bed.get("base", "f").unwrap(), b"late");
    assert!(m.is_alive());
    drop(file);
    m.join().unwrap();
    assert!(!m.is_alive());
    m.unmount(false).unwrap();
}

#[test]
fn an_unmount_by_somebody_else_is_noticed() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::write(m.path("f"), "x").unwrap();
    let tool = if rustix::process::geteuid().is_root() { "umount" } else { "fusermount3" };
    let mut command = Command::new(tool);
    if tool == "fusermount3" {
        command.arg("-u");
    }
    crate::bed::succeeded(&command.arg(&m.at).output().unwrap());
    m.mount.join().unwrap();
    assert!(!m.mount.is_alive());
    // The place is free, and ending the old mount does not end the new one.
    let again = bed.mount("base", "m");
    m.mount.unmount(false).unwrap();
    drop(m);
    assert_eq!(fs::read_to_string(again.path("f")).unwrap(), "x");
}

#[test]
fn a_place_is_refused_with_its_reason() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let refused = |dir: &Path| mount(bed.session("base"), dir, &MountOptions::default()).unwrap_err();
    let twice = refused(&m.at);
    assert_eq!(twice.kind(), ErrorKind::Busy);
    assert!(twice.to_string().contains("unmount it first"), "{twice}");
    assert_eq!(refused(&bed.dir.path().join("none")).kind(), ErrorKind::NotFound);
    let file = bed.dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(refused(&file).kind(), ErrorKind::NotDirectory);
    // A living mount is no stale one.
    clear_stale(&m.at).unwrap();
    assert!(source_of(&m.at).is_some());
}

#[test]
fn a_read_only_mount_changes_nothing() {
    let Some(bed) = bed() else { return };
    bed.put("base", "f", b"x");
    let m = bed.mount_with("base", "m", &MountOptions { read_only: true, ..Default::default() });
    assert_eq!(fs::read(m.path("f")).unwrap(), b"x");
    for refused in [fs::write(m.path("f"), "y"), fs::create_dir(m.path("d")), fs::remove_file(m.path("f"))] {
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    }
    bed.put("base", "f", b"newer");
    assert_eq!(fs::read(m.path("f")).unwrap(), b"newer");
}

/// Whoever looks finds the one world or the other, never the bare directory; what is open stays.
#[test]
fn a_switch_leaves_no_gap() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        return;
    }
    bed.put("base", "which", b"base");
    bed.fork("base", "fork");
    bed.put("fork", "which", b"fork");
    let Mounted { mount: mut mounted, at } = bed.mount("base", "m");
    let held = File::open(at.join("which")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let (mut seen, mut looks) = (std::collections::BTreeSet::new(), 0);
            while !stop.load(Ordering::Relaxed) {
                seen.insert(fs::read_to_string(at.join("which")).unwrap());
                looks += 1;
            }
            (seen, looks)
        });
        for turn in 0..20 {
            let world = ["fork", "base"][turn % 2];
            let next = switch(bed.session(world), &mounted, &MountOptions::default()).unwrap();
            mounted = next;
            assert_eq!(fs::read_to_string(at.join("which")).unwrap(), world);
            assert!(source_of(&at).unwrap().starts_with(&format!("manyworlds:{world} ")));
        }
        stop.store(true, Ordering::Relaxed);
        let (seen, looks) = looking.join().unwrap();
        assert!(looks > 20 && seen.len() == 2, "{looks} looks saw {seen:?}");
    });
    assert_eq!(std::io::read_to_string(&held).unwrap(), "base");
    // One mount is there and no other beneath it.
    mounted.unmount(false).unwrap();
    assert!(source_of(&at).is_none());
}

#[test]
fn a_mount_says_what_is_not_synced() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    assert_eq!(m.mount.unsynced(), 0);
    let before = m.mount.version();
    let mut file = File::create(m.path("f")).unwrap();
    file.write_all(&[1; 1000]).unwrap();
    assert!(m.mount.version() > before);
    file.sync_all().unwrap();
    assert_eq!(m.mount.unsynced(), 0);
}

#[test]
fn a_deleted_world_is_unmounted() {
    let Some(bed) = bed() else { return };
    bed.fork("base", "doomed");
    let m = bed.mount("doomed", "m");
    let mut file = File::create(m.path("f")).unwrap();
    file.write_all(b"x").unwrap();
    bed.store.delete_world(&bed.root, "doomed", true).unwrap();
    assert!(source_of(&m.at).is_none());
    assert_eq!(file.write_all(b"y").unwrap_err().raw_os_error(), Some(Errno::NODEV.raw_os_error()));
    assert_eq!(file.metadata().unwrap_err().raw_os_error(), Some(Errno::NODEV.raw_os_error()));
    drop(file);
    m.mount.join().unwrap();
}

/// C28: the server dies; the dead mount says so at once, is detached, and the place is mounted again.
#[test]
fn a_dead_mount_is_cleared() {
    let Some(bed) = bed() else { return };
    let at = bed.dir.path().join("m");
    fs::create_dir(&at).unwrap();
    let mut server = other_process("server_for_a_dead_mount", "MW_TEST_MOUNT", &at);
    fs::write(at.join("f"), "x").unwrap();
    let inside = File::open(&at).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(fs::read_dir(&at).unwrap_err().raw_os_error(), Some(Errno::NOTCONN.raw_os_error()));
    clear_stale(&at).unwrap();
    clear_stale(&at).unwrap();
    assert!(source_of(&at).is_none());
    let m = bed.mount("base", "m");
    fs::write(m.path("g"), "x").unwrap();
    assert_eq!(m.names(""), ["g"]);
    drop(inside);
}

/// Runs something of this file in a process of its own, until it says that it has mounted.
fn other_process(what: &str, variable: &str, value: &Path) -> Child {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("lifecycle::{what}"), "--ignored", "--nocapture"])
        .env(variable, value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("mounted")));
    process
}

/// The server is killed while it tells its mounts of one change after another, and programs wait in them with locks of the kernel held that the
/// telling waits for: it goes, and so do they.
#[test]
#[allow(clippy::disallowed_methods, reason = "the real kernel keeps no other time")]
fn a_killed_server_hangs_nobody() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        assert!(std::env::var_os("CI").is_none(), "this test needs root");
        eprintln!("skipped: it needs root");
        return;
    }
    for turn in 0..4u64 {
        let places = [bed.dir.path().join(format!("m{turn}")), bed.dir.path().join(format!("n{turn}"))];
        places.iter().for_each(|at| fs::create_dir(at).unwrap());
        let mut server = other_process("server_in_a_storm", "MW_TEST_MOUNTS", &places[0]);
        let script = "while :; do : >d/n$$ && mv d/n$$ d/r$$ && rm d/r$$ || exit; done";
        let programs = places
            .iter()
            .flat_map(|at| [at; 3])
            .map(|at| Command::new("sh").args(["-c", script]).current_dir(at).stderr(Stdio::null()).spawn().unwrap());
        let mut programs: Vec<_> = programs.collect();
        std::thread::sleep(Duration::from_millis(300 + 70 * turn));
        server.kill().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let mut stuck = None;
        for process in std::iter::once(&mut server).chain(&mut programs) {
            while process_lives(process) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            if process_lives(process) {
                stuck = Some(process.id());
            }
        }
        for at in &places {
            if stuck.is_some() {
                // So that the failure does not hang in its turn.
                let _ = Command::new("umount").arg("-f").arg(at).output();
            }
            clear_stale(at).unwrap();
            assert!(source_of(at).is_none());
        }
        assert_eq!(stuck, None, "a process hangs");
    }
}

fn process_lives(process: &mut Child) -> bool {
    process.try_wait().unwrap().is_none()
}

/// Not a test: the server that [`a_killed_server_hangs_nobody`] kills.
#[test]
#[ignore = "run by another test"]
fn server_in_a_storm() {
    let Some(at) = std::env::var_os("MW_TEST_MOUNTS").map(PathBuf::from) else { return };
    let Some(bed) = bed() else { return };
    let guard = Guard::new(|| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "lifecycle::guard_of_a_server", "--ignored"]);
        command.env("MW_TEST_SERVER", std::process::id().to_string());
        command
    });
    bed.put("base", "d/k0", b"x");
    let name = at.file_name().unwrap().to_str().unwrap().replace('m', "n");
    let options = MountOptions { guard: Some(guard), ..Default::default() };
    let _mounts = [at.clone(), at.with_file_name(name)].map(|at| mount(bed.session("base"), &at, &options).unwrap());
    println!("mounted");
    for turn in 0.. {
        bed.put("base", &format!("d/k{}", turn % 8), b"another");
    }
}

/// Not a test: the guard of [`server_in_a_storm`].
#[test]
#[ignore = "run by another test"]
fn guard_of_a_server() {
    let Ok(server) = std::env::var("MW_TEST_SERVER") else { return };
    guard_main(server.parse().unwrap()).unwrap();
}

/// Not a test: the process that [`a_dead_mount_is_cleared`] kills.
#[test]
#[ignore = "run by another test"]
fn server_for_a_dead_mount() {
    let Some(at) = std::env::var_os("MW_TEST_MOUNT").map(PathBuf::from) else { return };
    let Some(bed) = bed() else { return };
    let _mount = mount(bed.session("base"), &at, &MountOptions::default()).unwrap();
    println!("mounted");
    // Until the end of the parent, if it does not kill us.
    let _ = std::io::stdin().read(&mut [0]);
}
