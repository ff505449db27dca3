//! Planning without a disk: growth, adoption, and what is refused.

use super::*;
use mw_model::{ErrorKind, Incarnation, WorldId};

const MIB: u64 = 1 << 20;

fn owner(world: u64) -> Owner {
    Owner { world: WorldId(world), incarnation: Incarnation(1) }
}

fn claim(file: u16, offset: u64, log2: u8) -> Claim {
    Claim { segment: SegmentId::new(file, offset, log2), owner: owner(1), used: 64 }
}

fn grown(space: &mut Space, log2: u8, step: u64) -> Growth {
    let growth = space.plan_growth(log2, step).expect("room");
    if usize::from(growth.file) == space.ends.len() {
        space.add_file();
    }
    space.grow(growth);
    growth
}

#[test]
fn a_file_grows_by_steps_and_then_comes_the_next() {
    let mut space = Space::new(Vec::new(), 16 * MIB);
    space.adopt(&[]).unwrap();
    assert_eq!(grown(&mut space, 16, 8 * MIB), Growth { file: 0, from: 0, to: 8 * MIB, shrinkable: true });
    assert_eq!(grown(&mut space, 16, 8 * MIB), Growth { file: 0, from: 8 * MIB, to: 16 * MIB, shrinkable: true });
    assert_eq!(grown(&mut space, 22, UNIT), Growth { file: 1, from: 0, to: 8 * MIB, shrinkable: false });
    assert_eq!(space.usage(), Usage { claimed: 0, free: 24 * MIB - 2 * UNIT, room: None });
}

#[test]
fn growth_covers_the_gap_before_an_aligned_segment() {
    let mut space = Space::new(vec![3 * UNIT], 16 * MIB);
    space.adopt(&[]).unwrap();
    assert_eq!(grown(&mut space, 20, UNIT), Growth { file: 0, from: 3 * UNIT, to: 2 * MIB, shrinkable: false });
    assert_eq!(space.take(20, owner(1)), Some(SegmentId::new(0, MIB, 20)));
    assert_eq!(space.usage(), Usage { claimed: MIB, free: MIB - UNIT, room: None });
}

#[test]
fn what_no_claim_names_is_free() {
    let mut space = Space::new(vec![8 * MIB, 8 * MIB], 8 * MIB);
    let claims = [claim(1, 4 * MIB, 22), claim(0, UNIT, 16), claim(0, 2 * MIB, 20)];
    space.adopt(&claims).unwrap();
    let owned = 5 * MIB + UNIT;
    assert_eq!(space.usage(), Usage { claimed: owned, free: 16 * MIB - 2 * UNIT - owned, room: None });
    let mut taken = Vec::new();
    while let Some(id) = space.take(16, owner(2)) {
        assert!(claims.iter().all(|c| {
            let s = c.segment;
            id.file() != s.file() || id.offset() + UNIT <= s.offset() || id.offset() >= s.offset() + s.size()
        }));
        taken.push(id);
    }
    assert_eq!(taken.len() as u64 * UNIT, 16 * MIB - 2 * UNIT - owned);
    space.disown(&taken).unwrap();
    taken.iter().for_each(|&id| space.release(id));
    space.disown(&claims.map(|c| c.segment)).unwrap();
    claims.iter().for_each(|c| space.release(c.segment));
    assert_eq!(space.usage(), Usage { claimed: 0, free: 16 * MIB - 2 * UNIT, room: None });
    assert!(space.take(22, owner(3)).is_some(), "the blocks merged again");
}

#[test]
fn contradictory_claims_are_refused_by_name() {
    let wrong = |claims: &[Claim]| {
        let mut space = Space::new(vec![8 * MIB], 8 * MIB);
        let error = space.adopt(claims).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        space.adopt(&[]).expect("a refused adoption changes nothing");
        assert_eq!(space.usage(), Usage { claimed: 0, free: 8 * MIB - UNIT, room: None });
        error.to_string()
    };
    let text = wrong(&[claim(0, 3 * UNIT, 16), claim(0, 2 * UNIT, 17)]);
    assert!(text.contains("data-0000@131072+131072 and data-0000@196608+65536 overlap"), "{text}");
    assert!(wrong(&[claim(0, UNIT, 16), claim(0, UNIT, 16)]).contains("overlap"));
    assert!(wrong(&[claim(0, 8 * MIB, 16)]).contains("outside"));
    assert!(wrong(&[claim(1, UNIT, 16)]).contains("outside"));
    assert!(wrong(&[claim(0, 0, 16)]).contains("no segment"));
    assert!(wrong(&[claim(0, UNIT, 17)]).contains("no segment"));
    assert!(wrong(&[claim(0, UNIT, 3)]).contains("no segment"));
    assert!(wrong(&[claim(0, UNIT, 200)]).contains("no segment"));
    assert!(wrong(&[Claim { used: 65_537, ..claim(0, UNIT, 16) }]).contains("beyond its size"));
}

#[test]
fn a_segment_is_disowned_once_and_all_or_none() {
    let mut space = Space::new(vec![8 * MIB], 8 * MIB);
    space.adopt(&[claim(0, UNIT, 16), claim(0, 2 * UNIT, 16)]).unwrap();
    let [a, b] = [claim(0, UNIT, 16).segment, claim(0, 2 * UNIT, 16).segment];
    let before = space.usage();
    assert_eq!(space.disown(&[a, b, a]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!((space.usage(), space.owner(a)), (before, Some(owner(1))));
    assert_eq!(space.disown(&[a]).unwrap(), [(a, owner(1))]);
    assert_eq!(space.disown(&[a]).unwrap_err().kind(), ErrorKind::Invalid);
}
