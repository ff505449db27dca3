//! Cross-origin requests, as a browser makes them.

use crate::client::{Answer, Ask, Wire};
use crate::house::House;
use mw_world::Role;

const RULES: &str = "<CORSConfiguration>\
    <CORSRule><ID>one</ID><AllowedOrigin>https://*.example</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
    <AllowedMethod>PUT</AllowedMethod><AllowedHeader>x-amz-*</AllowedHeader><AllowedHeader>Content-Type</AllowedHeader>\
    <ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>60</MaxAgeSeconds></CORSRule>\
    <CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>HEAD</AllowedMethod></CORSRule></CORSConfiguration>";

/// A question without a signature.
fn question(house: &House, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut all: Vec<(String, String)> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    all.push(("host".into(), house.root.addr.to_string()));
    house.root.raw(&Wire {
        target: path.into(),
        method: "OPTIONS".into(),
        headers: all,
        body: Vec::new(),
        signature: String::new(),
        date: String::new(),
    })
}

#[test]
fn the_rules_come_back_as_they_were_put() {
    let house = House::with_base();
    let root = &house.root;
    assert_eq!(root.get("/base?cors=").fault(), (404, "NoSuchCORSConfiguration".into()));
    root.put("/base?cors=", RULES).ok();
    let rules = root.get("/base?cors=").ok();
    assert_eq!(rules.tags("AllowedMethod"), ["GET", "PUT", "HEAD"]);
    assert_eq!(rules.tags("AllowedOrigin"), ["https://*.example", "*"]);
    assert_eq!(
        (rules.tag("MaxAgeSeconds"), rules.tag("ExposeHeader"), rules.tag("ID")),
        ("60".into(), "ETag".into(), "one".into())
    );
    for (bad, code) in [
        ("<CORSConfiguration></CORSConfiguration>", "MalformedXML"),
        (&RULES.replace(">GET<", ">PATCH<")[..], "InvalidRequest"),
        (&RULES.replace("https://*.example", "https://*.*")[..], "InvalidRequest"),
        (&RULES.replace(">ETag<", ">x-*<")[..], "InvalidRequest"),
    ] {
        assert_eq!(root.put("/base?cors=", bad).fault(), (400, code.to_owned()), "{bad}");
    }
    let editor = house.key(&[("base", Role::Editor)]);
    assert_eq!(editor.put("/base?cors=", RULES).fault(), (403, "AccessDenied".into()));
    editor.get("/base?cors=").ok();
    root.delete("/base?cors=").ok();
    assert_eq!(root.get("/base?cors=").fault(), (404, "NoSuchCORSConfiguration".into()));
}

#[test]
fn a_first_question_is_answered_by_the_rules() {
    let house = House::with_base();
    let ask = |path: &str, origin: &str, method: &str, headers: &str| {
        let mut said = vec![("origin", origin), ("access-control-request-method", method)];
        if !headers.is_empty() {
            said.push(("access-control-request-headers", headers));
        }
        question(&house, path, &said)
    };
    let forbidden = ask("/base/k", "https://a.example", "GET", "");
    assert_eq!(forbidden.fault(), (403, "AccessForbidden".into()));
    let absent = ask("/nowhere/k", "https://a.example", "GET", "");
    assert_eq!((absent.fault(), absent.tag("Message")), (forbidden.fault(), forbidden.tag("Message")));
    house.root.put("/base?cors=", RULES).ok();
    let yes = ask("/base/k", "https://a.example", "PUT", "X-Amz-Date, content-type").ok();
    assert_eq!(yes.header("access-control-allow-origin"), Some("https://a.example"));
    assert_eq!(yes.header("access-control-allow-methods"), Some("GET, PUT"));
    assert_eq!(yes.header("access-control-allow-headers"), Some("x-amz-date, content-type"));
    assert_eq!(
        (yes.header("access-control-max-age"), yes.header("access-control-expose-headers")),
        (Some("60"), Some("ETag"))
    );
    assert_eq!(yes.header("access-control-allow-credentials"), Some("true"));
    assert!(yes.header("vary").unwrap().contains("Origin"));
    let anyone = ask("/base/k", "http://elsewhere", "HEAD", "").ok();
    assert_eq!(
        (anyone.header("access-control-allow-origin"), anyone.header("access-control-allow-credentials")),
        (Some("*"), None)
    );
    for (origin, method, headers) in [
        ("http://elsewhere", "GET", ""),
        ("https://a.example", "DELETE", ""),
        ("https://a.example", "PUT", "authorization"),
        ("http://elsewhere", "HEAD", "x-amz-date"),
    ] {
        assert_eq!(
            ask("/base/k", origin, method, headers).fault(),
            (403, "AccessForbidden".into()),
            "{origin} {method}"
        );
    }
    assert_eq!(question(&house, "/base/k", &[]).fault(), (400, "BadRequest".into()));
    assert_eq!(question(&house, "/base/k", &[("origin", "https://a.example")]).fault(), (400, "BadRequest".into()));
}

#[test]
fn answers_tell_a_browser_what_it_may_read() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base?cors=", RULES).ok();
    let put = root.ask(&Ask::new("PUT", "/base/k").header("origin", "https://a.example").body("x")).ok();
    assert_eq!(put.header("access-control-allow-origin"), Some("https://a.example"));
    let missing = root.ask(&Ask::new("GET", "/base/none").header("origin", "https://a.example"));
    assert_eq!((missing.status, missing.header("access-control-allow-origin")), (404, Some("https://a.example")));
    for (method, origin) in [("DELETE", "https://a.example"), ("GET", "https://elsewhere")] {
        let other = root.ask(&Ask::new(method, "/base/k").header("origin", origin));
        assert_eq!(other.header("access-control-allow-origin"), None, "{method} {origin}");
    }
    assert_eq!(root.get("/base/k").header("vary"), None);
}
