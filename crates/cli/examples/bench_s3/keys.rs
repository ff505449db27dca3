//! Rows of many keys: put, listed flat and by directories, forked.

use super::objects::WHOLE;
use super::peer::{Peer, ok};
use super::table::{Aim, Ratio, Table};
use super::{Settings, median, one_byte, timed};

/// How many keys a directory has.
const EACH: usize = 1000;
/// What a listing should reach of the durable peer.
const LIST: Aim = Aim::AtLeast(3.0);

pub fn fill(peers: &[Peer], settings: &Settings) {
    let table = Table::new(peers);
    let keys = settings.keys;
    let what = format!("put {keys} empty keys, 32 connections");
    let figures = table.measure(&what, peers, |peer| {
        let took = timed(|| {
            std::thread::scope(|scope| {
                for c in 0..32 {
                    scope.spawn(move || {
                        let mut client = peer.client();
                        for n in (c..keys).step_by(32) {
                            ok(&mut client, "PUT", &format!("/bench/list/d{:04}/f{n:07}", n / EACH), &[], b"");
                        }
                    });
                }
            });
        });
        Some(keys as f64 / took)
    });
    table.row(&what, "/s", &figures, None, &Vec::from_iter(table.to_durable(&figures, None)));
}

pub fn list(peers: &[Peer], settings: &Settings) {
    let table = Table::new(peers);
    let keys = settings.keys;
    for (name, query, wanted) in [("flat", "", keys), ("by directory", "&delimiter=/", keys.div_ceil(EACH))] {
        let what = format!("list {keys} keys {name}");
        let speeds = table.measure(&what, peers, |peer| {
            let list = |_| {
                let (took, items) = pages(peer, &format!("&prefix=list/{query}"));
                assert_eq!(items, wanted, "{} lists {items} of {wanted}", peer.name);
                took
            };
            // The second finds warm caches; the better one counts.
            let took = (0..2).map(list).fold(f64::MAX, f64::min);
            Some(keys as f64 / took)
        });
        table.row(&what, "keys/s", &speeds, None, &Vec::from_iter(table.to_durable(&speeds, Some(LIST))));
    }
    let byte = table.measure("put 1 byte", peers, |peer| Some(one_byte(peer)));
    table.row("put 1 byte", "ms", &byte, None, &Vec::from_iter(table.to_durable(&byte, None)));
    let what = format!("fork of {keys} keys");
    let forks = table.measure(&what, peers, |peer| {
        let mut client = peer.client();
        let headers = [("x-tigris-fork-source-bucket", "bench")];
        let fork = |n| 1e3 * timed(|| drop(ok(&mut client, "PUT", &format!("/bench-fork-{n}"), &headers, b"")));
        peer.is_ours().then(|| median((0..11).map(fork).collect()))
    });
    let ratio = forks[0].zip(byte[0]).map(|(fork, byte)| Ratio::new("put of 1 byte", fork / byte, Some(WHOLE)));
    table.row(&what, "ms", &forks, None, &Vec::from_iter(ratio));
}

/// Lists to the end; returns how long it took, and how many items there were.
fn pages(peer: &Peer, query: &str) -> (f64, usize) {
    let (mut client, mut token, mut items) = (peer.client(), String::new(), 0);
    let took = timed(|| {
        loop {
            let more = if token.is_empty() { String::new() } else { format!("&continuation-token={token}") };
            let page = ok(&mut client, "GET", &format!("/bench?list-type=2&max-keys=1000{more}{query}"), &[], b"");
            let page = String::from_utf8_lossy(&page);
            items += page.matches("<Key>").count() + page.matches("<CommonPrefixes>").count();
            let next = page.split_once("<NextContinuationToken>").and_then(|(_, rest)| rest.split_once('<'));
            let Some((next, _)) = next else { break };
            token = mw_http::uri::encode(next.replace("&amp;", "&").as_bytes(), false);
        }
    });
    (took, items)
}
