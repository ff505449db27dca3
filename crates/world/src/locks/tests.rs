//! Those who wait hear of it, outside the table's lock.

use super::*;
use std::sync::mpsc::channel;

fn wanted(owner: u64) -> WantedLock {
    let reach = LockReach::Bytes(LockSpan::ALL);
    WantedLock { ino: Ino(7), reach, kind: LockKind::Exclusive, owner, handle: owner, process: 0, late: false }
}

#[test]
fn whoever_ends_the_waiting_tells_and_may_ask_again() {
    let locks = Arc::<Locks>::default();
    let (a, b) = (Locker::new(locks.clone()), Arc::new(Locker::new(locks.clone())));
    let (told, hears) = channel();
    assert_eq!(a.try_lock(&wanted(1)), LockEnd::Granted);
    let (then, again) = (told.clone(), b.clone());
    b.lock(wanted(2), 1, move |end| {
        // Inside the call of whoever unlocked: the table is not locked.
        assert!(again.has_bytes(Ino(7)));
        then.send(end).unwrap();
    });
    assert!(hears.try_recv().is_err());
    a.unlock(Ino(7), LockReach::Bytes(LockSpan::ALL), 1);
    assert_eq!(hears.try_recv(), Ok(LockEnd::Granted));
    // Given up; the second time it is too late.
    let then = told.clone();
    a.lock(wanted(1), 5, move |end| then.send(end).unwrap());
    a.cancel(5, LockEnd::Interrupted);
    a.cancel(5, LockEnd::Interrupted);
    assert_eq!(hears.try_recv(), Ok(LockEnd::Interrupted));
    assert!(hears.try_recv().is_err());
    // Another client's number is not this one's.
    let then = told.clone();
    a.lock(wanted(1), 5, move |end| then.send(end).unwrap());
    b.cancel(5, LockEnd::Interrupted);
    assert!(hears.try_recv().is_err());
    b.close_handle(Ino(7), 2);
    assert_eq!(hears.try_recv(), Ok(LockEnd::Granted));
    // A client that goes takes its locks along, and what waits in it hears so.
    b.lock(wanted(2), 6, move |end| told.send(end).unwrap());
    b.leave();
    assert_eq!(hears.try_recv(), Ok(LockEnd::Gone));
    assert_eq!(b.try_lock(&wanted(2)), LockEnd::Gone);
    drop(a);
    assert!(!locks.any.load(Ordering::SeqCst));
}
