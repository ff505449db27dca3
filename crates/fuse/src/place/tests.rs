use super::*;
use rustix::thread::{CpuSet, sched_getaffinity};

fn me() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Returns the last processor that this process may use.
fn last() -> usize {
    let all = sched_getaffinity(Some(rustix::process::getpid())).unwrap();
    (0..CpuSet::MAX_CPU).rev().find(|n| all.is_set(*n)).unwrap()
}

/// Answers `requests` of each of `tasks` in turn, all within one window, and then one of the first.
fn answer(env: &Env, requests: u32, tasks: &[u32]) {
    for _ in 0..requests {
        tasks.iter().for_each(|task| answered(*task, env));
    }
    env.sleep(std::time::Duration::from_nanos(WINDOW));
    answered(tasks[0], env);
}

/// Runs `work` on a thread of its own while a program runs on the last processor, whose task it is given.
fn beside(work: impl FnOnce(u32) + Send) {
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            assert!(run_on(last()));
            std::thread::yield_now();
            tell.send(me()).unwrap();
            ended.recv().unwrap_err();
        });
        scope.spawn(move || {
            work(told.recv().unwrap());
            drop(end);
        });
    });
}

#[test]
fn a_thread_goes_where_the_one_program_is_that_asks_and_leaves_when_two_do() {
    let env = Env::seeded(1);
    beside(|program| {
        assert_eq!(processor_of(program), Some(last()));
        answer(&env, 20, &[program]);
        answer(&env, 20, &[program]);
        assert_eq!(Place::here(), Place(Some(last())));
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        answer(&env, 20, &[program, me()]);
        assert_eq!(Place::here(), Place(None));
        assert_eq!(sched_getaffinity(None), sched_getaffinity(Some(rustix::process::getpid())));
    });
}

#[test]
fn requests_of_the_kernel_and_of_tasks_that_have_ended_take_nobody_anywhere() {
    let env = Env::seeded(1);
    beside(|program| {
        let ended = std::thread::spawn(me).join().unwrap();
        answer(&env, 20, &[0]);
        assert_eq!(Place::here(), Place(None));
        answer(&env, 20, &[program]);
        answer(&env, 20, &[program]);
        assert_eq!(Place::here(), Place(Some(last())));
        answer(&env, 20, &[ended]);
        answer(&env, 20, &[ended]);
        assert_eq!(Place::here(), Place(None));
    });
}

#[test]
fn programs_that_follow_one_another_are_one_and_those_that_take_turns_are_not() {
    let seen = |tasks: &[u32]| {
        let mut seen = Seen { begun: 0, requests: 0, changes: 0, last: 1 };
        tasks.iter().for_each(|task| seen.add(*task));
        seen.is_one()
    };
    assert!(seen(&[1; 50]));
    assert!(seen(&[&[1; 20][..], &[2; 20][..]].concat()));
    assert!(!seen(&[1, 2, 1, 2, 1, 2, 1, 2]));
    assert!(!seen(&[2]));
    assert!(!seen(&[1, 1, 2, 2, 1, 1, 2, 2, 3, 3]));
}
