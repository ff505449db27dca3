use super::{At, rfc3339};
use mw_model::Version;

#[test]
fn times_are_read_as_rfc_3339_says() {
    assert_eq!(rfc3339("1970-01-01T00:00:00Z"), Some(0));
    assert_eq!(rfc3339("2026-11-29T19:01:27.5Z"), Some(1_795_978_887_500_000_000));
    assert_eq!(rfc3339("2024-02-29T12:00:00+02:00"), Some(1_709_200_800_000_000_000));
    for bad in ["2026-13-01T00:00:00Z", "2026-11-29", "2026-11-29T19:01:27", "x", "2026-11-29T19:01:27.Z"] {
        assert_eq!(rfc3339(bad), None, "{bad}");
    }
}

#[test]
fn an_instant_is_a_version_a_time_or_a_label() {
    assert_eq!(At::parse("12").ok(), Some(At::Version(Version(12))));
    assert_eq!(At::parse("before lunch").ok(), Some(At::Label("before lunch".to_owned())));
    assert!(At::parse("99999999999999999999999").is_err());
    assert!(At::parse("").is_err());
}
