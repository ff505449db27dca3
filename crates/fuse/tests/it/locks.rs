//! Locks of fcntl(2) and flock(2): between programs of one mount and of two, waiting and not.

use crate::bed::{Bed, Mounted, Turns, as_user, bed, is_root, python, succeeded};
use mw_fuse::MountOptions;
use mw_world::{At, Store};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command};

/// What the programs have at hand. `F_OFD_*` are not in every Python.
const TOOLS: &str = "
import fcntl, os, struct, errno, signal, sys, threading
R, W, U = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
OFD_GET, OFD_SET, OFD_WAIT = 36, 37, 38
GET, SET, WAIT = fcntl.F_GETLK, fcntl.F_SETLK, fcntl.F_SETLKW
def op(name='f', flags=os.O_RDWR | os.O_CREAT): return os.open(name, flags, 0o644)
def lk(fd, kind, first=0, n=0, how=SET):
    told = fcntl.fcntl(fd, how, struct.pack('hhqqi4x', kind, 0, first, n, 0))
    kind, _, first, n, pid = struct.unpack('hhqqi4x', told)
    return kind, first, n, pid
def fails(want, f, *args):
    try: f(*args)
    except OSError as e: assert e.errno == want, e
    else: raise AssertionError('not refused')
def refused(*args): fails(errno.EAGAIN, lk, *args)
def fl(fd, how): fcntl.flock(fd, how)
EX, SH, NB, UN = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB, fcntl.LOCK_UN
";

fn start(m: &Mounted, program: &str) -> Turns {
    Turns::start(&m.at, &format!("{TOOLS}{program}"))
}

fn run(m: &Mounted, program: &str) {
    python(&m.at, &format!("{TOOLS}{program}"));
}

/// Waits until a process waits for an answer of its mount, as far as this kernel tells.
#[allow(clippy::disallowed_methods, reason = "the real kernel keeps no other time")]
fn until_it_waits(pid: u32) {
    for _ in 0..20_000 {
        let place = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        if place.contains("request_wait") || place.contains("fuse_simple_request") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn two(bed: &Bed) -> (Mounted, Mounted) {
    (bed.mount("base", "a"), bed.mount("base", "b"))
}

#[test]
fn bytes_locked_through_one_mount_are_locked_through_the_other() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    let mut holder = start(&a, "fd = op(); lk(fd, W, 10, 10); lk(fd, R, 15, 2); turn(); lk(fd, U, 0, 12); turn()");
    holder.wait();
    run(
        &b,
        &format!(
            "
fd = op()
refused(fd, W, 0, 11); refused(fd, R, 0, 0); refused(fd, R, 19, 1); refused(fd, W, 15, 1)
lk(fd, R, 15, 2); lk(fd, W, 0, 10); lk(fd, W, 20, 0)
assert lk(fd, W, 0, 0, GET) == (W, 10, 5, {0}), lk(fd, W, 0, 0, GET)
assert lk(fd, W, 15, 5, GET) == (R, 15, 2, {0}), lk(fd, W, 15, 5, GET)
assert lk(fd, R, 15, 2, GET)[0] == U and lk(fd, W, 30, 1, GET)[0] == U
os.lseek(fd, 100, 0); refused(fd, W, 12, 3)
# Closing any descriptor of the file gives up all that the process has there.
os.close(op())
if os.fork() == 0:
    lk(fd, W, 0, 10); os._exit(0)
assert os.wait()[1] == 0
",
            holder.pid()
        ),
    );
    holder.next();
    holder.wait();
    run(&b, "fd = op(); lk(fd, W, 0, 12); refused(fd, W, 0, 13)");
    holder.finish();
    run(&a, "fd = op(); lk(fd, W)");
}

/// However a lock ends, who waits for it through the other mount has it then, and not before.
#[test]
fn who_waits_is_given_the_lock_however_the_holder_ends() {
    let Some(bed) = bed() else { return };
    let ends = [
        "lk(fd, U)",
        "os.close(fd)",
        "os.close(op())",
        "os._exit(0)",
        "killed",
        "detached",
        "os.execv('/bin/true', ['true'])",
    ];
    for (turn, end) in (0..).zip(ends) {
        for (how, take) in [
            ("fcntl", "lk(fd, W, 0, 0, WAIT)"),
            ("write only", "lk(fd, W, 0, 0, WAIT)"),
            ("flock", "fl(fd, EX)"),
            ("ofd", "lk(fd, W, 0, 0, OFD_WAIT)"),
        ] {
            let end = match (how, end) {
                ("flock", "lk(fd, U)") => "fl(fd, UN)",
                ("ofd", "lk(fd, U)") => "lk(fd, U, 0, 0, OFD_SET)",
                ("flock" | "ofd", "os.close(op())") => continue,
                // Its descriptor is not heard of, so this alone says nothing of the other; see SEMANTICS.
                ("write only", "os.close(op())") => continue,
                _ => end,
            };
            let (a, b) = two(&bed);
            let marker = format!("marker-{turn}-{how}");
            let flags = if how == "write only" { "os.O_WRONLY | os.O_CREAT" } else { "os.O_RDWR | os.O_CREAT" };
            let code = if ["killed", "detached"].contains(&end) { "pass" } else { end };
            let mut holder = start(&a, &format!("fd = op('f', {flags}); {take}; turn(); {code}; turn()"));
            holder.wait();
            let mut waiter =
                start(&b, &format!("fd = op('f', {flags}); turn(); {take}; assert os.path.exists('{marker}'); turn()"));
            waiter.wait();
            waiter.next();
            until_it_waits(waiter.pid());
            bed.put("base", &marker, b"");
            if end == "killed" {
                holder.kill();
            } else if end == "detached" {
                a.mount.unmount(true).unwrap();
                // It goes on in its mount, and so does its lock until it ends.
                holder.let_go();
            } else {
                holder.next();
            }
            waiter.wait();
            waiter.finish();
        }
    }
}

#[test]
fn a_signal_ends_the_waiting() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    let mut holder = start(&a, "fd = op(); lk(fd, W); fl(fd, EX); turn()");
    holder.wait();
    for take in ["lk(fd, W, 0, 0, WAIT)", "fl(fd, EX)"] {
        for m in [&a, &b] {
            let mut waiter = start(
                m,
                &format!(
                    "
class Stop(Exception): pass
def stop(*_): raise Stop
signal.signal(signal.SIGUSR1, stop)
fd = op(); turn()
try: {take}
except Stop: turn()
"
                ),
            );
            waiter.wait();
            waiter.next();
            until_it_waits(waiter.pid());
            kill_process(Pid::from_raw(waiter.pid() as i32).unwrap(), Signal::USR1).unwrap();
            waiter.wait();
            waiter.finish();
            let mut waiter = start(m, &format!("fd = op(); turn(); {take}"));
            waiter.wait();
            waiter.next();
            until_it_waits(waiter.pid());
            waiter.kill();
        }
    }
    holder.finish();
    run(&b, "fd = op(); lk(fd, W); fl(fd, EX | NB)");
}

/// A signal may come before the request was read, before it waits, while it waits, and while it is answered.
#[test]
fn no_signal_is_lost_whenever_it_comes() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    let mut holder = start(&a, "fd = op(); lk(fd, W); turn()");
    holder.wait();
    let storm = "
class Stop(Exception): pass
def stop(*_): raise Stop
signal.signal(signal.SIGALRM, stop)
fd = op(); stopped = 0
for n in range(600):
    try:
        # Again and again, because a signal that comes before the call begins ends nothing; but the kernel tells the mount of the first alone.
        signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + n % 150), 0.02)
        lk(fd, W, 0, 0, WAIT)
        raise SystemExit('it has what is not free')
    except Stop: stopped += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
assert stopped == 600
";
    let children: Vec<Child> = [&a, &b, &b]
        .into_iter()
        .map(|m| Command::new("python3").args(["-c", &format!("{TOOLS}{storm}")]).current_dir(&m.at).spawn().unwrap())
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    holder.finish();
    run(&b, "fd = op(); lk(fd, W)");
}

#[test]
fn a_deadlock_is_refused_across_mounts() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    // Which of the two asks last cannot be known, and that one is refused; it gives way, and the other goes on.
    let program = |has: u8, wants: u8| {
        format!(
            "
fd = op(); lk(fd, W, {has}, 1); turn()
try: lk(fd, W, {wants}, 1, WAIT); end = 'granted'
except OSError as e:
    assert e.errno == errno.EDEADLK; end = 'refused'
    lk(fd, U)
op(f'{{end}}-{has}'); turn()
"
        )
    };
    let mut both = [start(&a, &program(0, 1)), start(&b, &program(1, 0))];
    both.iter_mut().for_each(Turns::wait);
    both.iter_mut().for_each(Turns::next);
    both.iter_mut().for_each(Turns::wait);
    both.into_iter().for_each(Turns::finish);
    let ends: Vec<String> = a.names("").into_iter().filter(|name| name != "f").collect();
    assert!(ends == ["granted-0", "refused-1"] || ends == ["granted-1", "refused-0"], "{ends:?}");
    // A process that goes through both mounts does not wait for itself.
    let (there, here) = (a.path("f"), b.path("f"));
    run(
        &a,
        &format!(
            "x, y = op('{}'), op('{}'); lk(x, W); refused(y, R); fails(errno.EDEADLK, lk, y, W, 0, 0, WAIT)",
            there.display(),
            here.display()
        ),
    );
}

#[test]
fn whole_files_are_shared_converted_and_given_up_with_the_last_copy() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    let program = "
fd = op(); fl(fd, SH); turn()
fl(fd, EX); turn()
fl(fd, SH); turn()
copy = os.dup(fd); os.close(fd); turn()
os.close(copy); turn()
";
    let mut holder = start(&a, program);
    holder.wait();
    run(&b, "fd = op(); fl(fd, SH | NB); fails(errno.EAGAIN, fl, fd, EX | NB); fails(errno.EAGAIN, fl, op(), EX | NB)");
    for check in [
        "fd = op(); fails(errno.EAGAIN, fl, fd, SH | NB); lk(fd, W)",
        "fd = op(); fl(fd, SH | NB)",
        "fd = op(); fails(errno.EAGAIN, fl, fd, EX | NB)",
        "fd = op(); fl(fd, EX | NB); fl(op('other'), EX | NB)",
    ] {
        holder.next();
        holder.wait();
        run(&b, check);
        run(&a, check);
    }
    holder.finish();
    // Two descriptors of one process are two owners, and one that was inherited is the same.
    run(
        &b,
        "
fd, other = op(), op(); fl(fd, EX); fails(errno.EAGAIN, fl, other, SH | NB)
if os.fork() == 0:
    fl(fd, SH); os._exit(0)
assert os.wait()[1] == 0
fl(other, SH | NB); fails(errno.EAGAIN, fl, other, EX | NB); fl(fd, UN); fl(other, EX | NB)
",
    );
}

#[test]
fn locks_of_open_files_are_theirs() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    let mut holder = start(
        &a,
        "
fd, other = op(), op()
lk(fd, W, 0, 10, OFD_SET); refused(other, R, 0, 1, OFD_SET); refused(other, W, 9, 1)
os.close(other); turn()
copy = os.dup(fd); os.close(fd); turn()
os.close(copy); turn()
",
    );
    holder.wait();
    run(
        &b,
        "fd = op(); refused(fd, W); refused(fd, W, 0, 0, OFD_SET); assert lk(fd, W, 5, 1, GET)[:3] == (W, 0, 10); lk(fd, W, 10, 0, OFD_SET)",
    );
    holder.next();
    holder.wait();
    run(&b, "fd = op(); refused(fd, W)");
    holder.next();
    holder.wait();
    run(&b, "fd = op(); lk(fd, W)");
    holder.finish();
}

/// Most files are closed without a word to the mount, so that a lock through such a descriptor ends when the kernel lets go of the open file.
#[test]
fn a_descriptor_that_is_not_watched_keeps_its_lock_to_the_last_copy() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    let program = "
fd = op('made', os.O_RDWR | os.O_CREAT | os.O_EXCL); lk(fd, W)
copy = os.dup(fd); os.close(fd); turn()
os.close(copy)
op(); only_reads = op('f', os.O_RDONLY); fd = op(); lk(fd, W)
os.close(only_reads); turn()
lk(fd, U); turn()
";
    let mut holder = start(&a, program);
    holder.wait();
    run(&b, "refused(op('made'), R)");
    holder.next();
    holder.wait();
    run(&b, "lk(op('made'), W); refused(op(), R)");
    holder.next();
    holder.wait();
    run(&b, "lk(op(), W)");
    holder.finish();
}

/// A lock that ended with a close is free for whoever comes next and would not wait, through whatever mount.
#[test]
fn what_was_closed_is_free_for_who_comes_next() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    let elsewhere = b.path("f");
    run(
        &a,
        &format!(
            "
names = ['f', '{}']
op()
takes = [lambda fd: fl(fd, EX | NB), lambda fd: lk(fd, W), lambda fd: lk(fd, W, 0, 0, OFD_SET)]
for n in range(1500):
    fd = op(names[n % 2], os.O_WRONLY if n % 4 < 2 else os.O_RDWR)
    takes[n % 3](fd)
    os.close(fd)
    if n % 50 == 0:
        pid = os.fork()
        if pid == 0:
            fl(op(names[n % 4 // 2]), EX | NB); os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
",
            elsewhere.display()
        ),
    );
}

/// Who has the lock sees what the last one wrote, whatever else the mounts are being told.
#[test]
fn who_has_the_lock_sees_what_the_last_one_wrote() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    bed.put("base", "counter", b"0000000000");
    let program = "
fd = op('counter'); os.listdir('noise') if os.path.isdir('noise') else None
for n in range(150):
    how = sys.argv[1]
    if how == 'fcntl': lk(fd, W, 0, 0, WAIT)
    else: fl(fd, EX)
    count = int(os.pread(fd, 10, 0)); names = set(os.listdir('d')) if os.path.isdir('d') else set()
    if count: assert f'n{count}' in names or not names, (count, names)
    os.makedirs('d', exist_ok=True)
    open(f'd/n{count + 1}', 'w').close()
    os.pwrite(fd, b'%010d' % (count + 1), 0)
    os.rename(f'd/n{count}', 'd/old') if count else None
    if how == 'fcntl': lk(fd, U)
    else: fl(fd, UN)
";
    for how in ["fcntl", "flock"] {
        bed.put("base", "counter", b"0000000000");
        let children: Vec<Child> = [&a, &b, &a, &b]
            .into_iter()
            .map(|m| {
                let program = format!("{TOOLS}{program}");
                Command::new("python3").args(["-c", &program, how]).current_dir(&m.at).spawn().unwrap()
            })
            .collect();
        // Both are being told of something all the time, so that neither holds its answers back for the other.
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for noise in 0..3 {
                let (bed, done) = (&bed, &done);
                scope.spawn(move || {
                    for n in 0.. {
                        bed.put("base", &format!("noise/{noise}-{}", n % 50), &[n as u8; 100]);
                        if done.load(std::sync::atomic::Ordering::Relaxed) {
                            return;
                        }
                    }
                });
            }
            let ended: Vec<_> = children.into_iter().map(|mut child| child.wait().unwrap()).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(ended.iter().all(std::process::ExitStatus::success), "{ended:?}");
        });
        assert_eq!(bed.get("base", "counter").unwrap(), b"0000000600", "{how}");
        std::fs::remove_dir_all(b.path("d")).unwrap();
    }
}

#[test]
fn locks_are_of_a_world_and_not_of_its_state() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    let mut holder = start(&a, "fd = op(); lk(fd, W); fl(fd, EX); turn()");
    holder.wait();
    bed.fork("base", "fork");
    let fork = bed.mount("fork", "fork");
    run(&fork, "fd = op(); lk(fd, W); fl(fd, EX | NB)");
    let version = bed.session("base").shown();
    let past = Store::session(&bed.store, &bed.root, "base").unwrap().at(&At::Version(version)).unwrap();
    let dir = bed.dir.path().join("past");
    std::fs::create_dir(&dir).unwrap();
    let past = Mounted { mount: mw_fuse::mount(past, &dir, &MountOptions::default()).unwrap(), at: dir };
    run(&past, "fd = op('f', os.O_RDONLY); lk(fd, R); fl(fd, EX | NB)");
    // A mount that changes nothing locks all the same.
    let read_only = bed.mount_with("base", "ro", &MountOptions { read_only: true, ..Default::default() });
    run(&read_only, "fd = op('f', os.O_RDONLY); refused(fd, R); fails(errno.EAGAIN, fl, fd, SH | NB)");
    // The inode is what is locked, whatever its name.
    std::fs::rename(b.path("f"), b.path("g")).unwrap();
    std::fs::hard_link(b.path("g"), b.path("h")).unwrap();
    run(&b, "refused(op('h'), R); lk(op('f'), W)");
    holder.finish();
}

#[test]
fn what_waits_in_a_world_that_is_deleted_hears_so() {
    let Some(bed) = bed() else { return };
    bed.fork("base", "doomed");
    let (a, b) = (bed.mount("doomed", "a"), bed.mount("doomed", "b"));
    let mut holder = start(&a, "fd = op(); lk(fd, W); fl(fd, EX); turn()");
    holder.wait();
    let mut waiting: Vec<Turns> = [(&a, "fl, fd, EX"), (&b, "fl, fd, EX"), (&b, "lk, fd, W, 0, 0, WAIT")]
        .into_iter()
        .map(|(m, take)| {
            let mut waiter = start(m, &format!("fd = op(); turn(); fails(errno.ENODEV, {take}); turn()"));
            waiter.wait();
            waiter.next();
            until_it_waits(waiter.pid());
            waiter
        })
        .collect();
    bed.store.delete_world(&bed.root, "doomed", true).unwrap();
    waiting.iter_mut().for_each(Turns::wait);
    waiting.into_iter().for_each(Turns::finish);
    holder.finish();
}

/// The kernel is told to end a mount: what waits in it ends, and what was locked through it is free.
#[test]
fn an_aborted_mount_frees_what_it_had() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        return;
    }
    let (a, b) = two(&bed);
    let mut holder = start(&a, "fd = op(); lk(fd, W); fl(fd, EX); turn()");
    holder.wait();
    let mut waiter = start(&b, "fd = op(); turn(); lk(fd, W, 0, 0, WAIT); fl(fd, EX); turn()");
    waiter.wait();
    waiter.next();
    let mut inside = start(&a, "fd = op(); turn(); fails(errno.ECONNABORTED, fl, fd, EX); turn()");
    inside.wait();
    inside.next();
    until_it_waits(waiter.pid());
    until_it_waits(inside.pid());
    succeeded(&Command::new("umount").args(["-f", "-l"]).arg(&a.at).output().unwrap());
    inside.wait();
    waiter.wait();
    inside.kill();
    holder.kill();
    waiter.finish();
}

#[test]
fn an_ordinary_users_mount_locks_too() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        return;
    }
    let m = bed.mount("base", "m");
    m.open_to_all();
    succeeded(&as_user(&m.at, &format!("python3 - <<'P'\n{TOOLS}\nfd = op(); lk(fd, W); fl(fd, EX | NB)\nP")));
    run(&m, "fd = op(); lk(fd, W); fl(fd, EX | NB)");
}

fn sqlite(at: &Path, program: &str, mode: &str, who: usize) -> Child {
    Command::new("python3").args(["-c", program, mode, &who.to_string()]).current_dir(at).spawn().unwrap()
}

/// Programs on both mounts change one database at the same time: no row is lost, none is torn, and each sees its own and the others'.
#[test]
fn a_database_is_used_through_two_mounts() {
    let Some(bed) = bed() else { return };
    let (a, b) = two(&bed);
    for mode in ["delete", "truncate", "persist"] {
        let make = format!(
            "import sqlite3\ndb = sqlite3.connect('{mode}.db'); db.execute('pragma journal_mode={mode}')
db.execute('create table t(who, n, v)'); db.execute('create table sum(n)'); db.execute('insert into sum values(0)'); db.commit()"
        );
        python(&a.at, &make);
        let program = "
import sqlite3, sys
mode, who = sys.argv[1], int(sys.argv[2])
db = sqlite3.connect(f'{mode}.db', timeout=600, isolation_level=None)
db.execute(f'pragma journal_mode={mode}'); db.execute('pragma synchronous=off')
for n in range(60):
    db.execute('begin immediate')
    db.execute('insert into t values(?, ?, ?)', (who, n, 'v' * (n * 37 % 3000)))
    db.execute('update sum set n = n + 1')
    if n % 9 == 8: db.execute('delete from t where who = ? and n = ?', (who, n - 1))
    db.execute('commit')
    assert db.execute('select count(*) from t where who = ?', (who,)).fetchone()[0] == n + 1 - (n + 1) // 9
";
        let children: Vec<_> = (0..4).map(|who| sqlite([&a.at, &b.at][who % 2], program, mode, who)).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success(), "{mode}");
        }
        let check = format!(
            "import sqlite3\ndb = sqlite3.connect('{mode}.db')
assert db.execute('pragma integrity_check').fetchall() == [('ok',)]
assert db.execute('select n from sum').fetchone() == (240,)
assert db.execute('select count(*) from t').fetchone() == (4 * (60 - 6),)"
        );
        python(&a.at, &check);
        python(&b.at, &check);
    }
}
