//! Temporary credentials: what the policy, the role and the caller all allow, for a while, with the token, as long as the caller lives.

use crate::calls::{aws, credentials, encode, tigris};
use crate::client::{Answer, Ask, Client};
use crate::house::House;
use mw_world::Role;

fn house() -> House {
    let house = House::new();
    for world in ["own", "other"] {
        house.root.put(&format!("/{world}"), "").ok();
        house.root.put(&format!("/{world}/a/k"), "kept").ok();
        house.root.put(&format!("/{world}/b/k"), "kept").ok();
    }
    house
}

fn allow(actions: &str, resource: &str) -> String {
    encode(&format!(
        r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Action":{actions},"Resource":"arn:aws:s3:::{resource}"}}]}}"#
    ))
}

fn federate(who: &Client, policy: &str) -> Answer {
    who.ask(&aws(&format!("Action=GetFederationToken&Version=2011-06-15&Name=agent&Policy={policy}")))
}

fn assume(who: &Client, role: &str, more: &str) -> Answer {
    let arn = encode(&format!("arn:aws:iam::000000000000:role/{role}"));
    who.ask(&aws(&format!("Action=AssumeRole&Version=2011-06-15&RoleSessionName=agent&RoleArn={arn}{more}")))
}

/// Asks with the token.
fn ask((client, token): &(Client, String), method: &str, path: &str) -> u16 {
    client.ask(&Ask::new(method, path).header("x-amz-security-token", token)).status
}

#[test]
fn a_federation_token_is_the_policy_and_the_parent_together() {
    let house = house();
    let parent = house.key(&[("own", Role::Editor)]);
    let answer = federate(&parent, &allow(r#"["s3:GetObject"]"#, "*")).ok();
    assert!(
        answer.text().starts_with("<GetFederationTokenResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">")
    );
    let made = credentials(&house, &answer);
    assert_eq!(ask(&made, "GET", "/own/a/k"), 200);
    assert_eq!(ask(&made, "GET", "/other/a/k"), 403, "the policy allows it, the parent may not");
    assert_eq!(ask(&made, "PUT", "/own/a/n"), 403, "the parent may, the policy does not allow it");
    let one = credentials(&house, &federate(&parent, &allow(r#""s3:*""#, "own/a/*")).ok());
    assert_eq!(ask(&one, "PUT", "/own/a/n"), 200);
    assert_eq!(
        (ask(&one, "GET", "/own/b/k"), ask(&one, "PUT", "/own/b/n"), ask(&one, "DELETE", "/own")),
        (403, 403, 403)
    );
    let none = parent.ask(&aws("Action=GetFederationToken&Name=agent")).ok();
    assert_eq!(ask(&credentials(&house, &none), "GET", "/own/a/k"), 403, "without a policy it may do nothing");
}

#[test]
fn a_role_binds_to_one_world() {
    let house = house();
    let root = credentials(&house, &assume(&house.root, "own/reader", "").ok());
    assert_eq!(
        (ask(&root, "GET", "/own/a/k"), ask(&root, "PUT", "/own/n"), ask(&root, "GET", "/other/a/k")),
        (200, 403, 403)
    );
    let parent = house.key(&[("own", Role::Reader)]);
    let more = credentials(&house, &assume(&parent, "own/admin", "").ok());
    assert_eq!((ask(&more, "GET", "/own/a/k"), ask(&more, "PUT", "/own/n")), (200, 403), "never more than the parent");
    let policy = format!("&Policy={}", allow(r#""s3:*""#, "*a/*"));
    let both = credentials(&house, &assume(&house.root, "own/editor", &policy).ok());
    assert_eq!(
        (ask(&both, "PUT", "/own/a/n"), ask(&both, "PUT", "/own/b/n"), ask(&both, "GET", "/other/a/k")),
        (200, 403, 403)
    );
    let seen = |world: &str| {
        let answer = assume(&parent, &format!("{world}/reader"), "");
        (answer.status, answer.text().replace(answer.header("x-amz-request-id").unwrap(), "ID"))
    };
    assert_eq!(seen("other").0, 403);
    assert_eq!(seen("other"), seen("no-such-world"), "it tells nothing of other worlds");
}

#[test]
fn the_token_must_come_and_must_be_the_right_one() {
    let house = house();
    let made = credentials(&house, &assume(&house.root, "own/editor", "").ok());
    let other = credentials(&house, &assume(&house.root, "own/editor", "").ok());
    let (client, token) = &made;
    let invalid = (400, "InvalidToken".to_owned());
    assert_eq!(client.get("/own/a/k").fault(), invalid, "without it");
    for wrong in ["x", &other.1, &token[1..], &format!("{token}x")] {
        assert_eq!(client.ask(&Ask::new("GET", "/own/a/k").header("x-amz-security-token", wrong)).fault(), invalid);
    }
    let lasting = house.key(&[("own", Role::Reader)]);
    assert_eq!(lasting.ask(&Ask::new("GET", "/own/a/k").header("x-amz-security-token", token)).fault(), invalid);
    // In the header it must be signed; in a URL it is a part of what is signed.
    let mut wire = client.sign(&Ask::new("GET", "/own/a/k"));
    wire.headers.push(("x-amz-security-token".into(), token.clone()));
    assert_eq!(client.raw(&wire).fault(), (403, "AccessDenied".into()));
    let signed = client.presign(&Ask::new("GET", &format!("/own/a/k?X-Amz-Security-Token={token}")), 60);
    assert_eq!(client.raw(&signed).ok().body, b"kept");
    assert_eq!(client.raw(&client.presign(&Ask::new("GET", "/own/a/k"), 60)).fault(), invalid);
    let mut unsigned = client.presign(&Ask::new("GET", "/own/a/k"), 60);
    unsigned.target.push_str(&format!("&X-Amz-Security-Token={token}"));
    assert_eq!(client.raw(&unsigned).status, 403);
    let twice =
        Ask::new("GET", &format!("/own/a/k?X-Amz-Security-Token={token}")).header("x-amz-security-token", token);
    assert_eq!(client.ask(&twice).fault(), (400, "InvalidArgument".into()));
}

#[test]
fn children_die_with_the_parent_and_with_its_secret() {
    let house = house();
    let parent = house.key(&[("own", Role::Editor)]);
    let first = credentials(&house, &assume(&parent, "own/editor", "").ok());
    assert_eq!(ask(&first, "GET", "/own/a/k"), 200);
    let who = house.store.principal(&first.0.id).unwrap();
    let session = house.store.session(&who, "own").unwrap();
    let fresh = house.store.rotate_key(&house.root_principal(), &parent.id).unwrap();
    assert_eq!(ask(&first, "GET", "/own/a/k"), 403, "the secret that vouched for it is gone");
    let stale = session.delete(b"a/k", &Default::default()).expect_err("the commit requires the parent as it was");
    assert_eq!(stale.kind(), mw_model::ErrorKind::Denied);

    let parent = Client { secret: fresh.secret, ..parent };
    let second = credentials(&house, &assume(&parent, "own/editor", "").ok());
    assert_eq!(ask(&second, "GET", "/own/a/k"), 200);
    house.store.delete_key(&house.root_principal(), &parent.id).unwrap();
    assert_eq!(ask(&second, "GET", "/own/a/k"), 403);
    assert_eq!(house.root.get("/own/a/k").ok().body, b"kept");
}

#[test]
fn a_temporary_key_manages_no_keys_and_owns_no_worlds() {
    let house = house();
    let (client, token) = credentials(&house, &assume(&house.root, "own/admin", "").ok());
    let call = |form: &str| client.ask(&tigris("/", form).header("x-amz-security-token", &token));
    for form in [
        "Action=GetFederationToken&Name=agent".to_owned(),
        "Action=CreateAccessKey&UserName=x".to_owned(),
        format!("Action=RotateAccessKey&AccessKeyId={}", client.id),
        format!("Action=DeleteAccessKey&AccessKeyId={}", client.id),
        format!("Action=AssumeRole&RoleSessionName=x1&RoleArn={}", encode("arn:aws:iam::000000000000:role/own/reader")),
    ] {
        assert_eq!(call(&form).status, 403, "{form}");
    }
    let me = client.ask(&aws("Action=GetCallerIdentity").header("x-amz-security-token", &token)).ok();
    assert_eq!(me.tag("UserId"), client.id);
    assert_eq!(ask(&(client.clone(), token.clone()), "PUT", "/made"), 403);
    let who = house.store.principal(&client.id).unwrap();
    assert!(house.store.fork(&who, "own", "copy", &Default::default()).is_err());
    assert!(!house.root.ask(&tigris("/?Detailed", "Action=ListAccessKeys")).ok().text().contains(&client.id));
}

#[test]
fn asked_for_wrongly() {
    let house = house();
    let long = format!("&Policy={}", "a".repeat(2049));
    for form in [
        "Action=GetFederationToken".to_owned(),
        "Action=GetFederationToken&Name=x".to_owned(),
        "Action=GetFederationToken&Name=a%20b".to_owned(),
        "Action=GetFederationToken&Name=agent&DurationSeconds=899".to_owned(),
        "Action=GetFederationToken&Name=agent&DurationSeconds=129601".to_owned(),
        "Action=GetFederationToken&Name=agent&DurationSeconds=x".to_owned(),
        "Action=GetFederationToken&Name=agent&Policy=%7B%7D".to_owned(),
        format!("Action=GetFederationToken&Name=agent{long}"),
        "Action=GetFederationToken&Name=agent&PolicyArns.member.1.arn=x".to_owned(),
        "Action=AssumeRole&RoleSessionName=agent".to_owned(),
        format!(
            "Action=AssumeRole&RoleSessionName=agent&RoleArn={}",
            encode("arn:aws:iam::000000000000:role/own/owner")
        ),
        format!(
            "Action=AssumeRole&RoleSessionName=agent&RoleArn={}",
            encode("arn:aws:iam::123456789012:role/own/reader")
        ),
        format!("Action=AssumeRole&RoleSessionName=agent&RoleArn={}", encode("own/reader")),
        format!(
            "Action=AssumeRole&RoleSessionName=agent&ExternalId=e&RoleArn={}",
            encode("arn:aws:iam::000000000000:role/own/reader")
        ),
    ] {
        let answer = house.root.ask(&aws(&form));
        assert_eq!(answer.status, 400, "{form}: {}", answer.text());
        assert!(
            ["ValidationError", "MalformedPolicyDocument"].contains(&answer.code().as_str()),
            "{form}: {}",
            answer.text()
        );
    }
}
