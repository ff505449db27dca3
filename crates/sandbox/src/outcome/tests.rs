//! The bound on kept output.

use super::*;

#[test]
fn both_ends_of_a_long_stream_are_kept() {
    for step in [1, 2, 3, 7, 100] {
        let mut kept = Kept::new(8);
        let all: Vec<u8> = (b'a'..=b'z').collect();
        for chunk in all.chunks(step) {
            kept.push(chunk);
        }
        assert_eq!(kept.dropped(), 18, "step {step}");
        assert_eq!(kept.to_text(), "abcd\n[... 18 bytes not kept ...]\nwxyz");
    }
}

#[test]
fn a_short_stream_is_whole() {
    let mut kept = Kept::new(8);
    kept.push(b"abc");
    kept.push(b"defgh");
    assert_eq!((kept.to_text().as_str(), kept.dropped()), ("abcdefgh", 0));
    let mut none = Kept::new(0);
    none.push(b"abc");
    assert_eq!((none.dropped(), none.to_bytes().len() > 3), (3, true));
}
