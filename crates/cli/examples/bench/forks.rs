//! Forks: flat in the size of the world, in the number of forks, in the depth of the chain.

use crate::client::Server;
use crate::table::{median, ms, quantile, ratio, row, title};
use serde_json::json;
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;

pub fn run(server: &mut Server, files: usize) {
    sizes(server, files);
    cold(server);
    chain(server);
    crowd(server);
}

fn sizes(server: &Server, files: usize) {
    title("fork through the API, beside a durable put of one byte through the same API");
    let sizes = crate::sizes(files);
    let worlds: Vec<String> = sizes.iter().map(|n| crate::worlds::of(server, *n)).collect();
    let mut client = server.client();
    // Into a world of its own: a put into one of the others would be in the next fork of that one alone.
    client.create("one-byte-puts");
    // Turn by turn, so that a slow moment of the disk meets all of them, and in a new order each time: what one commit leaves to
    // the next (a page of the log to be begun, say) is then nobody's own.
    let mut times = vec![Vec::new(); sizes.len()];
    let mut spent = vec![Vec::new(); sizes.len()];
    let mut puts = Vec::new();
    let mut order: Vec<usize> = (0..=sizes.len()).collect();
    let mut draw = 1u64;
    for round in 0..ROUNDS {
        for left in (1..order.len()).rev() {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(left, (draw >> 33) as usize % (left + 1));
        }
        for &i in &order {
            match worlds.get(i) {
                Some(world) => {
                    let before = server.cpu();
                    times[i].push(client.fork(world, &format!("f-{i}-{round}")));
                    spent[i].push(server.cpu().saturating_sub(before));
                }
                None => puts.push(client.put("one-byte-puts", "one-byte", b"x")),
            }
        }
    }
    let put = median(puts);
    let mut medians = Vec::new();
    for (i, times) in times.iter_mut().enumerate() {
        let (p50, p99) = (quantile(times, 0.5), quantile(times, 0.99));
        medians.push(p50);
        row(
            &format!("fork of {} files", sizes[i]),
            &format!("{} / {}", ms(p50), ms(p99)),
            &format!(
                "p50 / p99; p50 is {} a put ({}); {} of it on a processor",
                ratio(p50, put),
                ms(put),
                ms(median(std::mem::take(&mut spent[i])))
            ),
        );
    }
    let (least, most) = (medians.iter().min().copied().unwrap(), medians.iter().max().copied().unwrap());
    row("largest p50 : smallest p50", &ratio(most, least), "aim: at most 1.2 x");
}

fn cold(server: &Server) {
    title("fork, first cold read and first write, straight after 4,000 unfolded writes");
    let busy_world = crate::worlds::of(server, 10_000);
    let mut client = server.client();
    let round = |client: &mut crate::client::Client, name: String| -> Duration {
        let start = Instant::now();
        client.fork(&busy_world, &name);
        client.get(&name, "d0005/f005500");
        client.put(&name, "first-write", b"x");
        start.elapsed()
    };
    std::thread::sleep(Duration::from_secs(2));
    let idle: Vec<_> = (0..20).map(|i| round(&mut client, format!("idle-{i}"))).collect();
    let mut busy = Vec::new();
    for i in 0..5 {
        std::thread::scope(|scope| {
            for t in 0..32 {
                let busy_world = &busy_world;
                scope.spawn(move || {
                    let mut client = server.client();
                    for n in 0..125 {
                        client.put(busy_world, &format!("hot/{t}/{n}"), b"hot");
                    }
                });
            }
        });
        busy.push(round(&mut client, format!("busy-{i}")));
    }
    let (idle, busy) = (median(idle), median(busy));
    row("on an idle base", &ms(idle), "");
    row("after 4,000 writes", &ms(busy), &format!("{} the idle one; aim: at most 2 x", ratio(busy, idle)));
}

/// How deep the chain is.
const DEPTH: usize = 1000;
/// How many files are read of each part of the chain: those of neighbouring levels, so that all parts share nodes alike.
const NEIGHBOURS: usize = 16;
/// How often the server is started with cold caches.
const STARTS: usize = 9;

fn chain(server: &mut Server) {
    title("a chain of 1,000 forks, each changing its own file; caches cold; reads in the last of them");
    let file = |level: usize| format!("level-{level:04}");
    {
        let mut client = server.client();
        client.create("chain-0");
        client.put("chain-0", &file(0), b"x");
        for level in 1..=DEPTH {
            client.fork(&format!("chain-{}", level - 1), &format!("chain-{level}"));
            client.put(&format!("chain-{level}"), &file(level), b"x");
        }
    }
    // Parts of the chain by the level at which they begin, from the deepest.
    let last = DEPTH + 1 - NEIGHBOURS;
    let mut parts: Vec<(usize, Vec<Duration>)> = [0, 100, 250, 500, 750, last].map(|k| (k, Vec::new())).into();
    let deepest = format!("chain-{DEPTH}");
    let mut draw = 1u64;
    for round in 0..STARTS {
        server.restart();
        let mut client = server.client();
        // The first request opens the world; what is compared is the reads.
        let start = Instant::now();
        client.get(&deepest, &file(DEPTH / 2 + 100));
        if round == 0 {
            row("opening the deepest fork after a restart, with a read", &ms(start.elapsed()), "");
        }
        // In an order that is another one each time, so that what one read leaves in the caches for the next is nobody's own.
        let mut order: Vec<(usize, usize)> =
            (0..parts.len()).flat_map(|part| (0..NEIGHBOURS).map(move |n| (part, n))).collect();
        for i in (1..order.len()).rev() {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(i, (draw >> 33) as usize % (i + 1));
        }
        for (part, n) in order {
            let (level, times) = &mut parts[part];
            times.push(client.get(&deepest, &file(*level + n)));
        }
    }
    let medians: Vec<Duration> = parts.iter().map(|(_, times)| median(times.clone())).collect();
    let nearest = medians[medians.len() - 1];
    for ((level, times), time) in parts.iter().zip(&medians) {
        row(
            &format!("reads of files last changed {} levels up", DEPTH - level),
            &ms(*time),
            &format!("{} the nearest; median of {}", ratio(*time, nearest), times.len()),
        );
    }
    row("deepest : nearest", &ratio(medians[0], nearest), "aim: at most 1.1 x");
}

fn crowd(server: &Server) {
    title("1,000 forks, and 1,000 keys, made by 64 clients, beside HEAD requests by the same clients");
    let run = |each: &(dyn Fn(&mut crate::client::Client, usize) + Sync)| -> f64 {
        let next = std::sync::atomic::AtomicUsize::new(0);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    let mut client = server.client();
                    loop {
                        let n = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        if n >= 1000 {
                            break;
                        }
                        each(&mut client, n);
                    }
                });
            }
        });
        1000.0 / start.elapsed().as_secs_f64()
    };
    let mut client = server.client();
    client.create("crowd");
    client.put("crowd", "here", b"x");
    let syncs = |client: &mut crate::client::Client| {
        client.json("GET", "/-/v1/status", json!(null)).1["store"]["log_syncs"].as_u64().unwrap_or(0)
    };
    let heads = run(&|client, _| {
        client.ok("HEAD", "/crowd/here", b"");
    });
    let before = syncs(&mut client);
    let forks = run(&|client, n| {
        client.fork("crowd", &format!("crowd-{n}"));
    });
    let used = syncs(&mut client) - before;
    let keys = run(&|client, n| {
        client.json(
            "POST",
            "/-/v1/keys",
            json!({ "name": format!("k{n}"), "grants": [{ "world": format!("crowd-{n}"), "role": "editor" }] }),
        );
    });
    row("HEAD requests", &format!("{heads:.0}/s"), "");
    row(
        "forks",
        &format!("{forks:.0}/s"),
        &format!("{:.2} x HEAD (aim: 0.4); {used} syncs for 1,000 forks", forks / heads),
    );
    row("keys", &format!("{keys:.0}/s"), &format!("{:.2} x HEAD (aim: 0.4)", keys / heads));
}
