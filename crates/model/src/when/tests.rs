use super::*;

#[test]
fn known_instants() {
    assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
    assert_eq!(rfc3339(1_700_000_000_123_456_789), "2023-11-14T22:13:20.123456789Z");
    assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999999999Z");
    assert_eq!(basic(1_369_353_600_000_000_000), "20130524T000000Z");
    assert_eq!(parse_basic("20130524T000000Z"), Some(1_369_353_600));
    assert_eq!(short(951_782_400_000_000_000), "2000-02-29 00:00:00");
}

#[test]
fn the_basic_form_round_trips() {
    for day in 0..40_000_u64 {
        let at = day * 86_400 + day % 86_400;
        assert_eq!(parse_basic(&basic(at * 1_000_000_000)), Some(at as i64));
    }
}

#[test]
fn nonsense_is_refused() {
    for text in [
        "",
        "20130524T000000",
        "20131324T000000Z",
        "2013052400000000",
        "20130524T250000Z",
        "+0130524T000000Z",
        "ééééTéé",
    ] {
        assert_eq!(parse_basic(text), None, "{text}");
    }
}

#[test]
fn instants_of_policies() {
    for (text, seconds) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2020-02-29T23:59:59Z", 1_583_020_799),
        ("2020-02-29", 1_582_934_400),
        ("1583020799", 1_583_020_799),
    ] {
        assert_eq!(parse_instant(text), Some(seconds * 1_000_000_000), "{text}");
    }
    assert_eq!(parse_instant("1970-01-01T00:00:00.5Z"), Some(500_000_000));
    for text in [
        "",
        "2019-02-29",
        "2020-13-01",
        "2020-1-1",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:00:00",
        "2020-01-01T00:00Z",
        "-1",
        "2020-01-01T00:00:00+01:00",
        "1969-12-31",
        "2020-01-01T00:00:00.Z",
        "99999999999999999999",
        "２０２０-01-01",
    ] {
        assert_eq!(parse_instant(text), None, "{text}");
    }
}
