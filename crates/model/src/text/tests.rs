use super::*;

#[test]
fn paths_round_trip_as_text() {
    let all: Vec<u8> = (0..=255).collect();
    let cases: [&[u8]; 7] =
        [b"", b"a/b", "é/日本".as_bytes(), b"\xff\xfe/x", "\u{F700}\u{F7FF}".as_bytes(), &all, b"\xf0\x9f\x98"];
    for case in cases {
        assert_eq!(path_bytes(&path_text(case)), case);
    }
    assert_eq!(path_text(b"a\xffb"), "a\u{F7FF}b");
}
