//! Keys over the wire: the Tigris dialect in JSON, the AWS one in XML, and what a scoped key may see of either.

use crate::calls::{aws, create, member, tigris, update};
use crate::client::{Answer, Ask, Client};
use crate::house::House;
use mw_world::Role;

fn house() -> House {
    let house = House::new();
    for world in ["fork", "other"] {
        house.root.put(&format!("/{world}"), "").ok();
        house.root.put(&format!("/{world}/k"), "kept").ok();
    }
    house
}

#[test]
fn the_life_of_a_tigris_key() {
    let house = house();
    let key = create(&house, &house.root, "sandbox", "[]");
    assert!(key.id.len() >= 16, "the AWS CLI refuses shorter ids");
    assert_eq!(key.get("/fork/k").status, 403, "a key without roles has no access");
    assert!(key.get("/").ok().tags("Name").is_empty());

    assert_eq!(
        member(&update(&house.root, &key.id, r#"[{"bucket":"fork","role":"Editor"}]"#).ok(), "status"),
        "success"
    );
    key.put("/fork/n", "written").ok();
    assert_eq!(key.get("/other/k").status, 403);
    let got = house.root.ask(&tigris("/?Detailed", &format!("Action=ListAccessKeys&KeyId={}", key.id))).ok().text();
    assert!(got.contains(r#""buckets_role":[{"bucket":"fork","role":"Editor"}]"#), "{got}");
    assert!(got.contains(r#""IsTruncated":false"#) && got.contains(r#""Marker":"""#), "{got}");

    update(&house.root, &key.id, r#"[{"bucket":"fork","role":"ReadOnly"}]"#).ok();
    assert_eq!(key.put("/fork/n", "again").status, 403);
    key.get("/fork/n").ok();

    let rotated =
        house.root.ask(&tigris("/?Action=RotateAccessKey", &format!("Action=RotateAccessKey&AccessKeyId={}", key.id)));
    let fresh = Client { secret: member(&rotated.ok(), "new_secret"), ..key.clone() };
    assert_eq!(key.get("/fork/n").fault(), (403, "SignatureDoesNotMatch".into()), "the old secret is dead");
    fresh.get("/fork/n").ok();

    update(&house.root, &key.id, "[]").ok();
    assert_eq!(fresh.get("/fork/n").status, 403);
    let form = format!("Action=DeleteAccessKey&Version=2010-05-08&AccessKeyId={}", key.id);
    house.root.ask(&tigris("/?Action=DeleteAccessKey", &form)).ok();
    assert_eq!(fresh.get("/fork/n").fault(), (403, "InvalidAccessKeyId".into()));
    let gone = house.root.ask(&tigris("/?Detailed", &format!("Action=ListAccessKeys&KeyId={}", key.id))).ok().text();
    assert!(gone.contains(r#""Keys":[]"#), "{gone}");
}

#[test]
fn roles_come_with_the_key_and_admins_of_everything_too() {
    let house = house();
    let key = create(&house, &house.root, "fork-key", r#"[{"bucket":"fork","role":"Editor"}]"#);
    key.put("/fork/n", "x").ok();
    let all = create(&house, &house.root, "all", r#"[{"bucket":"*","role":"NamespaceAdmin"}]"#);
    all.put("/made", "").ok();
    let listed = house.root.ask(&tigris("/?Detailed", "Action=ListAccessKeys&MaxItems=1000")).ok().text();
    assert!(listed.contains(r#"{"bucket":"*","role":"NamespaceAdmin"}"#), "{listed}");
    for roles in [r#"[{"bucket":"fork","role":"Owner"}]"#, r#"[{"bucket":"fork","role":"NamespaceAdmin"}]"#] {
        let answer = update(&house.root, &key.id, roles);
        assert_eq!((answer.status, member(&answer, "Code").as_str()), (400, "ValidationError"));
    }
}

#[test]
fn a_scoped_key_sees_itself_and_changes_nobody() {
    let house = house();
    let editor = house.key(&[("fork", Role::Editor)]);
    let other = house.key(&[("other", Role::Editor)]);
    let listed = editor.ask(&tigris("/?Detailed", "Action=ListAccessKeys&MaxItems=1000")).ok().text();
    assert!(listed.contains(&editor.id) && !listed.contains(&other.id) && !listed.contains(&house.root.id), "{listed}");
    let refused = |answer: Answer| {
        assert_eq!(answer.status, 403, "{}", answer.text());
        answer.text().replace(answer.header("x-amz-request-id").unwrap(), "ID")
    };
    let unknown = refused(editor.ask(&tigris("/", "Action=DeleteAccessKey&AccessKeyId=mwkdoesnotexist")));
    assert!(unknown.contains("Access Denied"), "{unknown}");
    for id in [&other.id, &house.root.id] {
        for action in ["DeleteAccessKey", "RotateAccessKey"] {
            assert_eq!(refused(editor.ask(&tigris("/", &format!("Action={action}&AccessKeyId={id}")))), unknown);
        }
        assert_eq!(refused(update(&editor, id, "[]")), unknown);
    }
    assert_eq!(update(&editor, &editor.id, r#"[{"bucket":"*","role":"NamespaceAdmin"}]"#).status, 403);
    assert_eq!(update(&editor, &editor.id, r#"[{"bucket":"other","role":"Editor"}]"#).status, 403);
    let form = "Req=%7B%22name%22%3A%22mine%22%2C%22buckets_role%22%3A%5B%5D%7D";
    assert_eq!(editor.ask(&tigris("/?Action=CreateAccessKeyWithBucketsRole", form)).status, 403);
    assert_eq!(
        editor.ask(&aws("Action=CreateAccessKey&UserName=x&Version=2010-05-08")).fault(),
        (403, "AccessDenied".into())
    );
    other.put("/other/n", "still alive").ok();
}

/// Who made a key may not become more than they are by taking the key over.
#[test]
fn a_maker_cannot_rise_by_rotating() {
    let house = house();
    let admin = house.key(&[("fork", Role::Admin)]);
    let made = create(&house, &admin, "child", r#"[{"bucket":"fork","role":"Editor"}]"#);
    let form = format!("Action=RotateAccessKey&AccessKeyId={}", made.id);
    admin.ask(&tigris("/?Action=RotateAccessKey", &form)).ok();
    update(&house.root, &made.id, r#"[{"bucket":"other","role":"Editor"}]"#).ok();
    assert_eq!(admin.ask(&tigris("/?Action=RotateAccessKey", &form)).status, 403);
    assert_eq!(update(&admin, &made.id, r#"[{"bucket":"other","role":"Admin"}]"#).status, 403);
}

#[test]
fn the_aws_dialect_is_xml() {
    let house = house();
    let made = house.root.ask(&aws("Action=CreateAccessKey&UserName=robot&Version=2010-05-08")).ok();
    assert_eq!(made.header("content-type"), Some("text/xml"));
    assert!(made.text().starts_with("<CreateAccessKeyResponse xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\">"));
    let key = Client { addr: house.root.addr, id: made.tag("AccessKeyId"), secret: made.tag("SecretAccessKey") };
    assert_eq!(made.tag("UserName"), "robot");
    let listed = house.root.ask(&aws("Action=ListAccessKeys&UserName=robot&Version=2010-05-08")).ok();
    assert_eq!(listed.tags("AccessKeyId"), [key.id.as_str()]);
    assert!(!listed.text().contains("Secret"), "a secret is shown once");
    let first = house.root.ask(&aws("Action=ListAccessKeys&MaxItems=1")).ok();
    assert_eq!(first.tag("IsTruncated"), "true");
    let rest = house.root.ask(&aws(&format!("Action=ListAccessKeys&Marker={}", first.tag("Marker")))).ok();
    assert_eq!(first.tags("AccessKeyId").len() + rest.tags("AccessKeyId").len(), 2);

    let me = key.ask(&aws("Action=GetCallerIdentity&Version=2011-06-15")).ok();
    assert_eq!(me.tag("UserId"), key.id);
    assert_eq!(me.tag("Account"), "000000000000");
    let whoami = key.ask(&Ask::new("GET", "/users/whoami").header("accept", "application/json")).ok();
    assert_eq!((member(&whoami, "UserId"), member(&whoami, "NamespaceId").as_str()), (key.id.clone(), "default"));

    house.root.ask(&aws(&format!("Action=DeleteAccessKey&AccessKeyId={}&Version=2010-05-08", key.id))).ok();
    let missing = house.root.ask(&aws(&format!("Action=DeleteAccessKey&AccessKeyId={}", key.id)));
    assert_eq!(missing.fault(), (404, "NoSuchEntity".into()));
    assert!(missing.text().starts_with("<ErrorResponse><Error><Type>Sender</Type>"));
}

#[test]
fn calls_that_say_nothing_clear_are_refused() {
    let house = house();
    for (form, code) in [
        ("", "MissingAction"),
        ("Action=CreateUser", "InvalidAction"),
        ("Action=ListAccessKeys&Action=DeleteAccessKey", "ValidationError"),
        ("Action=DeleteAccessKey", "ValidationError"),
        ("Action=ListAccessKeys&MaxItems=0", "ValidationError"),
        ("Action=ListAccessKeys&MaxItems=x", "ValidationError"),
        ("Action=CreateAccessKeyWithBucketsRole", "ValidationError"),
        ("Action=CreateAccessKeyWithBucketsRole&Req=%7B", "ValidationError"),
        ("Action=CreateAccessKeyWithBucketsRole&Req=%7B%22name%22%3A%22%22%7D", "ValidationError"),
    ] {
        assert_eq!(house.root.ask(&aws(form)).fault(), (400, code.into()), "{form}");
        let json = house.root.ask(&tigris("/", form));
        assert_eq!((json.status, member(&json, "Code").as_str()), (400, code), "{form}");
    }
    let long = format!("Action={}", "x".repeat(300 << 10));
    assert_eq!(house.root.ask(&aws(&long)).fault(), (400, "ValidationError".into()));
    let mut tampered = house.root.sign(&aws("Action=ListAccessKeys"));
    tampered.body = b"Action=GetCallerIdent".to_vec();
    assert_eq!(house.root.raw(&tampered).status, 400, "the form is part of what was signed");
    // The same path with the same method is S3's when it is no form.
    assert_ne!(house.root.ask(&Ask::new("POST", "/").body("x")).header("content-type"), Some("text/xml"));
}
