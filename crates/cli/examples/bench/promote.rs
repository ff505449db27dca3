//! Promote: the price of what changed, not of what is there.

use crate::client::{Client, Server};
use crate::table::{median, ms, ratio, row, title};
use serde_json::json;
use std::time::{Duration, Instant};

pub fn run(server: &Server, files: usize) {
    title("promote, with guard, snapshot and log entry");
    let mut flat = Vec::new();
    for n in crate::sizes(files) {
        let base = crate::worlds::of(server, n);
        let mut client = server.client();
        let (mut swaps, mut puts) = (Vec::new(), Vec::new());
        for i in 0..30 {
            let fork = format!("swap-{n}-{i}");
            client.fork(&base, &fork);
            client.put(&fork, "changed", format!("{i}").as_bytes());
            let start = Instant::now();
            promote(&mut client, &fork);
            swaps.push(start.elapsed());
            puts.push(client.put(&base, "unrelated", b"x"));
        }
        let (swap, put) = (median(swaps), median(puts));
        flat.push(swap);
        row(
            &format!("unchanged base of {n} files"),
            &ms(swap),
            &format!("{} a durable put of one byte ({}); aim: 3 x", ratio(swap, put), ms(put)),
        );
        let (mut both, mut writes) = (Vec::new(), Vec::new());
        for i in 0..5 {
            let fork = format!("both-{n}-{i}");
            client.fork(&base, &fork);
            writes.push(hundred(&mut client, &base, &format!("ours-{i}")));
            hundred(&mut client, &fork, &format!("theirs-{i}"));
            let start = Instant::now();
            promote(&mut client, &fork);
            both.push(start.elapsed());
        }
        let (both, write) = (median(both), median(writes));
        row(
            &format!("100 files changed on both sides, base of {n} files"),
            &ms(both),
            &format!("{} writing those 100 files ({}); aim: 3 x", ratio(both, write), ms(write)),
        );
    }
    let (first, last) = (flat[0], flat[flat.len() - 1]);
    row("unchanged base: largest world : smallest", &ratio(last, first), "aim: flat");
}

fn hundred(client: &mut Client, world: &str, dir: &str) -> Duration {
    let start = Instant::now();
    for i in 0..100 {
        client.put(world, &format!("{dir}/{i}"), b"content");
    }
    start.elapsed()
}

fn promote(client: &mut Client, fork: &str) {
    let (_, reply) = client.json("POST", &format!("/-/v1/worlds/{fork}/promote"), json!({}));
    assert!(reply["conflicts"].as_array().is_none_or(Vec::is_empty), "{reply}");
}
