//! Policies over the wire: made, attached, enforced at every verb, and gone as soon as they are changed.

use crate::calls::{aws, credentials, encode, member, tigris, with_policy};
use crate::client::{Ask, Client};
use crate::house::House;
use mw_world::Role;

fn house() -> House {
    let house = House::new();
    for world in ["own", "own-1", "other"] {
        house.root.put(&format!("/{world}"), "").ok();
        for key in ["docs/a", "docs/b", "src/c", "top"] {
            house.root.put(&format!("/{world}/{key}"), key).ok();
        }
    }
    house
}

fn policy(statements: &str) -> String {
    format!(r#"{{"Version":"2012-10-17","Statement":[{statements}]}}"#)
}

const READ_OWN: &str = r#"{"Effect":"Allow","Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::own","arn:aws:s3:::own/*"]}"#;

#[test]
fn a_policy_allows_what_it_names_and_nothing_else() {
    let house = house();
    let key = with_policy(&house, &policy(READ_OWN));
    assert_eq!(key.get("/own/docs/a").ok().body, b"docs/a");
    assert_eq!(key.get("/own?list-type=2").ok().tags("Key").len(), 4);
    assert_eq!(key.get("/").ok().tags("Name"), ["own"]);
    for ask in [
        Ask::new("PUT", "/own/n").body("x"),
        Ask::new("DELETE", "/own/top"),
        Ask::new("GET", "/own-1/top"),
        Ask::new("GET", "/other/top"),
        Ask::new("GET", "/own-1?list-type=2"),
        Ask::new("POST", "/own/n?uploads="),
        Ask::new("PUT", "/own/top?tagging=").body("<Tagging><TagSet></TagSet></Tagging>"),
        Ask::new("PUT", "/own/n").header("x-amz-copy-source", "own/top"),
        Ask::new("DELETE", "/own"),
        Ask::new("PUT", "/made"),
        Ask::new("GET", "/own?versioning=").header("x-none", "1"),
    ] {
        let answer = key.ask(&ask);
        let plain = ask.query.iter().any(|(n, _)| n == "versioning");
        assert!(
            plain || answer.fault() == (403, "AccessDenied".into()),
            "{} {}: {}",
            ask.method,
            ask.path,
            answer.text()
        );
    }
    assert_eq!(house.root.get("/own/top").ok().body, b"top");
}

#[test]
fn a_denial_wins_over_every_grant() {
    let house = house();
    let key = house.key(&[("own", Role::Editor)]);
    let deny = policy(r#"{"Effect":"Deny","Action":"s3:*","Resource":"arn:aws:s3:::own/docs/*"}"#);
    let form = format!("Action=CreatePolicy&PolicyName=no-docs&PolicyDocument={}", encode(&deny));
    let made = house.root.ask(&aws(&form)).ok();
    assert_eq!(made.tag("Arn"), "arn:aws:iam::000000000000:policy/no-docs");
    key.put("/own/docs/n", "before").ok();
    let attach = format!("Action=AttachUserPolicy&UserName={}&PolicyArn={}", key.id, encode(&made.tag("Arn")));
    house.root.ask(&aws(&attach)).ok();
    for ask in [
        Ask::new("GET", "/own/docs/a"),
        Ask::new("HEAD", "/own/docs/a"),
        Ask::new("PUT", "/own/docs/n").body("x"),
        Ask::new("DELETE", "/own/docs/a"),
        Ask::new("PUT", "/own/stolen").header("x-amz-copy-source", "own/docs/a"),
        Ask::new("PUT", "/own/stolen").header("x-amz-copy-source", "/own/docs/a"),
        Ask::new("PUT", "/own/stolen").header("x-amz-copy-source", "own%2Fdocs%2Fa"),
        Ask::new("PUT", "/own/docs/n").header("x-amz-copy-source", "own/top"),
    ] {
        assert_eq!(key.ask(&ask).status, 403, "{} {} {:?}", ask.method, ask.path, ask.headers);
    }
    // An encoded slash in a path is decoded once, before anybody looks.
    assert_eq!(key.get("/own/docs%2Fa").status, 403);
    assert_eq!(key.get("/own//docs/a").status, 404, "another key, which is not there");
    key.get("/own/top").ok();
    let bulk = "<Delete><Object><Key>docs/a</Key></Object><Object><Key>src/c</Key></Object></Delete>";
    let deleted = key.post("/own?delete=", bulk).ok();
    assert_eq!(
        (deleted.tags("Code"), deleted.tags("Key")),
        (vec!["AccessDenied".to_owned()], vec!["src/c".into(), "docs/a".into()])
    );
    assert_eq!(house.root.get("/own/docs/a").ok().body, b"docs/a");
    assert_eq!(house.root.get("/own/src/c").status, 404);
    let names = house.root.ask(&tigris("/?Action=ListUserPolicies", &format!("UserName={}", key.id))).ok().text();
    assert!(names.contains(r#""PolicyNames":["no-docs"]"#), "{names}");
    assert!(key.ask(&aws(&format!("Action=ListUserPolicies&UserName={}", key.id))).ok().text().contains("no-docs"));

    house.root.ask(&aws(&attach.replace("AttachUserPolicy", "DetachUserPolicy"))).ok();
    assert_eq!(key.get("/own/docs/n").ok().body, b"before");
}

#[test]
fn the_life_of_a_policy() {
    let house = house();
    let key = house.key(&[("other", Role::Reader)]);
    let call = |form: &str| house.root.ask(&tigris("/", form));
    let open = encode(&policy(READ_OWN));
    call(&format!("Action=CreatePolicy&PolicyName=p&Description=d&ReqUUID=1&PolicyDocument={open}")).ok();
    let again = call(&format!("Action=CreatePolicy&PolicyName=p&PolicyDocument={open}"));
    assert_eq!((again.status, member(&again, "Code").as_str()), (409, "EntityAlreadyExists"));
    call(&format!("Action=AttachUserPolicy&UserName={}&PolicyArn=p", key.id)).ok();
    key.get("/own/top").ok();
    let got = call("Action=GetPolicyDetailed&PolicyName=p").ok().text();
    assert!(got.contains("GetPolicyDetailedResult") && got.contains("2012-10-17"), "{got}");
    assert!(call("Action=ListPolicies").ok().text().contains(r#""PolicyName":"p""#));

    let closed = encode(&policy(r#"{"Effect":"Deny","Action":"*","Resource":"*"}"#));
    call(&format!("Action=UpdatePolicy&PolicyName=p&PolicyDocument={closed}")).ok();
    assert_eq!(key.get("/own/top").status, 403);
    assert_eq!(key.get("/other/top").status, 403, "a denial of everything is one of what is granted too");
    let refused = call("Action=DeletePolicy&PolicyArn=arn%3Aaws%3Aiam%3A%3A000000000000%3Apolicy%2Fp");
    assert_eq!((refused.status, member(&refused, "Code").as_str()), (409, "DeleteConflict"));
    call("Action=ForceDeletePolicy&PolicyName=p").ok();
    key.get("/other/top").ok();
    assert_eq!(key.get("/own/top").status, 403);
    assert_eq!(call("Action=GetPolicy&PolicyName=p").status, 404);

    for form in [
        format!("Action=CreatePolicy&PolicyName=q&PolicyDocument={open}"),
        format!("Action=UpdatePolicy&PolicyName=p&PolicyDocument={open}"),
        "Action=ListPolicies".to_owned(),
        "Action=GetPolicy&PolicyName=p".to_owned(),
        "Action=ForceDeletePolicy&PolicyName=p".to_owned(),
        format!("Action=AttachUserPolicy&UserName={}&PolicyArn=p", key.id),
        format!("Action=ListUserPolicies&UserName={}", house.root.id),
    ] {
        assert_eq!(house.key(&[("own", Role::Admin)]).ask(&tigris("/", &form)).status, 403, "{form}");
    }
    let malformed = call("Action=CreatePolicy&PolicyName=q&PolicyDocument=%7B%7D");
    assert_eq!((malformed.status, member(&malformed, "Code").as_str()), (400, "MalformedPolicyDocument"));
}

#[test]
fn conditions_look_at_the_socket_the_clock_and_the_prefix() {
    let house = house();
    let with = |condition: &str| {
        let one = format!(r#"{{"Effect":"Allow","Action":"s3:*","Resource":"*","Condition":{{{condition}}}}}"#);
        with_policy(&house, &policy(&one))
    };
    let status = |key: &Client| key.get("/own/top").status;
    assert_eq!(status(&with(r#""IpAddress":{"aws:SourceIp":"127.0.0.0/8"}"#)), 200);
    let elsewhere = with(r#""IpAddress":{"aws:SourceIp":"203.0.113.0/24"}"#);
    assert_eq!(status(&elsewhere), 403);
    for name in ["x-forwarded-for", "x-real-ip", "forwarded", "cf-connecting-ip", "true-client-ip"] {
        let claimed = elsewhere.ask(&Ask::new("GET", "/own/top").header(name, "203.0.113.9"));
        assert_eq!(claimed.status, 403, "{name} is a claim and no address");
    }
    assert_eq!(status(&with(r#""NotIpAddress":{"aws:SourceIp":"127.0.0.1"}"#)), 403);
    assert_eq!(status(&with(r#""DateGreaterThan":{"aws:CurrentTime":"2020-01-01T00:00:00Z"}"#)), 200);
    assert_eq!(status(&with(r#""DateLessThan":{"aws:CurrentTime":"2020-01-01T00:00:00Z"}"#)), 403);
    assert_eq!(status(&with(r#""DateGreaterThan":{"aws:CurrentTime":"2999-01-01T00:00:00Z"}"#)), 403);

    let lister = with(r#""StringLike":{"s3:prefix":["docs/*"]}"#);
    assert_eq!(lister.get("/own?list-type=2&prefix=docs%2F").ok().tags("Key"), ["docs/a", "docs/b"]);
    for query in ["", "&prefix=", "&prefix=src%2F", "&prefix=docs"] {
        assert_eq!(lister.get(&format!("/own?list-type=2{query}")).status, 403, "{query}");
    }
}

/// Whoever is bounded has no way around: what takes in a whole world, or makes others, needs all of it.
#[test]
fn bounded_keys_cannot_widen_themselves() {
    let house = house();
    let all_but = policy(
        r#"{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"s3:GetObject","Resource":"arn:aws:s3:::own/docs/*"}"#,
    );
    let key = with_policy(&house, &all_but);
    let who = house.store.principal(&key.id).unwrap();
    key.get("/own/top").ok();
    let denied = |what: &str, result: Result<(), mw_world::Error>| {
        assert_eq!(result.expect_err(what).kind(), mw_model::ErrorKind::Denied, "{what}");
    };
    denied("fork", house.store.fork(&who, "own", "copy", &Default::default()).map(drop));
    denied("create", house.store.create_world(&who, "made", &Default::default()).map(drop));
    let session = house.store.session(&who, "own").unwrap();
    denied("history", session.log(&Default::default()).map(drop));
    denied("snapshot", session.snapshot(None, None).map(drop));
    denied("diff", mw_world::diff(&session, &session).map(drop));
    let request = mw_world::KeyRequest {
        name: "more".into(),
        grants: vec![mw_world::Grant::new("own", Role::Reader)],
        ..Default::default()
    };
    denied("a key", house.store.create_key(&who, &request).map(drop));
    let token = key.ask(&aws("Action=GetFederationToken&Name=me&Policy=%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22Action%22%3A%22%2A%22%2C%22Resource%22%3A%22%2A%22%7D%5D%7D"));
    let (temporary, token) = credentials(&house, &token.ok());
    let ask = |path: &str| temporary.ask(&Ask::new("GET", path).header("x-amz-security-token", &token)).status;
    assert_eq!((ask("/own/top"), ask("/own/docs/a")), (200, 403));
}
