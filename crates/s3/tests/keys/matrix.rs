//! Every way to authenticate × every operation × (own world, another's, one that is not there): the last two give one identical refusal, and
//! the first is never refused for want of rights. And for a key that is bound to a prefix × (a key under it, one that is not there, one
//! elsewhere, one that is not there either): the last two give one identical refusal.

use crate::calls::{aws, credentials, encode};
use crate::client::{Answer, Ask, Client, UNSIGNED};
use crate::house::House;
use crate::operations::{operations, operations_on};
use mw_world::{Grant, KeyRequest, Role};

/// A way to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Header,
    UnsignedPayload,
    SignedChunks,
    SignedChunksAndTrailer,
    UnsignedChunks,
    Presigned,
    TemporaryHeader,
    TemporaryPresigned,
}

const WAYS: [Way; 8] = [
    Way::Header,
    Way::UnsignedPayload,
    Way::SignedChunks,
    Way::SignedChunksAndTrailer,
    Way::UnsignedChunks,
    Way::Presigned,
    Way::TemporaryHeader,
    Way::TemporaryPresigned,
];

struct Caller {
    lasting: Client,
    temporary: (Client, String),
}

impl Caller {
    /// Sends a request in a way; none when the way is no way for it.
    fn send(&self, way: Way, ask: &Ask) -> Option<Answer> {
        // What comes in a URL has its headers unsigned with this client, and then they are refused whatever they say.
        let plain = !ask.headers.iter().any(|(n, _)| n.starts_with("x-amz-"));
        let content = ask.method == "PUT" && !ask.body.is_empty();
        let chunked = |sha: &str, trailer: Option<&str>| {
            let mut ask = ask.clone().sha(sha).header("x-amz-decoded-content-length", &ask.body.len().to_string());
            if trailer.is_some() {
                ask = ask.header("x-amz-trailer", "x-amz-checksum-crc32");
            }
            ask
        };
        // The CRC32 of "x", in base64.
        let sum = "x-amz-checksum-crc32:jNwWgw==";
        Some(match way {
            Way::Header => self.lasting.ask(ask),
            Way::UnsignedPayload => self.lasting.ask(&ask.clone().sha(UNSIGNED)),
            Way::SignedChunks if content => {
                let mut wire = self.lasting.sign(&chunked("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", None));
                wire.body = self.lasting.chunks(&wire, &[&ask.body], None);
                self.lasting.raw(&wire)
            }
            Way::SignedChunksAndTrailer if content && ask.body == b"x" => {
                let mut wire = self.lasting.sign(&chunked("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", Some(sum)));
                wire.body = self.lasting.chunks(&wire, &[&ask.body], Some(sum));
                self.lasting.raw(&wire)
            }
            Way::UnsignedChunks if content && ask.body == b"x" => {
                let mut wire = self.lasting.sign(&chunked("STREAMING-UNSIGNED-PAYLOAD-TRAILER", Some(sum)));
                wire.body = format!("1\r\nx\r\n0\r\n{sum}\r\n\r\n").into_bytes();
                self.lasting.raw(&wire)
            }
            Way::SignedChunks | Way::SignedChunksAndTrailer | Way::UnsignedChunks => return None,
            Way::Presigned if plain => self.lasting.raw(&self.lasting.presign(ask, 60)),
            Way::TemporaryHeader => {
                let (client, token) = &self.temporary;
                client.ask(&ask.clone().header("x-amz-security-token", token))
            }
            Way::TemporaryPresigned if plain => {
                let (client, token) = &self.temporary;
                let mut ask = ask.clone();
                ask.query.push(("X-Amz-Security-Token".into(), token.clone()));
                client.raw(&client.presign(&ask, 60))
            }
            Way::Presigned | Way::TemporaryPresigned => return None,
        })
    }
}

fn house() -> (House, Caller) {
    let house = House::new();
    for world in ["own", "other"] {
        house.root.put(&format!("/{world}"), "").ok();
        house.root.put(&format!("/{world}/k"), "secret").ok();
    }
    let lasting = house.key(&[("own", Role::Admin)]);
    let role = encode("arn:aws:iam::000000000000:role/own/admin");
    let given = house.root.ask(&aws(&format!("Action=AssumeRole&RoleSessionName=agent&RoleArn={role}"))).ok();
    let temporary = credentials(&house, &given);
    (house, Caller { lasting, temporary })
}

/// An answer without what must differ.
fn seen(answer: Answer) -> (u16, Vec<(String, String)>, String) {
    let id = answer.header("x-amz-request-id").unwrap_or("none").to_owned();
    let text = answer.text().replace(&id, "ID");
    let headers = answer.headers.into_iter().filter(|(n, _)| n != "x-amz-request-id" && n != "date").collect();
    (answer.status, headers, text)
}

#[test]
fn another_world_and_none_are_one_refusal_however_it_is_asked_for() {
    let (house, caller) = house();
    let mut sent = 0;
    for way in WAYS {
        for (ask, missing) in operations("other").iter().zip(&operations("no-such")) {
            let Some(answer) = caller.send(way, ask) else { continue };
            let answer = seen(answer);
            let name = format!("{way:?} {} {} {:?}", ask.method, ask.path, ask.query);
            assert_eq!(answer.0, 403, "{name}: {}", answer.2);
            assert_eq!(answer, seen(caller.send(way, missing).unwrap()), "{name}");
            sent += 1;
        }
    }
    assert!(sent > 150, "{sent}");
    assert_eq!(house.root.get("/other/k").ok().body, b"secret");
    assert_eq!(house.root.get("/own/copied").status, 404);
}

#[test]
fn ones_own_world_is_open_however_it_is_asked_for() {
    for way in WAYS {
        let (house, caller) = house();
        for ask in operations("own") {
            // To make a world is not a right in a world.
            let makes = ask.method == "PUT" && ask.path == "/own" && ask.query.is_empty();
            let Some(answer) = caller.send(way, &ask) else { continue };
            assert_eq!(
                answer.status == 403,
                makes,
                "{way:?} {} {} {:?}: {}",
                ask.method,
                ask.path,
                ask.query,
                answer.text()
            );
            // The next operation finds what this one may have deleted.
            house.root.put("/own/k", "secret").ok();
        }
    }
}

/// Callers that reach what is under `docs/` in their own world alone: by a grant, and, temporary, by the policy of a call.
fn bound_to_a_prefix() -> (House, Caller) {
    let house = House::new();
    house.root.put("/own", "").ok();
    for key in ["docs/k", "top", "other/top"] {
        house.root.put(&format!("/own/{key}"), "secret").ok();
    }
    let grant = Grant { prefix: "docs/".into(), ..Grant::new("own", Role::Admin) };
    let request = KeyRequest { name: "narrow".into(), grants: vec![grant], ..KeyRequest::default() };
    let secret = house.store.create_key(&house.root_principal(), &request).unwrap();
    let lasting = Client { addr: house.root.addr, id: secret.id, secret: secret.secret };
    let policy = encode(
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::own/docs/*"}}"#,
    );
    let given = house.root.ask(&aws(&format!("Action=GetFederationToken&Name=agent&Policy={policy}")));
    let temporary = credentials(&house, &given.ok());
    (house, Caller { lasting, temporary })
}

/// The operations that are about a key, in a path, a body or a header.
fn about_key(key: &str) -> Vec<Ask> {
    let all = operations_on("own", key, "own/docs");
    let nobody = operations_on("own", "nobody-is-called-so", "own/docs");
    let same = |a: &Ask, b: &Ask| (&a.path, &a.query, &a.headers, &a.body) == (&b.path, &b.query, &b.headers, &b.body);
    all.into_iter().zip(nobody).filter(|(a, b)| !same(a, b)).map(|(ask, _)| ask).collect()
}

#[test]
fn outside_its_prefix_a_key_does_not_learn_what_is_there() {
    let (house, caller) = bound_to_a_prefix();
    let mut sent = 0;
    for (there, absent) in
        [("top", "nil"), ("other/top", "other/nil"), ("other/top", "elsew/top"), ("other/", "elsew/")]
    {
        for way in WAYS {
            for (ask, missing) in about_key(there).iter().zip(&about_key(absent)) {
                let Some(answer) = caller.send(way, ask) else { continue };
                let told = |key: &str, answer: Answer| {
                    let (status, headers, text) = seen(answer);
                    (status, headers, text.replace(key, "KEY"))
                };
                let answer = told(there, answer);
                let name = format!("{way:?} {} {} {:?}", ask.method, ask.path, ask.query);
                // Of many keys each is answered for itself. An instant that the world never had, and an upload of its own that it never
                // began, are refused before the key is looked at.
                let bulk = ask.body.starts_with(b"<Delete>");
                let earlier = ["NoSuchVersion", "NoSuchUpload"].iter().any(|code| answer.2.contains(code));
                assert_eq!(
                    answer.0,
                    if bulk {
                        200
                    } else if earlier {
                        404
                    } else {
                        403
                    },
                    "{name}: {}",
                    answer.2
                );
                assert!(ask.method == "HEAD" || earlier || answer.2.contains("AccessDenied"), "{name}: {}", answer.2);
                assert_eq!(answer, told(absent, caller.send(way, missing).unwrap()), "{name}");
                sent += 1;
            }
        }
    }
    assert!(sent > 400, "{sent}");
    for key in ["top", "other/top"] {
        assert_eq!(house.root.get(&format!("/own/{key}")).ok().body, b"secret");
    }
}

#[test]
fn under_its_prefix_a_key_learns_what_is_there() {
    for way in WAYS {
        let (house, caller) = bound_to_a_prefix();
        for key in ["docs/k", "docs/nil"] {
            for ask in about_key(key) {
                let Some(answer) = caller.send(way, &ask) else { continue };
                let name = format!("{way:?} {} {} {:?}", ask.method, ask.path, ask.query);
                assert_ne!(answer.status, 403, "{name}: {}", answer.text());
                house.root.put("/own/docs/k", "secret").ok();
                house.root.delete("/own/docs/nil").ok();
            }
        }
    }
}
