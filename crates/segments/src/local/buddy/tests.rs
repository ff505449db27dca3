//! Seeded churn: no unit is ever given out twice, and all of it comes back as the blocks it began as.

use super::*;
use mw_env::Env;

fn churn(seed: u64) {
    let env = Env::seeded(seed);
    let mut buddy = Buddy::new();
    let files = 1 + (env.random() % 3) as u16;
    let units = 64 + (env.random() % 500) as u32;
    for file in 0..files {
        buddy.give_range(file, 1, units);
    }
    let start = buddy.free.clone();
    let total = u64::from(files) * u64::from(units - 1);
    assert_eq!(buddy.units(), total);
    let mut owner = vec![vec![false; units as usize]; usize::from(files)];
    let mut taken: Vec<(Place, u8)> = Vec::new();
    for _ in 0..2_000 {
        if env.random() % 5 < 3 {
            let order = (env.random() % 7) as u8;
            let Some((file, unit)) = buddy.take(order) else { continue };
            assert_eq!(unit % (1 << order), 0, "a block lies at a multiple of its size");
            for u in unit..unit + (1 << order) {
                assert!(
                    u >= 1 && !std::mem::replace(&mut owner[usize::from(file)][u as usize], true),
                    "unit {u} twice"
                );
            }
            taken.push(((file, unit), order));
        } else if !taken.is_empty() {
            let at = (env.random() % taken.len() as u64) as usize;
            let ((file, unit), order) = taken.swap_remove(at);
            owner[usize::from(file)][unit as usize..(unit + (1 << order)) as usize].fill(false);
            buddy.give((file, unit), order);
        }
        let out: u64 = taken.iter().map(|(_, order)| 1 << order).sum();
        assert_eq!(buddy.units() + out, total);
    }
    for (place, order) in taken {
        buddy.give(place, order);
    }
    assert_eq!(buddy.free, start, "everything came back and merged (seed {seed})");
}

#[test]
fn no_overlap_ever_and_everything_comes_back() {
    (0..40).for_each(churn);
}

#[test]
fn growing_in_steps_is_the_same_as_growing_at_once() {
    let mut steps = Buddy::new();
    for (from, to) in [(1, 7), (7, 64), (64, 65), (65, 1024)] {
        steps.give_range(3, from, to);
    }
    let mut once = Buddy::new();
    once.give_range(3, 1, 1024);
    assert_eq!(steps.free, once.free);
}

#[test]
fn the_lowest_place_goes_first() {
    let mut buddy = Buddy::new();
    buddy.give_range(0, 1, 64);
    buddy.give_range(1, 0, 64);
    assert_eq!(buddy.take(0), Some((0, 1)));
    assert_eq!(buddy.take(3), Some((0, 8)));
    assert_eq!(buddy.take(6), Some((1, 0)));
    assert_eq!(buddy.take(6), None);
}
