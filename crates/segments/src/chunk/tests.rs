//! The cutter against the crate whose tables it uses, and its promises on awkward inputs.

use super::*;
use fastcdc::v2020::FastCDC;
use mw_env::Env;

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Env::seeded(seed).fill(&mut bytes);
    bytes
}

/// Cuts `input`, pushed in parts whose lengths `part` gives, and checks that the pieces are what was promised.
fn cut(input: &[u8], mut part: impl FnMut() -> usize) -> Vec<Vec<u8>> {
    let mut chunker = Chunker::new();
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(part().clamp(1, rest.len()));
        let kept: Result<(), ()> = chunker.push(head, |piece| {
            pieces.push(piece.to_vec());
            Ok(())
        });
        kept.unwrap();
        assert!(chunker.held() < COARSE.max);
        rest = tail;
    }
    pieces.extend(chunker.finish());
    assert!(chunker.finish().is_none());
    assert_eq!(pieces.concat(), input);
    let mut start = 0;
    for (i, piece) in pieces.iter().enumerate() {
        let sizes = if start < FINE_UNTIL { FINE } else { COARSE };
        assert!(!piece.is_empty() && piece.len() <= sizes.max);
        assert!(piece.len() >= sizes.min || i + 1 == pieces.len());
        start += piece.len() as u64;
    }
    pieces
}

fn lengths(pieces: &[Vec<u8>]) -> Vec<usize> {
    pieces.iter().map(Vec::len).collect()
}

/// Where the crate `fastcdc` cuts.
fn theirs(input: &[u8], sizes: Sizes) -> Vec<usize> {
    FastCDC::new(input, sizes.min, sizes.avg, sizes.max).map(|chunk| chunk.length).collect()
}

#[test]
fn cuts_where_fastcdc_cuts() {
    for seed in 0..4 {
        let input = noise(seed, 3_000_000);
        let ours = lengths(&cut(&input, || usize::MAX));
        assert_eq!(ours, theirs(&input, FINE));
        let mean = input.len() / ours.len();
        assert!((64 << 10..256 << 10).contains(&mean), "pieces of {mean} bytes on average");
    }
}

#[test]
fn pieces_are_longer_behind_the_start_of_a_large_input() {
    let input = noise(5, FINE_UNTIL as usize + 40_000_000);
    let ours = lengths(&cut(&input, || 1 << 20));
    let (mut at, mut fine) = (0, 0);
    while at < FINE_UNTIL as usize {
        at += ours[fine];
        fine += 1;
    }
    assert_eq!(ours[..fine], theirs(&input, FINE)[..fine], "as an input that ends there is cut");
    assert_eq!(ours[fine..], theirs(&input[at..], COARSE));
    let mean = (input.len() - at) / (ours.len() - fine);
    assert!((512 << 10..1 << 20).contains(&mean), "pieces of {mean} bytes on average");
}

#[test]
fn the_same_input_is_cut_alike_however_it_is_pushed() {
    let env = Env::seeded(1);
    let input = noise(9, 1_500_000);
    let whole = cut(&input, || usize::MAX);
    for size in [1_000, 4_096, 65_536, FINE.min, FINE.max, FINE.max + 1] {
        assert_eq!(cut(&input, || size), whole);
    }
    assert_eq!(cut(&input, || (env.random() % 100_000) as usize), whole);
    assert_eq!(cut(&input[..300_000], || 1), cut(&input[..300_000], || usize::MAX));
    let large = noise(10, FINE_UNTIL as usize + 5_000_000);
    let whole = cut(&large, || usize::MAX);
    for size in [200_000, COARSE.max] {
        assert_eq!(cut(&large, || size), whole);
    }
}

#[test]
fn flat_input_is_cut_at_the_maximum() {
    for fill in [0, 0xff] {
        let pieces = cut(&vec![fill; 3 * FINE.max + 5], || 10_000);
        assert_eq!(lengths(&pieces), [FINE.max, FINE.max, FINE.max, 5]);
    }
    let pieces = cut(&vec![0; FINE_UNTIL as usize + COARSE.max + 5], || 1 << 20);
    assert_eq!(lengths(&pieces)[FINE_UNTIL as usize / FINE.max..], [COARSE.max, 5]);
}

#[test]
fn a_refused_piece_ends_the_push() {
    let mut seen = 0;
    let refused = Chunker::new().push(&noise(1, 4 * FINE.max), |_| {
        seen += 1;
        Err("full")
    });
    assert_eq!((refused, seen), (Err("full"), 1));
}

#[test]
fn small_inputs_are_one_piece_and_nothing_is_none() {
    assert!(cut(&[], || 1).is_empty());
    assert_eq!(cut(b"x", || 1).len(), 1);
    assert_eq!(cut(&noise(1, FINE.min), || 777).len(), 1);
}

#[test]
fn an_insertion_changes_few_pieces() {
    for (len, at) in [(4_000_000, 2_000_000), (FINE_UNTIL as usize + 30_000_000, 5_000_000)] {
        let input = noise(4, len);
        let mut edited = input.clone();
        edited.splice(at..at, *b"inserted");
        let before = cut(&input, || 1 << 20);
        let after = cut(&edited, || 1 << 20);
        // Around the insertion, and where pieces become longer, which is eight bytes earlier in the content by now.
        let fresh = after.iter().filter(|piece| !before.contains(piece)).count();
        assert!(fresh <= 8, "{fresh} of {} pieces are new", after.len());
    }
}
