//! `make bench-s3`: one S3 server beside others in the same run, row by row in turns, on the same disk.
//!
//! Arguments: `NAME=HOST:PORT=ID=SECRET=PID` for each server; the first is the one whose ratios are shown, and the second the one it is
//! compared with. Each has the bucket `bench`. `MW_BENCH_KEYS` (default 100,000) is how many keys are listed, `MW_BENCH_LARGE` (1,024) the large
//! object in MiB, `MW_BENCH_UPLOAD` (64) how many MiB each of 64 uploads at once has. `syncs` as the only row after the servers puts
//! 200 objects with the first of them and ends, for whoever counts system calls.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench may fail loudly and reads the clock"
)]

#[allow(dead_code, reason = "the other bench uses more of it")]
#[path = "../bench/client.rs"]
mod client;

use client::Client;
use mw_http::sigv4::Credentials;
use std::time::{Duration, Instant};

/// How long a row of small objects runs with each server.
const TIME: Duration = Duration::from_secs(4);
/// How often large rows are done with each server; the best counts, since others use the machine too.
const TRIES: usize = 3;

struct Peer {
    name: String,
    address: String,
    credentials: Credentials,
    pid: String,
}

impl Peer {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '=');
        let mut next = || parts.next().map(str::to_owned);
        let (name, address, id, secret, pid) = (next()?, next()?, next()?, next()?, next()?);
        Some(Self { name, address, credentials: Credentials { id, secret, token: None }, pid })
    }

    fn client(&self) -> Client {
        Client::to(&self.address, &self.credentials)
    }

    fn peak_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
        line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    }
}

fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn ok(client: &mut Client, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    // Large bodies are not hashed here, so that the client's work is not taken for the server's.
    let (status, reply) = client.call_with(method, target, headers, body, body.len() > 1 << 20);
    assert!((200..300).contains(&status), "{method} {target}: {status} {}", String::from_utf8_lossy(&reply));
    reply
}

/// Runs `clients` for a while; returns calls a second.
fn many(peer: &Peer, clients: usize, each: impl Fn(&mut Client, usize, usize) + Sync) -> f64 {
    let start = Instant::now();
    let total: usize = std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients)
            .map(|c| {
                let each = &each;
                scope.spawn(move || {
                    let (mut client, mut n) = (peer.client(), 0);
                    while start.elapsed() < TIME {
                        each(&mut client, c, n);
                        n += 1;
                    }
                    n
                })
            })
            .collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    total as f64 / start.elapsed().as_secs_f64()
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Prints a row: a figure of each server, and the ratio of the first to the second.
fn row(
    what: &str,
    unit: &str,
    peers: &[Peer],
    less_is_better: bool,
    each: impl Fn(&Peer) -> Option<f64>,
) -> Vec<Option<f64>> {
    let figures: Vec<Option<f64>> = peers.iter().map(each).collect();
    let mut line = format!("{what:<34}");
    for figure in &figures {
        line.push_str(&figure.map_or(format!("{:>16}", "-"), |n| format!("{n:>10.1} {unit:<5}")));
    }
    if let [Some(a), Some(b), ..] = figures[..] {
        line.push_str(&format!("  {:>6.2} x", if less_is_better { b / a } else { a / b }));
    }
    println!("{line}");
    figures
}

fn list(peer: &Peer, query: &str) -> (f64, usize) {
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

fn best(work: impl Fn() -> f64) -> f64 {
    (0..TRIES).map(|_| work()).fold(0.0, f64::max)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let peers: Vec<Peer> = arguments.iter().filter_map(|text| Peer::parse(text)).collect();
    assert!(!peers.is_empty(), "name servers: NAME=HOST:PORT=ID=SECRET=PID");
    if arguments.last().is_some_and(|last| last == "syncs") {
        let mut client = peers[0].client();
        (0..200).for_each(|n| drop(ok(&mut client, "PUT", &format!("/bench/syncs/{n}"), &[], &[7; 4096])));
        return;
    }
    let (keys, large, upload) =
        (setting("MW_BENCH_KEYS", 100_000), setting("MW_BENCH_LARGE", 1_024), setting("MW_BENCH_UPLOAD", 64));
    let mut head = format!("{:<34}", "");
    peers.iter().for_each(|peer| head.push_str(&format!("{:>16}", peer.name)));
    println!("{head}  first to second");
    let small = vec![7u8; 4096];
    for clients in [1, 32] {
        row(&format!("put 4 KiB, {clients} connections"), "/s", &peers, false, |peer| {
            Some(many(peer, clients, |client, c, n| {
                drop(ok(client, "PUT", &format!("/bench/small/{c}/{n}"), &[], &small))
            }))
        });
        row(&format!("get 4 KiB, {clients} connections"), "/s", &peers, false, |peer| {
            Some(many(peer, clients, |client, c, n| {
                drop(ok(client, "GET", &format!("/bench/small/{c}/{}", n % 20), &[], b""));
            }))
        });
    }
    // Bytes that do not compress.
    let body: Vec<u8> =
        (0..(large as u64) << 20).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 29) as u8).collect();
    for mib in [64.min(large), large] {
        let part = &body[..mib << 20];
        row(&format!("put {mib} MiB"), "MiB/s", &peers, false, |peer| {
            let mut n = 0;
            Some(
                (0..TRIES)
                    .map(|_| {
                        n += 1;
                        let target = format!("/bench/large/{mib}-{n}");
                        mib as f64 / timed(|| drop(ok(&mut peer.client(), "PUT", &target, &[], part)))
                    })
                    .fold(0.0, f64::max),
            )
        });
        row(&format!("get {mib} MiB"), "MiB/s", &peers, false, |peer| {
            Some(best(|| {
                let target = format!("/bench/large/{mib}-1");
                mib as f64 / timed(|| assert_eq!(ok(&mut peer.client(), "GET", &target, &[], b"").len(), part.len()))
            }))
        });
    }
    row(&format!("copy {large} MiB"), "ms", &peers, true, |peer| {
        let source = format!("/bench/large/{large}-1");
        let headers = [("x-amz-copy-source", source.as_str())];
        let copy =
            |n: usize| 1e3 * timed(|| drop(ok(&mut peer.client(), "PUT", &format!("/bench/copy/{n}"), &headers, b"")));
        Some((0..TRIES).map(copy).fold(f64::MAX, f64::min))
    });
    row("put 1 byte", "ms", &peers, true, |peer| {
        let mut client = peer.client();
        let put = |n: usize| 1e3 * timed(|| drop(ok(&mut client, "PUT", &format!("/bench/byte/{n}"), &[], b"x")));
        let mut times: Vec<f64> = (0..51).map(put).collect();
        times.sort_by(f64::total_cmp);
        Some(times[25])
    });
    row(&format!("fill {keys} keys"), "/s", &peers, false, |peer| {
        let took = timed(|| {
            std::thread::scope(|scope| {
                for c in 0..32 {
                    scope.spawn(move || {
                        let mut client = peer.client();
                        for n in (c..keys).step_by(32) {
                            ok(&mut client, "PUT", &format!("/bench/list/d{:04}/f{n:07}", n / 1000), &[], b"");
                        }
                    });
                }
            });
        });
        Some(keys as f64 / took)
    });
    for (what, query) in [("list flat", "&prefix=list/"), ("list with a delimiter", "&prefix=list/&delimiter=/")] {
        row(&format!("{what}, {keys} keys"), "s", &peers, true, |peer| {
            let (took, items) = list(peer, query);
            let wanted = if query.contains("delimiter") { keys.div_ceil(1000) } else { keys };
            assert_eq!(items, wanted, "{} lists {items} of {wanted}", peer.name);
            Some(took)
        });
    }
    row(&format!("fork of {keys} keys"), "ms", &peers, true, |peer| {
        let fork = |n: usize| {
            let headers = [("x-tigris-fork-source-bucket", "bench")];
            let mut client = peer.client();
            1e3 * timed(|| drop(ok(&mut client, "PUT", &format!("/bench-fork-{n}"), &headers, b"")))
        };
        (peer.name == "manyworlds").then(|| (0..TRIES).map(fork).fold(f64::MAX, f64::min))
    });
    row(&format!("64 uploads of {upload} MiB at once"), "MiB/s", &peers, false, |peer| {
        let part = &body[..(upload << 20).min(body.len())];
        let took = timed(|| {
            std::thread::scope(|scope| {
                for c in 0..64 {
                    scope.spawn(move || drop(ok(&mut peer.client(), "PUT", &format!("/bench/many/{c}"), &[], part)));
                }
            });
        });
        Some(64.0 * part.len() as f64 / 1_048_576.0 / took)
    });
    row("peak memory", "MiB", &peers, true, |peer| Some(peer.peak_mib()));
}
