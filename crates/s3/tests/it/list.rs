//! Listings at every page size against a sorted oracle.

use crate::client::{Client, encode, path};
use crate::house::House;

const KEYS: [&str; 18] = [
    "d/a.b/f",
    "d/a/f",
    "d/a-",
    "d/a0",
    "obj+",
    "obj/x",
    "obj1",
    "z\u{e000}",
    "z\u{10000}",
    "A",
    "a!",
    "asdf",
    "boo/bar",
    "boo/baz/x",
    "cq/a",
    "cq/b",
    "d/",
    "a/",
];

fn house() -> (House, Vec<String>) {
    let house = House::with_base();
    for key in KEYS {
        house.root.put(&path("base", key), "x").ok();
    }
    let mut keys: Vec<String> = KEYS.iter().map(|k| (*k).to_owned()).collect();
    keys.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    (house, keys)
}

/// Keys and rolled-up prefixes as one sorted stream.
fn oracle(keys: &[String], prefix: &str, delimiter: &str, after: &str) -> Vec<String> {
    let mut all: Vec<String> = keys
        .iter()
        .filter(|k| k.starts_with(prefix) && k.as_bytes() > after.as_bytes())
        .map(|k| match k[prefix.len()..].split_once(delimiter) {
            Some((head, _)) if !delimiter.is_empty() => format!("{prefix}{head}{delimiter}"),
            _ => k.clone(),
        })
        .collect();
    all.dedup();
    all
}

/// Walks all pages; checks that each is full, and truncated exactly when there is more.
fn walk(client: &Client, v2: bool, size: usize, prefix: &str, delimiter: &str, after: &str) -> Vec<String> {
    let (mut all, mut token) = (Vec::new(), None::<String>);
    loop {
        let mut query = format!("/base?max-keys={size}&prefix={}&delimiter={}", encode(prefix), encode(delimiter));
        if v2 {
            query += "&list-type=2";
        }
        query += &match (&token, v2) {
            (Some(token), true) => format!("&continuation-token={}", encode(token)),
            (Some(token), false) => format!("&marker={}", encode(token)),
            (None, true) => format!("&start-after={}", encode(after)),
            (None, false) => format!("&marker={}", encode(after)),
        };
        let answer = client.get(&query).ok();
        let prefixes: Vec<String> =
            answer.tags("CommonPrefixes").iter().map(|p| p["<Prefix>".len()..p.len() - 9].to_owned()).collect();
        let mut page: Vec<String> = answer.tags("Key").into_iter().chain(prefixes).collect();
        page.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        assert!(page.len() <= size);
        let more = answer.tag("IsTruncated") == "true";
        if v2 {
            assert_eq!(answer.tag("KeyCount"), page.len().to_string());
            assert_eq!(!answer.tag("NextContinuationToken").is_empty(), more);
        }
        assert!(!more || page.len() == size, "a page with a next one is full");
        let last = page.last().cloned();
        all.extend(page);
        if !more {
            return all;
        }
        token = match (v2, delimiter) {
            (true, _) => Some(answer.tag("NextContinuationToken")),
            (false, "") => last,
            (false, _) => Some(answer.tag("NextMarker")),
        };
        assert!(all.len() <= KEYS.len(), "the listing goes in circles: {all:?}");
    }
}

/// C01: keys come in the byte order of the whole key at every page size, by both versions of the listing, also from a start that is no key.
/// (On a fork: `world/objects/listing`.)
#[test]
fn every_page_size_gives_byte_order() {
    let (house, keys) = house();
    for v2 in [true, false] {
        for size in [1, 2, 3, 5, 17, 18, 1000] {
            for (prefix, delimiter) in
                [("", ""), ("", "/"), ("d/", "/"), ("boo/", "/"), ("o", ""), ("", "a"), ("none", "/"), ("d/a", "/")]
            {
                let expected = oracle(&keys, prefix, delimiter, "");
                assert_eq!(
                    walk(&house.root, v2, size, prefix, delimiter, ""),
                    expected,
                    "v2={v2} {size} {prefix:?} {delimiter:?}"
                );
            }
        }
        for after in ["d/a.zzz", "boo/", "A", "zzzz", "cq/a"] {
            assert_eq!(walk(&house.root, v2, 2, "", "", after), oracle(&keys, "", "", after), "v2={v2} after {after}");
        }
    }
}

/// C03: nothing is asked for and nothing more is promised; a listing goes on behind a rolled-up prefix.
#[test]
fn edges() {
    let (house, _) = house();
    for query in ["list-type=2&max-keys=0", "max-keys=0", "list-type=2&max-keys=0&delimiter=%2F"] {
        let answer = house.root.get(&format!("/base?{query}")).ok();
        assert_eq!(answer.tag("IsTruncated"), "false", "{query}");
        assert!(answer.tags("Key").is_empty());
    }
    assert_eq!(house.root.get("/base?list-type=2&max-keys=5000").ok().tag("MaxKeys"), "1000");
    for query in [
        "list-type=2&max-keys=-1",
        "list-type=2&continuation-token=rubbish",
        "list-type=2&continuation-token=",
        "encoding-type=x",
    ] {
        assert_eq!(house.root.get(&format!("/base?{query}")).fault(), (400, "InvalidArgument".into()), "{query}");
    }
    let after_prefix = house.root.get("/base?delimiter=%2F&marker=boo%2F&max-keys=1").ok();
    assert_eq!(after_prefix.tags("CommonPrefixes"), ["<Prefix>cq/</Prefix>"]);
    let one = house.root.get("/base?list-type=2&max-keys=1&fetch-owner=true").ok();
    assert_eq!((one.tags("Owner").len(), one.tag("Size")), (1, "1".into()));
    assert!(one.tag("LastModified").ends_with('Z'));
    assert!(house.root.get("/base?list-type=2&max-keys=1").ok().tags("Owner").is_empty());
}

/// C03: keys and rolled-up prefixes are one stream, counted together, each once, however many keys a prefix hides.
#[test]
fn many_keys_under_one_prefix_count_once() {
    let house = House::with_base();
    let session = house.store.session(&house.root_principal(), "base").unwrap();
    for n in 0..1500 {
        session
            .put(format!("many/k{n}").as_bytes(), session.stage().unwrap(), &mw_world::PutOptions::default())
            .unwrap();
    }
    for key in ["asdf", "z"] {
        house.root.put(&path("base", key), "").ok();
    }
    for size in [1, 2, 1000] {
        assert_eq!(walk(&house.root, true, size, "", "/", ""), ["asdf", "many/", "z"]);
    }
    let first = house.root.get("/base?list-type=2&prefix=many%2F").ok();
    assert_eq!((first.tags("Key").len(), first.tag("IsTruncated")), (1000, "true".into()));
}
