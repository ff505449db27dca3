use super::*;

#[test]
fn endpoints() {
    for (text, expected) in [
        ("http://127.0.0.1:9700", ("127.0.0.1:9700", false)),
        ("http://127.0.0.1:9700/", ("127.0.0.1:9700", false)),
        ("http://[::1]:9700", ("[::1]:9700", false)),
        ("http://store.example", ("store.example:80", false)),
        ("http://[::1]", ("[::1]:80", false)),
        ("https://store.example", ("store.example:443", true)),
        ("https://[::1]:9700/", ("[::1]:9700", true)),
    ] {
        assert_eq!(parse(text).unwrap(), (expected.0.to_owned(), expected.1), "{text}");
    }
    for text in [
        "",
        "127.0.0.1:9700",
        "https://x:0",
        "https://",
        "http://",
        "http://x:0",
        "http://x:99999",
        "http://x:1/path",
        "http://u@x:1",
        "ftp://x:1",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
