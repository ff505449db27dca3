use super::*;

#[test]
fn endpoints() {
    for (text, expected) in [
        ("http://127.0.0.1:9700", "127.0.0.1:9700"),
        ("http://127.0.0.1:9700/", "127.0.0.1:9700"),
        ("http://[::1]:9700", "[::1]:9700"),
        ("http://store.example", "store.example:80"),
        ("http://[::1]", "[::1]:80"),
    ] {
        assert_eq!(authority(text).unwrap(), expected, "{text}");
    }
    for text in [
        "",
        "127.0.0.1:9700",
        "https://x:1",
        "http://",
        "http://x:0",
        "http://x:99999",
        "http://x:1/path",
        "http://u@x:1",
        "ftp://x:1",
    ] {
        assert!(authority(text).is_err(), "{text}");
    }
}
