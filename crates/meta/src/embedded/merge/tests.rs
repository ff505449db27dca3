use super::*;
use crate::Error;

fn source(pairs: &'static [(&'static str, Option<&'static str>)]) -> Source<'static> {
    Box::new(pairs.iter().map(|(key, value)| Ok((Bytes::from(*key), value.map(Bytes::from)))))
}

fn text(pairs: Vec<(Bytes, Bytes)>) -> Vec<(String, String)> {
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    pairs.into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

#[test]
fn the_first_source_wins_and_tombstones_do_not_count() {
    let sources = [
        source(&[("a", None), ("c", Some("new"))]),
        source(&[("b", None), ("c", Some("old")), ("d", Some("d"))]),
        source(&[("a", Some("a")), ("b", Some("b")), ("c", None), ("e", Some("e"))]),
    ];
    let got = text(merge(sources, 2, Order::Up).unwrap());
    assert_eq!(got, [("c".into(), "new".into()), ("d".into(), "d".into())]);
}

#[test]
fn down_takes_the_largest_first() {
    let sources =
        [source(&[("c", Some("1")), ("a", Some("1"))]), source(&[("d", None), ("c", Some("2")), ("b", Some("2"))])];
    let got: Vec<_> =
        text(merge(sources, 9, Order::Down).unwrap()).into_iter().map(|(key, value)| key + &value).collect();
    assert_eq!(got, ["c1", "b2", "a1"]);
}

#[test]
fn an_error_ends_the_scan_only_where_it_is_reached() {
    let bad = || -> Source<'static> {
        Box::new([Ok((Bytes::from("a"), Some(Bytes::new()))), Err(Error::Corrupt { what: "x".into() })].into_iter())
    };
    assert_eq!(merge([bad()], 1, Order::Up).unwrap().len(), 1);
    assert!(merge([bad()], 2, Order::Up).is_err());
}
