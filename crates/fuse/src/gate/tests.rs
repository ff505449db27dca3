//! Who passes when.

use super::*;
use std::sync::mpsc::channel;

fn close(gate: &Gate) {
    gate.begin_settle();
    gate.hold();
}

fn piece(offset: u64, len: u64) -> Piece {
    Piece { ino: 7, task: 1, offset, len, direct: false }
}

#[test]
fn a_held_gate_parks_verbs_and_runs_them_on_release() {
    let gate = Arc::new(Gate::default());
    close(&gate);
    assert!(gate.enter(Passage::Name).is_none());
    let (send, receive) = channel();
    gate.park(Passage::Name, move |_pass| send.send(()).unwrap());
    assert!(receive.try_recv().is_err());
    gate.release();
    receive.recv().unwrap();
    assert!(gate.enter(Passage::Name).is_some());
}

#[test]
fn content_passes_a_held_gate_while_pages_are_written_back() {
    let gate = Arc::new(Gate::default());
    close(&gate);
    let (send, receive) = channel();
    gate.park(Passage::Content, move |_pass| send.send(()).unwrap());
    gate.begin_write_back();
    receive.recv().unwrap();
    assert!(gate.enter(Passage::Name).is_none());
    drop(gate.enter(Passage::Content).unwrap());
    gate.end_write_back();
    assert!(gate.enter(Passage::Content).is_none());
    gate.release();
}

#[test]
fn hold_waits_for_the_verb_under_way() {
    let gate = Arc::new(Gate::default());
    let pass = gate.enter(Passage::Name).unwrap();
    let held = gate.clone();
    let holder = std::thread::spawn(move || close(&held));
    while !gate.is_held() {
        std::thread::yield_now();
    }
    assert!(gate.enter(Passage::Name).is_none());
    assert!(!holder.is_finished());
    drop(pass);
    holder.join().unwrap();
}

#[test]
fn holds_nest() {
    let gate = Arc::new(Gate::default());
    close(&gate);
    close(&gate);
    gate.release();
    assert!(gate.enter(Passage::Content).is_none());
    gate.release();
    assert!(gate.enter(Passage::Content).is_some());
}

#[test]
fn a_write_of_two_pieces_passes_whole() {
    let gate = Arc::new(Gate::default());
    let pass = gate.enter_write(&piece(100, 3996)).unwrap();
    drop(pass);
    gate.begin_settle();
    assert_eq!(gate.settle(Duration::ZERO), [7]);
    // Names pass meanwhile, new content does not, and the rest of the write does.
    assert!(gate.enter(Passage::Name).is_some());
    assert!(gate.enter(Passage::Content).is_none());
    assert!(gate.enter(Passage::Page).is_some());
    assert!(gate.enter_write(&Piece { ino: 8, ..piece(0, 10) }).is_none());
    let rest = piece(4096, 100);
    let pass = gate.enter_write(&rest).unwrap();
    drop(pass);
    assert!(gate.settle(Duration::from_secs(60)).is_empty());
    gate.hold();
    assert!(gate.enter_write(&piece(4196, 10)).is_none());
    gate.release();
    assert!(gate.enter_write(&piece(4196, 10)).is_some());
}

#[test]
fn a_write_that_was_whole_is_known_by_what_comes_next() {
    let gate = Arc::new(Gate::default());
    drop(gate.enter_write(&piece(0, 4096)).unwrap());
    gate.begin_settle();
    // The same thread begins another write: it waits, and the first is whole.
    assert!(gate.enter_write(&piece(0, 4096)).is_none());
    assert!(gate.settle(Duration::ZERO).is_empty());
}

#[test]
fn a_write_is_whole_when_the_inodes_lock_was_given_to_another() {
    let gate = Arc::new(Gate::default());
    drop(gate.enter_write(&piece(0, 4096)).unwrap());
    gate.begin_settle();
    assert_eq!(gate.settle(Duration::ZERO), [7]);
    gate.ended(7);
    assert!(gate.settle(Duration::ZERO).is_empty());
}

#[test]
fn a_parked_write_counts_as_begun_when_it_goes() {
    let gate = Arc::new(Gate::default());
    close(&gate);
    let (send, receive) = channel();
    gate.park_write(Passage::Content, Some(piece(0, 4096)), move |_pass| send.send(()).unwrap());
    gate.release();
    receive.recv().unwrap();
    assert_eq!(gate.begun(7), Some((1, 4096)));
    // Closed since: the file, and not another write that began meanwhile.
    gate.closed(7, (1, 8192));
    assert!(gate.begun(7).is_some());
    gate.closed(7, (1, 4096));
    assert!(gate.begun(7).is_none());
}
