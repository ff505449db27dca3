//! Every pair of changes to names, attributes and bytes, followed by an fsync, with the power cut at every step: what was synced is
//! there, and what was not is there in order. Most faults of this kind in other file systems needed no more than two operations.

use crate::crash::{Told, check, run};
use crate::crash_disk::options;
use crate::crash_work::{Event, Work, create, new, on, sync, write};
use mw_env::Env;
use mw_model::FileType;
use mw_sim::SimDisk;
use mw_testkit::{Content, Exchange, Verb};

const WORLD: &str = "base";

/// A directory of two files, one with one file of the same name, an empty one.
fn setup() -> Vec<Event> {
    let mkdir = |path: &str| on(WORLD, Verb::Mkdir { path: path.to_owned(), mode: 0o755 });
    vec![
        new(WORLD),
        mkdir("d"),
        mkdir("e"),
        mkdir("empty"),
        create(WORLD, "d/a"),
        write(WORLD, "d/a", 0, 1, 3_000),
        create(WORLD, "d/b"),
        write(WORLD, "d/b", 0, 2, 12_000),
        create(WORLD, "e/a"),
        write(WORLD, "e/a", 0, 3, 10),
        sync(WORLD),
    ]
}

fn operations() -> Vec<Event> {
    let path = |path: &str| path.to_owned();
    let rename = |from: &str, to: &str, how| Verb::Rename { from: path(from), to: path(to), how };
    let verbs = vec![
        Verb::Create { path: path("d/new"), mode: 0o644 },
        Verb::Mkdir { path: path("d/sub"), mode: 0o700 },
        Verb::Mknod { path: path("d/pipe"), kind: FileType::Fifo, mode: 0o644, rdev: 0 },
        Verb::Symlink { target: path("../e/a"), path: path("d/link") },
        Verb::Link { from: path("d/a"), to: path("e/hard") },
        rename("d/a", "e/a", Exchange::Replace),
        rename("d/a", "e/a", Exchange::Exchange),
        rename("d", "moved", Exchange::Replace),
        rename("d/b", "d/a", Exchange::Replace),
        Verb::Unlink { path: path("d/a") },
        Verb::Rmdir { path: path("empty") },
        Verb::Write { path: path("d/a"), offset: 3_000, content: Content { tag: 4, len: 500 } },
        Verb::Write { path: path("d/b"), offset: 0, content: Content { tag: 5, len: 20_000 } },
        Verb::Truncate { path: path("d/b"), len: 7 },
        Verb::Chmod { path: path("d/a"), mode: 0o600 },
        Verb::SetXattr { path: path("d/a"), name: path("user.x"), value: Content { tag: 6, len: 40 } },
    ];
    verbs.into_iter().map(|verb| on(WORLD, verb)).collect()
}

/// Cuts the power at every step from the end of the setup on.
fn cut_behind_setup(work: &Work, setup: usize) {
    let first = {
        let (disk, env) = (SimDisk::new(1), Env::seeded(5));
        let mut told = Told::default();
        let life = run(work, &disk, &env, &mut told, setup, None);
        assert!(life.is_some());
        let steps = disk.counts().steps;
        disk.power_off();
        steps
    };
    for step in first.. {
        let (disk, env) = (SimDisk::new(1), Env::seeded(5));
        disk.fail_at(step);
        let mut told = Told::default();
        let life = run(work, &disk, &env, &mut told, work.events.len(), None);
        let held = life.is_some() && !disk.is_off();
        disk.power_off();
        drop(life);
        assert!(told.done >= setup, "{}: step {step} is in the setup", work.name);
        let context = format!("{}: step {step}, in event {}", work.name, told.done);
        check(work, &disk.crash_as(step), &Env::seeded(6), &told, false, &context);
        if held {
            assert!(step > first + 2, "{}: nothing was cut", work.name);
            return;
        }
    }
}

fn pairs(fold_bytes: usize, part: usize, parts: usize) {
    let (setup, operations) = (setup(), operations());
    let mut count = 0;
    for (i, first) in operations.iter().enumerate() {
        for (j, second) in operations.iter().enumerate() {
            if (i + j) % parts != part {
                continue;
            }
            // What comes behind the fsync is under way when the power goes last.
            let events = [first.clone(), second.clone(), sync(WORLD), create(WORLD, "behind"), sync(WORLD)];
            let events: Vec<_> = setup.iter().cloned().chain(events).collect();
            let work = Work::new(&format!("{first:?} then {second:?}"), options(fold_bytes), events);
            cut_behind_setup(&work, setup.len());
            count += 1;
        }
    }
    assert_eq!(count, operations.len() * operations.len() / parts);
}

#[test]
fn what_was_synced_after_any_two_operations_is_there() {
    pairs(1 << 20, 0, 2);
}

#[test]
fn what_was_synced_after_any_other_two_operations_is_there() {
    pairs(1 << 20, 1, 2);
}

#[test]
#[ignore = "takes a minute"]
fn what_was_synced_after_any_two_operations_is_there_also_with_folds_between() {
    pairs(1_500, 0, 1);
}
