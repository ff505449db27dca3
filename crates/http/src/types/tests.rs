use super::*;

#[test]
fn spots_split_at_the_first_at() {
    assert_eq!(Spot::parse("w"), Spot { world: "w".into(), at: None });
    let spot = Spot::parse("w@a@b");
    assert_eq!((spot.world.as_str(), spot.at.as_deref()), ("w", Some("a@b")));
    assert_eq!(spot.to_string(), "w@a@b");
}

#[test]
fn identifiers_are_strings_in_json() {
    let snapshot = Snapshot { version: "1700000000123456789".into(), label: None, created: "t".into(), bytes: 1 };
    let json = serde_json::to_value(&snapshot).unwrap();
    assert_eq!(json["version"], "1700000000123456789");
}
