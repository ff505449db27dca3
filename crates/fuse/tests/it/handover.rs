//! Mounts that stand still, go on, and are handed over to another server.

use crate::bed::{Bed, Mounted, Turns, bed, bed_over, noise, python};
use mw_env::Env;
use mw_fuse::{Mount, MountOptions, adopt};
use mw_world::{Options, Store};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

fn halt(mount: &Mount) {
    mount.quiet(LIMIT).unwrap();
    mount.halt(LIMIT).unwrap();
    mount.give_back().unwrap();
}

#[test]
fn programs_wait_while_a_mount_stands_still_and_then_go_on() {
    let Some(bed) = bed() else { return };
    let (m, n) = (bed.mount("base", "m"), bed.mount("base", "n"));
    let stop = AtomicBool::new(false);
    // Each change through one mount is a notification to the other, and each looks at what the other does.
    let work = |mine: &Mounted, other: &Mounted, name: &str| {
        let mut turns = 0;
        let mut log = File::create(mine.path(name)).unwrap();
        while !stop.load(Ordering::Relaxed) {
            writeln!(log, "{turns}").unwrap();
            log.sync_data().unwrap();
            fs::write(mine.path("both"), format!("{name} {turns}")).unwrap();
            fs::rename(mine.path("both"), mine.path(&format!("{name}.last"))).unwrap_or_default();
            let _ = fs::read(other.path("both"));
            turns += 1;
        }
        turns
    };
    std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(|| work(&m, &n, "a")), scope.spawn(|| work(&n, &m, "b")));
        for turn in 0..20 {
            m.mount.quiet(LIMIT).unwrap();
            n.mount.quiet(LIMIT).unwrap();
            if turn % 3 > 0 {
                m.mount.halt(LIMIT).unwrap();
                n.mount.halt(LIMIT).unwrap();
            }
            m.mount.go_on().unwrap();
            n.mount.go_on().unwrap();
            let since = m.mount.version();
            while m.mount.version() == since {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        for (name, turns) in [("a", a.join().unwrap()), ("b", b.join().unwrap())] {
            let lines: String = (0..turns).map(|n| format!("{n}\n")).collect();
            assert_eq!(fs::read_to_string(m.path(name)).unwrap(), lines);
            assert_eq!(fs::read_to_string(n.path(name)).unwrap(), lines);
        }
    });
    m.mount.unmount(false).unwrap();
    n.mount.unmount(false).unwrap();
}

/// Opens the store of `bed` once more, as the next server does, and goes on with the mount, which was made as `how` says.
pub fn hand_over(
    bed: &Bed,
    segments: Arc<dyn mw_segments::Segments>,
    m: Mounted,
    how: &MountOptions,
) -> (Arc<Store>, Mount, PathBuf) {
    halt(&m.mount);
    bed.store.flush().unwrap();
    let (device, state) = m.mount.hand_over().unwrap().unwrap();
    let Mounted { mount, at } = m;
    // Becoming another program drops nothing.
    std::mem::forget(mount);
    let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let options = Options { background: false, owner, keep_orphans: true, ..Options::default() };
    let store = Store::open(bed.store.meta().clone(), segments, Env::real(), options).unwrap();
    let root = store.principal(&store.root_key().unwrap().id).unwrap();
    let session = store.session(&root, "base").unwrap();
    let mount = adopt(session, &at, device, state, how).unwrap().begin().unwrap();
    store.settle_orphans();
    (store, mount, at)
}

#[test]
fn what_is_open_is_open_in_the_next_server() {
    let segments: Arc<dyn mw_segments::Segments> = Arc::new(mw_segments::Memory::new());
    let Some(bed) = bed_over(segments.clone(), Options::default().memory) else { return };
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("many")).unwrap();
    for n in 0..3000 {
        fs::write(m.path(&format!("many/{n:05}-{}", "x".repeat(40))), "").unwrap();
    }
    let big = noise(7, 3 << 20);
    fs::write(m.path("big"), &big).unwrap();
    let mut program = Turns::start(
        &m.at,
        "
top = os.getcwd()
f = open('w', 'wb', buffering=0); f.write(b'one ')
a = open('log', 'ab', buffering=0); a.write(b'1')
u = os.open('u', os.O_RDWR | os.O_CREAT); os.write(u, b'kept' * 100000); os.unlink('u')
d = os.scandir('many'); seen = [next(d).name for _ in range(10)]
p = os.open('p', os.O_RDWR | os.O_CREAT); os.ftruncate(p, 65536)
mm = mmap.mmap(p, 65536); mm[0:5] = b'early'
big = open('big', 'rb'); first = big.read(1 << 20)
os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); here = os.stat('.').st_ino
turn()
f.write(b'two'); a.write(b'2')
assert open(top + '/w', 'rb').read() == b'one two'
assert open(top + '/log', 'rb').read() == b'12'
assert os.pread(u, 1 << 20, 0) == b'kept' * 100000
os.pwrite(u, b'more', 400000); assert os.fstat(u).st_size == 400004 and os.fstat(u).st_nlink == 0
seen += [e.name for e in d]
assert len(seen) == len(set(seen)) == 3000, len(seen)
assert 'later' not in seen
mm[100:104] = b'late'; mm.flush()
assert mm[0:5] == b'early' and os.pread(p, 5, 0) == b'early' and os.pread(p, 4, 100) == b'late'
rest = big.read(); assert len(first) + len(rest) == 3 << 20
assert os.stat('.').st_ino == here and os.listdir('.') == []
os.close(u); os.chdir(top)
",
    );
    program.wait();
    // A directory is listed as it was opened, whatever comes to it.
    fs::write(m.path("many/later"), "").unwrap();
    let (store, mount, at) = hand_over(&bed, segments, m, &MountOptions::default());
    program.finish();
    assert_eq!(fs::read(at.join("big")).unwrap(), big);
    assert!(at.join("many/later").exists());
    mount.unmount(false).unwrap();
    assert_eq!(store.fsck(&mut |_| {}).unwrap().problems, Vec::<String>::new());
}

#[test]
fn locks_are_held_and_waited_for_in_the_next_server() {
    let segments: Arc<dyn mw_segments::Segments> = Arc::new(mw_segments::Memory::new());
    let Some(bed) = bed_over(segments.clone(), Options::default().memory) else { return };
    let m = bed.mount("base", "m");
    let mut has = Turns::start(
        &m.at,
        "
import fcntl
a = open('bytes', 'w+b'); a.write(b'x' * 100); a.flush(); fcntl.lockf(a, fcntl.LOCK_EX, 10, 5)
b = open('whole', 'w'); fcntl.flock(b, fcntl.LOCK_EX)
turn()
fcntl.lockf(a, fcntl.LOCK_UN, 10, 5)
fcntl.flock(b, fcntl.LOCK_UN)
turn()
",
    );
    has.wait();
    let wants = |file: &str, lock: &str| {
        let mut wants =
            Turns::start(&m.at, &format!("import fcntl\nf = open('{file}', 'r+b')\nturn()\n{lock}\nturn()\n"));
        wants.wait();
        wants.next();
        wants
    };
    let bytes = wants("bytes", "fcntl.lockf(f, fcntl.LOCK_EX, 1, 14)");
    let whole = wants("whole", "fcntl.flock(f, fcntl.LOCK_EX)");
    while m.mount.waiting_for_locks() < 2 {
        std::thread::yield_now();
    }
    let (_store, mount, at) = hand_over(&bed, segments, m, &MountOptions::default());
    while mount.waiting_for_locks() < 2 {
        std::thread::yield_now();
    }
    // Who would not wait is refused, next to what is locked nobody is.
    python(
        &at,
        "
import fcntl
f = open('bytes', 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20)
for lock in [lambda: fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 5), lambda: fcntl.flock(open('whole'), fcntl.LOCK_SH | fcntl.LOCK_NB)]:
    try: lock()
    except BlockingIOError: pass
    else: assert False, 'it was free'
",
    );
    has.next();
    has.wait();
    for mut program in [bytes, whole] {
        program.wait();
        program.finish();
    }
    has.finish();
    assert_eq!(mount.waiting_for_locks(), 0);
    mount.unmount(false).unwrap();
}

#[test]
fn what_changed_behind_a_mount_that_stood_still_is_seen() {
    let segments: Arc<dyn mw_segments::Segments> = Arc::new(mw_segments::Memory::new());
    let Some(bed) = bed_over(segments.clone(), Options::default().memory) else { return };
    bed.put("base", "posted", b"old");
    bed.put("base", "missed", b"old");
    let (m, other) = (bed.mount("base", "m"), bed.mount("base", "other"));
    assert_eq!(fs::read(m.path("posted")).unwrap(), b"old");
    assert_eq!(fs::read(m.path("missed")).unwrap(), b"old");
    m.mount.quiet(LIMIT).unwrap();
    fs::write(other.path("posted"), "new").unwrap();
    m.mount.halt(LIMIT).unwrap();
    let (device, state) = m.mount.hand_over().unwrap().unwrap();
    // Nobody tells the next one of this, but the version does.
    fs::write(other.path("missed"), "new").unwrap();
    let Mounted { mount, at } = m;
    std::mem::forget(mount);
    let mount = adopt(bed.session("base"), &at, device, state, &MountOptions::default()).unwrap().begin().unwrap();
    for name in ["posted", "missed"] {
        while fs::read(at.join(name)).unwrap() != b"new" {
            std::thread::yield_now();
        }
    }
    mount.unmount(true).unwrap();
}
