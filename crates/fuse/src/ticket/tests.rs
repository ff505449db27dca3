//! Waiting for notifications.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn what_waits_is_done_with_the_last_notification() {
    let ticket = Ticket::new(2);
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    ticket.then(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    ticket.one_done();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert!(!ticket.wait(Duration::ZERO));
    ticket.one_done();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert!(ticket.wait(Duration::ZERO));
    let count = ran.clone();
    ticket.then(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[test]
fn a_verb_collects_and_others_may_block() {
    let ticket = Ticket::new(1);
    assert!(!hand_over(&ticket));
    let (taken, tickets) = collect(|| hand_over(&ticket));
    assert!(taken && tickets.len() == 1);
    assert!(!hand_over(&ticket));
}
