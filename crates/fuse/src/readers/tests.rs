//! When a thread joins and when it leaves.

use super::*;
use std::sync::Arc;
use std::sync::mpsc;

#[test]
fn a_thread_that_keeps_up_is_alone() {
    let mut state = State::default();
    for n in 0..100 {
        // Seen at work now and then, and never twice in the same request.
        assert_eq!(state.judge(vec![4 * n + u32::from(n % LOOKS != 0)]), Sight::Busy);
    }
    assert_eq!(state.judge(vec![1000]), Sight::Busy);
    assert_eq!(state.judge(vec![1000]), Sight::Idle);
}

#[test]
fn who_hangs_in_a_request_or_is_always_at_work_gets_company() {
    let mut state = State::default();
    for _ in 0..STUCK {
        assert_eq!(state.judge(vec![7]), Sight::Busy);
    }
    assert_eq!(state.judge(vec![7]), Sight::Behind);
    for n in 1..LOOKS {
        assert_eq!(state.judge(vec![2 * n + 1, 9 + 2 * n]), Sight::Busy);
    }
    assert_eq!(state.judge(vec![99, 101]), Sight::Behind);
    // One of two that waits is enough.
    for _ in 0..2 * STUCK {
        assert_eq!(state.judge(vec![99, 102]), Sight::Busy);
    }
}

#[test]
fn who_joined_leaves_when_it_must_wait_and_the_others_do_not_hang() {
    // Its clock moves a microsecond with each look at it.
    let readers = Readers::new(2, Env::seeded(1));
    readers.wanted.store(2, Ordering::Relaxed);
    let turn = &readers.turns[1];
    let answer = |waited: u64| {
        for _ in 1..SPAN {
            readers.waits(1);
            turn.since.store(readers.env.monotonic().saturating_sub(waited), Ordering::Relaxed);
            readers.works(1);
        }
        turn.count.store(0, Ordering::Relaxed);
        readers.ask_oneself(1, turn);
        readers.wanted.load(Ordering::Relaxed)
    };
    readers.works(0);
    assert_eq!(answer(0), 2, "there is enough to do for two");
    turn.others.store(readers.others(1), Ordering::Relaxed);
    assert_eq!(answer(2 * LATE), 2, "the other one hangs");
    readers.waits(0);
    assert_eq!(answer(2 * LATE), 1);
}

#[test]
fn a_thread_that_stands_by_joins_when_all_others_hang_and_at_the_end_all_go() {
    let readers = Arc::new(Readers::new(3, Env::real()));
    let (joined, join) = mpsc::channel();
    for thread in 1..3 {
        let (readers, joined) = (readers.clone(), joined.clone());
        std::thread::spawn(move || {
            readers.waits(thread);
            joined.send(thread).unwrap();
        });
    }
    assert!(join.recv_timeout(50 * TICK).is_err(), "nobody is needed while nothing is done");
    readers.works(0);
    assert_eq!(join.recv_timeout(Duration::from_secs(20)), Ok(1));
    readers.works(1);
    assert_eq!(join.recv_timeout(Duration::from_secs(20)), Ok(2));
    let late = Arc::new(Readers::new(3, Env::real()));
    let (ended, end) = mpsc::channel();
    for thread in 1..3 {
        let (late, ended) = (late.clone(), ended.clone());
        std::thread::spawn(move || {
            late.waits(thread);
            ended.send(()).unwrap();
        });
    }
    late.end();
    assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(()));
    assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(()));
}
