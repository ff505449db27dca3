use super::*;

#[test]
fn durations() {
    for (text, seconds) in [("90s", 90), ("30m", 1800), ("2h", 7200), ("7d", 604_800), ("1h30m", 5400), ("45", 45)] {
        assert_eq!(duration(text).unwrap().as_secs(), seconds, "{text}");
    }
    for text in ["", "h", "2x", "0", "0s", "1h30", "-1s", "1.5h", "99999999999999999999d", "18446744073709551615w"] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn sizes() {
    assert_eq!(parse_size("512M").unwrap(), 512 << 20);
    assert_eq!(parse_size("7").unwrap(), 7);
    for text in ["", "M", "1.5G", "-1", "99999999999T"] {
        assert!(parse_size(text).is_err(), "{text}");
    }
    assert_eq!(size(0), "0 B");
    assert_eq!(size(1536), "1.5 KiB");
    assert_eq!(size(u64::MAX), "16.0 EiB");
}

#[test]
fn spans_read_back_as_durations() {
    for (seconds, text) in
        [(0, "0s"), (59, "59s"), (3_600, "1h"), (5_400, "1h30m"), (604_800, "7d"), (90_061, "1d1h1m1s")]
    {
        assert_eq!(span(seconds), text);
        if seconds > 0 {
            assert_eq!(duration(text).unwrap().as_secs(), seconds);
        }
    }
}
