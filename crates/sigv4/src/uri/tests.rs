use super::*;

#[test]
fn every_byte_round_trips() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(decode(&encode(&all, false)).unwrap(), all);
    assert_eq!(decode(&encode(&all, true)).unwrap(), all);
    assert_eq!(encode(b"a/b c+~", true), "a/b%20c%2B~");
    assert_eq!(encode(b"a/b", false), "a%2Fb");
}

#[test]
fn broken_escapes_are_refused() {
    for text in ["%", "%1", "%zz", "a%2"] {
        assert!(decode(text).is_err(), "{text}");
    }
}

#[test]
fn pairs_keep_order_and_empty_values() {
    let found = pairs("b=1&a&c=%2F=").unwrap();
    assert_eq!(found, [(b"b".to_vec(), b"1".to_vec()), (b"a".to_vec(), vec![]), (b"c".to_vec(), b"/=".to_vec())]);
}
