//! Who passes when.

use super::*;
use std::sync::mpsc::channel;

#[test]
fn a_held_gate_parks_verbs_and_runs_them_on_release() {
    let gate = Arc::new(Gate::default());
    gate.hold();
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
    gate.hold();
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
    let holder = std::thread::spawn(move || held.hold());
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
    gate.hold();
    gate.hold();
    gate.release();
    assert!(gate.enter(Passage::Content).is_none());
    gate.release();
    assert!(gate.enter(Passage::Content).is_some());
}
