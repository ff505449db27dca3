//! Who gets what, in which order, and who is told.

use super::*;
use LockEnd::{Deadlock, Gone, Granted, Interrupted};
use mw_env::Env;

const FILE: Ino = Ino(7);
const OTHER: Ino = Ino(8);
const SHARED: LockKind = LockKind::Shared;
const EXCLUSIVE: LockKind = LockKind::Exclusive;
const HELD: LockEnd = LockEnd::Held { late: false };

struct Bed {
    table: Table,
    clients: [u64; 2],
}

fn bed() -> Bed {
    let mut table = Table::default();
    let clients = [table.join(), table.join()];
    Bed { table, clients }
}

/// Owner `n` goes through client `n % 2`, with a handle and a process of its own.
fn bytes(ino: Ino, n: u64, first: u64, last: u64, kind: LockKind) -> WantedLock {
    let reach = LockReach::Bytes(LockSpan { first, last });
    WantedLock { ino, reach, kind, owner: n, handle: n, process: 100 + n as u32, late: false }
}

fn whole(n: u64, kind: LockKind) -> WantedLock {
    WantedLock { reach: LockReach::Whole, ..bytes(FILE, n, 0, 0, kind) }
}

impl Bed {
    fn client(&self, wanted: &WantedLock) -> u64 {
        self.clients[(wanted.owner % 2) as usize]
    }

    fn take(&mut self, wanted: WantedLock) -> LockEnd {
        let (end, news) = self.table.try_lock(self.client(&wanted), &wanted);
        assert!(news.is_empty());
        end
    }

    /// Waits under the number of the owner.
    fn wait(&mut self, wanted: WantedLock) -> Option<LockEnd> {
        self.wait_as(wanted.owner, wanted)
    }

    fn wait_as(&mut self, number: u64, wanted: WantedLock) -> Option<LockEnd> {
        let (end, news) = self.table.wait(Waiter { client: self.client(&wanted), number }, wanted, true);
        assert!(news.is_empty());
        end
    }

    fn unlock(&mut self, wanted: WantedLock) -> Vec<(u64, LockEnd)> {
        told(self.table.unlock(self.client(&wanted), wanted.ino, wanted.reach, wanted.owner))
    }
}

fn told(news: News) -> Vec<(u64, LockEnd)> {
    news.into_iter().map(|(waiter, end)| (waiter.number, end)).collect()
}

#[test]
fn who_came_first_is_looked_at_first_and_keeps_nobody_from_what_is_free() {
    let mut bed = bed();
    assert_eq!(bed.take(bytes(FILE, 1, 0, 9, EXCLUSIVE)), Granted);
    assert_eq!(bed.wait(bytes(FILE, 2, 5, 20, EXCLUSIVE)), None);
    assert_eq!(bed.wait(bytes(FILE, 3, 5, 5, SHARED)), None);
    assert_eq!(bed.wait(bytes(FILE, 4, 5, 5, SHARED)), None);
    // Free, although somebody waits for more than that.
    assert_eq!(bed.wait(bytes(FILE, 5, 15, 15, SHARED)), Some(Granted));
    assert_eq!(bed.take(bytes(FILE, 6, 15, 15, EXCLUSIVE)), HELD);
    assert_eq!(bed.unlock(bytes(FILE, 1, 0, 9, EXCLUSIVE)), [(3, Granted), (4, Granted)]);
    assert_eq!(bed.unlock(bytes(FILE, 3, 0, 9, EXCLUSIVE)), []);
    assert_eq!(bed.unlock(bytes(FILE, 4, 0, 9, EXCLUSIVE)), []);
    assert_eq!(bed.unlock(bytes(FILE, 5, 0, LockSpan::END, EXCLUSIVE)), [(2, Granted)]);
}

#[test]
fn what_becomes_less_lets_others_in() {
    let mut bed = bed();
    assert_eq!(bed.take(bytes(FILE, 1, 0, 99, EXCLUSIVE)), Granted);
    assert_eq!(bed.wait(bytes(FILE, 2, 10, 19, SHARED)), None);
    assert_eq!(bed.wait(bytes(FILE, 3, 90, 99, EXCLUSIVE)), None);
    let client = bed.clients[1];
    let (end, news) = bed.table.try_lock(client, &bytes(FILE, 1, 10, 19, SHARED));
    assert_eq!((end, told(news)), (Granted, vec![(2, Granted)]));
    assert_eq!(
        told(bed.table.unlock(client, FILE, LockReach::Bytes(LockSpan { first: 50, last: 200 }), 1)),
        [(3, Granted)]
    );
    // Upward again: only when nobody shares.
    assert_eq!(bed.take(bytes(FILE, 1, 10, 19, EXCLUSIVE)), HELD);
    assert_eq!(bed.unlock(bytes(FILE, 2, 0, 99, SHARED)), []);
    assert_eq!(bed.take(bytes(FILE, 1, 10, 19, EXCLUSIVE)), Granted);
}

#[test]
fn somebody_in_the_way_is_named() {
    let mut bed = bed();
    let client = bed.clients[0];
    assert_eq!(bed.table.in_way(client, &bytes(FILE, 2, 0, 99, EXCLUSIVE)), None);
    assert_eq!(bed.take(bytes(FILE, 1, 30, 39, SHARED)), Granted);
    assert_eq!(bed.take(bytes(FILE, 3, 20, 34, SHARED)), Granted);
    let found = HeldLock { span: LockSpan { first: 20, last: 34 }, kind: SHARED, process: 103 };
    assert_eq!(bed.table.in_way(client, &bytes(FILE, 2, 0, 99, EXCLUSIVE)), Some(found));
    assert_eq!(bed.table.in_way(client, &bytes(FILE, 2, 0, 99, SHARED)), None);
    assert_eq!(bed.table.in_way(bed.clients[1], &bytes(FILE, 3, 0, 30, EXCLUSIVE)).unwrap().process, 101);
    assert_eq!(bed.table.own(bed.clients[1], FILE, 3, LockSpan::ALL), Some(found));
    assert_eq!(bed.table.own(client, FILE, 3, LockSpan::ALL), None, "another client's number 3");
}

#[test]
fn whole_files_and_bytes_do_not_see_each_other() {
    let mut bed = bed();
    assert_eq!(bed.take(whole(1, EXCLUSIVE)), Granted);
    assert_eq!(bed.take(bytes(FILE, 2, 0, LockSpan::END, EXCLUSIVE)), Granted);
    assert_eq!(bed.take(whole(2, SHARED)), HELD);
    assert_eq!(bed.unlock(whole(1, SHARED)), []);
    assert_eq!(bed.take(whole(2, SHARED)), Granted);
    assert!(bed.table.has_bytes(FILE) && !bed.table.has_bytes(OTHER));
    // Closing a descriptor frees the bytes alone.
    bed.table.close_owner(bed.clients[0], FILE, 2, 2);
    assert!(!bed.table.has_bytes(FILE));
    assert_eq!(bed.take(whole(3, EXCLUSIVE)), LockEnd::Held { late: true }, "the descriptor was perhaps the last");
    assert_eq!(told(bed.table.close_handle(bed.clients[0], FILE, 2)), []);
    assert_eq!(bed.take(whole(3, EXCLUSIVE)), Granted);
}

/// flock(2): a conversion gives up what is there first.
#[test]
fn a_conversion_that_fails_has_lost_what_was_there() {
    let mut bed = bed();
    assert_eq!(bed.take(whole(1, SHARED)), Granted);
    assert_eq!(bed.take(whole(1, SHARED)), Granted);
    assert_eq!(bed.take(whole(1, EXCLUSIVE)), Granted);
    assert_eq!(bed.take(whole(1, SHARED)), Granted);
    assert_eq!(bed.take(whole(2, SHARED)), Granted);
    assert_eq!(bed.wait(whole(3, EXCLUSIVE)), None);
    assert_eq!(bed.take(whole(1, EXCLUSIVE)), HELD);
    assert_eq!(bed.unlock(whole(2, SHARED)), [(3, Granted)]);
    // Two that share and both want more: the second finds free what the first gave up, and neither hangs.
    let mut bed = super::tests::bed();
    assert_eq!(bed.take(whole(1, SHARED)), Granted);
    assert_eq!(bed.take(whole(2, SHARED)), Granted);
    assert_eq!(bed.wait(whole(1, EXCLUSIVE)), None);
    assert_eq!(bed.wait(whole(2, EXCLUSIVE)), Some(Granted));
    assert_eq!(bed.unlock(whole(2, EXCLUSIVE)), [(1, Granted)]);
}

#[test]
fn circles_are_refused_at_any_length_and_through_two_clients() {
    let mut bed = bed();
    for n in 1..=4 {
        assert_eq!(bed.take(bytes(Ino(n), n, 0, 9, EXCLUSIVE)), Granted);
    }
    assert_eq!(bed.wait(bytes(Ino(2), 1, 5, 5, SHARED)), None);
    assert_eq!(bed.wait(bytes(Ino(3), 2, 5, 5, SHARED)), None);
    assert_eq!(bed.wait(bytes(Ino(4), 3, 5, 5, SHARED)), None);
    assert_eq!(bed.take(bytes(Ino(1), 4, 5, 5, SHARED)), HELD, "who does not wait is in no circle");
    assert_eq!(bed.wait(bytes(Ino(1), 4, 5, 5, SHARED)), Some(Deadlock));
    assert_eq!(bed.wait(bytes(Ino(1), 5, 5, 5, SHARED)), None, "no part of a circle");
    // Who waits for a moment only is in none.
    let soon = Waiter { client: bed.clients[0], number: 4 };
    assert_eq!(bed.table.wait(soon, bytes(Ino(1), 4, 5, 5, SHARED), false).0, None);
    assert_eq!(told(bed.table.cancel(soon, HELD)), [(4, HELD)]);
    assert_eq!(bed.unlock(bytes(Ino(4), 4, 0, 9, SHARED)), [(3, Granted)]);
}

#[test]
fn a_process_that_goes_through_two_clients_does_not_wait_for_itself() {
    let mut bed = bed();
    let through = |n: u64, ino, kind| WantedLock { process: 9, ..bytes(ino, n, 0, 9, kind) };
    assert_eq!(bed.take(through(1, FILE, EXCLUSIVE)), Granted);
    assert_eq!(bed.wait(through(2, FILE, SHARED)), Some(Deadlock));
    // Through another process, too.
    assert_eq!(bed.take(bytes(OTHER, 4, 0, 9, EXCLUSIVE)), Granted);
    assert_eq!(bed.wait(bytes(FILE, 4, 0, 0, SHARED)), None);
    assert_eq!(bed.wait(through(2, OTHER, SHARED)), Some(Deadlock));
    // A process that nobody knows is not every other.
    let unknown = |n: u64, kind| WantedLock { process: 0, ..bytes(Ino(9), n, 0, 9, kind) };
    assert_eq!(bed.take(unknown(1, EXCLUSIVE)), Granted);
    assert_eq!(bed.wait(unknown(2, SHARED)), None);
}

/// An owner of two threads: what one of them is given may close a circle around the other.
#[test]
fn a_circle_that_a_grant_closes_is_found() {
    let mut bed = bed();
    assert_eq!(bed.take(bytes(FILE, 3, 0, 0, SHARED)), Granted);
    assert_eq!(bed.take(bytes(OTHER, 2, 0, 0, EXCLUSIVE)), Granted);
    assert_eq!(bed.wait(bytes(FILE, 2, 0, 0, EXCLUSIVE)), None, "2 waits for 3");
    assert_eq!(bed.wait(bytes(OTHER, 1, 0, 0, SHARED)), None, "1 waits for 2");
    // Now 2 would wait for 1, too.
    let client = bed.clients[1];
    let (end, news) = bed.table.try_lock(client, &bytes(FILE, 1, 0, 0, SHARED));
    assert_eq!((end, told(news)), (Granted, vec![(2, Deadlock)]));
}

#[test]
fn what_ends_frees_what_it_had() {
    let mut bed = bed();
    let [even, odd] = bed.clients;
    let through = |handle, first, kind| WantedLock { handle, ..bytes(FILE, 1, first, first, kind) };
    for (handle, first) in [(10, 0), (11, 1), (10, 2)] {
        assert_eq!(bed.take(through(handle, first, EXCLUSIVE)), Granted);
    }
    assert_eq!(bed.wait(bytes(FILE, 2, 0, 0, SHARED)), None);
    assert_eq!(bed.wait(bytes(FILE, 4, 1, 1, SHARED)), None);
    // Another client's handle of the same number; then the one it is.
    assert_eq!(told(bed.table.close_handle(even, FILE, 10)), []);
    assert_eq!(told(bed.table.close_handle(odd, FILE, 10)), [(2, Granted)]);
    assert_eq!(told(bed.table.close_owner(even, FILE, 1, 0)), []);
    assert_eq!(told(bed.table.close_owner(odd, FILE, 1, 99)), [(4, Granted)]);
    // A client goes: what waits in it, what it has.
    assert_eq!(bed.wait(bytes(FILE, 1, 0, 1, EXCLUSIVE)), None);
    assert_eq!(bed.wait_as(77, bytes(FILE, 3, 0, 0, EXCLUSIVE)), None);
    assert_eq!(told(bed.table.cancel(Waiter { client: odd, number: 77 }, Interrupted)), [(77, Interrupted)]);
    assert_eq!(told(bed.table.cancel(Waiter { client: odd, number: 77 }, Interrupted)), []);
    assert_eq!(told(bed.table.leave(even)), [(1, Granted)]);
    assert_eq!(told(bed.table.leave(even)), []);
    assert_eq!(bed.take(bytes(OTHER, 2, 0, 0, SHARED)), Gone);
    assert_eq!(told(bed.table.leave(odd)), []);
    assert!(bed.table.is_empty() && bed.table.waits.is_empty() && bed.table.count == 0);
    let mut bed = super::tests::bed();
    assert_eq!(bed.take(whole(1, EXCLUSIVE)), Granted);
    assert_eq!(bed.wait(whole(3, EXCLUSIVE)), None);
    assert_eq!(bed.wait(whole(2, EXCLUSIVE)), None);
    let mut news = told(bed.table.leave(bed.clients[1]));
    news.sort_by_key(|(number, _)| *number);
    assert_eq!(news, [(2, Granted), (3, Gone)]);
    // The world goes: nobody is given anything.
    assert_eq!(bed.wait(whole(4, EXCLUSIVE)), None);
    assert_eq!(told(bed.table.end()), [(4, Gone)]);
    assert_eq!(bed.take(whole(4, EXCLUSIVE)), Gone);
    assert!(bed.table.is_empty());
}

/// Whatever comes in whatever order: nobody waits for what is free, no circle stands, and no two have what excludes one another.
#[test]
fn random_wishes_leave_nobody_waiting_for_what_is_free() {
    let env = Env::seeded(21);
    let below = |n: u64| env.random() % n;
    for _ in 0..200 {
        let Bed { mut table, clients } = bed();
        let (mut waiting, mut number) = (HashSet::new(), 0);
        for _ in 0..80 {
            let (n, first) = (below(6), below(6));
            let kind = if below(2) == 0 { SHARED } else { EXCLUSIVE };
            let mut wanted = bytes(Ino(below(2)), n, first, first + below(4), kind);
            if below(4) == 0 {
                wanted.reach = LockReach::Whole;
            }
            let client = clients[(n % 2) as usize];
            number += 1;
            let news = match below(8) {
                0..4 => {
                    let (end, news) = table.wait(Waiter { client, number }, wanted, true);
                    if end.is_none() {
                        waiting.insert(number);
                    }
                    news
                }
                4 => table.try_lock(client, &wanted).1,
                5 => table.unlock(client, wanted.ino, wanted.reach, n),
                6 => table.close_handle(client, wanted.ino, n),
                _ => table.close_owner(client, wanted.ino, n, n),
            };
            for (waiter, _) in news {
                assert!(waiting.remove(&waiter.number), "nobody is told twice");
            }
            assert_eq!(waiting, table.waits.iter().map(|wait| wait.waiter.number).collect());
            for wait in &table.waits {
                assert!(table.in_the_way(wait.party().owner, &wait.wanted).next().is_some());
                assert!(!wait.binds() || !table.is_deadlock(wait));
            }
            assert_eq!(table.count, table.files.values().map(File::len).sum::<usize>());
            for file in table.files.values() {
                for spans in [&file.bytes, &file.whole] {
                    let all: Vec<(Owner, Held)> = (0..6)
                        .map(|n| Owner { client: clients[(n % 2) as usize], number: n })
                        .flat_map(|owner| {
                            spans.of(owner, LockSpan::ALL).map(|(owner, held)| (owner, *held)).collect::<Vec<_>>()
                        })
                        .collect();
                    for (owner, held) in &all {
                        assert!(spans.against(*owner, held.span, held.kind).next().is_none());
                    }
                }
            }
        }
    }
}
