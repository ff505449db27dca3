use super::Live;
use mw_env::Env;
use mw_segments::{Addr, SegmentId};

fn addr(segment: u64, offset: u32, len: u32) -> Addr {
    Addr { segment: SegmentId(segment), offset, len }
}

#[test]
fn what_lies_between_is_dead() {
    let mut live = Live::default();
    for (offset, len) in [(16, 9), (40, 8), (48, 100), (16, 9), (400, 8)] {
        live.add(&addr(1, offset, len));
    }
    // A blob reaches to where the next may begin.
    assert_eq!(live.dead(SegmentId(1), 500).ranges, [(0, 16), (32, 8), (152, 248), (408, 92)]);
    assert_eq!(live.dead(SegmentId(1), 404).ranges, [(0, 16), (32, 8), (152, 248)], "up to the end that counts");
    assert_eq!(live.dead(SegmentId(1), 40).ranges, [(0, 16), (32, 8)]);
    assert_eq!(live.dead(SegmentId(2), 64).ranges, [(0, 64)]);
    assert!(live.has(SegmentId(1)) && !live.has(SegmentId(2)));
}

#[test]
fn nothing_that_was_added_is_dead() {
    for seed in 0..200 {
        let env = Env::seeded(seed);
        let size = 1 << 16;
        let mut live = Live::default();
        let mut held = vec![false; size];
        for _ in 0..env.random() % 600 {
            let (offset, len) = (env.random() as usize % (size - 4_096) / 8 * 8, 1 + env.random() as usize % 3_000);
            live.add(&addr(3, offset as u32, len as u32));
            held[offset..(offset + len).next_multiple_of(8)].fill(true);
        }
        let end = env.random() as usize % size / 8 * 8;
        let mut dead = vec![false; size];
        let mut last = 0;
        for (offset, len) in live.dead(SegmentId(3), end as u32).ranges {
            assert!(len > 0 && (offset > last || last == 0), "in order and apart (seed {seed})");
            last = offset + len;
            dead[offset as usize..last as usize].fill(true);
        }
        for at in 0..size {
            assert_eq!(dead[at], at < end && !held[at], "byte {at} (seed {seed})");
        }
    }
}
