//! Who waits for whom.

use super::*;
use std::sync::mpsc::channel;

fn answer(send: &std::sync::mpsc::Sender<&'static str>, name: &'static str) -> Answer {
    let send = send.clone();
    Box::new(move || send.send(name).unwrap())
}

#[test]
fn an_answer_waits_for_the_other_mount() {
    let notices = Arc::new(Notices::new(Env::seeded(1)));
    let (send, receive) = channel();
    let (one, two) = (Ticket::new(1), Ticket::new(1));
    notices.hold_back(&[one.clone(), two.clone()], answer(&send, "answer"));
    one.one_done();
    assert!(receive.try_recv().is_err());
    two.one_done();
    assert_eq!(receive.try_recv(), Ok("answer"));
}

#[test]
fn a_mount_with_something_to_tell_holds_nothing_back() {
    let notices = Arc::new(Notices::new(Env::seeded(1)));
    let (send, receive) = channel();
    let other = Ticket::new(1);
    notices.hold_back(std::slice::from_ref(&other), answer(&send, "first"));
    let mine = notices.post(vec![Notice::Inode(5), Notice::Inode(5)]);
    assert_eq!(receive.try_recv(), Ok("first"));
    notices.hold_back(std::slice::from_ref(&other), answer(&send, "second"));
    assert_eq!(receive.try_recv(), Ok("second"));
    other.one_done();
    assert!(!mine.wait(Duration::ZERO));
    notices.stop();
    assert!(notices.post(vec![Notice::Everything]).wait(Duration::ZERO));
}

#[test]
fn the_same_notice_is_sent_once_and_everyone_hears() {
    let notices = Arc::new(Notices::new(Env::seeded(1)));
    let (one, two) = (notices.post(vec![Notice::Inode(5)]), notices.post(vec![Notice::Inode(5), Notice::Inode(6)]));
    let (send, receive) = channel();
    let thread = {
        let notices = notices.clone();
        std::thread::spawn(move || notices.run(|notice| send.send(notice.clone()).unwrap()))
    };
    assert!(one.wait(BOUND) && two.wait(BOUND));
    notices.stop();
    thread.join().unwrap();
    assert_eq!(receive.into_iter().collect::<Vec<_>>(), [Notice::Inode(5), Notice::Inode(6)]);
}

#[test]
fn a_lock_is_answered_when_all_before_it_is_told() {
    let notices = Arc::new(Notices::new(Env::seeded(1)));
    let (send, receive) = channel();
    notices.in_turn(answer(&send, "nothing to tell"));
    assert_eq!(receive.try_recv(), Ok("nothing to tell"));
    notices.post(vec![Notice::Inode(5)]);
    notices.in_turn(answer(&send, "answer"));
    let after = notices.post(vec![Notice::Inode(6)]);
    assert!(receive.try_recv().is_err());
    let thread = {
        let notices = notices.clone();
        std::thread::spawn(move || {
            notices.run(|notice| match notice {
                Notice::Inode(5) => send.send("told 5").unwrap(),
                Notice::Inode(_) => send.send("told 6").unwrap(),
                _ => {}
            })
        })
    };
    assert!(after.wait(BOUND));
    assert_eq!(receive.try_iter().collect::<Vec<_>>(), ["told 5", "answer", "told 6"]);
    notices.stop();
    thread.join().unwrap();
}
