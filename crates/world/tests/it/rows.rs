//! Records that hold several extents: whatever is cut out of them, shared, forked, merged or put back, the bytes are those of a plain
//! vector.

use crate::rig::{Rig, a, clean, content, noise, put};
use mw_model::{FileType, Ino};
use mw_testkit::Rng;
use mw_world::{Allocate, Conditions, CopyOptions, LogQuery, Session, SetAttr, UploadOptions, WriteAt};
use std::sync::atomic::{AtomicBool, Ordering};

/// Does one thing to a file and to the vector beside it.
fn change(w: &Session, rng: &mut Rng, ino: Ino, plain: &mut Vec<u8>, most: usize) {
    let at = rng.below(most);
    let len = match rng.below(4) {
        0 => 1 + rng.below(100),
        1 => 1 + rng.below(9_000),
        2 => 1 + rng.below(70_000),
        _ => 1 + rng.below(most),
    };
    let grown = |plain: &mut Vec<u8>, to: usize| plain.resize(plain.len().max(to), 0);
    match rng.below(8) {
        0..=3 => {
            let bytes = noise(rng.number(), len);
            w.write(ino, WriteAt::Offset(at as u64), &bytes).expect("written");
            grown(plain, at + len);
            plain[at..at + len].copy_from_slice(&bytes);
        }
        4 => {
            w.allocate(ino, Allocate::PunchHole, at as u64, len as u64).expect("punched");
            let end = plain.len().min(at + len);
            plain[at.min(end)..end].fill(0);
        }
        5 => {
            w.set_attr(ino, &SetAttr { size: Some(at as u64), ..Default::default() }).expect("cut");
            plain.resize(at, 0);
        }
        6 => {
            let to = plain.len() + rng.below(5_000);
            let copied = w.copy_range(ino, at as u64, ino, to as u64, len as u64).expect("copied") as usize;
            assert_eq!(copied, plain.len().saturating_sub(at).min(len));
            if copied > 0 {
                let part = plain[at..at + copied].to_vec();
                grown(plain, to);
                plain.extend_from_slice(&part);
            }
        }
        _ => {
            let bytes = noise(rng.number(), len);
            w.write(ino, WriteAt::End, &bytes).expect("appended");
            plain.extend_from_slice(&bytes);
        }
    }
    plain.truncate(4 * most);
    if w.attr(ino).expect("there").size > plain.len() as u64 {
        w.set_attr(ino, &SetAttr { size: Some(plain.len() as u64), ..Default::default() }).expect("cut");
    }
}

/// Changes a file here and there, with copies, forks, sweeps and restarts in between.
fn live(seed: u64, mut rng: Rng, mut rig: Rig, mut plain: Vec<u8>, most: usize, steps: usize) {
    {
        let mut w = rig.session("base");
        let ino = w.resolve(b"file").expect("there").ino;
        for step in 0..steps {
            change(&w, &mut rng, ino, &mut plain, most);
            match rng.below(12) {
                0 => rig.store.flush().expect("flushed"),
                1 => drop(rig.store.sweep().expect("swept")),
                2 => {
                    w.copy(&w, b"file", b"copy", &CopyOptions::default()).expect("copied");
                    assert!(content(&w, "copy").expect("there") == plain, "seed {seed}, step {step}: the copy");
                }
                3 => {
                    // A fork goes on with the same records, and the base does not see it.
                    let fork = rig.fork("base", "fork");
                    let mut other = plain.clone();
                    change(&fork, &mut rng, ino, &mut other, most);
                    assert!(content(&fork, "file").expect("there") == other, "seed {seed}, step {step}: the fork");
                    assert!(content(&w, "file").expect("there") == plain, "seed {seed}, step {step}: its base");
                    clean(&rig.store);
                    rig.store.delete_world(&rig.root, "fork", true).expect("deleted");
                }
                4 => {
                    drop(w);
                    rig = rig.reopen();
                    w = rig.session("base");
                }
                _ => {}
            }
            assert!(content(&w, "file").expect("there") == plain, "seed {seed}, step {step}");
            let from = rng.below(plain.len().max(1));
            let part = w.read(ino, from as u64, 5_000).expect("read");
            assert!(part == plain[from..plain.len().min(from + 5_000)], "seed {seed}, step {step}: a part");
        }
        clean(&rig.store);
    }
}

/// The pieces of a mount's writes: more than two rows of them.
#[test]
fn what_is_cut_out_of_rows_leaves_the_rest() {
    for seed in 0..30 {
        let rig = Rig::new();
        rig.create("base").make(Ino::ROOT, b"file", &a(FileType::File)).expect("made");
        live(seed, Rng::new(seed), rig, Vec::new(), 1 << 20, 60);
    }
}

/// The pieces of a large object, of about 600 KiB each: more than a list of them.
#[test]
fn what_is_cut_out_of_lists_leaves_the_rest() {
    for seed in 0..3 {
        let (mut rng, rig) = (Rng::new(seed), Rig::new());
        let plain = noise(rng.number(), 44 << 20);
        put(&rig.create("base"), "file", &plain);
        live(seed, rng, rig, plain, 44 << 20, 16);
    }
}

/// Says that it is over, also when a test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What an upload becomes has lists that nothing refers to until it is committed, or ever, when a condition does not hold.
#[test]
fn an_upload_of_many_pieces_loses_none_to_a_sweep() {
    let rig = Rig::new();
    let w = rig.create("base");
    let done = AtomicBool::new(false);
    let parts = [(1, "one".to_owned()), (2, "two".to_owned())];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                rig.store.sweep().expect("swept");
            }
        });
        let _ends = Ends(&done);
        let mut rng = Rng::new(5);
        for round in 0..12 {
            let contents = [noise(rng.number(), 6 << 20), noise(rng.number(), 3 << 20)];
            let id = w.create_upload(b"object", &UploadOptions::default()).expect("begun");
            for ((number, etag), content) in parts.iter().zip(&contents) {
                let mut staged = w.stage().expect("staging");
                staged.push(content).expect("pushed");
                w.put_part(b"object", &id, *number, staged, etag, Vec::new()).expect("put");
            }
            let other = Conditions { if_match: Some(vec!["another".to_owned()]), ..Conditions::default() };
            let refused = w.complete_upload(b"object", &id, &parts, "both-2", Vec::new(), &other);
            assert!(refused.is_err(), "round {round}");
            w.complete_upload(b"object", &id, &parts, "both-2", Vec::new(), &Conditions::default()).expect("completed");
            w.copy(&w, b"object", b"copy", &CopyOptions::default()).expect("copied");
            for key in ["object", "copy"] {
                assert!(content(&w, key).expect("there") == contents.concat(), "round {round}: {key}");
            }
        }
    });
    clean(&rig.store);
}

/// A process that ends after a large file was changed everywhere, with no fsync, finds every byte of it again.
#[test]
fn what_was_written_into_lists_is_there_after_a_restart() {
    let (mut rng, rig) = (Rng::new(9), Rig::new());
    let mut plain = noise(rng.number(), 12 << 20);
    let w = rig.create("base");
    put(&w, "file", &plain);
    let ino = w.resolve(b"file").expect("there").ino;
    for n in 0..600 {
        let at = n * 20_000;
        let bytes = noise(rng.number(), 100);
        w.write(ino, WriteAt::Offset(at as u64), &bytes).expect("written");
        plain[at..at + 100].copy_from_slice(&bytes);
    }
    // What stands beside a write is not told as brought by it.
    let log = w.log(&LogQuery { limit: 1, ..LogQuery::default() }).expect("history");
    assert!((100..64 << 10).contains(&log[0].bytes), "{} bytes", log[0].bytes);
    drop(w);
    let rig = rig.reopen();
    assert!(content(&rig.session("base"), "file").expect("there") == plain);
    clean(&rig.store);
}
