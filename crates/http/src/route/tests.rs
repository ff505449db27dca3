use super::*;

fn get(path: &str, query: &str) -> Result<Verb> {
    parse(&Method::GET, path, query)
}

#[test]
fn paths_lead_to_verbs() {
    assert_eq!(get("/-/healthz", "").unwrap(), Verb::Health);
    assert_eq!(get("/-/v1/worlds", "").unwrap(), Verb::Worlds);
    assert_eq!(parse(&Method::POST, "/-/v1/worlds", "").unwrap(), Verb::CreateWorld);
    assert_eq!(
        parse(&Method::DELETE, "/-/v1/worlds/w", "force=true").unwrap(),
        Verb::DeleteWorld { world: "w".into(), force: true }
    );
    let Verb::Content { at } = get("/-/v1/worlds/w/content", "path=a%2Fb%FF&at=label").unwrap() else { panic!() };
    assert_eq!((&at.path[..], at.spot.at.as_deref()), (&b"a/b\xff"[..], Some("label")));
}

#[test]
fn what_is_no_verb_is_refused_by_kind() {
    for path in
        ["/-/", "/-/v2/worlds", "/-/v1", "/-/v1/", "/-/v1/world", "/-/v1/worlds/w/nothing", "/-/v1/worlds/w/forks/x"]
    {
        assert_eq!(get(path, "").unwrap_err().kind(), ErrorKind::NotFound, "{path}");
    }
    assert_eq!(parse(&Method::PUT, "/-/v1/worlds", "").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(parse(&Method::GET, "/-/v1/fsck", "").unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn parameters_are_checked() {
    for query in
        ["limit=0", "limit=10001", "limit=-1", "limit=x", "before=1.5", "limit=1&limit=2", "unknown=1", "path=%zz"]
    {
        assert_eq!(get("/-/v1/worlds/w/log", query).unwrap_err().kind(), ErrorKind::Invalid, "{query}");
    }
    assert_eq!(parse(&Method::DELETE, "/-/v1/worlds/w", "force=maybe").unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(get("/-/v1/diff", "from=a").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn numbers_are_digits_in_range() {
    assert_eq!(number("version", "18446744073709551615").unwrap(), u64::MAX);
    for text in ["", "-1", "+1", "1e9", "18446744073709551616", " 1", "0x1"] {
        assert!(number("version", text).is_err(), "{text:?}");
    }
}
