//! The cutter against the crate whose tables it uses, and its promises on awkward inputs.

use super::*;
use fastcdc::v2020::FastCDC;
use mw_env::Env;

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Env::seeded(seed).fill(&mut bytes);
    bytes
}

/// Cuts `input`, pushed in parts whose lengths `part` gives.
fn cut(input: &[u8], mut part: impl FnMut() -> usize) -> Vec<Bytes> {
    let mut chunker = Chunker::new();
    let mut pieces = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(part().clamp(1, rest.len()));
        pieces.extend(chunker.push(head));
        assert!(chunker.held() < MAX);
        rest = tail;
    }
    pieces.extend(chunker.finish());
    assert!(chunker.finish().is_none());
    assert_eq!(pieces.concat(), input);
    assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= MAX));
    assert!(pieces.iter().rev().skip(1).all(|piece| piece.len() >= MIN));
    pieces
}

#[test]
fn cuts_where_fastcdc_cuts() {
    for seed in 0..4 {
        let input = noise(seed, 3_000_000);
        let ours: Vec<usize> = cut(&input, || usize::MAX).iter().map(Bytes::len).collect();
        let theirs: Vec<usize> = FastCDC::new(&input, MIN, AVG, MAX).map(|chunk| chunk.length).collect();
        assert_eq!(ours, theirs);
        let mean = input.len() / ours.len();
        assert!((64 << 10..256 << 10).contains(&mean), "pieces of {mean} bytes on average");
    }
}

#[test]
fn the_same_input_is_cut_alike_however_it_is_pushed() {
    let env = Env::seeded(1);
    let input = noise(9, 1_500_000);
    let whole = cut(&input, || usize::MAX);
    for size in [1_000, 4_096, 65_536, MIN, MAX, MAX + 1] {
        assert_eq!(cut(&input, || size), whole);
    }
    assert_eq!(cut(&input, || (env.random() % 100_000) as usize), whole);
    assert_eq!(cut(&input[..300_000], || 1), cut(&input[..300_000], || usize::MAX));
}

#[test]
fn flat_input_is_cut_at_the_maximum() {
    for fill in [0, 0xff] {
        let pieces = cut(&vec![fill; 3 * MAX + 5], || 10_000);
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [MAX, MAX, MAX, 5]);
    }
}

#[test]
fn small_inputs_are_one_piece_and_nothing_is_none() {
    assert!(cut(&[], || 1).is_empty());
    assert_eq!(cut(b"x", || 1).len(), 1);
    assert_eq!(cut(&noise(1, MIN), || 777).len(), 1);
}

#[test]
fn an_insertion_changes_few_pieces() {
    let input = noise(4, 4_000_000);
    let mut edited = input.clone();
    edited.splice(2_000_000..2_000_000, *b"inserted");
    let before = cut(&input, || usize::MAX);
    let after = cut(&edited, || usize::MAX);
    let fresh = after.iter().filter(|piece| !before.contains(piece)).count();
    assert!(fresh <= 3, "{fresh} of {} pieces are new", after.len());
}
