//! Forms that clients send.

use super::*;

#[test]
fn decoded_exactly_once() {
    for (value, key) in [
        ("base/k", "k"),
        ("/base/k", "k"),
        ("%2Fbase%2Fk", "k"),
        ("base%2Fk", "k"),
        ("base/my%20file%2B1.txt", "my file+1.txt"),
        ("base/my file+1.txt", "my file+1.txt"),
        ("base/100%25.txt", "100%.txt"),
        ("base/100%.txt", "100%.txt"),
        ("base/a%252Bb", "a%2Bb"),
        ("base/q%3Fx%3D1%23y", "q?x=1#y"),
        ("base/q?x=1", "q?x=1"),
        ("base/%C3%BC/%E6%97%A5", "ü/日"),
        ("base//k", "/k"),
        ("base/a/./../b", "a/./../b"),
        ("base/k/", "k/"),
    ] {
        let source = Source::parse(value.as_bytes()).unwrap();
        assert_eq!(
            (source.bucket.as_str(), &source.key[..], source.version),
            ("base", key.as_bytes(), None),
            "{value}"
        );
    }
}

#[test]
fn versions_and_bytes() {
    let source = Source::parse(b"/base/k%3FversionId=1?versionId=17").unwrap();
    assert_eq!((&source.key[..], source.version.as_deref()), (&b"k?versionId=1"[..], Some("17")));
    assert_eq!(&Source::parse(b"b/%FF").unwrap().key[..], b"\xff");
    assert_eq!(&Source::parse("b/\u{F7FF}".as_bytes()).unwrap().key[..], b"\xff");
}

#[test]
fn what_names_no_key() {
    for value in ["", "/", "base", "/base", "base/", "//k", "%FF/k"] {
        assert_eq!(Source::parse(value.as_bytes()).unwrap_err().code().as_str(), "InvalidArgument", "{value}");
    }
}
