//! The ranges against a model that knows the lock of every byte.

use super::*;
use mw_env::Env;

/// Bytes of the model; the last stands for all that follow.
const BYTES: u64 = 24;
const OWNERS: u64 = 4;

type Byte = Option<(LockKind, By)>;

fn owner(number: u64) -> Owner {
    Owner { client: number % 2, number }
}

fn span(first: u64, last: u64) -> LockSpan {
    LockSpan { first, last: if last == BYTES - 1 { LockSpan::END } else { last } }
}

fn kinds(n: u64) -> LockKind {
    if n.is_multiple_of(2) { LockKind::Shared } else { LockKind::Exclusive }
}

/// What the model says of the ranges of one owner: as few as can be.
fn runs(bytes: &[Byte]) -> Vec<Held> {
    let mut runs: Vec<Held> = Vec::new();
    for (at, byte) in (0..).zip(bytes) {
        let Some((kind, by)) = *byte else { continue };
        let new = Held { span: span(at, at), kind, by };
        match runs.last_mut() {
            Some(last) if last.span.last + 1 == at && last.kind == kind && last.by == by => {
                last.span.last = new.span.last
            }
            _ => runs.push(new),
        }
    }
    runs
}

#[test]
fn ranges_are_what_a_map_of_bytes_says() {
    let env = Env::seeded(20);
    let below = |n: u64| env.random() % n;
    for _ in 0..300 {
        let mut spans = Spans::default();
        let mut model = [[None as Byte; BYTES as usize]; OWNERS as usize];
        for _ in 0..60 {
            let (who, a, b) = (below(OWNERS), below(BYTES), below(BYTES));
            let (first, last) = (a.min(b), a.max(b));
            let by = By { process: 1, handle: below(2), late: false };
            match below(10) {
                0 => {
                    let handle = below(2);
                    let freed = spans.free(|owner, held| owner.client == 0 && held.by.handle == handle);
                    let mut any = false;
                    for bytes in model.iter_mut().step_by(2) {
                        for byte in bytes.iter_mut().filter(|byte| byte.is_some_and(|(_, by)| by.handle == handle)) {
                            (*byte, any) = (None, true);
                        }
                    }
                    assert_eq!(freed, any);
                }
                1..4 => {
                    spans.set(owner(who), span(first, last), None);
                    model[who as usize][first as usize..=last as usize].fill(None);
                }
                n => {
                    let kind = kinds(n);
                    let free = (0..OWNERS).filter(|other| *other != who).all(|other| {
                        let theirs = &model[other as usize][first as usize..=last as usize];
                        theirs.iter().flatten().all(|(theirs, _)| kind == LockKind::Shared && *theirs == kind)
                    });
                    assert_eq!(spans.against(owner(who), span(first, last), kind).next().is_none(), free);
                    if free {
                        spans.set(owner(who), span(first, last), Some((kind, by)));
                        model[who as usize][first as usize..=last as usize].fill(Some((kind, by)));
                    }
                }
            }
            for who in 0..OWNERS {
                let held = spans.0.get(&owner(who)).cloned().unwrap_or_default();
                assert_eq!(held, runs(&model[who as usize]));
                let own = spans.of(owner(who), span(first, last)).count();
                let runs = runs(&model[who as usize]);
                assert_eq!(own, runs.iter().filter(|held| held.span.overlaps(span(first, last))).count());
            }
            assert_eq!(spans.is_empty(), model.iter().flatten().all(Option::is_none));
        }
    }
}

#[test]
fn a_lock_is_cut_and_made_whole() {
    let (me, by) = (owner(0), By { process: 1, handle: 1, late: false });
    let mut spans = Spans::default();
    let held =
        |spans: &Spans| spans.0.get(&me).into_iter().flatten().map(|h| (h.span.first, h.span.last)).collect::<Vec<_>>();
    spans.set(me, LockSpan::ALL, Some((LockKind::Exclusive, by)));
    spans.set(me, LockSpan { first: 10, last: 19 }, Some((LockKind::Shared, by)));
    assert_eq!(held(&spans), [(0, 9), (10, 19), (20, LockSpan::END)]);
    spans.set(me, LockSpan { first: 15, last: 15 }, None);
    assert_eq!(held(&spans), [(0, 9), (10, 14), (16, 19), (20, LockSpan::END)]);
    spans.set(me, LockSpan { first: 5, last: 30 }, Some((LockKind::Exclusive, by)));
    assert_eq!(held(&spans), [(0, LockSpan::END)]);
    spans.set(me, LockSpan { first: 0, last: u64::MAX }, None);
    assert!(spans.is_empty());
}
