//! Mounts with write-back (design/0022): what the kernel keeps to itself, when it gives that up, and what other doors do meanwhile.

use crate::bed::{Bed, Mounted, Turns, bed, bed_over, noise, python};
use crate::handover::hand_over;
use mw_fuse::{MountOptions, mount as mount_at, switch};
use mw_model::{ErrorKind, Ino};
use mw_world::{At, Options, PromoteOptions, Quota, Session, WriteAt, diff};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn writeback() -> MountOptions {
    MountOptions { writeback: true, ..MountOptions::default() }
}

fn mount(bed: &Bed) -> Mounted {
    bed.mount_with("base", "m", &writeback())
}

fn ino(path: &Path) -> Ino {
    Ino(fs::metadata(path).unwrap().ino())
}

/// Adds to a file as NFS does: under its inode number.
fn append(session: &Session, ino: Ino, bytes: &[u8]) {
    session.write(ino, WriteAt::End, bytes).unwrap();
}

/// Whoever has open what another door changed hears so.
fn refused<T: std::fmt::Debug>(result: std::io::Result<T>) {
    let errno = result.unwrap_err().raw_os_error();
    assert!([Errno::IO, Errno::STALE].map(|errno| Some(errno.raw_os_error())).contains(&errno), "{errno:?}");
}

/// Ends the others of a scope also when what it is in fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_kernel_keeps_writes_until_close_or_sync() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    let mut file = File::create(m.path("a")).unwrap();
    (0..100).for_each(|_| file.write_all(b"thirty bytes of text, not less").unwrap());
    assert_eq!(bed.get("base", "a").unwrap(), b"");
    file.sync_all().unwrap();
    assert_eq!(bed.get("base", "a").unwrap().len(), 3000);
    file.write_all(b"more").unwrap();
    assert_eq!(bed.get("base", "a").unwrap().len(), 3000);
    assert_eq!(fs::metadata(m.path("a")).unwrap().len(), 3004);
    drop(file);
    assert_eq!(bed.get("base", "a").unwrap().len(), 3004);
}

/// What a program wrote before the verb was called is in what the verb takes: by every kind of descriptor, none of them closed.
#[test]
fn whoever_takes_the_world_takes_what_was_written() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    fs::write(m.path("only"), [b'-'; 100]).unwrap();
    let mut program = Turns::start(
        &m.at,
        "
only = os.open('only', os.O_WRONLY); log = os.open('log', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
both = os.open('both', os.O_CREAT | os.O_RDWR); mem = os.open('mem', os.O_CREAT | os.O_RDWR); os.ftruncate(mem, 1 << 20)
mm = mmap.mmap(mem, 1 << 20); os.close(mem)
for i in range(20):
    b = b'%04d' % i
    os.pwrite(only, b, 10); os.write(log, b); os.pwrite(both, b * 300_000, 3); mm[5000 * i:5000 * i + 4] = b
    turn()
",
    );
    for i in 0..20 {
        program.wait();
        let fork = format!("fork{i}");
        let number = format!("{i:04}");
        let session = bed.session("base");
        let have = |key: &str| match i % 4 {
            0 | 1 => bed.get(&fork, key).unwrap(),
            _ => bed.get("base", key).unwrap(),
        };
        match i % 4 {
            0 => bed.fork("base", &fork),
            1 => {
                let version = session.snapshot(None, None).unwrap().version;
                let options = mw_world::ForkOptions { at: Some(At::Version(version)), ..Default::default() };
                bed.store.fork(&bed.root, "base", &fork, &options).unwrap();
            }
            2 => {
                let before = session.shown();
                let then = bed.store.session_at(&bed.root, "base", At::Version(before)).unwrap();
                let changes = diff(&then, &session).unwrap();
                assert!(changes.iter().any(|change| change.path.ends_with(b"log")), "{changes:?}");
            }
            _ => {
                bed.fork("base", &fork);
                bed.put(&fork, "brought", number.as_bytes());
                bed.session(&fork).promote(&PromoteOptions::default()).unwrap();
                assert_eq!(bed.get("base", "brought").unwrap(), number.as_bytes());
            }
        }
        assert_eq!(&have("only")[8..16], format!("--{number}--").as_bytes());
        assert_eq!(have("log"), (0..=i).flat_map(|n| format!("{n:04}").into_bytes()).collect::<Vec<_>>());
        assert_eq!(have("both")[3..], *number.repeat(300_000).as_bytes());
        assert_eq!(&have("mem")[5000 * i..5000 * i + 4], number.as_bytes());
        program.next();
    }
    drop(program);
}

/// While programs go on writing, a fork has everything up to its call.
#[test]
fn a_fork_of_a_busy_mount_has_all_before_it() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    let (stop, written) = (AtomicBool::new(false), [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)]);
    std::thread::scope(|scope| {
        let (stop, m) = (&stop, &m);
        for (n, written) in written.iter().enumerate() {
            scope.spawn(move || {
                let file = OpenOptions::new().create_new(true).write(true).open(m.path(&format!("w{n}"))).unwrap();
                let mut i = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    i += 1;
                    // Over the whole of a few hundred pages, so that each is dirty again and again. No number lies in two of them, which may
                    // be of two turns: half of 65,535 and half of 65,536 is 0.
                    file.write_all_at(&i.to_be_bytes().repeat(50_000), 8 * n as u64).unwrap();
                    file.write_all_at(&i.to_be_bytes(), 500_000).unwrap();
                    written.store(i, Ordering::SeqCst);
                }
            });
        }
        let _stop = Stop(stop);
        let mut last = [0; 3];
        for turn in 0..30 {
            // Each has written anew since the last fork.
            let mut before = [0; 3];
            for (n, written) in written.iter().enumerate() {
                while before[n] <= last[n] {
                    std::thread::yield_now();
                    before[n] = written.load(Ordering::SeqCst);
                }
            }
            last = before;
            let fork = format!("fork{turn}");
            bed.fork("base", &fork);
            for (n, before) in before.iter().enumerate() {
                let bytes = bed.get(&fork, &format!("w{n}")).unwrap();
                let words = bytes[8 * n..8 * n + 400_000].chunks(8).chain([&bytes[500_000..500_008]]);
                let oldest = words.map(|word| u64::from_be_bytes(word.try_into().unwrap())).min().unwrap();
                assert!(oldest >= *before, "{fork} has {oldest} of w{n}, and {before} was written");
            }
        }
    });
}

/// What the store has of a file is what the kernel shows.
fn agree(bed: &Bed, path: &Path) {
    let (seen, ino) = (fs::metadata(path).unwrap(), ino(path));
    let attr = bed.session("base").attr(ino).unwrap();
    let time = |seconds: i64, part: i64| seconds * 1_000_000_000 + part;
    let times = (time(seen.mtime(), seen.mtime_nsec()), time(seen.ctime(), seen.ctime_nsec()));
    assert_eq!((seen.len(), times), (attr.size, (attr.mtime, attr.ctime)), "{}", path.display());
    let bytes = bed.session("base").read(ino, 0, 8 << 20).unwrap();
    assert!(fs::read(path).unwrap() == bytes, "{}", path.display());
}

#[test]
fn what_other_doors_change_is_seen_at_once() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    let session = bed.session("base");
    fs::create_dir(m.path("d")).unwrap();
    let names = ["f", "d/other", "d/third"].map(|name| m.path(name));
    fs::write(&names[0], "first").unwrap();
    names[1..].iter().for_each(|name| fs::hard_link(&names[0], name).unwrap());
    names.iter().for_each(|name| agree(&bed, name));
    let file = ino(&names[0]);
    for turn in 0..30 {
        // By turns the first to look is another name, or a listing.
        append(&session, file, b" and more");
        if turn % 4 == 3 {
            assert_eq!(m.names("d"), ["other", "third"]);
        }
        (0..3).for_each(|n| agree(&bed, &names[(turn + n) % 3]));
        assert_eq!(ino(&names[0]), file);
        // The mount writes it too, and then another door again.
        OpenOptions::new().append(true).open(&names[turn % 3]).unwrap().write_all(b"!").unwrap();
        agree(&bed, &names[0]);
        bed.put("base", "s", noise(turn as u64, 1000 * turn).as_slice());
        agree(&bed, &m.path("s"));
    }
    assert_eq!(fs::read(&names[2]).unwrap().len(), 5 + 30 * 10);
    // The whole world, in few records and in many.
    for files in [3, 600] {
        (0..files).for_each(|n| fs::write(m.path(&format!("r{n}")), "short").unwrap());
        let before = session.snapshot(None, None).unwrap().version;
        (0..files).for_each(|n| fs::write(m.path(&format!("r{n}")), format!("something longer {n}")).unwrap());
        fs::write(&names[0], "cut").unwrap();
        session.revert(At::Version(before)).unwrap();
        (0..files).for_each(|n| agree(&bed, &m.path(&format!("r{n}"))));
        agree(&bed, &names[1]);
        bed.fork("base", &format!("fork{files}"));
        let fork = bed.session(&format!("fork{files}"));
        (0..files).for_each(|n| append(&fork, ino(&m.path(&format!("r{n}"))), b", brought"));
        fork.promote(&PromoteOptions::default()).unwrap();
        (0..files).for_each(|n| agree(&bed, &m.path(&format!("r{n}"))));
        assert_eq!(fs::read(m.path("r1")).unwrap(), b"short, brought");
    }
}

/// Look-ups that race with changes of size leave no old size behind.
#[test]
fn late_answers_bring_back_no_old_size() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    let session = bed.session("base");
    fs::create_dir(m.path("d")).unwrap();
    for n in 0..4 {
        bed.put("base", &format!("d/{n}"), b"x");
    }
    let files: Vec<Ino> = (0..4).map(|n| ino(&m.path(&format!("d/{n}")))).collect();
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let m = &m;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    for n in 0..4 {
                        let _ = fs::metadata(m.path(&format!("d/{n}")));
                        let _ = fs::read(m.path(&format!("d/{n}")));
                    }
                    let _ = fs::read_dir(m.path("d")).map(Iterator::count);
                }
            });
        }
        let _stop = Stop(done);
        for turn in 0..400 {
            let name = m.path(&format!("d/{}", turn % 4));
            append(&session, files[turn % 4], b"y");
            let (size, there) = (fs::metadata(&name).unwrap().len(), 2 + turn as u64 / 4);
            assert_eq!(size, there, "change {turn}");
            // Forgotten in between, so that the kernel begins anew.
            if turn % 40 == 0 {
                let _ = fs::write("/proc/sys/vm/drop_caches", "2");
            }
        }
    });
}

/// Who has a file open that another door changes gets errors, and its bytes do not come after the other's; nobody else notices.
#[test]
fn who_has_open_what_another_door_changes_hears_so() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    let session = bed.session("base");
    let open =
        |name: &str| OpenOptions::new().read(true).write(true).create(true).truncate(false).open(m.path(name)).unwrap();
    for name in ["changed", "put", "renamed", "aside"] {
        fs::write(m.path(name), vec![b'a'; 10_000]).unwrap();
    }
    let (changed, put, renamed, aside) = (open("changed"), open("put"), open("renamed"), open("aside"));
    for file in [&changed, &put, &renamed, &aside] {
        file.write_all_at(b"MINE", 5000).unwrap();
    }
    append(&session, ino(&m.path("changed")), b"theirs");
    bed.put("base", "put", b"theirs");
    fs::rename(m.path("renamed"), m.path("elsewhere")).unwrap();
    let mut byte = [0; 4];
    refused(changed.read_at(&mut byte, 0));
    refused(changed.write_at(b"x", 0));
    refused(changed.sync_all());
    assert!(changed.metadata().is_err() && changed.set_len(1).is_err());
    assert_eq!(fs::read(m.path("changed")).unwrap(), [&[b'a'; 10_000][..], b"theirs"].concat());
    // The rest is as on any mount: the old file under its descriptor, the new one under the name.
    for file in [&put, &renamed, &aside] {
        file.read_exact_at(&mut byte, 5000).unwrap();
        assert_eq!(&byte, b"MINE");
        file.write_all_at(b"more", 10_000).unwrap();
        file.sync_all().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 10_004);
    }
    assert_eq!(fs::read(m.path("put")).unwrap(), b"theirs");
    assert_eq!(bed.get("base", "elsewhere").unwrap().len(), 10_004);
    // Opened anew it is a file like any other.
    let again = open("changed");
    again.write_all_at(b"MINE", 0).unwrap();
    drop((again, changed));
    assert_eq!(bed.get("base", "changed").unwrap()[..4], *b"MINE");
    // A promote takes what it finds, changes what it brings, and leaves the rest alone.
    bed.fork("base", "fork");
    let (brought, left) = (open("changed"), open("aside"));
    append(&bed.session("fork"), ino(&m.path("changed")), b", brought");
    left.write_all_at(b"left", 20_000).unwrap();
    bed.session("fork").promote(&PromoteOptions::default()).unwrap();
    refused(brought.read_at(&mut byte, 0));
    left.write_all_at(b"alone", 20_004).unwrap();
    drop((brought, left));
    assert!(fs::read(m.path("aside")).unwrap().ends_with(b"leftalone"));
    assert!(fs::read(m.path("changed")).unwrap().ends_with(b"theirs, brought"));
}

/// What the store refuses is told to whoever wrote it, also when a fork had it sent.
#[test]
fn what_does_not_fit_is_told() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    bed.session("base").set_quota(Quota { bytes: Some(1 << 20), ..Quota::default() }).unwrap();
    let mut program = Turns::start(
        &m.at,
        "
import errno
def fails(call, *with_):
    try: call(*with_)
    except OSError as e: assert e.errno == errno.ENOSPC, e
    else: raise AssertionError('no error')
big = b'x' * (3 << 20)
a = os.open('a', os.O_CREAT | os.O_WRONLY); os.write(a, big); fails(os.close, a)
b = os.open('b', os.O_CREAT | os.O_RDWR); os.write(b, big); fails(os.fsync, b); os.close(b)
c = os.open('c', os.O_CREAT | os.O_WRONLY); os.write(c, big)
turn()
fails(os.close, c)
os.unlink('a'); os.unlink('b'); os.unlink('c')
d = os.open('d', os.O_CREAT | os.O_WRONLY); os.write(d, b'fits'); os.fsync(d); os.close(d)
",
    );
    program.wait();
    bed.fork("base", "fork");
    assert!(bed.get("fork", "c").unwrap().len() < 1 << 20);
    program.finish();
    assert_eq!(bed.get("base", "d").unwrap(), b"fits");
}

#[test]
fn it_is_the_only_mount_of_its_world() {
    let Some(bed) = bed() else { return };
    let at = |name: &str| {
        let at = bed.dir.path().join(name);
        fs::create_dir_all(&at).unwrap();
        at
    };
    let busy = |result: mw_fuse::Result<mw_fuse::Mount>, why: &str| {
        let error = result.unwrap_err();
        assert!(error.kind() == ErrorKind::Busy && error.to_string().contains(why), "{error}");
    };
    let m = mount(&bed);
    fs::write(m.path("f"), "x").unwrap();
    busy(mount_at(bed.session("base"), &at("n"), &MountOptions::default()), "is mounted with write-back");
    busy(mount_at(bed.session("base"), &at("n"), &writeback()), "is mounted already");
    busy(switch(bed.session("base"), &m.mount, &MountOptions::default()), "is mounted with write-back");
    // An instant, and another world.
    let version = bed.session("base").shown();
    let then = bed.store.session_at(&bed.root, "base", At::Version(version)).unwrap();
    let past = mount_at(then, &at("past"), &MountOptions::default()).unwrap();
    bed.fork("base", "fork");
    let fork = mount_at(bed.session("fork"), &at("fork"), &MountOptions::default()).unwrap();
    busy(mount_at(bed.session("fork"), &at("n"), &writeback()), "is mounted already");
    assert_eq!(fs::read(at("past").join("f")).unwrap(), b"x");
    // What was refused left nothing behind.
    assert!(fs::read_dir(at("n")).unwrap().next().is_none());
    m.mount.unmount(false).unwrap();
    let n = mount_at(bed.session("base"), &at("n"), &MountOptions::default()).unwrap();
    busy(mount_at(bed.session("base"), &at("m"), &writeback()), "is mounted already");
    n.unmount(false).unwrap();
    // Nothing can be written through these.
    let then = bed.store.session_at(&bed.root, "base", At::Version(version)).unwrap();
    let read_only = MountOptions { read_only: true, ..writeback() };
    for result in [mount_at(then, &at("n"), &writeback()), mount_at(bed.session("base"), &at("n"), &read_only)] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid);
    }
    // And where something else was mounted.
    let switched = switch(bed.session("base"), &fork, &writeback()).unwrap();
    assert!(switched.writes_back() && !fork.writes_back());
    fs::write(at("fork").join("g"), "y").unwrap();
    assert_eq!(bed.get("base", "g").unwrap(), b"y");
    drop((past, switched));
}

/// What the kernel shows of a file is what it finds when it has forgotten the file, however bytes and times came.
#[test]
fn size_and_times_are_the_same_after_a_remount() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    python(
        &m.at,
        "
import os,time
for n in range(40):
    f = os.open('f%d' % n, os.O_CREAT | os.O_RDWR)
    for part in range(3):
        os.pwrite(f, b'x' * (100_000 * (1 + n % 7)), part * 700_000)
        if n % 3 == part: os.sync()
        if n % 5 == part: os.sync_file_range(f, 0, 0, 2) if hasattr(os, 'sync_file_range') else os.sync()
    if n % 4 == 0: os.fsync(f)
    if n % 6 == 0: os.utime(f, ns=(5, 1234567890123456789))
    if n % 8 == 0: os.fchmod(f, 0o600)
    os.close(f)
    if n % 9 == 0: os.link('f%d' % n, 'l%d' % n)
    if n % 10 == 0: os.truncate('f%d' % n, 12345)
    if n % 11 == 0: os.rename('f%d' % n, 'r%d' % n); os.rename('r%d' % n, 'f%d' % n)
",
    );
    let stats = || -> Vec<_> {
        let stat = |name: &String| {
            let s = fs::metadata(m.path(name)).unwrap();
            (name.clone(), s.ino(), s.len(), (s.mtime(), s.mtime_nsec()), (s.ctime(), s.ctime_nsec()))
        };
        m.names("").iter().map(stat).collect()
    };
    let seen = stats();
    m.names("").iter().for_each(|name| agree(&bed, &m.path(name)));
    m.mount.unmount(false).unwrap();
    let _again = bed.mount("base", "m");
    assert_eq!(stats(), seen);
}

/// The kernel asks where data lies without sending what it holds; a copy has the bytes all the same.
#[test]
fn what_the_kernel_holds_is_no_hole() {
    let Some(bed) = bed() else { return };
    let m = mount(&bed);
    let big = noise(3, 3 << 20);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(m.path("a")).unwrap();
    file.write_all_at(&big, 1 << 20).unwrap();
    let copied =
        std::process::Command::new("cp").args(["--sparse=auto", "a", "b"]).current_dir(&m.at).output().unwrap();
    crate::bed::succeeded(&copied);
    assert!(fs::read(m.path("b")).unwrap()[1 << 20..] == big);
    assert_eq!(rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(1 << 20)), Ok(1 << 20));
    assert_eq!(rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(0)), Ok(4 << 20));
}

/// A server hands the mount over with what the kernel holds, and with what it must make anew.
#[test]
fn the_next_server_goes_on() {
    let segments: Arc<dyn mw_segments::Segments> = Arc::new(mw_segments::Memory::new());
    let Some(bed) = bed_over(segments.clone(), Options::default().memory) else { return };
    let m = mount(&bed);
    fs::write(m.path("changed"), "old").unwrap();
    let (held, mut file) = (File::open(m.path("changed")).unwrap(), File::create(m.path("f")).unwrap());
    append(&bed.session("base"), ino(&m.path("changed")), b" and new");
    file.write_all(b"before ").unwrap();
    let (store, next, at) = hand_over(&bed, segments, m, &writeback());
    let session = |world: &str| store.session(&bed.root, world).unwrap();
    let mut byte = [0];
    refused(held.read_at(&mut byte, 0));
    assert_eq!(fs::read(at.join("changed")).unwrap(), b"old and new");
    file.write_all(b"after").unwrap();
    store.fork(&bed.root, "base", "fork", &mw_world::ForkOptions::default()).unwrap();
    let fork = session("fork");
    assert_eq!(fork.read(ino(&at.join("f")), 0, 100).unwrap(), &b"before after"[..]);
    append(&session("base"), ino(&at.join("changed")), b"er");
    assert_eq!(fs::read(at.join("changed")).unwrap(), b"old and newer");
    drop((held, file));
    next.unmount(false).unwrap();
}
