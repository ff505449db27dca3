//! Which header goes where, and what values say.

use super::*;
use hyper::header::{HeaderName, HeaderValue};

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let value = |v: &str| HeaderValue::from_bytes(v.as_bytes()).unwrap();
    list.iter().map(|(n, v)| (n.parse::<HeaderName>().unwrap(), value(v))).collect()
}

fn code(method: Method, place: Place, plain: bool, copies: bool, list: &[(&str, &str)]) -> Option<String> {
    let aim = Aim { method: &method, place, plain, copies };
    aim.check(&headers(list)).err().map(|e| e.code().as_str().to_owned())
}

#[test]
fn a_header_without_a_meaning_is_refused() {
    let put = |list: &[(&str, &str)]| code(Method::PUT, Place::Bucket, true, false, list);
    let delete = |list: &[(&str, &str)]| code(Method::DELETE, Place::Bucket, true, false, list);
    for name in [ENABLE, SNAPSHOT, FORK_SOURCE, FORK_AT, MERGE, REBASE, "x-tigris-regions"] {
        assert_eq!(put(&[(name, "true")]), None, "{name}");
        let property = code(Method::PUT, Place::Bucket, false, false, &[(name, "true")]);
        assert_eq!(property.is_some(), name != "x-tigris-regions", "{name}");
    }
    for name in [VERSION, FORCE, FORCE_BARE] {
        assert_eq!(delete(&[(name, "1")]), None);
        assert_eq!(put(&[(name, "1")]).as_deref(), Some("InvalidArgument"));
    }
    for name in ["x-tigris-made-up", "x-tigris-soft-delete", "x-tigris-query"] {
        assert_eq!(put(&[(name, "1")]).as_deref(), Some("NotImplemented"));
        assert_eq!(delete(&[(name, "1")]).as_deref(), Some("NotImplemented"));
        assert_eq!(code(Method::GET, Place::Object, true, false, &[(name, "1")]).as_deref(), Some("NotImplemented"));
    }
    assert_eq!(delete(&[(SNAPSHOT, "true")]).as_deref(), Some("InvalidArgument"));
    assert_eq!(delete(&[(VERSION, "1"), (VERSION, "2")]).as_deref(), Some("InvalidArgument"));
    let object = |method, copies, name| code(method, Place::Object, true, copies, &[(name, "1")]);
    assert_eq!(object(Method::GET, false, VERSION), None);
    assert_eq!(object(Method::HEAD, false, VERSION), None);
    assert_eq!(object(Method::PUT, true, VERSION), None);
    assert_eq!(object(Method::PUT, true, RENAME), None);
    assert!(object(Method::PUT, false, RENAME).is_some(), "a rename that names no source would be a put");
    assert!(object(Method::PUT, false, VERSION).is_some());
    assert!(object(Method::DELETE, false, VERSION).is_some());
}

#[test]
fn values() {
    let label = |v: &str| label(&headers(&[(SNAPSHOT, v)])).map_err(|e| e.code().as_str().to_owned());
    assert_eq!(label("true"), Ok(Some(None)));
    assert_eq!(label("true; name=before the run; 2"), Ok(Some(Some("before the run; 2".into()))));
    assert_eq!(label("TRUE;name=a=b"), Ok(Some(Some("a=b".into()))));
    assert_eq!(label("true; name="), Ok(Some(None)));
    assert_eq!(label("true; name=ü"), Ok(Some(Some("ü".into()))));
    for bad in ["", "false", "base", "truer", "true name=x", "true; label=x", "ß"] {
        assert_eq!(label(bad), Err("InvalidArgument".into()), "{bad}");
    }
    assert!(label(&format!("true; name={}", "x".repeat(256))).is_err());

    let version = |v: &str| version(&headers(&[(VERSION, v)]), VERSION).map_err(|_| ());
    assert_eq!(version("1700000000000000001"), Ok(Some(Version(1_700_000_000_000_000_001))));
    assert_eq!(version("17; name=x"), Ok(Some(Version(17))));
    for bad in ["", "x", "-1", "+1", "1.5", "99999999999999999999", "null", "; name=x"] {
        assert_eq!(version(bad), Err(()), "{bad}");
    }
    assert_eq!(flag(&headers(&[(REBASE, "True")]), REBASE).ok(), Some(true));
    assert_eq!(flag(&headers(&[]), REBASE).ok(), Some(false));
    assert!(flag(&headers(&[(REBASE, "1")]), REBASE).is_err());
}
