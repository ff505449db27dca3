//! Access control lists of a bucket whose owner owns all in it: read by everybody who reads, and never changed.

use crate::client::{Answer, Ask};
use crate::house::House;
use mw_world::Role;

fn said(answer: &Answer) -> (String, String) {
    (answer.tag("ID"), answer.tag("Permission"))
}

#[test]
fn lists_say_that_the_owner_may_do_all_and_nothing_else_can_be_said() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "x").ok();
    for path in ["/base?acl=", "/base/k?acl="] {
        let list = root.get(path).ok();
        let owner = ("manyworlds".to_owned(), "FULL_CONTROL".to_owned());
        assert_eq!(said(&list), owner, "{}", list.text());
        for (acl, status) in
            [("private", 200), ("bucket-owner-full-control", 200), ("public-read", 400), ("authenticated-read", 400)]
        {
            let answer = root.ask(&Ask::new("PUT", path).header("x-amz-acl", acl));
            assert_eq!(answer.status, status, "{path} {acl} {}", answer.text());
            if status == 400 {
                assert_eq!(answer.code(), "AccessControlListNotSupported");
            }
        }
        let granted = root.ask(&Ask::new("PUT", path).header("x-amz-grant-read", "uri=\"http://acs/AllUsers\""));
        assert_eq!(granted.fault(), (400, "AccessControlListNotSupported".into()));
        let body = list.text();
        root.put(path, body.clone().into_bytes()).ok();
        let more = body.replace("FULL_CONTROL", "READ");
        assert_eq!(root.put(path, more).fault(), (400, "AccessControlListNotSupported".into()));
        let none = "<AccessControlPolicy><Owner><ID>manyworlds</ID></Owner><AccessControlList/></AccessControlPolicy>";
        assert_eq!(root.put(path, none).fault(), (400, "AccessControlListNotSupported".into()));
        assert_eq!(root.put(path, "<a").fault().0, 400);
    }
    let controls = root.get("/base?ownershipControls=").ok();
    assert_eq!(controls.tag("ObjectOwnership"), "BucketOwnerEnforced");
    assert_eq!(root.get("/base/none?acl=").fault(), (404, "NoSuchKey".into()));
    let reader = house.key(&[("base", Role::Reader)]);
    reader.get("/base/k?acl=").ok();
    let put = reader.ask(&Ask::new("PUT", "/base/k?acl=").header("x-amz-acl", "private"));
    assert_eq!(put.fault(), (403, "AccessDenied".into()));
}

#[test]
fn what_is_put_cannot_be_made_public_by_a_header() {
    let house = House::with_base();
    let root = &house.root;
    let put = |acl: &str| root.ask(&Ask::new("PUT", "/base/k").header("x-amz-acl", acl).body("x"));
    put("private").ok();
    assert_eq!(put("public-read").fault(), (400, "AccessControlListNotSupported".into()));
    let copy = Ask::new("PUT", "/base/c").header("x-amz-copy-source", "/base/k").header("x-amz-acl", "public-read");
    assert_eq!(root.ask(&copy).fault(), (400, "AccessControlListNotSupported".into()));
    let begin = Ask::new("POST", "/base/m?uploads=").header("x-amz-acl", "public-read");
    assert_eq!(root.ask(&begin).fault(), (400, "AccessControlListNotSupported".into()));
    let make = |acl: &str| root.ask(&Ask::new("PUT", "/other").header("x-amz-acl", acl));
    assert_eq!(make("public-read").fault(), (400, "InvalidBucketAclWithObjectOwnership".into()));
    make("private").ok();
}

#[test]
fn public_access_is_blocked_and_cannot_be_opened() {
    let house = House::with_base();
    let root = &house.root;
    let settings = ["BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"];
    let body = |open: &str| {
        let each = settings.map(|name| format!("<{name}>{}</{name}>", name != open)).concat();
        format!("<PublicAccessBlockConfiguration>{each}</PublicAccessBlockConfiguration>")
    };
    root.put("/base?publicAccessBlock=", body("")).ok();
    for open in settings {
        assert_eq!(root.put("/base?publicAccessBlock=", body(open)).fault(), (501, "NotImplemented".into()), "{open}");
    }
    let got = root.get("/base?publicAccessBlock=").ok();
    assert!(settings.iter().all(|name| got.tag(name) == "true"), "{}", got.text());
    let reader = house.key(&[("base", Role::Reader)]);
    reader.get("/base?publicAccessBlock=").ok();
    assert_eq!(reader.put("/base?publicAccessBlock=", body("")).fault(), (403, "AccessDenied".into()));
    assert_eq!(root.delete("/base?publicAccessBlock=").fault(), (501, "NotImplemented".into()));
}
