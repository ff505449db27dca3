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

#[test]
fn spots_split_at_the_first_at() {
    assert_eq!(Spot::parse("w"), Spot { world: "w".into(), at: None });
    let spot = Spot::parse("w@a@b");
    assert_eq!((spot.world.as_str(), spot.at.as_deref()), ("w", Some("a@b")));
    assert_eq!(spot.to_string(), "w@a@b");
}

#[test]
fn identifiers_are_strings_in_json() {
    let snapshot = Snapshot { version: "1700000000123456789".into(), label: None, created: "t".into(), bytes: 1 };
    let json = serde_json::to_value(&snapshot).unwrap();
    assert_eq!(json["version"], "1700000000123456789");
}
