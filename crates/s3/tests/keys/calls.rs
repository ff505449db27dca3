//! Calls of the two dialects, and what their answers say.

use crate::client::{Answer, Ask, Client};
use crate::house::House;

const FORM: &str = "application/x-www-form-urlencoded";

/// A call as the Tigris client makes it.
pub fn tigris(target: &str, form: &str) -> Ask {
    Ask::new("POST", target).header("accept", "application/json").header("content-type", FORM).body(form)
}

/// A call as the AWS clients make it.
pub fn aws(form: &str) -> Ask {
    Ask::new("POST", "/").header("content-type", "application/x-www-form-urlencoded; charset=utf-8").body(form)
}

/// The text of a member of a flat JSON document.
pub fn member(answer: &Answer, name: &str) -> String {
    let text = answer.text();
    let mark = format!("\"{name}\":\"");
    let (_, rest) = text.split_once(&mark).unwrap_or_else(|| panic!("no {name} in {text}"));
    rest.split('"').next().unwrap().to_owned()
}

pub fn create(house: &House, who: &Client, name: &str, roles: &str) -> Client {
    let form = format!("Req=%7B%22name%22%3A%22{name}%22%2C%22buckets_role%22%3A{}%7D", encode(roles));
    let answer = who.ask(&tigris("/?Action=CreateAccessKeyWithBucketsRole", &form)).ok();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    Client { addr: house.root.addr, id: member(&answer, "AccessKeyId"), secret: member(&answer, "SecretAccessKey") }
}

pub fn encode(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02X}")).collect()
}

pub fn update(who: &Client, id: &str, roles: &str) -> Answer {
    let form = format!("Req={}", encode(&format!("{{\"id\":\"{id}\",\"buckets_role\":{roles}}}")));
    who.ask(&tigris("/?Action=UpdateAccessKeyWithBucketsRole", &form))
}

/// A key with a policy and nothing else.
pub fn with_policy(house: &House, policy: &str) -> Client {
    let request = mw_world::KeyRequest {
        name: "bounded".into(),
        policy: Some(policy.to_owned()),
        ..mw_world::KeyRequest::default()
    };
    let secret = house.store.create_key(&house.root_principal(), &request).unwrap();
    Client { addr: house.root.addr, id: secret.id, secret: secret.secret }
}

/// Temporary credentials out of an answer: a client, and the token that it must send.
pub fn credentials(house: &House, answer: &Answer) -> (Client, String) {
    let client = Client { addr: house.root.addr, id: answer.tag("AccessKeyId"), secret: answer.tag("SecretAccessKey") };
    (client, answer.tag("SessionToken"))
}
