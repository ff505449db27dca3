//! What a request asks for, by method, place and headers.

use super::*;
use hyper::header::HeaderName;

fn wished(method: &str, uri: &str, list: &[(&str, &str)], json: bool) -> Result<Option<Wish>, String> {
    let headers: HeaderMap =
        list.iter().map(|(n, v)| (n.parse::<HeaderName>().unwrap(), HeaderValue::from_str(v).unwrap())).collect();
    let target = Target::of(&uri.parse().unwrap(), &headers, None);
    wish(&method.parse().unwrap(), &target, &headers, json).map_err(|e| e.code().as_str().to_owned())
}

#[test]
fn header_verbs() {
    let put = |list: &[(&str, &str)]| wished("PUT", "/b/", list, false);
    let delete = |list: &[(&str, &str)]| wished("DELETE", "/b/", list, false);
    assert_eq!(put(&[]), Ok(None));
    assert_eq!(put(&[("x-tigris-enable-snapshot", "true")]), Ok(None), "a plain creation is the router's");
    assert_eq!(put(&[("x-tigris-snapshot", "true; name=a b")]), Ok(Some(Wish::Snapshot(Some("a b".into())))));
    let fork = |at, versioned| Ok(Some(Wish::Fork { source: "base".into(), at, versioned }));
    assert_eq!(put(&[("x-tigris-fork-source-bucket", "base")]), fork(None, false));
    let at = ("x-tigris-fork-source-bucket-snapshot", "17");
    assert_eq!(put(&[("x-tigris-fork-source-bucket", "base"), at]), fork(Some(Version(17)), false));
    assert_eq!(put(&[("x-tigris-fork-source-bucket", "base"), ("x-tigris-enable-snapshot", "true")]), fork(None, true));
    assert_eq!(put(&[("x-tigris-merge-source-bucket", "f")]), Ok(Some(Wish::Merge("f".into()))));
    assert_eq!(put(&[("x-tigris-rebase", "true")]), Ok(Some(Wish::Rebase)));
    for bad in [
        &[("x-tigris-rebase", "false")][..],
        &[at],
        &[("x-tigris-rebase", "true"), ("x-tigris-snapshot", "true")],
        &[("x-tigris-merge-source-bucket", "f"), ("x-tigris-fork-source-bucket", "base")],
        &[("x-tigris-merge-source-bucket", "f"), ("x-tigris-enable-snapshot", "true")],
        &[("x-tigris-merge-source-bucket", "")],
        &[("x-tigris-snapshot", "base")],
        &[("x-tigris-fork-source-bucket", "base"), ("x-tigris-fork-source-bucket-snapshot", "soon")],
    ] {
        assert_eq!(put(bad), Err("InvalidArgument".into()), "{bad:?}");
    }
    assert_eq!(delete(&[]), Ok(None));
    for name in ["tigris-force-delete", "x-tigris-force-delete"] {
        assert_eq!(delete(&[(name, "true")]), Ok(Some(Wish::Delete(true))));
        assert_eq!(delete(&[(name, "false")]), Ok(None));
        assert_eq!(delete(&[(name, "yes")]), Err("InvalidArgument".into()));
        assert_eq!(delete(&[(name, "true"), ("x-tigris-snapshot-version", "17")]), Err("InvalidArgument".into()));
    }
    assert_eq!(delete(&[("x-tigris-snapshot-version", "17")]), Ok(Some(Wish::DropSnapshot(Version(17)))));
    assert_eq!(delete(&[("x-tigris-snapshot-version", "latest")]), Err("InvalidArgument".into()));
}

#[test]
fn json_operations() {
    assert_eq!(wished("GET", "/", &[], true), Ok(Some(Wish::Listing)));
    assert_eq!(wished("GET", "/", &[], false), Ok(None));
    assert_eq!(
        wished("GET", "/", &[("x-tigris-snapshot", "b")], true),
        Ok(None),
        "snapshots are listed as buckets are"
    );
    assert_eq!(wished("GET", "/b?metadata&with-size=true", &[], true), Ok(Some(Wish::Metadata)));
    assert_eq!(wished("GET", "/b/k?metadata", &[], true), Ok(None));
    assert_eq!(wished("PATCH", "/b", &[], true), Ok(Some(Wish::Patch)));
    assert_eq!(wished("POST", "/?func=presign", &[], true), Ok(Some(Wish::Presign)));
    assert_eq!(wished("POST", "/?func=other", &[], true), Err("NotImplemented".into()));
    assert_eq!(wished("POST", "/?Action=CreateAccessKey", &[], true), Ok(None));
    assert_eq!(wished("POST", "/b?bundle=", &[], true), Ok(Some(Wish::Bundle)));
    assert_eq!(wished("POST", "/b?restore", &[], true), Err("NotImplemented".into()));
    assert_eq!(wished("POST", "/b/k?restore", &[], true), Ok(None));
}
