//! Every way to authenticate × every operation × (own world, another's, one that is not there): the last two give one identical refusal, and
//! the first is never refused for want of rights.

use crate::calls::{aws, credentials, encode};
use crate::client::{Answer, Ask, Client, UNSIGNED};
use crate::house::House;
use crate::operations::operations;
use mw_world::Role;

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
        let sum = "x-amz-checksum-crc32:jNwbgw==";
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
