use super::WorldName;

#[test]
fn bucket_rules() {
    for good in ["abc", "base", "a-b.c", "run-1", "0ab", &"a".repeat(63)] {
        assert!(WorldName::new(good).is_ok(), "{good}");
    }
    for bad in [
        "UPPER",
        "a",
        "ab",
        "192.168.0.1",
        "x..y",
        "xn--abc",
        &"a".repeat(64),
        ".",
        "-ab",
        "ab-",
        "a b",
        "base/../x",
        "a_b",
        "abc-s3alias",
        "",
    ] {
        assert!(WorldName::new(bad).is_err(), "{bad}");
    }
}
