//! The sparse image against a plain `Vec<u8>`.

use super::{Image, PAGE, Space};
use mw_env::Env;

fn bytes(image: &Image) -> Vec<u8> {
    let mut out = vec![0xee; image.len() as usize];
    image.read(&mut out, 0);
    out
}

#[test]
fn behaves_as_a_vector() {
    let env = Env::seeded(3);
    let mut image = Image::default();
    let mut plain: Vec<u8> = Vec::new();
    for _ in 0..600 {
        let (at, n) = ((env.random() % 20_000) as usize, (env.random() % 6_000) as usize);
        match env.random() % 5 {
            0 | 1 if n > 0 => {
                let new = vec![env.random() as u8; n];
                plain.resize(plain.len().max(at + n), 0);
                plain[at..at + n].copy_from_slice(&new);
                image.write(&new, at as u64);
            }
            2 => {
                plain.resize(at, 0);
                image.set_len(at as u64);
            }
            3 => {
                plain.resize(plain.len().max(at + n), 0);
                image.allocate(at as u64..(at + n) as u64);
            }
            _ => {
                let end = plain.len().min(at + n);
                if at < end {
                    plain[at..end].fill(0);
                }
                image.punch(at as u64..(at + n) as u64);
            }
        }
        assert_eq!(bytes(&image), plain);
        assert!(image.used() <= (plain.len() as u64).next_multiple_of(PAGE));
    }
}

#[test]
fn space_joins_and_splits() {
    let mut space = Space::default();
    space.add(10..20);
    space.add(30..40);
    space.add(20..30);
    assert_eq!(space.0.len(), 1);
    space.remove(15..35);
    assert_eq!((space.count(), space.0.len()), (10, 2));
    space.add(0..100);
    space.remove(0..100);
    assert_eq!(space.count(), 0);
}

#[test]
fn a_large_reservation_costs_nothing() {
    let mut image = Image::default();
    image.allocate(0..1 << 40);
    assert_eq!((image.len(), image.used()), (1 << 40, 1 << 40));
    image.punch(0..1 << 40);
    assert_eq!((image.len(), image.used()), (1 << 40, 0));
}
