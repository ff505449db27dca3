//! Rows of many keys: put, listed flat and by directories, forked.

use super::client::spent;
use super::objects::WHOLE;
use super::peer::{Peer, ok};
use super::table::{Aim, Ratio, Table};
use super::{Settings, median, one_byte, timed};
use memchr::memmem;
use std::cell::RefCell;

/// How many keys a directory has.
const EACH: usize = 1000;
/// What a listing should reach of the durable peer.
const LIST: Aim = Aim::AtLeast(3.0);
/// How often the keys are listed once caches are warm.
const PASSES: usize = 3;

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
        // Who else uses the machine moves this less than the speed.
        let worked = RefCell::new(Vec::new());
        let speeds = table.measure(&what, peers, |peer| {
            let list = |count: fn(&[u8]) -> usize| {
                let (took, items) = pages(peer, &format!("&prefix=list/{query}"), count);
                assert_eq!(items, wanted, "{} lists {items} of {wanted}", peer.name);
                took
            };
            // Looked at in full, which takes the client long; then with warm caches, and the best counts.
            list(items);
            let before = spent(&peer.pid);
            let took = (0..PASSES).map(|_| list(said)).fold(f64::MAX, f64::min);
            worked.borrow_mut().push(Some((spent(&peer.pid) - before).as_secs_f64() * 1e6 / (PASSES * keys) as f64));
            Some(keys as f64 / took)
        });
        table.row(&what, "keys/s", &speeds, None, &Vec::from_iter(table.to_durable(&speeds, Some(LIST))));
        let worked = worked.into_inner();
        table.row(
            "  processor time of the server, a key",
            "us",
            &worked,
            None,
            &Vec::from_iter(table.to_durable(&worked, None)),
        );
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

/// The items of a page.
fn items(page: &[u8]) -> usize {
    let page = String::from_utf8_lossy(page);
    page.matches("<Key>").count() + page.matches("<CommonPrefixes>").count()
}

/// How many items a page says that it has.
fn said(page: &[u8]) -> usize {
    field(page, b"<KeyCount>").parse().unwrap()
}

/// The text of the first element that begins with `tag`; empty when there is none.
fn field(page: &[u8], tag: &[u8]) -> String {
    let Some(at) = memmem::find(page, tag) else { return String::new() };
    let text = page[at + tag.len()..].split(|b| *b == b'<').next().unwrap();
    String::from_utf8_lossy(text).into_owned()
}

/// Lists to the end; returns how long it took, and how many items there were.
fn pages(peer: &Peer, query: &str, count: fn(&[u8]) -> usize) -> (f64, usize) {
    let (mut client, mut token, mut items) = (peer.client(), String::new(), 0);
    let took = timed(|| {
        loop {
            let more = if token.is_empty() { String::new() } else { format!("&continuation-token={token}") };
            let page = ok(&mut client, "GET", &format!("/bench?list-type=2&max-keys=1000{more}{query}"), &[], b"");
            items += count(&page);
            let next = field(&page, b"<NextContinuationToken>");
            if next.is_empty() {
                break;
            }
            token = mw_http::uri::encode(next.replace("&amp;", "&").as_bytes(), false);
        }
    });
    (took, items)
}
