//! Codes that clients act on.

use super::*;

#[test]
fn a_refusal_says_nothing_about_the_thing() {
    for about in [About::World, About::Key, About::Upload] {
        let refusal = map(ErrorKind::Denied, "world secret-plans belongs to another key".into(), about);
        assert_eq!(refusal.code().as_str(), "AccessDenied");
        assert_eq!(refusal.message(), Some(DENIED));
    }
}

#[test]
fn texts_that_clients_grep() {
    let bucket = map(ErrorKind::NotFound, String::new(), About::World);
    assert_eq!(bucket.message(), Some("NoSuchBucket: the specified bucket does not exist"));
    let key = map(ErrorKind::NotFound, String::new(), About::Key);
    assert_eq!(key.message(), Some("The specified key does not exist."));
}

#[test]
fn multipart_rules_are_named_by_the_first_word() {
    for (text, code) in [
        ("InvalidPart: part 3 has another ETag", "InvalidPart"),
        ("InvalidPartOrder: 2 after 3", "InvalidPartOrder"),
        ("EntityTooSmall: part 1 has 5 bytes", "EntityTooSmall"),
        ("the label is empty", "InvalidArgument"),
    ] {
        assert_eq!(map(ErrorKind::Invalid, text.into(), About::Upload).code().as_str(), code);
    }
}

#[test]
fn the_inside_of_the_store_is_not_sent() {
    let error = map(ErrorKind::Corrupt, "blob 12 of segment 7 does not verify".into(), About::Key);
    assert!(!error.message().unwrap().contains("segment"));
    assert_eq!(error.status_code().unwrap().as_u16(), 500);
    assert_eq!(map(ErrorKind::NoSpace, String::new(), About::Key).status_code().unwrap().as_u16(), 507);
    assert_eq!(map(ErrorKind::Quota, String::new(), About::Key).status_code().unwrap().as_u16(), 403);
}
