use super::*;

fn place(text: &str) -> Place {
    Place::parse(OsStr::new(text)).unwrap()
}

#[test]
fn places() {
    assert_eq!((place("mw://w").spot.world.as_str(), &place("mw://w").path[..]), ("w", &b""[..]));
    assert_eq!(&place("mw://w/").path[..], b"");
    assert_eq!(&place("mw://w/a b/%41@x").path[..], b"a b/%41@x");
    let old = place("mw://w@2026-01-01T00:00:00Z/a/b/");
    assert_eq!(old.spot.at.as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(&old.name()[..], b"b");
    assert_eq!(&place("mw://w/").name()[..], b"w");
    let odd = Place::parse(OsStr::from_bytes(b"mw://w/\xff")).unwrap();
    assert_eq!(&odd.path[..], b"\xff");
}

#[test]
fn what_is_no_place() {
    for text in ["", "w/a", "/tmp/x", "s3://w/a", "mw:/w", "mw://", "mw:///a", "mw://@5/a"] {
        assert!(Place::parse(OsStr::new(text)).is_err(), "{text}");
    }
}
