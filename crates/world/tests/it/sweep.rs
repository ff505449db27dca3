//! Space given back: dead ranges inside segments that live on, and nothing that anything still leans on.

use crate::crash_disk::{Life, options};
use crate::rig::{Rig, a, clean, file, noise, put};
use mw_env::Env;
use mw_model::{FileType, Ino};
use mw_sim::SimDisk;
use mw_world::{At, Conditions, CopyOptions, CreateOptions, ForkOptions, Options, PutOptions, Session, WriteAt};
use std::time::Duration;

fn get(session: &Session, key: &str) -> Vec<u8> {
    let object = session.get(key.as_bytes()).expect("there");
    let size = object.info.size;
    object.read(0, size as usize).expect("read").to_vec()
}

fn delete(session: &Session, key: &str) {
    session.delete(key.as_bytes(), &Conditions::default()).expect("deleted");
}

/// A store on a simulated disk whose history is over at once.
fn forgetful(disk: &SimDisk) -> Life {
    let options = Options { retention: Duration::ZERO, ..options(4_000) };
    Life::begin(disk, &Env::seeded(4), &options).expect("the store opens")
}

/// Writes until the world is folded: what it was before is then history, and over.
fn stir(session: &Session) {
    for n in 0..4 {
        put(session, "stir", &noise(n, 3_000));
    }
}

const LEN: usize = 30_000;

#[test]
fn dead_ranges_inside_live_segments_are_given_back_and_what_lives_stays() {
    let disk = SimDisk::new(3);
    let life = forgetful(&disk);
    life.store.create_world(&life.root, "www", &CreateOptions::default()).expect("made");
    let w = life.session("www").expect("there");
    for n in 0..60 {
        put(&w, &format!("o{n:02}"), &noise(n, LEN));
    }
    // What a snapshot shows is not dead, whatever is deleted since.
    let kept = w.snapshot(Some("kept"), None).expect("taken").version;
    for n in (0..60).step_by(2) {
        delete(&w, &format!("o{n:02}"));
    }
    stir(&w);
    life.store.sweep().expect("swept");
    let then = w.at(&At::Version(kept)).expect("kept");
    for n in 0..60 {
        assert_eq!(get(&then, &format!("o{n:02}")), noise(n, LEN), "object {n} of the snapshot");
    }
    drop(then);
    w.delete_snapshot(kept).expect("deleted");
    // Its instant is history, which ends with the next fold.
    stir(&w);
    let before = (disk.used(), w.du().expect("du").own, life.store.status().expect("status"));
    let swept = life.store.sweep().expect("swept");
    let dead = 30 * LEN as u64;
    assert!(swept.freed >= dead * 8 / 10, "{swept:?}: of {dead} dead bytes");
    assert!(swept.inside >= dead / 2, "{swept:?}: every second object is alive, so that segments live on");
    assert!(disk.used() + swept.inside <= before.0, "{} blocks' bytes were taken, now {}", before.0, disk.used());
    assert!(w.du().expect("du").own + dead / 2 <= before.1, "what the world owns is less");
    let status = life.store.status().expect("status");
    assert!(status.disk + swept.inside <= before.2.disk && status.swept >= before.2.swept + swept.freed, "{status:?}");
    for n in (1..60).step_by(2) {
        assert_eq!(get(&w, &format!("o{n:02}")), noise(n, LEN), "object {n}");
    }
    let again = life.store.sweep().expect("swept");
    assert_eq!((again.freed, again.inside), (0, 0), "nothing is given back twice");
    clean(&life.store);
    // And so it is after a power cut.
    drop((w, life));
    let life = forgetful(&disk.crash());
    clean(&life.store);
    let w = life.session("www").expect("there");
    for n in (1..60).step_by(2) {
        assert_eq!(get(&w, &format!("o{n:02}")), noise(n, LEN), "object {n} after a power cut");
    }
    let again = life.store.sweep().expect("swept");
    assert_eq!(again.segments, 0, "{again:?}: only the end of a segment that no writer goes on with");
    assert_eq!(life.store.sweep().expect("swept").freed, 0);
    clean(&life.store);
}

#[test]
fn a_put_under_way_and_an_open_file_are_not_dead() {
    let disk = SimDisk::new(5);
    let life = forgetful(&disk);
    life.store.create_world(&life.root, "www", &CreateOptions::default()).expect("made");
    let w = life.session("www").expect("there");
    for n in 0..10 {
        put(&w, &format!("o{n}"), &noise(n, LEN));
    }
    let made = w.make(Ino::ROOT, b"open", &a(FileType::File)).expect("made");
    w.write(made.ino, WriteAt::Offset(0), &noise(100, LEN)).expect("written");
    w.open(made.ino).expect("opened");
    let mut staged = w.stage().expect("staging");
    let content = noise(101, 900_000);
    staged.push(&content[..700_000]).expect("pushed");
    w.unlink(Ino::ROOT, b"open").expect("unlinked");
    for n in 0..9 {
        delete(&w, &format!("o{n}"));
    }
    for _ in 0..3 {
        stir(&w);
        life.store.sweep().expect("swept");
    }
    staged.push(&content[700_000..]).expect("pushed");
    w.put(b"late", staged, &PutOptions::default()).expect("put");
    assert_eq!(get(&w, "late"), content, "what was under way while the sweep ran");
    assert_eq!(w.read(made.ino, 0, LEN).expect("read"), noise(100, LEN), "a file without a name that is open");
    stir(&w);
    life.store.sweep().expect("swept");
    assert_eq!(w.read(made.ino, 0, LEN).expect("read"), noise(100, LEN), "and after one more sweep");
    assert_eq!(get(&w, "o9"), noise(9, LEN));
    w.release(made.ino);
    stir(&w);
    let swept = life.store.sweep().expect("swept");
    assert!(swept.freed >= LEN as u64 / 2, "{swept:?}: the file is gone with its last user");
    assert_eq!(get(&w, "late"), content);
    clean(&life.store);
}

/// Writers, forks, deletions and sweeps at the same time: nobody loses a byte.
#[test]
fn sweeps_beside_everything_take_nothing_that_lives() {
    let disk = SimDisk::new(6);
    let life = forgetful(&disk);
    for world in ["aaa", "bbb", "ccc"] {
        life.store.create_world(&life.root, world, &CreateOptions::default()).expect("made");
    }
    let done = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (t, world) in ["aaa", "bbb", "ccc"].into_iter().enumerate() {
            let (life, done) = (&life, &done);
            scope.spawn(move || {
                let w = life.session(world).expect("there");
                for n in 0..60u64 {
                    let seed = t as u64 * 1_000 + n;
                    put(&w, &format!("o{}", n % 7), &noise(seed, LEN));
                    if n % 9 == 4 {
                        // A fork that comes and goes leaves segments which others take at once.
                        let name = format!("{world}-{n}");
                        life.store.fork(&life.root, world, &name, &ForkOptions::default()).expect("forked");
                        let fork = life.session(&name).expect("there");
                        put(&fork, "own", &noise(seed + 500, LEN));
                        assert_eq!(get(&fork, &format!("o{}", n % 7)), noise(seed, LEN));
                        fork.discard().expect("discarded");
                    }
                    for back in 0..n.min(6) {
                        let seed = t as u64 * 1_000 + n - back;
                        assert_eq!(get(&w, &format!("o{}", (n - back) % 7)), noise(seed, LEN), "{world}, {n}");
                    }
                }
                done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        for _ in 0..2 {
            let (life, done) = (&life, &done);
            scope.spawn(move || {
                // Ends too when a writer has failed, which the scope then tells.
                for _ in 0..100_000 {
                    if done.load(std::sync::atomic::Ordering::SeqCst) >= 3 {
                        break;
                    }
                    life.store.sweep().expect("swept");
                }
            });
        }
    });
    clean(&life.store);
    drop(life);
    clean(&forgetful(&disk.crash()).store);
}

#[test]
fn a_fork_of_which_only_gone_forks_borrowed_says_what_it_gives_back() {
    let rig = Rig::new();
    let base = rig.create("base");
    file(&base, "a", &noise(1, 200_000));
    let before = rig.store.status().expect("status").claimed;
    let work = rig.fork("base", "work");
    file(&work, "big", &noise(2, 400_000));
    // Judged twice, each time on a fork of its own that writes.
    for name in ["judge-1", "judge-2"] {
        let judge = rig.fork("work", name);
        file(&judge, "built", &noise(3, 100_000));
        let freed = judge.discard().expect("discarded");
        assert!(freed.bytes >= 100_000 && freed.later == 0, "{freed:?}");
    }
    let freed = work.discard().expect("discarded");
    assert!(freed.bytes >= 400_000 && freed.later == 0, "{freed:?}: nobody borrows from it any more");
    assert_eq!(rig.store.status().expect("status").claimed, before);
    clean(&rig.store);
}

#[test]
fn what_somebody_still_borrows_is_pending() {
    let rig = Rig::new();
    let base = rig.create("base");
    file(&base, "a", &noise(1, 200_000));
    // One of two forks stays.
    let one = rig.fork("base", "one");
    file(&one, "big", &noise(2, 400_000));
    let (gone, stays) = (rig.fork("one", "gone"), rig.fork("one", "stays"));
    gone.discard().expect("discarded");
    let freed = one.discard().expect("discarded");
    assert!(freed.bytes == 0 && freed.later >= 400_000, "{freed:?}");
    rig.store.sweep().expect("swept");
    assert_eq!(crate::rig::content(&stays, "big").as_deref(), Some(&noise(2, 400_000)[..]));
    // A fork that lent on what it had borrowed.
    let two = rig.fork("base", "two");
    file(&two, "big", &noise(4, 400_000));
    let lender = rig.fork("two", "lender");
    let heir = rig.fork("lender", "heir");
    lender.discard().expect("discarded");
    let freed = two.discard().expect("discarded");
    assert!(freed.bytes == 0 && freed.later >= 400_000, "{freed:?}");
    rig.store.sweep().expect("swept");
    assert_eq!(crate::rig::content(&heir, "big").as_deref(), Some(&noise(4, 400_000)[..]));
    // A fork that was promoted: the base has its bytes.
    let three = rig.fork("base", "three");
    file(&three, "won", &noise(5, 400_000));
    rig.fork("three", "judge").discard().expect("discarded");
    three.promote(&mw_world::PromoteOptions::default()).expect("promoted");
    let freed = three.discard().expect("discarded");
    assert!(freed.bytes == 0 && freed.later >= 400_000, "{freed:?}");
    rig.store.sweep().expect("swept");
    assert_eq!(crate::rig::content(&base, "won").as_deref(), Some(&noise(5, 400_000)[..]));
    // A fork that was copied from.
    let four = rig.fork("base", "four");
    put(&four, "given", &noise(6, 400_000));
    rig.fork("four", "judge").discard().expect("discarded");
    base.copy(&four, b"given", b"taken", &mw_world::CopyOptions::default()).expect("copied");
    rig.fork("four", "judge").discard().expect("discarded");
    let freed = four.discard().expect("discarded");
    assert!(freed.bytes == 0 && freed.later >= 400_000, "{freed:?}");
    rig.store.sweep().expect("swept");
    assert_eq!(get(&base, "taken"), noise(6, 400_000));
    clean(&rig.store);
}

/// The pieces of a large object are in lists: those live that a part of a list refers to, in whatever world, and no others.
#[test]
fn a_list_outlives_the_world_that_made_it_as_far_as_it_is_used() {
    const LARGE: usize = 44 << 20;
    let disk = SimDisk::new(3);
    let life = forgetful(&disk);
    for name in ["from", "other"] {
        life.store.create_world(&life.root, name, &CreateOptions::default()).expect("made");
    }
    let (from, to) = (life.session("from").expect("there"), life.session("other").expect("there"));
    let plain = noise(1, LARGE);
    put(&from, "object", &plain);
    to.copy(&from, b"object", b"copy", &CopyOptions::default()).expect("copied");
    drop(from);
    life.store.delete_world(&life.root, "from", true).expect("deleted");
    for _ in 0..3 {
        stir(&to);
        life.store.sweep().expect("swept");
    }
    assert_eq!(get(&to, "copy"), plain);
    clean(&life.store);

    let part = to.make(Ino::ROOT, b"part", &a(FileType::File)).expect("made").ino;
    let ino = to.resolve(b"copy").expect("there").ino;
    to.copy_range(ino, 13_000_000, part, 0, 2_000_000).expect("copied");
    delete(&to, "copy");
    let before = life.store.status().expect("status").disk;
    let mut freed = 0;
    for _ in 0..3 {
        stir(&to);
        freed += life.store.sweep().expect("swept").freed;
    }
    let after = life.store.status().expect("status").disk;
    assert!(freed > 30 << 20 && after + (30 << 20) < before, "{freed} given back, {before} bytes, now {after}");
    assert!(get(&to, "part") == plain[13_000_000..15_000_000]);
    clean(&life.store);
}
