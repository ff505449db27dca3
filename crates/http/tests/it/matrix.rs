//! Every verb about a path × (own prefix, another's, one that is not there) × (own world, another's, one that is not there), with a
//! lasting key and a temporary one: what a key may not reach and what is not there give one identical refusal.

use crate::rig::{Ask, Rig};
use hyper::header::HeaderValue;
use mw_http::sigv4::Credentials;
use mw_world::{Bounds, Grant, Role};
use serde_json::{Value, json};
use std::time::Duration;

fn ask(method: &'static str, path: String, query: &[(&'static str, &str)], body: Value) -> Ask {
    let query = query.iter().map(|(n, v)| (*n, (*v).to_owned())).collect();
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Ask { method, path, query, body }
}

/// Every verb that takes a path, on one place; the other side of a transfer is the key's own.
fn verbs(world: &str, path: &str) -> Vec<Ask> {
    let of = |rest: &str| format!("worlds/{world}/{rest}");
    let place = |world: &str, path: &str| json!({"world": world, "path": path});
    let transfer = |from: Value, to: Value| json!({"from": from, "to": to, "recursive": true});
    let own = |name: &str| place("own", &format!("docs/{name}"));
    let mut all = vec![
        ask("GET", of("files"), &[("path", path)], Value::Null),
        ask("GET", of("files"), &[("path", path), ("recursive", "true")], Value::Null),
        ask("GET", of("files"), &[("path", path), ("hidden", "true")], Value::Null),
        ask("GET", of("content"), &[("path", path)], Value::Null),
        ask("GET", of("tree"), &[("path", path)], Value::Null),
        ask("GET", of("log"), &[("path", path)], Value::Null),
        ask("POST", of("remove"), &[], json!({"path": path})),
        ask("POST", of("remove"), &[], json!({"path": path, "recursive": true})),
        ask("POST", of("restore"), &[], json!({"from": "1767225600000000000", "path": path})),
        ask("POST", "copy".into(), &[], transfer(place(world, path), own("copied"))),
        ask("POST", "copy".into(), &[], transfer(own("a"), place(world, path))),
        ask("POST", "copy".into(), &[], transfer(own("a"), place(world, &format!("{}/", path.trim_end_matches('/'))))),
        ask("POST", "move".into(), &[], transfer(place(world, path), own("moved"))),
        ask("POST", "move".into(), &[], transfer(own("a"), place(world, path))),
        ask("POST", "move".into(), &[], transfer(own("a"), place(world, &format!("{}/", path.trim_end_matches('/'))))),
    ];
    // Trees come in frames; an empty one is refused for itself only where one may write at all.
    all.push(Ask {
        body: b"no frames".to_vec(),
        ..ask("PUT", of("tree"), &[("path", path), ("name", "n")], Value::Null)
    });
    all
}

fn rig() -> (Rig, Vec<Credentials>) {
    let rig = Rig::new();
    for world in ["own", "other"] {
        rig.world(world, &["docs/a", "docs/sub/b", "top", "away/c"]);
    }
    let bound = Grant { prefix: "docs/".into(), ..Grant::new("own", Role::Admin) };
    let lasting = rig.key(bound.clone());
    let bounds = Bounds { name: "agent".into(), grants: vec![bound], ttl: Duration::from_secs(60), policy: None };
    let temporary = rig.temporary(&rig.root(), &bounds);
    let policy = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::own/docs/*"},
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::own",
         "Condition": {"StringLike": {"s3:prefix": "docs/*"}}},
    ]});
    let bounds = Bounds { grants: Vec::new(), policy: Some(policy.to_string()), ..bounds };
    let by_policy = rig.temporary(&rig.root(), &bounds);
    (rig, vec![lasting, temporary, by_policy])
}

#[test]
fn outside_its_prefix_a_key_does_not_learn_what_is_there() {
    let (rig, keys) = rig();
    let mut sent = 0;
    for who in &keys {
        for (there, absent) in
            [("top", "nil"), ("away", "else"), ("away/c", "away/x"), ("away/c", "else/c"), ("top/", "nil/")]
        {
            for (of_there, of_absent) in verbs("own", there).iter().zip(&verbs("own", absent)) {
                let told = |path: &str, ask: &Ask| {
                    let (status, text) = rig.ask(who, ask);
                    (status, text.replace(path.trim_end_matches('/'), "PATH"))
                };
                let shown = format!(
                    "{} {} {:?} {}",
                    of_there.method,
                    of_there.path,
                    of_there.query,
                    String::from_utf8_lossy(&of_there.body)
                );
                let answer = told(there, of_there);
                assert!(answer.1.contains("denied") || answer.1.contains("no stream of files"), "{shown}: {answer:?}");
                assert_eq!(answer, told(absent, of_absent), "{shown}");
                sent += 1;
            }
        }
    }
    assert!(sent > 200);
    let session = rig.store.session(&rig.root(), "own").unwrap();
    for key in ["top", "away/c", "docs/a"] {
        assert_eq!(session.head(key.as_bytes()).unwrap().size, key.len() as u64);
    }
    assert!(session.resolve(b"else").is_err() && session.resolve(b"nil").is_err(), "nothing was made on the way");
}

#[test]
fn another_world_and_none_are_one_refusal() {
    let (rig, keys) = rig();
    for who in &keys {
        for path in ["docs/a", "top", "nil", ""] {
            for (other, none) in verbs("other", path).iter().zip(&verbs("no-such", path)) {
                let shown = format!("{} {} {:?}", other.method, other.path, other.query);
                let (answer, of_none) = (rig.ask(who, other), rig.ask(who, none));
                assert_eq!(answer.0, 403, "{shown}: {answer:?}");
                assert_eq!(answer, of_none, "{shown}");
            }
        }
    }
}

#[test]
fn under_its_prefix_a_key_learns_what_is_there() {
    let (_, keys) = rig();
    for n in 0..keys.len() {
        for path in ["docs/a", "docs/sub", "docs/nil"] {
            for (at, ask) in verbs("own", path).iter().enumerate() {
                // What takes in the whole world needs all of it: history, and what is made of it.
                if ask.path.ends_with("log") || ask.path.ends_with("restore") {
                    continue;
                }
                let (rig, keys) = rig();
                let (status, text) = rig.ask(&keys[n], ask);
                // A directory takes with it what no single key says.
                if ask.path == "move" && path == "docs/sub" && at == 12 {
                    assert_eq!(status, 403);
                    continue;
                }
                assert_ne!(status, 403, "{n} {} {} {:?}: {text}", ask.method, ask.path, ask.query);
            }
        }
    }
}

/// The session token is checked as at the door of S3: it must be there, be the right one, come once, and be signed.
#[test]
fn a_temporary_key_needs_its_token() {
    let (rig, keys) = rig();
    let (lasting, temporary, other) = (&keys[0], &keys[1], &keys[2]);
    let look = ask("GET", "worlds/own/content".into(), &[("path", "docs/a")], Value::Null);
    assert_eq!(rig.ask(temporary, &look), (200, "docs/a".to_owned()));
    let with = |key: &Credentials, token: Option<&str>| Credentials { token: token.map(str::to_owned), ..key.clone() };
    let token = temporary.token.as_deref().unwrap();
    for wrong in [
        with(temporary, None),
        with(temporary, other.token.as_deref()),
        with(temporary, Some(&token[1..])),
        with(temporary, Some(&format!("{token}x"))),
        with(lasting, Some(token)),
    ] {
        let (status, text) = rig.ask(&wrong, &look);
        assert_eq!(status, 403, "{text}");
        assert!(text.contains("session token"), "{text}");
    }
    let value = HeaderValue::from_str(token).unwrap();
    let unsigned = rig.send(&with(temporary, None), &look, |request| {
        request.headers_mut().insert("x-amz-security-token", value.clone());
    });
    assert_eq!(unsigned.0, 403);
    assert!(String::from_utf8(unsigned.1).unwrap().contains("not signed"));
    let twice = rig.send(temporary, &look, |request| {
        request.headers_mut().append("x-amz-security-token", value.clone());
    });
    assert_eq!(twice.0, 403);
    let swapped = rig.send(temporary, &look, |request| {
        request.headers_mut().insert("x-amz-security-token", HeaderValue::from_static("other"));
    });
    assert_eq!(swapped.0, 403, "the token is a part of what is signed");
}

#[test]
fn temporary_keys_are_made_and_bounded() {
    let (rig, keys) = rig();
    let root = rig.root_credentials();
    let make = |who: &Credentials, body: Value| rig.ask(who, &ask("POST", "temporary-keys".into(), &[], body));
    let (status, text) = make(&root, json!({"name": "agent", "grants": [{"world": "own", "role": "reader"}]}));
    assert_eq!(status, 201, "{text}");
    let made: Value = serde_json::from_str(&text).unwrap();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let key = Credentials { id: text("id"), secret: text("secret"), token: Some(text("token")) };
    let read =
        |world: &str| rig.ask(&key, &ask("GET", format!("worlds/{world}/content"), &[("path", "top")], Value::Null));
    assert_eq!(read("own"), (200, "top".to_owned()));
    assert_eq!(read("other"), read("no-such"));
    let reader = json!([{"world": "own", "role": "reader"}]);
    for body in [
        json!({"name": "x", "grants": reader}),
        json!({"name": "agent", "grants": reader, "ttl_seconds": 0}),
        json!({"name": "agent", "grants": reader, "ttl_seconds": 129_601}),
        json!({"name": "agent", "grants": vec![json!({"world": "own", "role": "reader"}); 101]}),
        json!({"name": "agent", "policy": "{}"}),
        json!({"name": "agent", "more": 1}),
    ] {
        assert_eq!(make(&root, body.clone()).0, 400, "{body}");
    }
    // It names no worlds out of reach, and a temporary key makes none.
    let other = make(&keys[0], json!({"name": "agent", "grants": [{"world": "other", "role": "reader"}]}));
    assert_eq!(other.0, 403);
    assert_eq!(other, make(&keys[0], json!({"name": "agent", "grants": [{"world": "no-such", "role": "reader"}]})));
    assert_eq!(make(&keys[1], json!({"name": "agent", "grants": reader})).0, 403);
}
