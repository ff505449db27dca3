//! A scoped key reaches its world and nothing else, and cannot tell a world that exists from one that does not.

use crate::client::{Answer, Ask, Client};
use crate::house::House;
use crate::operations::operations;
use mw_world::Role;

/// An answer without what must differ: its id and its time.
fn seen(answer: Answer) -> (u16, Vec<(String, String)>, String) {
    let id = answer.header("x-amz-request-id").unwrap().to_owned();
    let text = answer.text().replace(&id, "ID");
    let headers = answer.headers.into_iter().filter(|(n, _)| n != "x-amz-request-id" && n != "date").collect();
    (answer.status, headers, text)
}

fn house() -> House {
    let house = House::new();
    for world in ["own", "own-1", "other"] {
        house.root.put(&format!("/{world}"), "").ok();
        house.root.put(&format!("/{world}/k"), "secret").ok();
    }
    house
}

#[test]
fn other_worlds_give_one_identical_refusal() {
    let house = house();
    for role in [Role::Reader, Role::Editor, Role::Admin] {
        let key = house.key(&[("own", role)]);
        let refused: Vec<_> = operations("other").iter().map(|ask| seen(key.ask(ask))).collect();
        for (ask, answer) in operations("other").iter().zip(&refused) {
            assert_eq!(answer.0, 403, "{} {} {:?}: {}", ask.method, ask.path, ask.query, answer.2);
            assert!(
                answer.2.is_empty() || answer.2.contains("<Code>AccessDenied</Code><Message>Access Denied</Message>")
            );
        }
        for world in ["no-such-world", "own-1", "ow", "UPPER", "x", "a..b"] {
            for (ask, expected) in operations(world).iter().zip(&refused) {
                assert_eq!(&seen(key.ask(ask)), expected, "{world}: {} {} {:?}", ask.method, ask.path, ask.headers);
            }
        }
    }
    for world in ["other", "own-1", "own"] {
        assert_eq!(house.root.get(&format!("/{world}/k")).ok().body, b"secret");
    }
    assert_eq!(house.root.get("/own/copied").status, 404);
}

#[test]
fn buckets_are_listed_for_those_who_may_read_them() {
    let house = house();
    let names = |key: &Client| key.get("/").ok().tags("Name");
    assert_eq!(names(&house.root), ["other", "own", "own-1"]);
    assert_eq!(names(&house.key(&[("own", Role::Reader)])), ["own"]);
    assert_eq!(names(&house.key(&[("own-1", Role::Editor), ("own", Role::Reader)])), ["own", "own-1"]);
    house.root.put("/gone", "").ok();
    let bereft = house.key(&[("gone", Role::Admin)]);
    house.root.delete("/gone").ok();
    assert!(names(&bereft).is_empty());
    let page = house.root.get("/?max-buckets=2").ok();
    assert_eq!(page.tags("Name"), ["other", "own"]);
    let token = page.tag("ContinuationToken");
    assert_eq!(house.root.get(&format!("/?max-buckets=2&continuation-token={token}")).ok().tags("Name"), ["own-1"]);
}

#[test]
fn roles() {
    let house = house();
    let reader = house.key(&[("own", Role::Reader)]);
    let editor = house.key(&[("own", Role::Editor)]);
    assert_eq!(reader.get("/own/k").ok().body, b"secret");
    for ask in [
        Ask::new("PUT", "/own/n").body("x"),
        Ask::new("DELETE", "/own/k"),
        Ask::new("POST", "/own/n?uploads="),
        Ask::new("PUT", "/own/n").header("x-amz-copy-source", "own/k"),
        Ask::new("POST", "/own?delete=").body("<Delete><Object><Key>k</Key></Object></Delete>"),
    ] {
        let answer = reader.ask(&ask);
        assert_eq!(answer.fault(), (403, "AccessDenied".into()), "{} {}", ask.method, ask.path);
    }
    editor.put("/own/n", "x").ok();
    assert_eq!(editor.delete("/own").status, 403, "a world is not an editor's to delete");
    assert_eq!(editor.put("/own", "").fault(), (403, "AccessDenied".into()), "its own name gives the refusal too");
    let both = house.key(&[("own", Role::Editor), ("other", Role::Reader)]);
    both.ask(&Ask::new("PUT", "/own/from-other").header("x-amz-copy-source", "other/k")).ok();
    assert_eq!(both.get("/own/from-other").ok().body, b"secret");
    assert_eq!(both.ask(&Ask::new("PUT", "/other/k2").header("x-amz-copy-source", "own/k")).status, 403);
}
