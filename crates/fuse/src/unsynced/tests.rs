//! What counts and for how long.

use super::*;

#[test]
fn a_sync_covers_what_was_before_it() {
    let unsynced = Unsynced::new(Env::seeded(1));
    unsynced.add(10);
    let mark = unsynced.mark();
    unsynced.add(5);
    assert_eq!(unsynced.bytes(), 15);
    unsynced.covered(mark);
    assert_eq!(unsynced.bytes(), 5);
    unsynced.covered(unsynced.mark());
    assert_eq!(unsynced.bytes(), 0);
}

#[test]
fn two_seconds_later_nothing_is_left() {
    let mut state = State { second: 7, now: 10, before: 4, all: 14, covered: 0 };
    state.turn(8);
    assert_eq!((state.now, state.before), (0, 10));
    state.turn(10);
    assert_eq!((state.now, state.before), (0, 0));
}
