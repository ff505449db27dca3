//! The mapping is reversible, whatever the bytes.

use super::*;

const KEYS: &[&[u8]] = &[
    b"plain",
    b"a\x01b",
    b"a\rb",
    b"\x00",
    b"x\xff",
    b"\xc3",
    b"\xc3\xa9",
    "\u{F7C3}\u{F7A9}".as_bytes(),
    "\u{FFFE}".as_bytes(),
    "\u{10FFFF}".as_bytes(),
    b"\xed\xa0\x80",
    "日本 \u{301}".as_bytes(),
];

#[test]
fn every_key_comes_back_from_both_texts() {
    for key in KEYS {
        assert_eq!(key_of(&text_of(key)).unwrap(), *key);
        assert_eq!(key_of(&xml_of(key)).unwrap(), *key);
        assert!(xml_of(key).chars().all(is_xml));
    }
}

#[test]
fn every_pair_of_bytes_comes_back() {
    for a in 0..=255u8 {
        for b in 0..=255u8 {
            let key = [a, b];
            assert_eq!(key_of(&xml_of(&key)).unwrap(), key[..]);
            assert_eq!(key_of(&text_of(&key)).unwrap(), key[..]);
        }
    }
}

#[test]
fn a_text_that_no_key_has_is_refused() {
    assert!(key_of("\u{F7C3}\u{F7A9}").is_err(), "two escapes that together are an ordinary character");
    assert!(key_of("\u{F741}").is_err(), "an escape for a letter");
}

#[test]
fn percent_goes_both_ways() {
    for text in ["a b+c%2B/ü", "~x(1)!*'", "%", "%zz", ""] {
        assert_eq!(unpercent(percent(text).as_bytes()), text.as_bytes());
    }
    assert_eq!(unpercent(b"a%2Bb%"), b"a+b%");
    assert_eq!(unpercent(b"%252B+"), b"%2B+");
}

#[test]
fn what_seems_sound_needs_no_repair() {
    let texts = [
        "",
        "<Key>a b\tc\n\u{e9}\u{4e00}\u{1f600}</Key>",
        "a\rb",
        "\u{1}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{f741}",
        "\u{ff01}",
        "\0",
    ];
    let sound: Vec<bool> = texts.iter().map(|text| is_sound(text.as_bytes())).collect();
    assert_eq!(sound, [true, true, false, false, false, false, false, false, false]);
    assert!(texts.iter().zip(&sound).all(|(text, sound)| !sound || repaired(text) == *text));
}

#[test]
fn finished_xml_is_repaired() {
    assert_eq!(
        repaired("<Key>a\rb\u{1}\n\u{fffe}\u{f741}</Key>"),
        "<Key>a&#13;b\u{f701}\n\u{f7ef}\u{f7bf}\u{f7be}\u{f741}</Key>"
    );
}
