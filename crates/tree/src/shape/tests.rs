use super::*;

#[test]
fn natural_ends_are_as_frequent_as_said_and_levels_are_independent() {
    let shape = Shape::new(&Salt([7; 16]));
    let keys: Vec<[u8; 8]> = (0..64_000u64).map(u64::to_be_bytes).collect();
    for (level, expected) in [(0, 2000), (1, 1000), (2, 1000), (17, 1000), (41, 1000)] {
        let found = keys.iter().filter(|key| shape.natural(level, *key)).count();
        assert!((expected * 8 / 10..expected * 12 / 10).contains(&found), "level {level}: {found}");
    }
    assert_eq!(keys.iter().filter(|key| shape.natural(42, *key)).count(), 0);
    let both = keys.iter().filter(|key| shape.natural(0, *key) && shape.natural(1, *key)).count();
    assert!((10..60).contains(&both), "{both}");
}

#[test]
fn another_salt_is_another_shape() {
    let (a, b) = (Shape::new(&Salt([1; 16])), Shape::new(&Salt([2; 16])));
    assert!((0..1000u64).any(|n| a.natural(0, &n.to_be_bytes()) != b.natural(0, &n.to_be_bytes())));
}
