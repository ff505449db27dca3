//! Tables of RFC 9110.

use super::*;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    pairs.iter().map(|(n, v)| (n.parse::<hyper::http::HeaderName>().unwrap(), v.parse().unwrap())).collect()
}

#[test]
fn ranges() {
    for (value, ten, empty) in [
        ("bytes=0-", Ok(Some((0, 10))), Err(())),
        ("bytes=0-0", Ok(Some((0, 1))), Err(())),
        ("bytes=5-", Ok(Some((5, 5))), Err(())),
        ("bytes=9-99", Ok(Some((9, 1))), Err(())),
        ("bytes=10-", Err(()), Err(())),
        ("bytes=99-", Err(()), Err(())),
        ("bytes=-3", Ok(Some((7, 3))), Ok(None)),
        ("bytes=-0", Err(()), Err(())),
        ("bytes=-99", Ok(Some((0, 10))), Ok(None)),
        ("bytes=0-99999999999999999999", Ok(Some((0, 10))), Err(())),
    ] {
        let span = parse_span(value).unwrap();
        assert_eq!(span.within(10).map_err(|_| ()), ten, "{value}");
        assert_eq!(span.within(0).map_err(|_| ()), empty, "{value}");
    }
    for ignored in ["bytes=5-2", "bytes=abc", "bytes=0-1,3-4", "bytes", "items=0-1", "bytes=-", "bytes=+1-2", ""] {
        assert_eq!(parse_span(ignored), None, "{ignored}");
    }
}

#[test]
fn entity_tags() {
    assert_eq!(etags("\"a\""), ["a"]);
    assert_eq!(etags("a"), ["a"]);
    assert_eq!(etags("*"), ["*"]);
    assert_eq!(etags("W/\"a\", \"b,c\" ,\"d\""), ["a", "b,c", "d"]);
}

#[test]
fn order_of_evaluation() {
    let day = "Fri, 02 Jan 1970 00:00:00 GMT";
    let at = 86_400 * SECOND;
    let status = |pairs: &[(&str, &str)], modified: u64| match check(&read(&headers(pairs), ""), "e", modified) {
        Ok(()) => 200,
        Err(e) => e.status_code().unwrap().as_u16(),
    };
    assert_eq!(status(&[], at), 200);
    assert_eq!(status(&[("if-match", "\"e\"")], at), 200);
    assert_eq!(status(&[("if-match", "\"x\"")], at), 412);
    assert_eq!(status(&[("if-match", "*")], at), 200);
    assert_eq!(status(&[("if-none-match", "\"e\"")], at), 304);
    assert_eq!(status(&[("if-none-match", "\"x\"")], at), 200);
    assert_eq!(status(&[("if-modified-since", day)], at + SECOND / 2), 304);
    assert_eq!(status(&[("if-modified-since", day)], at + SECOND), 200);
    assert_eq!(status(&[("if-unmodified-since", day)], at + SECOND / 2), 200);
    assert_eq!(status(&[("if-unmodified-since", day)], at + SECOND), 412);
    assert_eq!(status(&[("if-match", "\"e\""), ("if-unmodified-since", day)], at + SECOND), 200);
    assert_eq!(status(&[("if-none-match", "\"x\""), ("if-modified-since", day)], at), 200);
    assert_eq!(status(&[("if-modified-since", "yesterday")], at), 200);
}

#[test]
fn if_range_by_tag_and_by_date() {
    let holds = |value: &str| if_range(&headers(&[("if-range", value)]), "e", 86_400 * SECOND);
    assert!(holds("\"e\""));
    assert!(!holds("\"old\""));
    assert!(!holds("W/\"e\""));
    assert!(holds("Fri, 02 Jan 1970 00:00:00 GMT"));
    assert!(!holds("Thu, 01 Jan 1970 00:00:00 GMT"));
}
